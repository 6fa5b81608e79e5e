//! The mapped ring: the only place that touches shared memory.
//!
//! Layout of the file: `u8[8]` magic, `u64` size of the ring, `u64` valid_from (at byte 64), from byte 128 words for the ring's
//! own use, then the ring, at a byte that follows from what the ring is for. The file is made by its writer at full size and
//! never shortened, so a mapping never faults; its directory is the user's own.

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

/// The writer took a sample's memory back before or while it was used; what was read of it may be torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the writer used the sample's memory again before it was read: this reader is too slow for loans of this size")]
pub struct Overwritten;

/// The words before the ring that are not this module's own.
const WORDS_AT: usize = 128;

struct Mapping {
    memory: MmapRaw,
    /// Where the ring begins.
    front: usize,
    size: usize,
}

impl Mapping {
    fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at + 8 <= self.front && at.is_multiple_of(8), "a word before the ring");
        // SAFETY: the word is before the ring (above), which every mapping holds; the mapping is page aligned, so the word is
        // aligned; it lives as long as `self`, and all access to what is before the ring is atomic.
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
        // SAFETY: the mapping is front + size long, and offset + length is within size.
        NonNull::new(unsafe { self.memory.as_mut_ptr().add(self.front + offset) })
    }
}

/// The writer's side of a ring file.
pub(crate) struct RingMemory {
    mapping: Mapping,
}

impl RingMemory {
    /// Makes the file: so many bytes before the ring, and a ring of this size (both multiples of the page).
    pub fn create(path: &Path, front: usize, size: usize) -> io::Result<RingMemory> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
        // Reserving now turns a full file system into an error here instead of a SIGBUS at the first write.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, (front + size) as u64)?;
        let memory = MmapOptions::new().len(front + size).map_raw(&file)?;
        let mapping = Mapping { memory, front, size };
        mapping.word(SIZE_AT).store(size as u64, Ordering::Relaxed);
        mapping.word(0).store(MAGIC, Ordering::Release);
        Ok(RingMemory { mapping })
    }

    pub fn size(&self) -> usize {
        self.mapping.size
    }

    /// One of the words before the ring.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        self.mapping.word(WORDS_AT + 8 * index)
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
    /// Maps a ring another process made, with so many bytes before it.
    pub fn open(path: &Path, front: usize) -> io::Result<RingView> {
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        if length <= front {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the ring file is too short"));
        }
        let memory = MmapOptions::new().len(length).map_raw_read_only(&file)?;
        let mapping = Mapping { memory, front, size: length - front };
        let size = mapping.word(SIZE_AT).load(Ordering::Relaxed);
        if mapping.word(0).load(Ordering::Acquire) != MAGIC || size != mapping.size as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a ring file"));
        }
        Ok(RingView { mapping })
    }

    /// One of the words before the ring.
    pub fn word(&self, index: usize) -> &AtomicU64 {
        self.mapping.word(WORDS_AT + 8 * index)
    }

    pub fn size(&self) -> usize {
        self.mapping.size
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
        let ring = RingMemory::create(&path, 4096, 8192).unwrap();
        // SAFETY: the only lease.
        unsafe { ring.lease(64, 4) }.unwrap().copy_from_slice(b"abcd");
        let view = RingView::open(&path, 4096).unwrap();
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
        assert!(RingView::open(&path, 4096).is_err());
        std::fs::write(&path, b"short").unwrap();
        assert!(RingView::open(&path, 4096).is_err());
    }
}
