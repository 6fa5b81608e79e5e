//! A ring whose writer reclaims memory without permission, and whose readers detect it.
//!
//! ```text
//! 0         8         64             128                        front
//! +---------+---------+--------------+--------------------------+------
//! | magic   | size    | valid_from   | the protocol's own words | ring      in the host's byte order
//! | u64     | u64     | u64          |                          |
//! +---------+---------+--------------+--------------------------+------
//! ```
//! `valid_from` is the position before which no byte is valid. A reader checks it before *and after* it uses bytes. If
//! the writer has reclaimed the memory in between, the reader knows that the bytes may be torn. So a stopped reader
//! pins nothing, which zenoh's own shared memory cannot provide (one stopped reader stalled everybody for 3.4 s).
//!
//! The writer makes the file at full size and never shortens it, so a mapping never faults. The directory is the user's
//! own. Where another process shortens the file all the same, reader and writer learn it ([`crate::survive_truncation`]):
//! the reader takes nothing from the ring, and the writer puts nothing into it.
//!
//! Rejected: a free list of slots, which needs size classes and a generation a slot. Rejected: reference counts in
//! shared memory, because a killed reader never decrements its count.

use std::{
    fs::File,
    io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering, fence},
};

use crate::{file::create_reserved, mapping::Mapping};

const MAGIC: u64 = u64::from_le_bytes(*b"tampurng");
const SIZE_AT: usize = 8;
const VALID_AT: usize = 64;
/// First byte of the words that belong to the protocol on top.
const WORDS_AT: usize = 128;

/// The writer used a sample's memory again before or while it was read; the bytes may be torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the writer used the sample's memory again before it was read: this reader is too slow for loans of this size")]
pub struct Overwritten;

struct RingMapping {
    memory: Mapping,
    /// Byte at which the ring begins.
    front: usize,
}

impl RingMapping {
    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at + 8 <= self.front, "a word before the ring");
        self.memory.word(at)
    }

    #[inline]
    fn valid_from(&self) -> &AtomicU64 {
        self.word(VALID_AT)
    }

    #[inline]
    fn size(&self) -> usize {
        self.memory.len() - self.front
    }

    /// Uses the bytes at `offset`, as [`RingView::with`] does.
    #[inline]
    fn with<R>(&self, position: u64, offset: usize, length: usize, used: impl FnOnce(&[u8]) -> R) -> Result<R, Overwritten> {
        if self.valid_from().load(Ordering::Acquire) > position {
            return Err(Overwritten);
        }
        let at = self.front.checked_add(offset).ok_or(Overwritten)?;
        let result = self.memory.with(at, length, used).ok_or(Overwritten)?;
        fence(Ordering::SeqCst);
        if self.is_valid(position) { Ok(result) } else { Err(Overwritten) }
    }

    #[inline]
    fn is_valid(&self, position: u64) -> bool {
        self.valid_from().load(Ordering::Relaxed) <= position && !self.memory.is_lost()
    }
}

/// The writer's side of a ring file.
pub struct RingMemory {
    mapping: RingMapping,
}

impl RingMemory {
    /// Creates the file: `front` bytes before the ring and a ring of `size` bytes, both multiples of the page.
    pub fn create(path: &Path, front: usize, size: usize) -> io::Result<RingMemory> {
        let file = create_reserved(path, front + size)?;
        let mapping = RingMapping { memory: Mapping::read_write(&file, front + size)?, front };
        mapping.word(SIZE_AT).store(size as u64, Ordering::Relaxed);
        mapping.word(0).store(MAGIC, Ordering::Release);
        Ok(RingMemory { mapping })
    }

    /// Bytes of the ring.
    #[inline]
    pub fn size(&self) -> usize {
        self.mapping.size()
    }

