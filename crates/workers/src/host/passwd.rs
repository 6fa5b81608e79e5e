//! The user database, by `getpwuid_r` and `getpwnam_r`: they also query LDAP and the like, in contrast to reading
//! `/etc/passwd`.

use std::{
    ffi::{CStr, CString, c_char},
    mem::MaybeUninit,
    ptr,
};

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

/// A user of this host, as the user database has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The login name, in the form of the database.
    pub name: String,
    /// The full name, or an empty text.
    pub full_name: String,
    /// The number of the user's own group.
    pub group: u32,
}

/// Account of a login name. `None` if the user database does not know the name.
pub fn account(login: &str) -> Option<Account> {
    let login = CString::new(login).ok()?;
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut buffer = vec![0; BUFFER];
    let mut found = ptr::null_mut();
    // SAFETY: all pointers are to memory that lives until the end of this function. The length is that of the buffer, and
    // getpwnam_r is thread-safe.
    let error =
        unsafe { libc::getpwnam_r(login.as_ptr(), entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found) };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: there is no error and an entry was found, so `found` points to `entry`, which is initialised.
    let found = unsafe { &*found };
    let text = |text: *const c_char| match text.is_null() {
        true => String::new(),
        // SAFETY: a string of the entry is in the buffer, and ends with a NUL.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    };
    // The field also has rooms and telephone numbers, after commas.
    let full_name = text(found.pw_gecos).split(',').next().unwrap_or_default().trim().to_owned();
    Some(Account { name: text(found.pw_name), full_name, group: found.pw_gid })
}
