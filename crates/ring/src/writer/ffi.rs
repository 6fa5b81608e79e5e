//! Memory layout by which code of other languages writes into this thread's ring
//! (`bindings/c/include/tampu_log_front.h`), as the call here does.
//!
//! Decision: two words that name the ring the thread used last, and the first fields of that ring, both as C sees them.
//! A record is then a comparison, the stores, and one store that publishes. A function call with its saved registers
//! and its thread-local lookup costs more than all of that. Every unusual case shows in these words as a comparison
//! that fails, and goes through a function: no ring yet, no room, a shared ring, a clock other than the processor's, a
//! child after `fork`.
//!
//! Such a writer runs no other code between the comparison and the publishing store, so no slot has to be opened.

use std::mem::offset_of;

use crate::{
    clock::Counter,
    header::HEAD_AT,
    writer::{current::CurrentRing, producer::Producer, rings::Rings},
};

/// The release of this layout. It changes when anything a front end relies on does.
pub const FFI_ABI: u32 = 1;

// The C header states these offsets and sizes.
const _: () = {
    assert!(offset_of!(CurrentRing, pool) == 0 && offset_of!(CurrentRing, producer) == 8 && size_of::<CurrentRing>() == 16);
    assert!(offset_of!(Producer, next) == 0 && offset_of!(Producer, end) == 8 && offset_of!(Producer, bias) == 16);
    assert!(offset_of!(Producer, header) == 24);
    #[cfg(not(loom))]
    assert!(HEAD_AT == 128);
};

/// Address of this thread's two words. They stay there as long as the thread runs, also in a child process that it
/// makes.
pub fn this_thread() -> *const CurrentRing {
    crate::writer::current::words()
}

impl Rings {
    /// The number that stands in a thread's words while its ring is one of these; nothing where front ends cannot write
    /// by themselves.
    pub fn front(&self) -> Option<u64> {
        let possible = cfg!(target_endian = "little") && cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        (possible && Counter::of_this_host() == Counter::Processor).then(|| self.number())
    }
}
