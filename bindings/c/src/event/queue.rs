//! Subscriptions with a queue: the program asks for the next event, and no other thread runs its code.

use std::{ffi::c_char, time::Duration};

use parking_lot::Mutex;
use tampu_event::{
    Client,
    client::{EventStream, Update},
};

use super::{
    client::{CountsOfC, OnlyHere, OptionsOfC, client, options},
    told::{EventOfC, Teller},
};
use crate::{
    failure::{Failure, guarded},
    structure::tell,
};

/// Queue behind a `tampu_event_queue *`. The last event stays until the next one is asked for, because C's form of it
/// points to its memory.
pub struct QueueHandle {
    stream: EventStream,
    last: Mutex<(OnlyHere, Option<Update>)>,
}

/// Subscribes with a queue of at most `bound` events.
///
/// # Safety
/// `handle` is NULL or open; `patterns` has `count` C strings; `given_options` is NULL or has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_queue_open(
    handle: *const Client,
    patterns: *const *const c_char,
    count: usize,
    given_options: *const OptionsOfC,
    size: usize,
    bound: usize,
) -> *mut QueueHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (client, options) = unsafe { (client(handle)?, options(patterns, count, given_options, size)?) };
        let stream = client.stream(options, bound);
        Ok(Box::into_raw(Box::new(QueueHandle { stream, last: Mutex::new((OnlyHere(Teller::default()), None)) })))
    })
}

/// Waits for the next event.
///
/// # Safety
/// `handle` is NULL or open; `event` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_queue_next(
    handle: *const QueueHandle,
    timeout_ms: u32,
    event: *mut EventOfC,
    size: usize,
) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let handle = unsafe { handle.as_ref() }.ok_or(Failure::Null("the queue"))?;
        let mut last = handle.last.lock();
        let (OnlyHere(teller), kept) = &mut *last;
        let Some(update) = handle.stream.next(Duration::from_millis(timeout_ms.into())) else { return Ok(0) };
        let told = teller.tell_update(kept.insert(update));
        // SAFETY: by the caller.
        unsafe { tell(&told, event, size) };
        Ok(1)
    })
}

/// Returns the counts of a queue.
///
/// # Safety
/// `handle` is NULL or open; `counts` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_queue_counts(handle: *const QueueHandle, counts: *mut CountsOfC, size: usize) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        unsafe {
            let handle = handle.as_ref().ok_or(Failure::Null("the queue"))?;
            tell(&handle.stream.stats().into(), counts, size);
        }
        Ok(0)
    })
}

/// Ends a queue.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_queue_close(handle: *mut QueueHandle) {
    guarded((), || {
        if !handle.is_null() {
            // SAFETY: the pointer is from `tampu_event_queue_open`, and this is the caller's last use.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}
