//! The user database, by `getpwuid_r`: it also queries LDAP and the like, in contrast to reading `/etc/passwd`.

use std::{ffi::CStr, mem::MaybeUninit, ptr};

/// Bytes for the strings of one entry; a longer entry counts as unknown.
const BUFFER: usize = 16 << 10;

/// Name of the effective user in the user database.
pub(super) fn effective_user() -> Option<String> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut buffer = vec![0; BUFFER];
    let mut found = ptr::null_mut();
    // SAFETY: all pointers are to memory that lives until the end of this function. The length is that of the buffer, and
    // getpwuid_r is thread-safe.
    let error = unsafe {
        libc::getpwuid_r(
            rustix::process::geteuid().as_raw(),
            entry.as_mut_ptr(),
            buffer.as_mut_ptr(),
            buffer.len(),
            &raw mut found,
        )
    };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: there is no error and an entry was found, so `found` points to `entry`, which is initialised. Its name points to a
    // string in the buffer that ends with a NUL.
    let name = unsafe { CStr::from_ptr((*found).pw_name) };
    name.to_str().ok().filter(|name| !name.is_empty()).map(str::to_owned)
}
