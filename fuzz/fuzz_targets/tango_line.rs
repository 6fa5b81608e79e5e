#![no_main]

#[path = "../src/lines.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::tango_line(bytes));
