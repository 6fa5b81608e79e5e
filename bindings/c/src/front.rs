//! Values with which the C++ header writes a call's record without a call into this library.
//!
//! Decision: for each logger, the library passes the constant values once: its rings, and the numbers in each record.
//! For each thread it passes the address of the thread's words once. The layout of both has a version number. A header
//! that requests another version than the library's gets nothing, and uses `tampu_log_claim`.

use tampu_ring::{CurrentRing, FFI_ABI};
use tampu_text::Statement;

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
};

/// `tampu_log_front`: the values that are the same in all calls of a logger.
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
    /// A value that differs from the words of every thread.
    pub const NONE: FrontOfC = FrontOfC { pool: u64::MAX, page: 0, voice: 0, bell_from: 0, reserved: 0 };
}

/// Fills in the values that a logger's records have in common: returns 1, or 0 if they cannot be written without this
/// library.
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
        // SAFETY: by the caller. A NULL logger is allowed here: there is nothing to write.
        let Some(found) = unsafe { handle.as_ref() }.and_then(|Handle(logger)| logger.ffi_context()).filter(|_| abi == FFI_ABI)
        else {
            return Ok(0);
        };
        let (pool, bell_from) = (found.pool, found.bell_from.into());
        // SAFETY: by the caller.
        unsafe { front.write(FrontOfC { pool, page: found.page, voice: found.identity, bell_from, reserved: 0 }) };
        Ok(1)
    })
}

/// Returns the words of this thread, never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn tampu_log_this_thread() -> *const CurrentRing {
    tampu_ring::this_thread()
}

/// Returns the number of a statement in a logger's records, or 0 if it has none.
///
/// # Safety
/// `handle` is NULL or open; `statement` is NULL or from `tampu_log_define`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_number(handle: *const Handle, statement: *const Statement) -> u32 {
    guarded(0, || {
        // SAFETY: by the caller; statements live forever.
        let (logger, statement) = unsafe { (logger(handle)?, statement.as_ref().ok_or(Failure::Null("the statement"))?) };
        Ok(logger.number_of(statement).unwrap_or(0))
    })
}

/// Wakes the drainer of the rings.
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
