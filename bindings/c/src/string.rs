//! C's strings: bytes up to a zero. Invalid UTF-8 becomes U+FFFD, and NULL is an empty text.

use std::{
    borrow::Cow,
    ffi::{CStr, CString, c_char},
    slice,
};

use crate::failure::Failure;

/// Returns the bytes of a C string.
///
/// # Safety
/// NULL, or a string that ends with a zero and is not changed as long as `'a`.
pub unsafe fn bytes<'a>(string: *const c_char) -> &'a [u8] {
    if string.is_null() {
        return &[];
    }
    // SAFETY: by the caller.
    unsafe { CStr::from_ptr(string) }.to_bytes()
}

/// Returns the text of a C string.
///
/// # Safety
/// As for [`bytes`].
pub unsafe fn text<'a>(string: *const c_char) -> Cow<'a, str> {
    // SAFETY: by the caller.
    String::from_utf8_lossy(unsafe { bytes(string) })
}

/// Converts an optional text: NULL and "" count as absent.
///
/// # Safety
/// `text` is NULL or a C string.
pub unsafe fn optional(text: *const c_char) -> Option<String> {
    // SAFETY: by the caller.
    Some(unsafe { self::text(text) }.into_owned()).filter(|text| !text.is_empty())
}

/// Makes a string for C; a zero inside it becomes U+FFFD.
pub fn for_c(text: impl std::fmt::Display) -> CString {
    CString::new(text.to_string().replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Returns `length` bytes of C's. `what` names them in an error.
///
/// # Safety
/// `bytes` is NULL where `length` is 0, or `length` bytes that are not changed as long as `'a`.
pub unsafe fn counted<'a>(bytes: *const u8, length: usize, what: &'static str) -> Result<&'a [u8], Failure> {
    match (bytes.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::Null(what)),
        (false, _) if isize::try_from(length).is_err() => Err(Failure::Length(length)),
        // SAFETY: by the caller; the length is at most the largest object's.
        (false, _) => Ok(unsafe { slice::from_raw_parts(bytes, length) }),
    }
}
