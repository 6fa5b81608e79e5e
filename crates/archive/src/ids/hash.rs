//! Hasher for the archive's own tables, whose keys are numbers and names by the million.
//!
//! The standard hasher resists colliding keys. The keys here come from members of the domain, who have easier ways to
//! overload an archive. The standard hasher costs four times as much.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes [`Mixing`] hashers.
pub(crate) type Mixed = BuildHasherDefault<Mixing>;

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Multiplies and folds, eight bytes at a time.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mixing(u64);

impl Mixing {
    fn mix(&mut self, value: u64) {
        let product = u128::from(self.0 ^ value) * u128::from(FACTOR);
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (chunks, rest) = bytes.as_chunks::<8>();
        chunks.iter().for_each(|chunk| self.mix(u64::from_le_bytes(*chunk)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        // Mixes in the length, so that zeros at the end count.
        self.mix(u64::from_le_bytes(last).wrapping_add((bytes.len() as u64).rotate_right(8)).wrapping_add(1));
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value).wrapping_add(1));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value.wrapping_add(1));
    }

    fn write_i64(&mut self, value: i64) {
        self.mix((value as u64).wrapping_add(1));
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, hash::BuildHasher};

    use super::*;

    #[test]
    fn neighbours_get_different_hashes() {
        let mut seen = HashSet::new();
        for number in 0..10_000u32 {
            assert!(seen.insert(Mixed::default().hash_one(number) >> 20), "{number}");
        }
        let texts = ["", "\0", "\0\0", "a", "a\0", "aaaaaaaa", "aaaaaaaa\0", "aaaaaaaab"];
        let hashes: HashSet<u64> = texts.iter().map(|text| Mixed::default().hash_one(text.as_bytes())).collect();
        assert_eq!(hashes.len(), texts.len());
    }
}
