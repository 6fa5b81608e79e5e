#![no_main]

#[path = "../src/call.rs"]
mod demand;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demand::call(bytes));
