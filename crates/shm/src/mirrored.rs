//! A ring that is mapped twice in a row.
//!
//! Bytes that wrap around the end of the file lie in one piece in memory, so neither writer nor reader handles the end.
//!
//! ```text
//! | header | data | data again |
//! ```
//! Invariants of every mapping here: it has its stated length, it stays until it is dropped, and its file was reserved
//! in full when it was made. So a store cannot fail for lack of space. A process of the same user that shortens the
//! file of a living ring ends both sides by a signal, except a process with the handler of
//! [`crate::survive_truncation`]. The recovery of dead processes reads copies and is not affected.

use std::{io, marker::PhantomData, os::fd::AsFd, slice};

use crate::{space::Space, words::SharedWords};

/// A mapped ring with a header of shared words `H`.
pub struct MirroredRing<H> {
    space: Space,
    header: usize,
    size: usize,
    words: PhantomData<fn() -> H>,
}

// A ring is `Sync` because its parts are. The header is `SharedWords`, which are `Sync`. The data are reached only through a raw
// pointer or an `unsafe` call, whose caller keeps writer and reader apart.

impl<H: SharedWords> MirroredRing<H> {
    /// Maps a file of at least `header + size` bytes; both are multiples of the page, and `size` is a power of two.
    pub fn new(file: impl AsFd, header: usize, size: usize) -> io::Result<MirroredRing<H>> {
        assert!(header >= size_of::<H>() && size.is_power_of_two(), "the header holds its words, and the ring can be masked");
        let space = Space::reserve(header + 2 * size)?;
        space.fill(&file, 0, 0, header + size)?;
        space.fill(&file, header + size, header, size)?;
        Ok(MirroredRing { space, header, size, words: PhantomData })
    }

    /// The shared words at the beginning of the header.
    #[inline]
    pub fn header(&self) -> &H {
        // SAFETY: by `new`, the mapping is page aligned and long enough for the header at its start. Any bytes are a value and all
        // access is atomic, by `SharedWords`.
        unsafe { self.space.start().cast::<H>().as_ref() }
    }

    /// Reports if the file was shortened under the mapping.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.space.is_lost()
    }

    /// Bytes before the data, in the file and in memory.
    #[inline]
    pub fn header_length(&self) -> usize {
        self.header
    }

    /// Bytes of data.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The first byte of the data; 2 x [`MirroredRing::size`] bytes lie there.
    #[inline]
    pub fn data(&self) -> *mut u8 {
        // SAFETY: the mapping is header + 2 size long.
        unsafe { self.space.start().as_ptr().add(self.header) }
    }

    /// Published bytes of the ring's stream.
    ///
    /// # Safety
    /// They have been published and not been released for as long as the slice lives; this keeps the writer away. At
    /// most one round of the ring.
    #[inline]
    pub unsafe fn published(&self, position: u64, length: usize) -> &[u8] {
        assert!(length <= self.size);
        let begin = position as usize & (self.size - 1);
        // SAFETY: begin < size and length <= size, so the slice ends within the second mapping of the data. It is initialised,
        // because a file's bytes are. The caller guarantees that no code writes there meanwhile. If a process of the same user
        // writes anyway, wrong octets are read. Every length read from there is checked against this slice.
        unsafe { slice::from_raw_parts(self.data().add(begin), length) }
    }

    /// Makes every page present and writable now instead of at the first store to it. Other threads may be storing meanwhile.
    pub fn prefault(&self) {
        self.space.populate(0, self.space.length());
    }

    /// Does the same for one piece: at most `most` bytes, a multiple of the page, from the mapping's byte `from` on. Returns
    /// where the piece ends, or `None` if it was the last one.
    pub fn prefault_piece(&self, from: usize, most: usize) -> Option<usize> {
        let from = from.min(self.space.length());
        let length = most.min(self.space.length() - from);
        self.space.populate(from, length);
        (from + length < self.space.length()).then_some(from + length)
    }

    /// Makes the header and the pages of the first records present, for a thread that waits for the ring.
    pub fn prefault_beginning(&self) {
        /// Bytes of data: a thousand short records.
        const BEGINNING: usize = 64 << 10;
        self.space.populate(0, self.header + self.size.min(BEGINNING));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn pieces_cover_the_whole_mapping() {
        let file = crate::create_unnamed("test", 4096 + (1 << 16)).unwrap();
        let ring = MirroredRing::<AtomicU64>::new(&file, 4096, 1 << 16).unwrap();
        let ends: Vec<Option<usize>> = std::iter::successors(Some(ring.prefault_piece(0, 50 << 10)), |end| {
            end.map(|end| ring.prefault_piece(end, 50 << 10))
        })
        .collect();
        assert_eq!(ends, [Some(50 << 10), Some(100 << 10), None], "4 KiB of header and twice 64 KiB");
        assert_eq!(ring.prefault_piece(usize::MAX & !4095, 4096), None);
    }

    #[test]
    fn bytes_round_the_end_lie_in_one_piece() {
        let file = crate::create_unnamed("test", 8192).unwrap();
        let ring = MirroredRing::<AtomicU64>::new(&file, 4096, 4096).unwrap();
        ring.header().store(1, Ordering::Relaxed);
        // SAFETY: the data have 2 x 4096 bytes, and no slice of them lives.
        unsafe { ring.data().add(4094).copy_from_nonoverlapping(b"abcd".as_ptr(), 4) };
        // SAFETY: no code writes from here on.
        assert_eq!(unsafe { ring.published(4094, 4) }, b"abcd");
        // SAFETY: as above.
        assert_eq!(unsafe { ring.published(4096, 2) }, b"cd", "the beginning of the file's data");
    }
}
