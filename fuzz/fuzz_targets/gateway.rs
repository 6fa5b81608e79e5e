#![no_main]

#[path = "../src/gateway.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::gateway(bytes));
