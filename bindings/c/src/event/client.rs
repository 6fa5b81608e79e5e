//! A client, and subscriptions with callbacks.

use std::ffi::{c_char, c_void};

use tampu_event::{
    Client, Kinds,
    client::{ClientSettings, SubscribeOptions, Subscription, SubscriptionStats},
};
use tampu_types::event::{AttributePattern, Thresholds};

use super::{
    joined,
    told::{EventOfC, Teller},
};
use crate::{
    callback::{inside, running},
    failure::{Failure, guarded},
    string::{self, optional},
    structure::{given, tell},
};

/// `tampu_event_options`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct OptionsOfC {
    pub kinds: u32,
    pub without_first: i32,
    pub unreliable: i32,
    pub in_place: i32,
    pub condition: *const c_char,
    pub moved_rel: *const c_char,
    pub moved_abs: *const c_char,
    pub every_ms: u64,
}

/// `tampu_event_counts`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct CountsOfC {
    pub attributes: u64,
    pub delivered: u64,
    pub held_back: u64,
    pub dropped: u64,
}

impl From<SubscriptionStats> for CountsOfC {
    fn from(stats: SubscriptionStats) -> CountsOfC {
        let SubscriptionStats { bound, delivered, held_back, dropped, .. } = stats;
        CountsOfC { attributes: bound as u64, delivered, held_back, dropped }
    }
}

/// Joins the bus under this name, to subscribe.
///
/// # Safety
/// `source` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_client_open(source: *const c_char) -> *mut Client {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let participant = unsafe { joined(source) }?;
        Ok(Box::into_raw(Box::new(Client::start(participant, ClientSettings::default())?)))
    })
}

/// Ends a client.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_client_close(handle: *mut Client) -> i32 {
    guarded(-1, || {
        if running() {
            return Err(Failure::InCallback);
        }
        if !handle.is_null() {
            // SAFETY: the pointer is from `tampu_event_client_open`, and this is the caller's last use.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(0)
    })
}

/// Returns the client behind a handle.
///
/// # Safety
/// NULL, or open as long as `'a`.
pub(super) unsafe fn client<'a>(handle: *const Client) -> Result<&'a Client, Failure> {
    // SAFETY: by the caller.
    unsafe { handle.as_ref() }.ok_or(Failure::Null("the client"))
}

/// Reads what a subscription is for.
///
/// # Safety
/// `patterns` is NULL or has `count` texts, each NULL or a C string; `options` is NULL or has `size` bytes.
pub(super) unsafe fn options(
    patterns: *const *const c_char,
    count: usize,
    options: *const OptionsOfC,
    size: usize,
) -> Result<SubscribeOptions, Failure> {
    if patterns.is_null() || count == 0 {
        return Err(Failure::Null("the list of attributes"));
    }
    // SAFETY: by the caller.
    let (patterns, of_c) =
        unsafe { (std::slice::from_raw_parts(patterns, count), given(options, size, size_of::<OptionsOfC>())?) };
    // SAFETY: by the caller.
    let pattern = |&text: &*const c_char| unsafe { string::text(text) }.parse::<AttributePattern>();
    let mut read = SubscribeOptions::of(patterns.iter().map(pattern).collect::<Result<Vec<_>, _>>()?);
    let Some(of_c) = of_c else { return Ok(read) };
    if of_c.kinds != 0 {
        read.kinds = Kinds(of_c.kinds);
    }
    (read.first, read.reliable, read.in_place) = (of_c.without_first == 0, of_c.unreliable == 0, of_c.in_place != 0);
    // SAFETY: by the caller.
    let (condition, rel, abs) = unsafe { (optional(of_c.condition), optional(of_c.moved_rel), optional(of_c.moved_abs)) };
    read.filter.condition = condition.map(|text| text.parse()).transpose()?;
    if rel.is_some() || abs.is_some() {
        let band = |text: Option<String>| text.map(|text| text.parse()).transpose();
        read.filter.moved = Some(Thresholds { rel: band(rel)?, abs: band(abs)? });
    }
    read.filter.every_ms = Some(of_c.every_ms).filter(|&ms| ms > 0);
    Ok(read)
}

/// A callback for events, and its context.
struct Call {
    event: unsafe extern "C" fn(*mut c_void, *const EventOfC),
    context: *mut c_void,
}

// SAFETY: by the header the caller promises that the context may be used in another thread, by one call at a time.
unsafe impl Send for Call {}

/// Subscription behind a `tampu_event_subscription *`.
pub struct SubscriptionHandle {
    subscription: Subscription,
}

/// Subscribes with a callback.
///
/// # Safety
/// `handle` is NULL or open; `patterns` has `count` C strings; `given_options` is NULL or has `size` bytes; `event` may
/// be called with `context`, in any thread, until the subscription is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_subscribe(
    handle: *const Client,
    patterns: *const *const c_char,
    count: usize,
    given_options: *const OptionsOfC,
    size: usize,
    event: Option<unsafe extern "C" fn(*mut c_void, *const EventOfC)>,
    context: *mut c_void,
) -> *mut SubscriptionHandle {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let (client, options) = unsafe { (client(handle)?, options(patterns, count, given_options, size)?) };
        let call = Call { event: event.ok_or(Failure::Null("the callback"))?, context };
        let mut teller = OnlyHere(Teller::default());
        let subscription = client.subscribe(options, move |event| {
            // The whole values are captured: their members alone could not be sent.
            let (OnlyHere(teller), Call { event: function, context }) = (&mut teller, &call);
            let told = teller.tell(event);
            // SAFETY: by the caller of `tampu_event_subscribe`; closing waits for a running call.
            inside(|| unsafe { function(*context, &told) });
        });
        Ok(Box::into_raw(Box::new(SubscriptionHandle { subscription })))
    })
}

/// A teller that one call at a time uses.
pub(super) struct OnlyHere(pub Teller);

// SAFETY: a teller's pointers lead into its own memory and into that of the event, and are read only by the call that made them.
unsafe impl Send for OnlyHere {}

/// Ends a subscription with a callback.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or, if it returns 0, after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_unsubscribe(handle: *mut SubscriptionHandle) -> i32 {
    guarded(-1, || {
        if handle.is_null() {
            return Ok(0);
        }
        // Inside a callback this could wait for itself.
        if running() {
            return Err(Failure::InCallback);
        }
        // SAFETY: the pointer is from `tampu_event_subscribe`, and this is the caller's last use.
        let SubscriptionHandle { subscription } = *unsafe { Box::from_raw(handle) };
        subscription.end();
        Ok(0)
    })
}

/// Returns the counts of a subscription with a callback.
///
/// # Safety
/// `handle` is NULL or open; `counts` is NULL or has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_counts_of(handle: *const SubscriptionHandle, counts: *mut CountsOfC, size: usize) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        unsafe {
            let handle = handle.as_ref().ok_or(Failure::Null("the subscription"))?;
            tell(&handle.subscription.stats().into(), counts, size);
        }
        Ok(0)
    })
}
