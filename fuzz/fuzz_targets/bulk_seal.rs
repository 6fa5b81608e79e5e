#![no_main]

// The decoders are taken as they stand in `crates/bulk`, file by file, because the crate would bring the engine along; they name
// one another from the root.
#[allow(dead_code)]
#[path = "../../crates/bulk/src/frame.rs"]
mod frame;
#[allow(dead_code, unused_imports)]
#[path = "../../crates/bulk/src/message.rs"]
mod message;
#[allow(dead_code)]
#[path = "../../crates/bulk/src/seal.rs"]
mod seal;

#[path = "../src/seal.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::sealed(bytes));
