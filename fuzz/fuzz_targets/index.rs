#![no_main]

#[allow(dead_code)]
#[path = "../../crates/log/src/archive/frame.rs"]
mod frame;
#[path = "../src/table.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::index(bytes));
