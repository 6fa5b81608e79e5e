#![no_main]

#[allow(dead_code)]
#[path = "../src/elog.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::elog_config(bytes));
