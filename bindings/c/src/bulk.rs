//! Bulk data for C: senders and receivers, whose contract is `include/tampu_bulk.h`.
//!
//! A handle is a stream with one flow: several flows are several handles, which find each other by the flow's name.
//!
//! Decision: in the logger's library, because that has the bus and its engine already, and a process that links two libraries of ours
//! would have both twice. What fails is told as there ([`crate::failure`]).

use std::{ffi::c_char, ptr};

use tampu_bulk::Name;

use crate::{failure::Failure, string};

pub mod callbacks;
pub mod participant;
pub mod receiver;
pub mod sender;

/// A stream's or a flow's name.
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

/// A structure that C gives, of which it knows `size` bytes: as many as the first release had, or more. What it does not know is zero.
///
/// # Safety
/// `given` is NULL or has `size` bytes. All bytes zero are a `T`, and so are C's.
unsafe fn given<T: Copy>(given: *const T, size: usize, first: usize) -> Result<Option<T>, Failure> {
    if given.is_null() {
        return Ok(None);
    }
    // Half a field would be worse than none.
    if size < first || !size.is_multiple_of(align_of::<T>()) {
        return Err(Failure::Odd { what: "the structure's size", value: size.to_string(), possible: "say it with sizeof" });
    }
    let mut whole = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: by the caller, and no more than `whole` has.
    unsafe {
        ptr::copy_nonoverlapping(given.cast::<u8>(), whole.as_mut_ptr().cast(), size.min(size_of::<T>()));
        Ok(Some(whole.assume_init()))
    }
}

/// Fills in a structure of C's, of which it knows `size` bytes. What we do not know of is 0.
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

/// A text that may be left out: NULL and "" are none.
///
/// # Safety
/// `text` is NULL or a C string.
unsafe fn optional(text: *const c_char) -> Option<String> {
    // SAFETY: by the caller.
    Some(unsafe { string::text(text) }.into_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
