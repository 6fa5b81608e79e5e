//! The ring that the calling thread used last.
//!
//! One thread-local variable without a destructor, which each call reads. It can be read at any time in a thread's
//! life, including its end. `local.rs` has the other variable, whose destructor returns the rings.

use std::{cell::Cell, ptr::NonNull};

use crate::writer::producer::Producer;

/// The ring that a thread used last. Other code also reads it (`front.rs`), and never writes it.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct CurrentRing {
    /// The pool's number, which is never used again: so a pointer into a pool that is gone is never followed.
    pub(crate) pool: u64,
    pub(crate) producer: *const Producer,
}

const NONE: CurrentRing = CurrentRing { pool: 0, producer: std::ptr::null() };

thread_local! {
    static CURRENT: Cell<CurrentRing> = const { Cell::new(NONE) };
}

/// The ring that this thread used last, if it belongs to that pool.
///
/// This function and its callers use no closures: the compiler may put each closure in a unit of its own, and call it.
#[inline(always)]
pub(crate) fn producer<'r>(pool: u64) -> Option<&'r Producer> {
    let current = CURRENT.get();
    if current.pool != pool {
        return None;
    }
    // SAFETY: no pool has the number of `NONE`, so this pointer is a ring's. The pool with this number lives, because its owner
    // calls this, and its rings live with it. A child of its process has forgotten the number before it runs any code of its own
    // (`fork.rs`).
    Some(unsafe { NonNull::new_unchecked(current.producer.cast_mut()).as_ref() })
}

/// Address of this thread's two words.
pub(crate) fn words() -> *const CurrentRing {
    CURRENT.with(Cell::as_ptr).cast_const()
}

/// Makes this the ring that the thread used last.
pub(crate) fn set(pool: u64, producer: &Producer) {
    CURRENT.set(CurrentRing { pool, producer });
}

/// Removes this thread's ring; the thread has none until it requests one.
pub(crate) fn leave_ring() {
    CURRENT.set(NONE);
}
