//! Levels: which records go anywhere, and from which level on that is so.

use std::{
    ptr,
    sync::atomic::{AtomicU8, Ordering},
};

use tampu_log::{Level, Threshold};

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
};

/// What a logger that is none lets pass.
static NOTHING: AtomicU8 = AtomicU8::new(u8::MAX);

/// The level of a number.
pub(crate) fn level(number: i32) -> Result<Level, Failure> {
    u8::try_from(number).ok().and_then(Level::from_number).ok_or(Failure::Level(number))
}

fn threshold(number: i32) -> Result<Threshold, Failure> {
    if number == 99 { Ok(Threshold::Off) } else { level(number).map(Threshold::From) }
}

/// Where the least level that goes anywhere stands, for those who compare by themselves.
///
/// # Safety
/// `handle` is NULL or open. So it is of the other functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_threshold(handle: *const Handle) -> *const u8 {
    // SAFETY: by the caller. NULL is no failure here: nothing passes.
    ptr::from_ref(unsafe { handle.as_ref() }.map_or(&NOTHING, |Handle(logger)| logger.threshold())).cast()
}

/// Whether a record of this level would go anywhere.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_enabled(handle: *const Handle, level: i32) -> i32 {
    // SAFETY: by the caller. NULL is no failure here: nothing is enabled.
    let Some(Handle(logger)) = (unsafe { handle.as_ref() }) else { return 0 };
    (level >= logger.threshold().load(Ordering::Relaxed).into()).into()
}

/// From which level on the logger of this name publishes.
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

/// From which level on the records of the logger of this name are printed.
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
