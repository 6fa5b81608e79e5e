//! Address space that is unmapped when dropped: the only calls of `mmap` and `munmap`.

use std::{ffi::c_void, io, os::fd::AsFd, ptr::NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::fault::{self, Range};

/// Bytes of address space that this value owns.
pub(crate) struct Space {
    start: NonNull<u8>,
    length: usize,
    range: &'static Range,
}

// SAFETY: a range of addresses belongs to no thread. The types that own a `Space` decide how its bytes are used.
unsafe impl Send for Space {}
// SAFETY: as above.
unsafe impl Sync for Space {}

impl Space {
    /// Reserves addresses that cannot be accessed until [`Space::fill`] puts a file there.
    pub fn reserve(length: usize) -> io::Result<Space> {
        // SAFETY: the kernel chooses the place, so no existing mapping is touched.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::empty(), MapFlags::PRIVATE)? };
        Space::of(start, length)
    }

    /// Maps the first `length` bytes of a file.
    pub fn map(file: impl AsFd, length: usize, protection: ProtFlags) -> io::Result<Space> {
        // SAFETY: the kernel chooses the place, so no existing mapping is touched.
        let start = unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, file, 0)? };
        Space::of(start, length)
    }

    fn of(start: *mut c_void, length: usize) -> io::Result<Space> {
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Space { start, length, range: fault::enter(start.as_ptr().addr(), length) })
    }

    /// Puts `length` bytes of the file from `offset` on at `place`, readable and writable.
    pub fn fill(&self, file: impl AsFd, place: usize, offset: usize, length: usize) -> io::Result<()> {
        assert!(place + length <= self.length, "within the reserved space");
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: by the assertion, the replaced range is part of this reservation; no reference to it exists yet.
        unsafe { mmap(self.start.as_ptr().add(place).cast::<c_void>(), length, protection, flags, file, offset as u64)? };
        Ok(())
    }

    /// Makes `length` bytes from `from` on present and writable now instead of at the first store to each page. `from` is a
    /// multiple of the page.
    pub fn populate(&self, from: usize, length: usize) {
        assert!(from <= self.length && length <= self.length - from, "within the mapping");
        // SAFETY: populating changes no content; by the assertion the range is part of this mapping.
        let populated = unsafe { madvise(self.start.as_ptr().add(from).cast(), length, Advice::LinuxPopulateWrite) };
        // Kernels before 5.14 return an error. There the first store to each page is slower.
        let _ = populated;
    }

    /// Reports if a part of the file vanished under the mapping ([`fault`]).
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.range.is_lost()
    }

    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    #[inline]
    pub fn length(&self) -> usize {
        self.length
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        fault::leave(self.range);
        // SAFETY: mapped by `reserve` or `map`. Every reference into it borrows from the dropped value.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}
