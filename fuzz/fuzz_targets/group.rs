#![no_main]

// The decoder is taken as it stands in `crates/bus`, because the crate would bring the engine along; it names the cursor from the
// root.
#[allow(dead_code)]
#[path = "../../crates/bus/src/wire/cursor.rs"]
mod cursor;
#[allow(dead_code)]
#[path = "../../crates/bus/src/group/datagram.rs"]
mod datagram;
mod wire {
    pub(crate) use crate::cursor;
}

#[path = "../src/group.rs"]
mod demands;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| demands::datagrams(bytes));
