//! Copying a few bytes without calling `memcpy`, whose call costs more than the copy.

/// Longer pieces are worth the call.
const SHORT: usize = 64;

/// Copies `length` bytes; both ends of each width are copied, so that the middle is written twice and no loop is
/// needed.
///
/// # Safety
/// `from` is valid for reads and `to` for writes of `length` bytes, and the two do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller guarantees the ranges. Each piece below lies between their start and their end, because its width is at
    // most `length`.
    unsafe {
        if length <= 16 {
            if length >= 8 {
                piece::<8>(from, to, 0);
                piece::<8>(from, to, length - 8);
            } else if length >= 4 {
                piece::<4>(from, to, 0);
                piece::<4>(from, to, length - 4);
            } else if length > 0 {
                piece::<1>(from, to, 0);
                piece::<1>(from, to, length / 2);
                piece::<1>(from, to, length - 1);
            }
        } else if length <= SHORT {
            piece::<16>(from, to, 0);
            if length > 32 {
                piece::<16>(from, to, 16);
                piece::<16>(from, to, length - 32);
            }
            piece::<16>(from, to, length - 16);
        } else {
            std::ptr::copy_nonoverlapping(from, to, length);
        }
    }
}

/// # Safety
/// `at + WIDTH` bytes are valid on both sides.
#[inline(always)]
unsafe fn piece<const WIDTH: usize>(from: *const u8, to: *mut u8, at: usize) {
    // SAFETY: the caller guarantees the range; arrays of bytes have no alignment.
    unsafe { to.add(at).cast::<[u8; WIDTH]>().write(from.add(at).cast::<[u8; WIDTH]>().read()) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_length_arrives_whole_and_nothing_beside_it_is_touched() {
        let from: Vec<u8> = (1..=200).collect();
        for length in 0..=200 {
            let mut to = vec![0; 202];
            // SAFETY: `from` has 200 bytes, `to` has 201 from the second on.
            unsafe { super::copy(from.as_ptr(), to.as_mut_ptr().add(1), length) };
            assert_eq!(to[1..=length], from[..length]);
            assert!(to[0] == 0 && to[length + 1..].iter().all(|&byte| byte == 0), "{length}");
        }
    }
}
