#![no_main]

#[path = "../src/ids.rs"]
mod ids;
// The decoders find what they use at the crate's root.
use ids::{StreamOffset, parquet};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ids::ids(bytes));
