//! Tables by incarnation that are searched for every event.
//!
//! The standard hash resists colliding keys. Here it would be a tenth of an event's cost. Incarnations are few, and a
//! process that could choose them may read and write this installation's bus anyway.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use tampu_types::Incarnation;

/// A table by incarnation.
pub(super) type ByIncarnation<V> = HashMap<Incarnation, V, BuildHasherDefault<Fold>>;

/// A hash that multiplies its input: once for an incarnation, whose two short numbers are only put together.
#[derive(Default)]
pub(super) struct Fold(u64);

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = self.0 << 32 | u64::from(number);
    }

    fn write_u64(&mut self, number: u64) {
        // The high half of the product depends on all bits; the table takes its low bits and its highest.
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}
