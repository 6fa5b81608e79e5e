//! A logger as C has it: opened, flushed, closed.

use std::{ffi::c_char, time::Duration};

use tampu_log::{LogSettings, Logger};
use tampu_ring::Shelter;
use tampu_types::SourceName;

use crate::{
    failure::{Failure, guarded, mention},
    string,
};

/// What a `tampu_logger *` points to. It does not move as long as the handle is open: [`Logger::claim`] borrows it.
pub struct Handle(pub(crate) Logger);

impl Handle {
    /// Gives it to C, which closes it with [`tampu_log_close`].
    pub(crate) fn give(logger: Logger) -> *mut Handle {
        Box::into_raw(Box::new(Handle(logger)))
    }
}

/// The logger behind a handle.
///
/// # Safety
/// NULL, or from [`Handle::give`] and not closed as long as `'a`.
#[inline(always)]
pub(crate) unsafe fn logger<'a>(handle: *const Handle) -> Result<&'a Logger, Failure> {
    // SAFETY: by the caller.
    unsafe { handle.as_ref() }.map(|handle| &handle.0).ok_or(Failure::Null("the logger"))
}

/// Begins the logging of a process.
///
/// # Safety
/// `source` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_open(source: *const c_char) -> *mut Handle {
    guarded(std::ptr::null_mut(), || {
        if source.is_null() {
            return Err(Failure::Null("the source's name"));
        }
        // SAFETY: by the caller.
        let source = SourceName::new(unsafe { string::text(source) })?;
        Ok(Handle::give(Logger::open(LogSettings::from_env(source)?)?))
    })
}

/// Another handle of the same logger.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_clone(handle: *const Handle) -> *mut Handle {
    // SAFETY: by the caller.
    guarded(std::ptr::null_mut(), || Ok(Handle::give(unsafe { logger(handle) }?.clone())))
}

/// Waits until what was logged before is with everybody who is there: 1, or 0 if that takes longer.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_flush(handle: *const Handle, timeout_ms: u32) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || Ok(unsafe { logger(handle) }?.flush(Duration::from_millis(timeout_ms.into())).into()))
}

/// Waits until a collector has committed what was logged before: 1, or 0 if that takes longer.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_flush_to_archive(handle: *const Handle, timeout_ms: u32) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || Ok(unsafe { logger(handle) }?.flush_to_archive(Duration::from_millis(timeout_ms.into())).into()))
}

/// How many records of this process were lost so far.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_dropped(handle: *const Handle) -> u64 {
    // SAFETY: by the caller.
    guarded(0, || Ok(unsafe { logger(handle) }?.stats().dropped))
}

/// Whether what is logged survives the process: 1, or 0 with the reason as the last error.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_survives(handle: *const Handle) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || match unsafe { logger(handle) }?.shelter() {
        Shelter::Files { .. } => Ok(1),
        Shelter::None { why } => {
            mention(why);
            Ok(0)
        }
    })
}

/// Ends a handle; the last one of the process waits until what was logged has gone out.
///
/// # Safety
/// `handle` is NULL or open, and nobody uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_close(handle: *mut Handle) {
    guarded((), || {
        if !handle.is_null() {
            // SAFETY: from `Handle::give`, and the caller's last use.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}
