//! The group database, by `getgrnam_r`: it asks LDAP and the like as well, which reading `/etc/group` would not.

use std::{ffi::CString, mem::MaybeUninit, ptr};

/// Bytes for the strings of one entry, which names all members; a longer entry counts as unknown.
const BUFFER: usize = 1 << 20;

/// Number of a group, given by its name or its number. `None` if the group database does not know the name.
pub fn group_id(group: &str) -> Option<u32> {
    if let Ok(number) = group.parse() {
        return Some(number);
    }
    let name = CString::new(group).ok()?;
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut buffer = vec![0; BUFFER];
    let mut found = ptr::null_mut();
    // SAFETY: all pointers are to memory that lives until the end of this function, the length is that of the buffer, and
    // getgrnam_r is safe to call from several threads.
    let error = unsafe { libc::getgrnam_r(name.as_ptr(), entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found) };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: without an error and with an entry found, `found` points to `entry`, which is initialised.
    Some(unsafe { (*found).gr_gid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_by_name_and_number() {
        assert_eq!((group_id("root"), group_id("4711")), (Some(0), Some(4711)));
        assert_eq!((group_id("no such group"), group_id("a\0b"), group_id("")), (None, None, None));
    }
}
