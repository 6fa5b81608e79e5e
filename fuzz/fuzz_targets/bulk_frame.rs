#![no_main]

// The decoders are taken as they stand in `crates/bulk`, file by file, because the crate would bring the engine along; they name
// one another from the root.
#[allow(dead_code)]
#[path = "../../crates/bulk/src/frame.rs"]
mod frame;
#[allow(dead_code)]
#[path = "../../crates/bulk/src/group.rs"]
mod group;
#[allow(dead_code)]
#[path = "../../crates/bulk/src/interface.rs"]
mod interface;
#[allow(dead_code, unused_imports)]
#[path = "../../crates/bulk/src/message.rs"]
mod message;
#[allow(dead_code)]
#[path = "../../crates/bulk/src/receiving.rs"]
mod receiving;
#[allow(dead_code)]
#[path = "../../crates/bulk/src/sending.rs"]
mod sending;

#[path = "../src/bulk.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::bulk_frames(bytes));
