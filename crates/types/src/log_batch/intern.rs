//! Repeated values, each known by a number.
//!
//! A writer need not hash a value again in its next batch. Numbers stay valid over batches, and each batch only marks
//! the numbers that it has used.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher, RandomState},
};

/// Gives equal byte strings equal numbers, and knows where each stands in the present batch.
#[derive(Debug, Clone, Default)]
pub struct Interner {
    numbers: HashMap<Box<[u8]>, u32, Seed>,
    places: Vec<TablePlace>,
    bytes: usize,
}

/// TablePlace of a thing in the table of a batch.
#[derive(Debug, Clone, Copy)]
struct TablePlace {
    /// Number of the batch; 0 for no batch.
    batch: u32,
    index: u32,
}

impl Interner {
    /// The number of these bytes, and whether they were met for the first time.
    #[inline]
    pub fn number(&mut self, bytes: &[u8]) -> (u32, bool) {
        if let Some(&number) = self.numbers.get(bytes) {
            return (number, false);
        }
        let number = self.places.len() as u32;
        self.numbers.insert(bytes.into(), number);
        self.places.push(TablePlace { batch: 0, index: 0 });
        self.bytes += bytes.len();
        (number, true)
    }

    /// TablePlace of the thing of this number in the table of this batch, if it is there.
    #[inline]
    pub fn place(&self, number: u32, batch: u32) -> Option<u32> {
        let place = self.places[number as usize];
        (place.batch == batch).then_some(place.index)
    }

    /// Notes that it stands there.
    pub fn set_place(&mut self, number: u32, batch: u32, index: u32) {
        self.places[number as usize] = TablePlace { batch, index };
    }

    /// Number of things that have a number.
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Memory held for them, roughly.
    pub fn bytes(&self) -> usize {
        // A map's entry, its share of the empty ones, and the allocation.
        self.bytes + self.places.len() * 64
    }

    /// Forgets everything but the memory.
    pub fn clear(&mut self) {
        self.numbers.clear();
        self.places.clear();
        self.bytes = 0;
    }
}

/// A multiply-and-fold hash, seeded once a builder so that an attacker cannot prepare colliding texts. SipHash, the
/// default, costs as much as the rest of encoding a record.
#[derive(Debug, Clone)]
struct Seed(u64);

impl Default for Seed {
    fn default() -> Seed {
        Seed(RandomState::new().hash_one(0u8))
    }
}

impl BuildHasher for Seed {
    type Hasher = Fold;

    fn build_hasher(&self) -> Fold {
        Fold(self.0)
    }
}

struct Fold(u64);

impl Fold {
    #[inline]
    fn mix(&mut self, low: u64, high: u64) {
        // The constants are the first digits of pi, as in many multiplicative hashes: odd and without pattern.
        let product =
            u128::from(low ^ self.0 ^ 0x243f_6a88_85a3_08d3) * u128::from(high ^ 0x1319_8a2e_0370_7345 ^ self.0.rotate_left(32));
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for Fold {
    #[inline]
    fn write(&mut self, mut bytes: &[u8]) {
        let length = bytes.len() as u64;
        while let Some((block, rest)) = bytes.split_first_chunk::<16>() {
            let (low, high) = halves(block);
            self.mix(low, high);
            bytes = rest;
        }
        let mut block = [0; 16];
        block[..bytes.len()].copy_from_slice(bytes);
        let (low, high) = halves(&block);
        self.mix(low, high ^ length << 56);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64, 0);
    }

    /// Folds a second time. With one seed in fifty the last round alone leaves texts that differ in a few bits close
    /// together.
    fn finish(&self) -> u64 {
        let product = u128::from(self.0) * 0x9e37_79b9_7f4a_7c15;
        (product as u64) ^ (product >> 64) as u64
    }
}

#[inline]
fn halves(block: &[u8; 16]) -> (u64, u64) {
    let both = u128::from_le_bytes(*block);
    (both as u64, (both >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outlive_batches_and_places_do_not() {
        let mut interner = Interner::default();
        assert_eq!(interner.number(b"a"), (0, true));
        assert_eq!(interner.number(b"b"), (1, true));
        assert_eq!(interner.number(b"a"), (0, false));
        interner.set_place(0, 1, 7);
        assert_eq!((interner.place(0, 1), interner.place(0, 2), interner.place(1, 1)), (Some(7), None, None));
    }

    #[test]
    fn short_texts_spread() {
        // A map takes its place from the low bits and its tag from the high ones. So both have to spread, for every seed.
        for seed in (0..500).map(|number: u64| Seed(number.wrapping_mul(0xd134_2543_de82_ef95))) {
            for shift in [0, 48] {
                let hash = |text: String| seed.hash_one(text.as_bytes()) >> shift & 0xffff;
                let different: std::collections::HashSet<u64> = (0..1000).map(|number| hash(format!("name{number}"))).collect();
                assert!(different.len() > 950, "{} of 1000 with {seed:?}, bits from {shift}", different.len());
            }
        }
    }
}
