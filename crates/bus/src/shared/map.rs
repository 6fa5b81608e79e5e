//! The mapped ring: the only place that touches shared memory.
//!
//! Layout of the file: `u8[8]` magic, `u64` size of the ring, `u64` valid_from (at byte 64), ring from byte 4096. The file is
//! made by its writer at full size and never shortened, so a mapping never faults; its directory is the user's own.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering, fence},
};

use memmap2::{MmapOptions, MmapRaw};

const MAGIC: u64 = u64::from_le_bytes(*b"tampurng");
const SIZE_AT: usize = 8;
const VALID_AT: usize = 64;
const RING_AT: usize = 4096;

/// The writer took a sample's memory back before or while it was used; what was read of it may be torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the writer used the sample's memory again before it was read: this reader is too slow for loans of this size")]
pub struct Overwritten;

struct Mapping {
    memory: MmapRaw,
    size: usize,
}

impl Mapping {
    fn word(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at + 8 <= RING_AT && at.is_multiple_of(8));
        // SAFETY: `at` is one of the constants above, inside the first page, which every mapping has; the mapping is page
        // aligned, so the word is aligned; it lives as long as `self`, and all access to it is atomic.
        unsafe { &*self.memory.as_mut_ptr().add(at).cast::<AtomicU64>() }
    }

    fn valid_from(&self) -> &AtomicU64 {
        self.word(VALID_AT)
    }

    /// Where bytes of the ring are; `None` where they would run over its end.
    fn place(&self, offset: usize, length: usize) -> Option<NonNull<u8>> {
        if offset > self.size || length > self.size - offset {
            return None;
        }
        // SAFETY: the mapping is RING_AT + size long, and offset + length is within size.
        NonNull::new(unsafe { self.memory.as_mut_ptr().add(RING_AT + offset) })
    }
}

/// The writer's side of a ring file.
pub(crate) struct RingMemory {
    mapping: Mapping,
}

impl RingMemory {
    /// Makes the file, of this size (a multiple of the page).
    pub fn create(path: &Path, size: usize) -> io::Result<RingMemory> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        // Reserving now turns a full file system into an error here instead of a SIGBUS at the first write.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, (RING_AT + size) as u64)?;
        let memory = MmapOptions::new().len(RING_AT + size).map_raw(&file)?;
        let mapping = Mapping { memory, size };
        mapping.word(SIZE_AT).store(size as u64, Ordering::Relaxed);
        mapping.word(0).store(MAGIC, Ordering::Release);
        Ok(RingMemory { mapping })
    }

    pub fn size(&self) -> usize {
        self.mapping.size
    }

    /// Takes back everything before `position`. Bytes written afterwards are seen by readers only after this.
    pub fn take_back(&self, position: u64) {
        self.mapping.valid_from().store(position, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The bytes of a lease.
    ///
    /// # Safety
    /// The caller is the only one to hold a slice of these bytes in this process: leases do not overlap while they live.
    #[expect(
        clippy::mut_from_ref,
        reason = "the memory is shared with other processes; who holds which bytes is kept by the caller"
    )]
    pub unsafe fn lease(&self, offset: usize, length: usize) -> Option<&mut [u8]> {
        let place = self.mapping.place(offset, length)?;
        // SAFETY: in bounds by `place`; unique by the caller. Readers in other processes may look at the bytes meanwhile, but
        // only of positions they were told, and they distrust what they saw unless `valid_from` still covers it.
        Some(unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), length) })
    }
}

/// A reader's side of a ring file.
pub(crate) struct RingView {
    mapping: Mapping,
}

impl RingView {
    /// Maps a ring another process made.
    pub fn open(path: &Path) -> io::Result<RingView> {
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if length <= RING_AT {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the ring file is too short"));
        }
        let memory = MmapOptions::new().len(length).map_raw_read_only(&file)?;
        let mapping = Mapping { memory, size: length - RING_AT };
        let size = mapping.word(SIZE_AT).load(Ordering::Relaxed);
        if mapping.word(0).load(Ordering::Acquire) != MAGIC || size != mapping.size as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a ring file"));
        }
        Ok(RingView { mapping })
    }

    /// Uses the bytes; refuses where the writer has taken them back before or meanwhile.
    pub fn with<R>(&self, position: u64, offset: usize, length: usize, used: impl FnOnce(&[u8]) -> R) -> Result<R, Overwritten> {
        if self.mapping.valid_from().load(Ordering::Acquire) > position {
            return Err(Overwritten);
        }
        let place = self.mapping.place(offset, length).ok_or(Overwritten)?;
        // SAFETY: in bounds by `place`; mapped for as long as `self`. The writer may overwrite the bytes while they are used:
        // they are plain octets, any value of which is valid, and the result is thrown away below if that can have happened.
        let result = used(unsafe { std::slice::from_raw_parts(place.as_ptr(), length) });
        fence(Ordering::SeqCst);
        if self.mapping.valid_from().load(Ordering::Relaxed) > position { Err(Overwritten) } else { Ok(result) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_while_it_is_read_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ring");
        let ring = RingMemory::create(&path, 8192).unwrap();
        // SAFETY: the only lease.
        unsafe { ring.lease(64, 4) }.unwrap().copy_from_slice(b"abcd");
        let view = RingView::open(&path).unwrap();
        assert_eq!(view.with(64, 64, 4, <[u8]>::to_vec), Ok(b"abcd".to_vec()));
        assert_eq!(view.with(64, 64, 4, |_| ring.take_back(128)), Err(Overwritten));
        assert_eq!(view.with(64, 64, 4, |_| ()), Err(Overwritten));
        assert_eq!(view.with(128, 8190, 4, |_| ()), Err(Overwritten), "runs over the end");
    }

    #[test]
    fn foreign_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b.ring");
        std::fs::write(&path, vec![0; 9000]).unwrap();
        assert!(RingView::open(&path).is_err());
        std::fs::write(&path, b"short").unwrap();
        assert!(RingView::open(&path).is_err());
    }
}
