#![no_main]

#[allow(dead_code)]
#[path = "../../crates/archive/src/framed.rs"]
mod framed;
#[allow(dead_code)]
#[path = "../../crates/archive/src/wal/frame.rs"]
mod frame;
mod wal {
    pub(crate) use super::frame;
}
#[path = "../src/table.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::page(bytes));
