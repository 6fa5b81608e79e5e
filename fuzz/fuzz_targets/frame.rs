#![no_main]

#[allow(dead_code)]
#[path = "../../crates/archive/src/framed.rs"]
mod framed;
#[path = "../src/kept.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::frame(bytes));
