#![no_main]

#[path = "../src/columns.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::columns(bytes));
