#![no_main]

#[path = "../src/wire.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::announced(bytes));
