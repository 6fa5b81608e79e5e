//! The memory that receives a payload, and the plain stores that write it.
//!
//! The length of a payload is known before its first byte is written, and room for it is taken once. So no check and no
//! growth is needed, which would cost a branch for every argument of every log call. Debug builds check nevertheless.

use crate::cut::kept;

/// A cursor over memory that is being filled.
///
/// Invariant: from `at` on, the memory up to the promised end is writable and exclusive.
#[derive(Debug)]
pub struct Out {
    at: *mut u8,
    #[cfg(debug_assertions)]
    left: usize,
}

impl Out {
    /// Makes a cursor that may write `capacity` bytes from `at` on.
    ///
    /// # Safety
    /// Those bytes are writable, and no other code reads or writes them while the cursor is used.
    #[inline(always)]
    pub unsafe fn new(at: *mut u8, capacity: usize) -> Out {
        let _ = capacity;
        Out {
            at,
            #[cfg(debug_assertions)]
            left: capacity,
        }
    }

    #[inline(always)]
    fn advance(&mut self, bytes: usize) -> *mut u8 {
        #[cfg(debug_assertions)]
        {
            self.left = self.left.checked_sub(bytes).expect("a payload is as long as it said");
        }
        let here = self.at;
        self.at = here.wrapping_add(bytes);
        here
    }

    /// Writes a value's bytes; with a constant length, a store or two.
    ///
    /// # Safety
    /// `N` bytes are left.
    #[inline(always)]
    pub unsafe fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        let here = self.advance(N);
        // SAFETY: the caller guarantees that N bytes are left; an array of bytes has no alignment.
        unsafe { here.cast::<[u8; N]>().write(bytes) };
    }

    /// Writes a text that had this length: the length, then the kept bytes.
    ///
    /// # Safety
    /// `text` holds the kept part of a text of this length, and room is left for it and four bytes more.
    #[inline(always)]
    pub unsafe fn put_text(&mut self, text: &[u8], length: usize) {
        let count = kept(length);
        debug_assert!(count <= text.len());
        unsafe { self.put(u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()) };
        let here = self.advance(count);
        // SAFETY: the caller guarantees that the bytes exist and are left. The text is borrowed, so it does not overlap them.
        unsafe { copy(here, text.as_ptr(), count) };
    }
}

/// Copies with whole words that may overlap: most texts in log calls are short, and calling `memcpy` for them costs
/// more than the copy. There is no loop in it, because the compiler would replace a loop by a call to `memcpy`.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
pub(crate) unsafe fn copy(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: each word below lies within the first `length` bytes on both sides.
    unsafe {
        if length > 16 {
            copy_longer(to, from, length);
        } else if length >= 8 {
            word::<8>(to, from, 0);
            word::<8>(to, from, length - 8);
        } else if length >= 4 {
            word::<4>(to, from, 0);
            word::<4>(to, from, length - 4);
        } else if length > 0 {
            word::<1>(to, from, 0);
            word::<1>(to, from, length / 2);
            word::<1>(to, from, length - 1);
        }
    }
}

/// Copies 17 bytes or more; separate, so that the inlined part stays small.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`]; `length` is above 16.
#[inline(never)]
unsafe fn copy_longer(to: *mut u8, from: *const u8, length: usize) {
    // SAFETY: as in `copy`.
    unsafe {
        if length > 64 {
            return std::ptr::copy_nonoverlapping(from, to, length);
        }
        word::<16>(to, from, 0);
        if length > 32 {
            word::<16>(to, from, 16);
            word::<16>(to, from, length - 32);
        }
        word::<16>(to, from, length - 16);
    }
}

/// # Safety
/// `N` bytes from `at` on are readable there and writable here.
#[inline(always)]
unsafe fn word<const N: usize>(to: *mut u8, from: *const u8, at: usize) {
    // SAFETY: the caller guarantees the range; an array of bytes has no alignment.
    unsafe { to.add(at).cast::<[u8; N]>().write(from.add(at).cast::<[u8; N]>().read()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_every_length_arrive_whole_and_alone() {
        for length in 0..200usize {
            let text: Vec<u8> = (0..length).map(|index| index as u8 + 1).collect();
            let mut memory = vec![0xee; length + 4 + 8];
            // SAFETY: this function owns the memory, which is longer than the bytes written.
            unsafe { Out::new(memory.as_mut_ptr(), length + 4).put_text(&text, length) };
            assert_eq!(memory[..4], (length as u32).to_le_bytes());
            assert_eq!(memory[4..][..length], text);
            assert_eq!(memory[4 + length..], [0xee; 8], "nothing is written behind it");
        }
    }
}
