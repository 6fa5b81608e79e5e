//! Derived loggers: each is a handle of its own, and handles may be closed in any order.

use std::ffi::c_char;

use tampu_log::Logger;

use crate::{
    failure::{Failure, guarded},
    handle::{Handle, logger},
    string,
};

/// # Safety
/// `handle` is NULL or open.
unsafe fn derived(handle: *const Handle, make: impl FnOnce(&Logger) -> Result<Logger, Failure>) -> *mut Handle {
    // SAFETY: by the caller.
    guarded(std::ptr::null_mut(), || Ok(Handle::give(make(unsafe { logger(handle) }?)?)))
}

/// Returns a logger of this name, with levels of its own.
///
/// # Safety
/// `handle` is NULL or open, `name` NULL or a C string. The same holds for the other functions here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_named(handle: *const Handle, name: *const c_char) -> *mut Handle {
    // SAFETY: by the caller; so in all functions below.
    unsafe { derived(handle, |logger| Ok(logger.named(&string::text(name)))) }
}

/// Returns the same logger with records about a component.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_for_object(handle: *const Handle, object: *const c_char) -> *mut Handle {
    // SAFETY: as above.
    unsafe { derived(handle, |logger| Ok(logger.for_object(&string::text(object)))) }
}

/// Returns the same logger with records for these audiences only.
///
/// # Safety
/// As above; `audiences` is NULL where `count` is 0, or `count` C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_for_audiences(
    handle: *const Handle,
    audiences: *const *const c_char,
    count: usize,
) -> *mut Handle {
    let make = |logger: &Logger| {
        if count > 0 && audiences.is_null() {
            return Err(Failure::Null("the list of audiences"));
        }
        // SAFETY: by the caller.
        Ok(logger.for_audiences((0..count).map(|index| unsafe { string::text(*audiences.add(index)) })))
    };
    // SAFETY: as above.
    unsafe { derived(handle, make) }
}

/// Returns the same logger in a context.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_in_context(handle: *const Handle, context: *const c_char) -> *mut Handle {
    // SAFETY: as above.
    unsafe { derived(handle, |logger| Ok(logger.in_context(&string::text(context)))) }
}

/// Returns the same logger for an antenna of an array.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_for_antenna(
    handle: *const Handle,
    antenna: *const c_char,
    array: *const c_char,
) -> *mut Handle {
    // SAFETY: as above.
    unsafe { derived(handle, |logger| Ok(logger.for_antenna(&string::text(antenna), &string::text(array)))) }
}

/// Returns the same logger within an error chain, at this depth.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_in_stack(handle: *const Handle, stack: *const c_char, depth: i32) -> *mut Handle {
    // SAFETY: as above.
    unsafe { derived(handle, |logger| Ok(logger.in_stack(&string::text(stack), depth))) }
}

/// Returns the same logger during a run or observation.
///
/// # Safety
/// As above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_log_in_run(handle: *const Handle, run: *const c_char) -> *mut Handle {
    // SAFETY: as above.
    unsafe { derived(handle, |logger| Ok(logger.in_run(&string::text(run)))) }
}
