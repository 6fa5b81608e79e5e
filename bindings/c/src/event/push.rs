//! Readings and other events that a server publishes.

use std::{
    ffi::{c_char, c_void},
    time::Duration,
};

use tampu_event::{Attribute, Kinds, Quality, criteria::Reading, server::Pushed};
use tampu_types::{Time, event::Failure as Cause};

use super::{
    server::attribute,
    value::{Converted, ValueOfC},
};
use crate::{
    callback::inside,
    failure::{Failure, guarded},
    string,
    structure::{given, tell},
};

/// `tampu_event_reading`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct ReadingOfC {
    pub value: *const ValueOfC,
    pub set_point: *const ValueOfC,
    pub quality: i32,
    pub kinds: u32,
    pub time: i64,
}

/// `tampu_event_pushed`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct PushedOfC {
    pub number: u64,
    pub kinds: u32,
    pub readers: u32,
}

impl From<Pushed> for PushedOfC {
    fn from(pushed: Pushed) -> PushedOfC {
        let readers = u32::try_from(pushed.readers).unwrap_or(u32::MAX);
        PushedOfC { number: pushed.number, kinds: pushed.kinds.0, readers }
    }
}

/// The quality of this number.
fn quality_of(number: i32) -> Result<Quality, Failure> {
    let found = usize::try_from(number).ok().and_then(|number| Quality::ALL.get(number).copied());
    found.ok_or_else(|| Failure::Odd {
        what: "the quality",
        value: number.to_string(),
        possible: "the header has the possible values",
    })
}

/// Publishes a good value if a criterion holds.
///
/// # Safety
/// `handle` is NULL or open; `value` is NULL or as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_push(handle: *const Attribute, value: *const ValueOfC) -> i32 {
    guarded(-1, || {
        let mut converted = Converted::default();
        // SAFETY: by the caller.
        let (attribute, value) = unsafe {
            let value = value.as_ref().ok_or(Failure::Null("the value"))?;
            (attribute(handle)?, value.borrow(&mut converted)?)
        };
        Ok(i32::from(!attribute.push(value)?.kinds.is_empty()))
    })
}

/// Publishes any reading, by the criteria or as some kinds.
///
/// # Safety
/// `handle` is NULL or open; `reading` is NULL or has `size` bytes, with values as the header says; `pushed` is NULL or
/// has room for `pushed_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_push_reading(
    handle: *const Attribute,
    reading: *const ReadingOfC,
    size: usize,
    pushed: *mut PushedOfC,
    pushed_size: usize,
) -> i32 {
    guarded(-1, || {
        let (mut converted, mut of_set_point) = (Converted::default(), Converted::default());
        // SAFETY: by the caller.
        unsafe {
            let attribute = attribute(handle)?;
            let of_c = given(reading, size, size_of::<ReadingOfC>())?.ok_or(Failure::Null("the reading"))?;
            let value = of_c.value.as_ref().map(|value| value.borrow(&mut converted)).transpose()?;
            let set_point = of_c.set_point.as_ref().map(|value| value.borrow(&mut of_set_point)).transpose()?;
            let reading =
                Reading { value, set_point: set_point.map(|value| value.data), quality: quality_of(of_c.quality)?, errors: &[] };
            let time = Some(Time(of_c.time)).filter(|time| time.0 != 0);
            let done = match Kinds(of_c.kinds) {
                Kinds::NONE => attribute.push_reading(&reading, time)?,
                kinds => attribute.push_as(kinds, &reading, time)?,
            };
            tell(&PushedOfC::from(done), pushed, pushed_size);
            Ok(i32::from(!done.kinds.is_empty()))
        }
    })
}

/// Publishes a failed reading, if the failure is new.
///
/// # Safety
/// `handle` is NULL or open; the texts are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_fail(
    handle: *const Attribute,
    reason: *const c_char,
    description: *const c_char,
    origin: *const c_char,
) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let (attribute, cause) = unsafe {
            let cause = Cause::new(string::text(reason), string::text(description));
            (attribute(handle)?, Cause { origin: string::text(origin).into_owned(), ..cause })
        };
        Ok(i32::from(!attribute.fail(&[cause])?.kinds.is_empty()))
    })
}

/// Publishes that data is ready.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_data_ready(handle: *const Attribute, counter: i32) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || unsafe { attribute(handle) }?.data_ready(counter).map(|_| 0).map_err(Failure::from))
}

/// Publishes an event of the site's own, with a name.
///
/// # Safety
/// `handle` is NULL or open; `name` is NULL or a C string; `value` is NULL or as the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_generic(handle: *const Attribute, name: *const c_char, value: *const ValueOfC) -> i32 {
    guarded(-1, || {
        let mut converted = Converted::default();
        // SAFETY: by the caller.
        let (attribute, name, value) = unsafe {
            let value = value.as_ref().map(|value| value.borrow(&mut converted)).transpose()?;
            (attribute(handle)?, string::text(name), value)
        };
        attribute.generic(&name, value)?;
        Ok(0)
    })
}

/// Returns the number of processes that read the attribute's stream.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_readers(handle: *const Attribute) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || Ok(i32::try_from(unsafe { attribute(handle) }?.readers()).unwrap_or(i32::MAX)))
}

/// Waits until all readers acknowledged what was pushed so far.
///
/// # Safety
/// `handle` is NULL or open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_flush(handle: *const Attribute, timeout_ms: u32) -> i32 {
    // SAFETY: by the caller.
    guarded(-1, || Ok(unsafe { attribute(handle) }?.flush(Duration::from_millis(timeout_ms.into())).into()))
}

/// A callback that reads an attribute, and its context.
struct Poll {
    read: unsafe extern "C" fn(*mut c_void, *const Attribute),
    context: *mut c_void,
}

impl Poll {
    fn of(read: Option<unsafe extern "C" fn(*mut c_void, *const Attribute)>, context: *mut c_void) -> Result<Poll, Failure> {
        Ok(Poll { read: read.ok_or(Failure::Null("the callback"))?, context })
    }

    /// Calls the program.
    fn call(&self, attribute: &Attribute) {
        // SAFETY: by the caller of `tampu_event_poll` or `tampu_event_on_read`.
        inside(|| unsafe { (self.read)(self.context, attribute) });
    }
}

// SAFETY: by the header the caller promises that the context may be used in another thread, by one call at a time.
unsafe impl Send for Poll {}

/// Polls an attribute.
///
/// # Safety
/// `handle` is NULL or open; `read` may be called with `context`, in any thread, until the attribute is withdrawn and the
/// server is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_poll(
    handle: *const Attribute,
    period_ms: u32,
    read: Option<unsafe extern "C" fn(*mut c_void, *const Attribute)>,
    context: *mut c_void,
) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let attribute = unsafe { attribute(handle) }?;
        let poll = Poll::of(read, context)?;
        attribute.poll(period_ms.max(1), move |attribute| poll.call(attribute));
        Ok(0)
    })
}

/// Has an attribute read when somebody asks for its current value.
///
/// # Safety
/// `handle` is NULL or open; `read` may be called with `context`, in any thread, until the attribute is withdrawn and the
/// server is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_event_on_read(
    handle: *const Attribute,
    max_age_ms: u32,
    read: Option<unsafe extern "C" fn(*mut c_void, *const Attribute)>,
    context: *mut c_void,
) -> i32 {
    guarded(-1, || {
        // SAFETY: by the caller.
        let attribute = unsafe { attribute(handle) }?;
        let poll = Poll::of(read, context)?;
        attribute.on_read(Duration::from_millis(max_age_ms.into()), move |attribute| poll.call(attribute));
        Ok(0)
    })
}
