//! Demands on the decoders of the archive's lasting files, for any bytes: they return, and values they accepted survive
//! being written and read again.
//!
//! As in `wire.rs` the decoders are taken file by file. Whole damaged files are tested beside them.

#![allow(dead_code, unused_imports, missing_docs)]

#[path = "../../crates/archive/src/parquet/bad.rs"]
mod bad;
#[path = "../../crates/archive/src/parquet/bits.rs"]
mod bits;
#[path = "../../crates/archive/src/parquet/column.rs"]
mod column;
#[path = "../../crates/archive/src/parquet/delta.rs"]
mod delta;
#[path = "../../crates/archive/src/parquet/index.rs"]
mod index;
#[path = "../../crates/archive/src/parquet/lists.rs"]
mod lists;
#[path = "../../crates/archive/src/parquet/words.rs"]
mod words;

use bad::{BadTable, Corrupt};

/// Files of the log are tried; those of other tables differ in nothing but the columns.
const LOG: column::Layout = column::Column::LOG;

/// Rows of a unit and of a row group, as `parquet.rs` has them.
const UNIT: usize = 8192;
const GROUP: usize = 16 * UNIT;

/// The index of a Parquet file of ours, uncompressed. Compression and its checksum are zstd's.
pub fn index(bytes: &[u8]) {
    let Ok(compressed) = zstd::bulk::compress(bytes, 1) else { return };
    let sum = crc32c::crc32c(&compressed);
    let Ok(read) = index::Index::decode(&compressed, bytes.len() as u32, sum, u64::MAX >> 1, &LOG) else { return };
    let mut again = Vec::new();
    read.encode(&LOG, &mut again).expect("memory takes it");
    let (rest, trailer) = again.split_last_chunk::<{ index::TRAILER }>().expect("it has one");
    let (length, raw, sum) = index::Index::trailer(trailer).expect("just written");
    assert_eq!(length as usize, rest.len());
    assert_eq!(index::Index::decode(rest, raw, sum, u64::MAX >> 1, &LOG).expect("just written"), read);
}

/// A page: the first byte says of what.
pub fn page(bytes: &[u8]) {
    let Some((&what, rest)) = bytes.split_first() else { return };
    let Some((count, rest)) = rest.split_first_chunk::<2>() else { return };
    let count = usize::from(u16::from_le_bytes(*count)).min(UNIT);
    match what % 3 {
        0 => {
            let mut numbers = Vec::new();
            if delta::decode(rest, count, &mut numbers).is_ok() {
                assert_eq!(numbers.len(), count);
                let (mut again, mut back) = (Vec::new(), Vec::new());
                delta::encode(&numbers, &mut again);
                delta::decode(&again, count, &mut back).expect("just written");
                assert_eq!(back, numbers);
            }
        }
        1 => {
            let mut ends = Vec::new();
            if let Ok(texts) = delta::decode_texts(rest, count, &mut ends) {
                assert_eq!((ends.len(), texts.len()), (count, ends.last().map_or(0, |&end| end as usize)));
            }
        }
        _ => {
            let (width, bound) = (u32::from(what >> 3), 1 << (what >> 3).min(31));
            let mut codes = Vec::new();
            if bits::decode_hybrid(rest, width, count, bound, &mut codes).is_ok() {
                assert!(codes.len() == count && codes.iter().all(|&code| code < bound));
            }
        }
    }
}
