//! A table of known items that is read without a lock and without an allocation.
//!
//! The table is open, bounded, and only grows. A slot is written once, so a reader checks only the flag of the slot.
//! Rejected: a map behind a read lock. All threads would write to the lock's counter at every call.

use std::sync::OnceLock;

use parking_lot::Mutex;

/// A hash and its value. Boxed: most slots stay empty.
type Slot<T> = OnceLock<(u64, Box<T>)>;

/// A table of bounded size; a value is found by a hash and a comparison.
pub(super) struct Table<T> {
    /// A power of two, more than will ever be filled, so that a search ends.
    slots: Box<[Slot<T>]>,
    /// Number of free slots; locked while an item is added.
    room: Mutex<usize>,
}

impl<T> Table<T> {
    /// Makes a table with room for `most` values.
    pub fn new(most: usize) -> Table<T> {
        let slots = (most + most / 2 + 1).next_power_of_two();
        Table { slots: (0..slots).map(|_| OnceLock::new()).collect(), room: Mutex::new(most) }
    }

    /// The one of this hash that is the same.
    #[cfg(any(feature = "tracing", test))]
    #[inline]
    pub fn find(&self, hash: u64, same: impl Fn(&T) -> bool) -> Option<&T> {
        self.probe(hash, &same).ok()
    }

    /// Finds a value, or adds it if it is missing. `None` if there is no room for it.
    #[inline]
    pub fn find_or_add(&self, hash: u64, same: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Option<&T> {
        self.probe(hash, &same).ok().or_else(|| self.add(hash, &same, make))
    }

    #[cold]
    #[inline(never)]
    fn add(&self, hash: u64, same: &impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Option<&T> {
        let mut room = self.room.lock();
        // Another thread may have inserted the entry meanwhile.
        let empty = match self.probe(hash, same) {
            Ok(found) => return Some(found),
            Err(empty) => empty,
        };
        *room = room.checked_sub(1)?;
        Some(&self.slots[empty].get_or_init(|| (hash, Box::new(make()))).1)
    }

    /// The value, or the slot where it would stand.
    #[inline]
    fn probe(&self, hash: u64, same: &impl Fn(&T) -> bool) -> Result<&T, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.slots[at].get() {
                None => return Err(at),
                Some((known, value)) if *known == hash && same(value) => return Ok(value),
                Some(_) => at = (at + 1) & mask,
            }
        }
    }
}

/// A hash of numbers and texts. It is no defence against chosen keys: they are from this program, and equal hashes cost
/// a comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mix(u64);

impl Mix {
    pub const START: Mix = Mix(0x243f_6a88_85a3_08d3);

    #[inline]
    pub fn number(self, number: u64) -> Mix {
        // The two halves of a product depend on every bit of its factors.
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15_u128;
        Mix((product as u64 ^ (product >> 64) as u64).wrapping_add(1))
    }

    #[inline]
    pub fn text(self, text: &str) -> Mix {
        let (words, rest) = text.as_bytes().as_chunks::<8>();
        let mixed = words.iter().fold(self, |mix, word| mix.number(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mixed.number(u64::from_le_bytes(last)).number(text.len() as u64)
    }

    #[inline]
    pub fn hash(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeMap,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_is_a_map_up_to_its_bound(keys in prop::collection::vec("[ab]{0,3}", 0..40), bits in 0u32..8) {
            // The mask leaves few bits of the hash, so that many keys collide.
            let hash = |key: &str| Mix::START.text(key).hash() & ((1 << bits) - 1);
            let (table, mut model) = (Table::new(9), BTreeMap::new());
            for (number, key) in keys.iter().enumerate() {
                let found = table.find_or_add(hash(key), |(known, _)| known == key, || (key.clone(), number));
                let room = model.len() < 9;
                let expected = if room { Some(*model.entry(key.clone()).or_insert(number)) } else { model.get(key).copied() };
                prop_assert_eq!(found.map(|(_, number)| *number), expected);
            }
            for (key, number) in &model {
                prop_assert_eq!(table.find(hash(key), |(known, _)| known == key).map(|found| found.1), Some(*number));
            }
        }

        #[test]
        fn different_texts_have_different_hashes(one: String, other: String) {
            prop_assert_eq!(Mix::START.text(&one).hash() == Mix::START.text(&other).hash(), one == other);
        }
    }

    #[test]
    fn threads_make_each_value_once() {
        let (table, made) = (Table::new(100), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for key in 0..100_u64 {
                        let make = || {
                            made.fetch_add(1, Ordering::Relaxed);
                            key
                        };
                        assert_eq!(table.find_or_add(key % 7, |known| *known == key, make), Some(&key));
                    }
                });
            }
        });
        assert_eq!(made.into_inner(), 100);
        assert_eq!(table.find_or_add(0, |known| *known == 100, || 100), None);
    }
}
