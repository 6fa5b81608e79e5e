//! Attribute events for C: servers with attributes, and clients that subscribe. The contract is `include/tampu_event.h`;
//! `include/tampu_event.hpp` has classes for C++17 on top of it.
//!
//! | subject | module |
//! |-|-|
//! | values that cross the border, in both directions | [`value`] |
//! | a server, its attributes and their configuration | [`server`] |
//! | readings that a server publishes | [`push`] |
//! | events as C sees them | [`told`] |
//! | a client, and subscriptions with callbacks | [`client`] |
//! | subscriptions with a queue | [`queue`] |
//!
//! Decision: these functions are in the logger's library, for the reason of [`crate::bulk`].

use std::ffi::c_char;

use tampu_event::join;

use crate::{
    failure::{Failure, last_error},
    string,
};

pub mod client;
pub mod push;
pub mod queue;
pub mod server;
#[cfg(test)]
mod tests;
pub mod told;
pub mod value;

/// Joins the bus under a source name of C's.
///
/// # Safety
/// `source` is NULL or a C string.
unsafe fn joined(source: *const c_char) -> Result<tampu_event::Participant, Failure> {
    if source.is_null() {
        return Err(Failure::Null("the source's name"));
    }
    // SAFETY: by the caller.
    Ok(join(&unsafe { string::text(source) })?)
}

/// Returns the text of the last failure in this thread, or an empty text.
#[unsafe(no_mangle)]
pub extern "C" fn tampu_event_last_error() -> *const c_char {
    last_error()
}
