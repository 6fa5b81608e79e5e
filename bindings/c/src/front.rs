//! What the header of C++ needs to write a call's record without a call into this library.
//!
//! Decision: the library tells once a logger what does not change (which ring is meant, the numbers that stand in the record), and
//! once a thread where its words are; the layout of both has a number, and a header that asks for another one than this library has
//! is told that there is none, and goes through `tampu_log_claim`.

use tampu_ring::{Current, FRONT_ABI};
use tampu_text::Statement;

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
};

/// `tampu_log_front`: what is the same in all calls of a logger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs)]
pub struct FrontOfC {
    pub pool: u64,
    pub page: u32,
    pub voice: u32,
    pub bell_from: u32,
    pub reserved: u32,
}

impl FrontOfC {
    /// No thread's words ever say this.
    pub const NONE: FrontOfC = FrontOfC { pool: u64::MAX, page: 0, voice: 0, bell_from: 0, reserved: 0 };
}

/// What a logger's records have in common: 1, or 0 where they cannot be written without this library.
///
/// # Safety
/// `handle` is NULL or open, `front` NULL or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_front_of(handle: *const Handle, abi: u32, front: *mut FrontOfC) -> i32 {
    guarded(0, || {
        if front.is_null() {
            return Err(Failure::Null("the front"));
        }
        // SAFETY: by the caller.
        unsafe { front.write(FrontOfC::NONE) };
        // SAFETY: by the caller. A logger that is none is no mistake here: there is nothing to write.
        let Some(found) = unsafe { handle.as_ref() }.and_then(|Handle(logger)| logger.front()).filter(|_| abi == FRONT_ABI)
        else {
            return Ok(0);
        };
        let (pool, bell_from) = (found.pool, found.bell_from.into());
        // SAFETY: by the caller.
        unsafe { front.write(FrontOfC { pool, page: found.page, voice: found.voice, bell_from, reserved: 0 }) };
        Ok(1)
    })
}

/// The words of this thread. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tampu_log_this_thread() -> *const Current {
    tampu_ring::this_thread()
}

/// The number of a statement in a logger's records; 0 where it has none.
///
/// # Safety
/// `handle` is NULL or open; `statement` is NULL or from `tampu_log_define`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_number(handle: *const Handle, statement: *const Statement) -> u32 {
    guarded(0, || {
        // SAFETY: by the caller; statements live for ever.
        let (logger, statement) = unsafe { (logger(handle)?, statement.as_ref().ok_or(Failure::Null("the statement"))?) };
        Ok(logger.number_of(statement).unwrap_or(0))
    })
}

/// Wakes whoever takes records from the rings.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_wake(handle: *const Handle) {
    guarded((), || {
        // SAFETY: by the caller.
        unsafe { logger(handle) }?.wake();
        Ok(())
    });
}
