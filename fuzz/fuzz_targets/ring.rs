#![no_main]

#[path = "../src/ring.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::files(bytes));
