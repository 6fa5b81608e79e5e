#![no_main]

#[path = "../src/kept.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::spool(bytes));
