//! Structures that cross the border, each with the size that the caller knows. A later release may append members.

use std::ptr;

use crate::failure::Failure;

/// Copies a structure of C's with `size` bytes: as many as the first release had, or more. Missing fields are zero.
///
/// # Safety
/// `given` is NULL or has `size` bytes. `T` is valid with all bytes zero and with C's bytes.
pub unsafe fn given<T: Copy>(given: *const T, size: usize, first: usize) -> Result<Option<T>, Failure> {
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
pub unsafe fn tell<T: Copy>(told: &T, place: *mut T, size: usize) {
    if place.is_null() {
        return;
    }
    // SAFETY: by the caller.
    unsafe {
        place.cast::<u8>().write_bytes(0, size);
        ptr::from_ref(told).cast::<u8>().copy_to_nonoverlapping(place.cast(), size.min(size_of::<T>()));
    }
}
