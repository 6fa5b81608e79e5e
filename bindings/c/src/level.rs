//! Levels: which levels are in use, and the threshold from which records are passed on.

use std::{
    ptr,
    sync::atomic::{AtomicU8, Ordering},
};

use tampu_log::{Level, Threshold};

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
};

/// Threshold of a logger that is NULL: no level passes.
static NOTHING: AtomicU8 = AtomicU8::new(u8::MAX);

/// Returns the level with this number.
pub(crate) fn level(number: i32) -> Result<Level, Failure> {
    u8::try_from(number).ok().and_then(Level::from_number).ok_or(Failure::Level(number))
}

fn threshold(number: i32) -> Result<Threshold, Failure> {
    if number == 99 { Ok(Threshold::Off) } else { level(number).map(Threshold::From) }
}

/// Returns the address of the least level with a receiver, for callers that compare levels themselves.
///
/// # Safety
/// `handle` is NULL or open. The same holds for the other functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_threshold(handle: *const Handle) -> *const u8 {
    // SAFETY: by the caller. NULL is allowed here: no level passes.
    ptr::from_ref(unsafe { handle.as_ref() }.map_or(&NOTHING, |Handle(logger)| logger.threshold())).cast()
}

/// Returns 1 if a record of this level has a receiver.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_enabled(handle: *const Handle, level: i32) -> i32 {
    // SAFETY: by the caller. NULL is allowed here: no level is enabled.
    let Some(Handle(logger)) = (unsafe { handle.as_ref() }) else { return 0 };
    (level >= logger.threshold().load(Ordering::Relaxed).into()).into()
}

/// Sets the level from which the logger of this name publishes.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_set_level(handle: *const Handle, from: i32) -> i32 {
    guarded(-1, || {
        // SAFETY: as above.
        unsafe { logger(handle) }?.set_central(threshold(from)?);
        Ok(0)
    })
}

/// Sets the level from which the records of the logger of this name are printed.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_set_local_level(handle: *const Handle, from: i32) -> i32 {
    guarded(-1, || {
        // SAFETY: as above.
        unsafe { logger(handle) }?.set_local(threshold(from)?);
        Ok(0)
    })
}
