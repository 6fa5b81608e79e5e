//! Content of a block: every eight bytes follow from the block's number and their position, so that a receiver can
//! verify them.

/// Difference of the first numbers of two successive blocks.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Writes every byte of a block.
pub fn fill(block: &mut [u8], number: u64) {
    let first = number.wrapping_mul(STEP);
    for (place, word) in block.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&first.wrapping_add(place as u64).to_le_bytes());
    }
}

/// Returns true if these bytes of a block, from this position on, are correct. Both are multiples of 8.
pub fn is_right(bytes: &[u8], number: u64, from: usize) -> bool {
    let first = number.wrapping_mul(STEP).wrapping_add(from as u64 / 8);
    // The loop does not stop at the first difference, so that it compiles to vector code.
    let differ = bytes.chunks_exact(8).enumerate().fold(0, |differ, (place, word)| {
        let found = word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        differ | (found ^ first.wrapping_add(place as u64))
    });
    differ == 0 && bytes.len().is_multiple_of(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_found_wherever_frames_are_cut() {
        let mut block = vec![0; 64];
        fill(&mut block, 7);
        for from in (0..64).step_by(8) {
            assert!(is_right(&block[from..], 7, from) && !is_right(&block[from..], 8, from));
        }
        for place in 0..64 {
            let mut changed = block.clone();
            changed[place] ^= 0x10;
            assert!(!is_right(&changed, 7, 0));
        }
        assert!(!is_right(&block[..12], 7, 0), "no whole words");
    }
}
