//! C's strings: bytes up to a zero. What is no UTF-8 becomes U+FFFD, and NULL is an empty text.

use std::{
    borrow::Cow,
    ffi::{CStr, c_char},
};

/// The bytes of a C string.
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

/// The text of a C string.
///
/// # Safety
/// As for [`bytes`].
pub unsafe fn text<'a>(string: *const c_char) -> Cow<'a, str> {
    // SAFETY: by the caller.
    String::from_utf8_lossy(unsafe { bytes(string) })
}
