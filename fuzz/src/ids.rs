//! Demands on the decoder of the archive's files of ids, for any bytes: as in `table.rs`. The target names this module
//! `ids`, as the crate of the archive has it.

#![allow(dead_code, unused_imports, missing_docs)]

#[path = "../../crates/archive/src/parquet/bad.rs"]
mod bad;
#[path = "../../crates/archive/src/parquet/bits.rs"]
mod bits;
#[path = "../../crates/archive/src/ids/hash.rs"]
pub(crate) mod hash;
#[path = "../../crates/archive/src/ids/known.rs"]
mod known;
#[path = "../../crates/archive/src/ids/seen.rs"]
pub(crate) mod seen;

/// Modules that `known.rs` imports.
pub(crate) mod parquet {
    pub(crate) use super::{
        bad::Corrupt,
        bits::{put_varint, take_varint},
    };
}

use bad::Corrupt;
use tampu_types::Incarnation;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamOffset {
    pub(crate) incarnation: Incarnation,
    pub(crate) stream: u32,
    pub(crate) next: u64,
}

/// A file of ids.
pub fn ids(bytes: &[u8]) {
    check(bytes);
    // A checksum guards the rest, which chance does not find: so the same again with a good one.
    if bytes.len() >= 32 {
        let mut dressed = bytes.to_vec();
        dressed[..12].copy_from_slice(b"TAMPUIDS\x01\0\0\0");
        let sum = crc32c::crc32c(&dressed[16..]);
        dressed[12..16].copy_from_slice(&sum.to_le_bytes());
        check(&dressed);
    }
}

fn check(bytes: &[u8]) {
    if let Ok(known) = known::Known::decode(bytes) {
        assert_eq!(known::Known::decode(&known.encode()), Ok(known));
    }
}
