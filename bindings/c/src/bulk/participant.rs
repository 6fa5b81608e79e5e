//! Participants that send and receive: a process on the bus, or one without the bus.

use std::ffi::c_char;

use tampu_bulk::receiver::Identity;
use tampu_bus::{Participant, connect::Settings};
use tampu_types::{Domain, SourceName};

use crate::{
    failure::{Failure, guarded, last_error},
    string,
};

/// Process behind a `tampu_bulk_participant *`.
pub struct Member {
    pub(super) identity: Identity,
    pub(super) bus: Option<Participant>,
}

/// Returns the participant behind a handle.
///
/// # Safety
/// NULL, or open as long as `'a`.
pub(super) unsafe fn member<'a>(handle: *const Member) -> Result<&'a Member, Failure> {
    // SAFETY: by the caller.
    unsafe { handle.as_ref() }.ok_or(Failure::Null("the participant"))
}

/// # Safety
/// `source` is NULL or a C string.
unsafe fn source_name(source: *const c_char) -> Result<SourceName, Failure> {
    if source.is_null() {
        return Err(Failure::Null("the source's name"));
    }
    // SAFETY: by the caller.
    Ok(SourceName::new(unsafe { string::text(source) })?)
}

/// Joins the bus under this name.
///
/// # Safety
/// `source` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_join(source: *const c_char) -> *mut Member {
    guarded(std::ptr::null_mut(), || {
        // SAFETY: by the caller.
        let source = unsafe { source_name(source) }?;
        let bus = Participant::open(Settings::from_env()?, source)?;
        Ok(Box::into_raw(Box::new(Member { identity: Identity::of(&bus), bus: Some(bus) })))
    })
}

/// Creates a participant with a name, without the bus.
///
/// # Safety
/// `domain` and `source` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_alone(domain: *const c_char, source: *const c_char) -> *mut Member {
    guarded(std::ptr::null_mut(), || {
        if domain.is_null() {
            return Err(Failure::Null("the domain's name"));
        }
        // SAFETY: by the caller.
        let domain = Domain::new(unsafe { string::text(domain) }).map_err(Failure::Domain)?;
        // SAFETY: by the caller.
        let source = unsafe { source_name(source) }?;
        let identity = Identity::alone(domain.as_str(), source.as_str());
        Ok(Box::into_raw(Box::new(Member { identity, bus: None })))
    })
}

/// Closes a participant. Its senders and receivers continue.
///
/// # Safety
/// `handle` is NULL or open, and no thread uses it during this call or after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tampu_bulk_leave(handle: *mut Member) {
    guarded((), || {
        if !handle.is_null() {
            // SAFETY: the pointer is from one of the functions above, and this is the caller's last use.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// Returns the text of the last failure in this thread, or an empty text.
#[unsafe(no_mangle)]
pub extern "C" fn tampu_bulk_last_error() -> *const c_char {
    last_error()
}
