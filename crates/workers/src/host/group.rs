//! The group database, by `getgrnam_r` and its like: they ask LDAP and the like as well, which reading `/etc/group`
//! would not.

use std::{
    ffi::{CStr, CString},
    mem::MaybeUninit,
    ptr,
};

use super::passwd::Account;

/// Bytes for the strings of one entry, which names all members; a longer entry counts as unknown.
const BUFFER: usize = 1 << 20;
/// Most groups of a user that are looked up.
const MAX_GROUPS: usize = 4096;

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

/// Name of a group, given by its number. `None` if the group database does not know the number.
fn group_name(number: u32) -> Option<String> {
    let mut entry = MaybeUninit::<libc::group>::uninit();
    let mut buffer = vec![0; BUFFER];
    let mut found = ptr::null_mut();
    // SAFETY: as in `group_id`; getgrgid_r is safe to call from several threads as well.
    let error = unsafe { libc::getgrgid_r(number, entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len(), &raw mut found) };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: without an error and with an entry found, `found` points to `entry`, which is initialised. Its name is a
    // string in the buffer that ends with a NUL.
    let name = unsafe { CStr::from_ptr((*found).gr_name) };
    name.to_str().ok().map(str::to_owned)
}

/// Names of all groups of a user of this host.
pub fn groups_of(account: &Account) -> Vec<String> {
    let Ok(name) = CString::new(account.name.as_str()) else { return Vec::new() };
    let mut numbers: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = libc::c_int::try_from(numbers.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the name ends with a NUL, and `count` is the number of elements at the pointer.
        let result = unsafe { libc::getgrouplist(name.as_ptr(), account.group, numbers.as_mut_ptr(), &raw mut count) };
        let count = usize::try_from(count).unwrap_or_default();
        if result >= 0 || numbers.len() >= MAX_GROUPS {
            numbers.truncate(count);
            break;
        }
        numbers.resize(count.clamp(numbers.len() * 2, MAX_GROUPS), 0);
    }
    numbers.into_iter().filter_map(group_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_of_a_user_have_names() {
        let root = crate::host::account("root").unwrap();
        assert_eq!((root.name.as_str(), root.group), ("root", 0));
        assert!(groups_of(&root).contains(&"root".to_owned()));
        assert!(crate::host::account("no such user").is_none() && crate::host::account("a\0b").is_none());
    }

    #[test]
    fn groups_are_found_by_name_and_number() {
        assert_eq!((group_id("root"), group_id("4711")), (Some(0), Some(4711)));
        assert_eq!((group_id("no such group"), group_id("a\0b"), group_id("")), (None, None, None));
    }
}
