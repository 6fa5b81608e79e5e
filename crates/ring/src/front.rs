//! What code outside of this crate may do with this thread's ring by itself: the memory layout that the front ends of other
//! languages write to (`bindings/c/include/tampu_log_front.h`), as the call here does it.
//!
//! Decision: two words that say which ring the thread used last, and the first fields of that ring, both as C sees them. A record is
//! then a comparison, the stores, and one store that publishes; a function call with its saved registers and its thread-local lookup
//! costs more than all of that. Whatever is not the usual case (no ring yet, no room, a shared ring, a clock other than the
//! processor's, a child after `fork`) shows in these words as a comparison that fails, and goes through a function.
//!
//! Who writes so runs nothing of anybody else between the comparison and the publishing store, so no slot has to be opened.

use std::mem::offset_of;

use crate::{clock::Counter, lines::HEAD_AT, local::Current, producer::Producer, rings::Rings};

/// The release of this layout. It changes when anything a front end relies on does.
pub const FRONT_ABI: u32 = 1;

// What the header of C says of these fields.
const _: () = {
    assert!(offset_of!(Current, pool) == 0 && offset_of!(Current, producer) == 8 && size_of::<Current>() == 16);
    assert!(offset_of!(Producer, next) == 0 && offset_of!(Producer, end) == 8 && offset_of!(Producer, bias) == 16);
    assert!(offset_of!(Producer, lines) == 24);
    #[cfg(not(loom))]
    assert!(HEAD_AT == 128);
};

/// Where this thread's two words are: they stay there as long as the thread runs, in a child that it makes too.
pub fn this_thread() -> *const Current {
    crate::local::words()
}

impl Rings {
    /// The number that stands in a thread's words while its ring is one of these; nothing where front ends cannot write by
    /// themselves.
    pub fn front(&self) -> Option<u64> {
        let possible = cfg!(target_endian = "little") && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        (possible && Counter::of_this_host() == Counter::Processor).then(|| self.number())
    }
}
