//! Bulk data for C: senders and receivers. The contract is `include/tampu_bulk.h`.
//!
//! A handle is a stream with one flow. Several flows need several handles; a sender and a receiver find each other by
//! the flow's name. The classes of `include/tampu_bulk.hpp` have several flows, each by a handle.
//!
//! Decision: these functions are in the logger's library, because that library already contains the bus and its engine.
//! A process that links two such libraries would contain both twice. Failures are reported as in the logger
//! ([`crate::failure`]).

use std::ffi::c_char;

use tampu_bulk::{Name, Protection};

use crate::{failure::Failure, string};

/// A number of C's that leaves a setting to the configuration.
const UNSET: i32 = 0;
/// `TAMPU_BULK_DEFAULT`: the default of the library, despite the configuration.
const DEFAULT: i32 = -1;

pub mod block;
pub mod callbacks;
pub mod control;
pub mod participant;
pub mod periodic;
pub mod receiver;
pub mod sender;
pub mod settings;
pub mod state;

/// Converts the name of a stream or a flow.
///
/// # Safety
/// `name` is NULL or a C string.
unsafe fn name(name: *const c_char, what: &'static str) -> Result<Name, Failure> {
    if name.is_null() {
        return Err(Failure::Null(what));
    }
    // SAFETY: by the caller.
    Ok(Name::new(unsafe { string::text(name) })?)
}

/// Converts a protection of C's; `None` if the call leaves it to the configuration.
fn protection_of(number: i32) -> Result<Option<Protection>, Failure> {
    if number == UNSET {
        return Ok(None);
    }
    let number = if number == DEFAULT { UNSET } else { number };
    let found = usize::try_from(number).ok().and_then(|index| Protection::ALL.get(index).copied());
    found.map(Some).ok_or_else(|| Failure::Odd {
        what: "the protection",
        value: number.to_string(),
        possible: "the header has the possible values",
    })
}

#[cfg(test)]
mod tests;
