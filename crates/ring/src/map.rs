//! Memory shared with whoever drains: the only place where files are mapped.
//!
//! A ring's data are mapped twice in a row, so that a record that goes round the end of the file lies in one piece in memory
//! and neither side ever has to think of the end.
//!
//! ```text
//! | header | data | data again |
//! ```
//! Invariant of every mapping here: it is as long as it says, it stays until it is dropped, and the file behind it was reserved
//! in full when it was made, so that a store cannot fail for want of space. A process of the same user that shortens the file
//! of a living ring would end both sides by a signal; recovery of the dead does not map (`image.rs`) and has no such weakness.

use std::{ffi::c_void, io, os::fd::AsFd, ptr::NonNull, slice};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::lines::{LINES_LEN, Lines};

/// Some bytes of address space that are given back when dropped.
struct Space {
    start: NonNull<u8>,
    length: usize,
}

impl Space {
    fn reserve(length: usize) -> io::Result<Space> {
        // SAFETY: the kernel chooses the place, so nothing that is mapped is touched.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::empty(), MapFlags::PRIVATE)? };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Space { start, length })
    }

    /// Puts `length` bytes of the file from `offset` on at `place`.
    fn fill(&self, file: impl AsFd, place: usize, offset: usize, length: usize) -> io::Result<()> {
        assert!(place + length <= self.length, "within the reserved space");
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: what is replaced is our own reservation, by the assertion; nothing refers to it yet.
        unsafe { mmap(self.start.as_ptr().add(place).cast::<c_void>(), length, protection, flags, file, offset as u64)? };
        Ok(())
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // SAFETY: reserved by `reserve`, and whoever borrowed from it borrowed from the value that is being dropped.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// A mapped ring.
pub(crate) struct RingMap {
    space: Space,
    header: usize,
    size: usize,
}

// SAFETY: the lines are atomics. The data are written only through `Producer`, by one thread at a time, beyond what is
// published, and read by the drainer only before that.
unsafe impl Send for RingMap {}
// SAFETY: as above.
unsafe impl Sync for RingMap {}

impl RingMap {
    /// Maps a file of at least `header + size` bytes; both are multiples of the page.
    pub fn new(file: impl AsFd, header: usize, size: usize) -> io::Result<RingMap> {
        assert!(header >= LINES_LEN && size.is_power_of_two(), "as every ring file is");
        let space = Space::reserve(header + 2 * size)?;
        space.fill(&file, 0, 0, header + size)?;
        space.fill(&file, header + size, header, size)?;
        Ok(RingMap { space, header, size })
    }

    /// The shared lines.
    pub fn lines(&self) -> &Lines {
        // SAFETY: the mapping begins with them: it is page aligned and at least LINES_LEN long by `new`. All words of it that
        // change are atomics; those that are not were written before it was mapped and are never read through this.
        unsafe { self.space.start.cast::<Lines>().as_ref() }
    }

    /// Where in the file the data begin.
    pub fn header(&self) -> usize {
        self.header
    }

    /// Bytes of data.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The first byte of the data; 2 x [`RingMap::size`] bytes lie there.
    pub fn data(&self) -> *mut u8 {
        // SAFETY: the mapping is header + 2 size long.
        unsafe { self.space.start.as_ptr().add(self.header) }
    }

    /// Published bytes of the ring's stream.
    ///
    /// # Safety
    /// They have been published and not been given back for as long as the slice lives; that is what keeps the writer away.
    /// At most one round of the ring.
    pub unsafe fn published(&self, position: u64, length: usize) -> &[u8] {
        assert!(length <= self.size);
        let begin = position as usize & (self.size - 1);
        // SAFETY: begin < size and length <= size, so the slice ends within the second mapping of the data. Initialised,
        // because a file's bytes are. Nobody writes there meanwhile, by the caller. A process of the same user that does so
        // nevertheless can make us read wrong octets; every length read from there is checked against this slice.
        unsafe { slice::from_raw_parts(self.data().add(begin), length) }
    }

    /// Makes every page present and writable now instead of at the first store to it. Others may be storing meanwhile.
    pub fn prefault(&self) {
        self.populate(self.space.length);
    }

    /// The same for the header and what the first records will lie in, for a thread that waits for it.
    pub fn prefault_beginning(&self) {
        /// Bytes of data: a thousand short records.
        const BEGINNING: usize = 64 << 10;
        self.populate(self.header + self.size.min(BEGINNING));
    }

    fn populate(&self, length: usize) {
        debug_assert!(length <= self.space.length);
        // SAFETY: populating changes no content; the range is the beginning of our mapping.
        let populated = unsafe { madvise(self.space.start.as_ptr().cast(), length, Advice::LinuxPopulateWrite) };
        // Kernels before 5.14 cannot: there the first round of the ring is slower.
        let _ = populated;
    }
}

/// A mapped file without a mirror: words only.
pub(crate) struct WordMap {
    space: Space,
}

// SAFETY: all access is by atomics.
unsafe impl Send for WordMap {}
// SAFETY: as above.
unsafe impl Sync for WordMap {}

impl WordMap {
    /// Maps the first `length` bytes of a file that has as many.
    pub fn new(file: impl AsFd, length: usize) -> io::Result<WordMap> {
        let space = Space::reserve(length)?;
        space.fill(file, 0, 0, length)?;
        Ok(WordMap { space })
    }

    /// The word at this multiple of 8.
    pub fn word(&self, at: usize) -> &std::sync::atomic::AtomicU64 {
        assert!(at + 8 <= self.space.length && at.is_multiple_of(8));
        // SAFETY: within the page-aligned mapping by the assertion, aligned, and only ever used as atomics.
        unsafe { self.space.start.add(at).cast().as_ref() }
    }

    /// The half word at this multiple of 4: a futex has 32 bits. No word of `word` is also used as halves.
    pub fn half(&self, at: usize) -> &std::sync::atomic::AtomicU32 {
        assert!(at + 4 <= self.space.length && at.is_multiple_of(4));
        // SAFETY: as above.
        unsafe { self.space.start.add(at).cast().as_ref() }
    }
}
