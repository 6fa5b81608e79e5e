//! The handle of a logger in C: open, flush, close.

use std::{
    ffi::{c_char, c_void},
    time::Duration,
};

use tampu_log::{LogSettings, Logger};
use tampu_ring::RingStorage;
use tampu_types::SourceName;

use crate::{
    failure::{Failure, guarded, mention},
    grade::{Grade, outcome_number},
    string,
};

/// Logger behind a `tampu_logger *`. It does not move as long as the handle is open: [`Logger::claim`] borrows it.
pub struct Handle(pub(crate) Logger);

impl Handle {
    /// Returns a handle for C, which closes it with [`tampu_log_close`].
    pub(crate) fn give(logger: Logger) -> *mut Handle {
        Box::into_raw(Box::new(Handle(logger)))
    }
}

/// Returns the logger behind a handle.
///
/// # Safety
/// NULL, or from [`Handle::give`] and not closed as long as `'a`.
#[inline(always)]
pub(crate) unsafe fn logger<'a>(handle: *const Handle) -> Result<&'a Logger, Failure> {
    // SAFETY: by the caller.
    unsafe { handle.as_ref() }.map(|handle| &handle.0).ok_or(Failure::Null("the logger"))
}

/// Opens the logger of a process.
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

/// Returns another handle of the same logger.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_clone(handle: *const Handle) -> *mut Handle {
    // SAFETY: by the caller.
    guarded(std::ptr::null_mut(), || Ok(Handle::give(unsafe { logger(handle) }?.clone())))
}

/// Waits until every receiver has all earlier records. Returns 1, or 0 after the time limit.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_flush(handle: *const Handle, timeout_ms: u32) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || Ok(unsafe { logger(handle) }?.flush(Duration::from_millis(timeout_ms.into())).into()))
}

/// Waits until a collector has committed all earlier records. Returns 1, or 0 after the time limit.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_flush_to_archive(handle: *const Handle, timeout_ms: u32) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || Ok(unsafe { logger(handle) }?.flush_to_archive(Duration::from_millis(timeout_ms.into())).into()))
}

/// Function of C that is told whether records are kept, or what has become of them.
type Told = unsafe extern "C" fn(user: *mut c_void, outcome: i32);

/// Pointer of the caller that goes back to its function on another thread.
struct User(*mut c_void);

// SAFETY: the page of the function says that it is called on another thread, so the caller gives a pointer that may go there.
unsafe impl Send for User {}

/// Returns a call of the caller's function with its pointer.
///
/// # Safety
/// `told` may be called on another thread with `user`, also after the handle was closed.
unsafe fn teller(told: Option<Told>, user: *mut c_void) -> Result<impl FnOnce(i32) + Send + 'static, Failure> {
    let (told, user) = (told.ok_or(Failure::Null("the function"))?, User(user));
    Ok(move |number| {
        let user = user;
        // SAFETY: by the caller of `teller`.
        unsafe { told(user.0, number) }
    })
}

/// Calls `told` later, once, with 1 if a collector has committed all earlier records, or 0 after the time limit. Returns 0.
///
/// # Safety
/// `handle` is NULL or open. `told` may be called on another thread with `user`, also after the handle was closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_when_kept(
    handle: *const Handle,
    timeout_ms: u32,
    told: Option<Told>,
    user: *mut c_void,
) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let (tell, logger) = unsafe { (teller(told, user)?, logger(handle)?) };
        logger.when_kept(Duration::from_millis(timeout_ms.into()), move |kept| tell(kept.into()));
        Ok(0)
    })
}

/// Waits until a collector has all earlier records in this grade. Returns what has become of them, from
/// `enum tampu_log_outcome`; -1 for an unknown grade.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_wait(handle: *const Handle, grade: i32, timeout_ms: u32) -> i32 {
    guarded(-1, || {
        let Grade(grade) = Grade::try_from(grade)?;
        // SAFETY: by the caller.
        Ok(outcome_number(unsafe { logger(handle) }?.wait_until(grade, Duration::from_millis(timeout_ms.into()))))
    })
}

/// Calls `told` later, once, with what has become of all earlier records. Returns 0.
///
/// # Safety
/// `handle` is NULL or open. `told` may be called on another thread with `user`, also after the handle was closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_when(
    handle: *const Handle,
    grade: i32,
    timeout_ms: u32,
    told: Option<Told>,
    user: *mut c_void,
) -> i32 {
    guarded(-1, || {
        let Grade(grade) = Grade::try_from(grade)?;
        // SAFETY: by the caller.
        let (tell, logger) = unsafe { (teller(told, user)?, logger(handle)?) };
        logger.when(grade, Duration::from_millis(timeout_ms.into()), move |outcome| tell(outcome_number(outcome)));
        Ok(0)
    })
}

/// Number of records of this process that were lost so far.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_dropped(handle: *const Handle) -> u64 {
    // SAFETY: by the caller.
    guarded(0, || Ok(unsafe { logger(handle) }?.stats().dropped))
}

/// Returns 1 if logged records survive the process, or 0 with the reason as the last error.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_survives(handle: *const Handle) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || match unsafe { logger(handle) }?.storage() {
        RingStorage::Files { .. } => Ok(1),
        RingStorage::Memory { why } => {
            mention(why);
            Ok(0)
        }
    })
}

/// Closes a handle. The last handle of the process waits until all records have been sent.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_close(handle: *mut Handle) {
    guarded((), || {
        if !handle.is_null() {
            // SAFETY: the pointer is from `Handle::give`, and this is the caller's last use.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}
