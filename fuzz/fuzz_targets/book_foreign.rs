#![no_main]

#[allow(dead_code)]
#[path = "../src/book.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::foreign(bytes));
