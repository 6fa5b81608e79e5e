#![no_main]

#[path = "../src/ids.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::ids(bytes));
