//! Bulk data for C: senders and receivers. The contract is `include/tampu_bulk.h`.
//!
//! A handle is a stream with one flow. Several flows need several handles; a sender and a receiver find each other by
//! the flow's name.
//!
//! Decision: these functions are in the logger's library, because that library already contains the bus and its engine.
//! A process that links two such libraries would contain both twice. Failures are reported as in the logger
//! ([`crate::failure`]).

use std::{ffi::c_char, ptr};

use tampu_bulk::{Name, Protection};

use crate::{failure::Failure, string};

pub mod callbacks;
pub mod participant;
pub mod receiver;
pub mod sender;

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

/// Copies a structure of C's with `size` bytes: as many as the first release had, or more. Missing fields are zero.
///
/// # Safety
/// `given` is NULL or has `size` bytes. `T` is valid with all bytes zero and with C's bytes.
unsafe fn given<T: Copy>(given: *const T, size: usize, first: usize) -> Result<Option<T>, Failure> {
    if given.is_null() {
        return Ok(None);
    }
    // A part of a field would be invalid.
    if size < first || !size.is_multiple_of(align_of::<T>()) {
        return Err(Failure::Odd { what: "the structure's size", value: size.to_string(), possible: "pass sizeof" });
    }
    let mut whole = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: by the caller, and no more than `whole` has.
    unsafe {
        ptr::copy_nonoverlapping(given.cast::<u8>(), whole.as_mut_ptr().cast(), size.min(size_of::<T>()));
        Ok(Some(whole.assume_init()))
    }
}

/// Fills in a structure of C's with `size` bytes. Fields that this library does not define are 0.
///
/// # Safety
/// `place` is NULL or has room for `size` bytes. `T` has numbers only, and no bytes between them.
unsafe fn tell<T: Copy>(told: &T, place: *mut T, size: usize) {
    if place.is_null() {
        return;
    }
    // SAFETY: by the caller.
    unsafe {
        place.cast::<u8>().write_bytes(0, size);
        ptr::from_ref(told).cast::<u8>().copy_to_nonoverlapping(place.cast(), size.min(size_of::<T>()));
    }
}

/// Converts a protection of C's.
fn protection_of(number: i32) -> Result<Protection, Failure> {
    let found = usize::try_from(number).ok().and_then(|index| Protection::ALL.get(index).copied());
    found.ok_or_else(|| Failure::Odd {
        what: "the protection",
        value: number.to_string(),
        possible: "the header has the possible values",
    })
}

/// Converts an optional text: NULL and "" count as absent.
///
/// # Safety
/// `text` is NULL or a C string.
unsafe fn optional(text: *const c_char) -> Option<String> {
    // SAFETY: by the caller.
    Some(unsafe { string::text(text) }.into_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