    /// Word `index` of those that belong to the protocol on top.
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        self.mapping.word(WORDS_AT + 8 * index)
    }

    /// Reports if the file was shortened under the mapping: no reader sees what is written.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.mapping.memory.is_lost()
    }

    /// Takes back everything before `position`. Bytes written afterwards are seen by readers only after this.
    #[inline]
    pub fn take_back(&self, position: u64) {
        self.mapping.valid_from().store(position, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Copies `bytes` to `offset` of the ring. Returns false where they would run over its end, or if the ring is lost.
    #[inline]
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        // SAFETY: the slice is the only one of this ring: it ends with this call, which has `self` exclusively. Leases borrow the
        // memory through a shared reference.
        let Some(place) = (unsafe { self.lease(offset, bytes.len()) }) else { return false };
        place.copy_from_slice(bytes);
        !self.is_lost()
    }

    /// Uses bytes that were placed at `position`, as [`RingView::with`] does: this process may take them back and write there
    /// meanwhile, in another thread.
    #[inline]
    pub fn with<R>(&self, position: u64, offset: usize, length: usize, used: impl FnOnce(&[u8]) -> R) -> Result<R, Overwritten> {
        self.mapping.with(position, offset, length, used)
    }

    /// The bytes of a lease; `None` where they would run over the end of the ring.
    ///
    /// # Safety
    /// The caller is the only one to hold a slice of these bytes in this process: leases do not overlap while they live.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "other processes share the memory; the caller keeps account of who has which bytes")]
    pub unsafe fn lease(&self, offset: usize, length: usize) -> Option<&mut [u8]> {
        let at = self.mapping.front.checked_add(offset)?;
        self.mapping.memory.address(at, length)?;
        // SAFETY: the mapping is writable, by `create`; the caller guarantees that the slice is unique. Readers in other processes
        // may read the bytes meanwhile, but only at announced positions. They discard the bytes unless `valid_from` still covers
        // them.
        Some(unsafe { self.mapping.memory.bytes_mut(at, length) })
    }
}

/// A reader's side of a ring file.
pub struct RingView {
    mapping: RingMapping,
}

impl RingView {
    /// Maps the ring that another process created with `front` bytes before it.
    pub fn open(path: &Path, front: usize) -> io::Result<RingView> {
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if length <= front {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the ring file is too short"));
        }
        let mapping = RingMapping { memory: Mapping::read_only(&file, length)?, front };
        let size = mapping.word(SIZE_AT).load(Ordering::Relaxed);
        if mapping.word(0).load(Ordering::Acquire) != MAGIC || size != mapping.size() as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a ring file"));
        }
        Ok(RingView { mapping })
    }

    /// Word `index` of those that belong to the protocol on top.
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        self.mapping.word(WORDS_AT + 8 * index)
    }

    /// Bytes of the ring.
    #[inline]
    pub fn size(&self) -> usize {
        self.mapping.size()
    }

    /// Reports if the file was shortened under the mapping: nothing more arrives here.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.mapping.memory.is_lost()
    }

    /// Uses the bytes at `offset`, which the writer placed at `position`. Fails if the writer took them back before or
    /// meanwhile, or if the ring is lost.
    #[inline]
    pub fn with<R>(&self, position: u64, offset: usize, length: usize, used: impl FnOnce(&[u8]) -> R) -> Result<R, Overwritten> {
        self.mapping.with(position, offset, length, used)
    }

    /// Reports if the writer has not taken back what it placed at `position`.
    #[inline]
    pub fn is_valid(&self, position: u64) -> bool {
        self.mapping.is_valid(position)
    }

    /// Address of the bytes at `offset`, for code outside Rust. They stay mapped as long as the view. Their writer may change
    /// them, so the reader checks [`RingView::is_valid`] after a fence.
    pub fn address(&self, offset: usize, length: usize) -> Option<*const u8> {
        let at = self.mapping.front.checked_add(offset)?;
        Some(self.mapping.memory.address(at, length)?.as_ptr())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_taken_back_while_it_is_read_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ring");
        let ring = RingMemory::create(&path, 4096, 8192).unwrap();
        // SAFETY: the only lease.
        unsafe { ring.lease(64, 4) }.unwrap().copy_from_slice(b"abcd");
        let view = RingView::open(&path, 4096).unwrap();
        assert_eq!(view.with(64, 64, 4, <[u8]>::to_vec), Ok(b"abcd".to_vec()));
        let place = view.address(64, 4).unwrap();
        assert!(view.with(64, 64, 4, |bytes| bytes.as_ptr() == place).unwrap() && view.is_valid(64));
        assert_eq!(view.with(64, 64, 4, |_| ring.take_back(128)), Err(Overwritten));
        assert!(!view.is_valid(64) && view.is_valid(128));
        assert_eq!(view.address(8190, 4), None, "runs over the end");
        assert_eq!(view.with(64, 64, 4, |_| ()), Err(Overwritten));
        assert_eq!(view.with(128, 8190, 4, |_| ()), Err(Overwritten), "runs over the end");
    }

    #[test]
    fn foreign_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.ring");
        std::fs::write(&path, vec![0; 9000]).unwrap();
        assert!(RingView::open(&path, 4096).is_err());
        std::fs::write(&path, b"short").unwrap();
        assert!(RingView::open(&path, 4096).is_err());
    }
}
