//! Sending at an interval, by a callback.

use std::{ffi::c_void, time::Duration};

use tampu_bulk::sender::{Go, Periodic};

use super::sender::{SenderHandle, sender};
use crate::{
    callback::{inside, running},
    failure::{Failure, guarded},
};

/// A callback and its arguments.
struct Call {
    send: unsafe extern "C" fn(*mut c_void, *const SenderHandle) -> i32,
    context: *mut c_void,
    sender: *const SenderHandle,
}

// SAFETY: by the header the caller promises that the context may be used in another thread, by one call at a time. A sender may be
// used in every thread.
unsafe impl Send for Call {}

/// Calls a function at an interval.
///
/// # Safety
/// `handle` is NULL or open until the result is ended; `send` may be called with `context`, in any thread, until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_every(
    handle: *const SenderHandle,
    interval_us: u64,
    send: Option<unsafe extern "C" fn(*mut c_void, *const SenderHandle) -> i32>,
    context: *mut c_void,
) -> *mut Periodic {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let flow = unsafe { sender(handle) }?.flow();
        let call = Call { send: send.ok_or(Failure::Null("the callback"))?, context, sender: handle };
        let periodic = flow.every(Duration::from_micros(interval_us.max(1)), move |_| {
            // The whole value is captured: its members alone could not be sent.
            let Call { send, context, sender } = &call;
            // SAFETY: by the caller of `tampu_bulk_every`.
            let answer = inside(|| unsafe { send(*context, *sender) });
            if answer == 0 { Go::On } else { Go::Done }
        })?;
        Ok(Box::into_raw(Box::new(periodic)))
    })
}

/// Ends the calls.
///
/// # Safety
/// `periodic` is NULL or from `tampu_bulk_every`, and no thread uses it during this call or, if it returns 0, after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_every_end(periodic: *mut Periodic) -> i32 {
    guarded(-1, || {
        // Inside the callback this would wait for itself.
        if running() {
            return Err(Failure::InCallback);
        }
        if !periodic.is_null() {
            // SAFETY: the pointer is from `tampu_bulk_every`, and this is the caller's last use.
            drop(unsafe { Box::from_raw(periodic) });
        }
        Ok(0)
    })
}
