//! The first bytes of a file, mapped.
//!
//! The creator reserves the file, and no process of ours shortens it: the directory is the user's own, or the length is
//! sealed. If another process of the user shortens it, a process without the handler of [`crate::survive_truncation`]
//! ends at its next access. With the handler, the missing pages read as zeros, and the mapping is lost.

use std::{
    io,
    os::fd::AsFd,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64},
};

use rustix::mm::ProtFlags;

use crate::{space::Space, words::SharedWords};

/// The first bytes of a file, mapped and shared with other processes.
pub struct Mapping {
    space: Space,
}

impl Mapping {
    /// Maps `length` bytes to read and write.
    pub fn read_write(file: impl AsFd, length: usize) -> io::Result<Mapping> {
        Ok(Mapping { space: Space::map(file, length, ProtFlags::READ | ProtFlags::WRITE)? })
    }

    /// Maps `length` bytes to read. A store through [`Mapping::words`] would end the process by a signal.
    pub fn read_only(file: impl AsFd, length: usize) -> io::Result<Mapping> {
        Ok(Mapping { space: Space::map(file, length, ProtFlags::READ)? })
    }

    /// Reports if the file was shortened under the mapping: its bytes are no longer those of the other processes.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.space.is_lost()
    }

    /// Length of the mapping in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "the kernel maps no empty range")]
    pub fn len(&self) -> usize {
        self.space.length()
    }

    /// The words at byte `at`, which is a multiple of their alignment.
    ///
    /// # Panics
    /// If they are not wholly inside the mapping, or not aligned.
    #[inline]
    pub fn words<T: SharedWords>(&self, at: usize) -> &T {
        assert!(at <= self.len() && size_of::<T>() <= self.len() - at && at.is_multiple_of(align_of::<T>()));
        // SAFETY: inside the mapping and aligned, by the assertion (a mapping is page aligned, and no type here is aligned to more
        // than a page). Any bytes are a value and all access is atomic, by `SharedWords`; it lives as long as `self`.
        unsafe { self.space.start().add(at).cast::<T>().as_ref() }
    }

    /// The 64-bit word at byte `at`, a multiple of 8.
    #[inline]
    pub fn word(&self, at: usize) -> &AtomicU64 {
        self.words(at)
    }

    /// The 32-bit word at byte `at`, a multiple of 4. No bytes are used both as 64-bit and as 32-bit words.
    #[inline]
    pub fn half_word(&self, at: usize) -> &AtomicU32 {
        self.words(at)
    }

    /// Address of `length` octets at byte `at`; `None` where they would run over the end.
    #[inline]
    pub fn address(&self, at: usize, length: usize) -> Option<NonNull<u8>> {
        if at > self.len() || length > self.len() - at {
            return None;
        }
        // SAFETY: at + length is within the mapping.
        Some(unsafe { self.space.start().add(at) })
    }

    /// Byte of the mapping at which `bytes` begins, if all of it lies in the mapping.
    pub fn position_of(&self, bytes: &[u8]) -> Option<usize> {
        let at = bytes.as_ptr().addr().checked_sub(self.space.start().as_ptr().addr())?;
        (at <= self.len() && bytes.len() <= self.len() - at).then_some(at)
    }

    /// The octets at byte `at`; empty where they would run over the end.
    ///
    /// # Safety
    /// Nobody writes to these octets while the slice lives: no other thread of this process, and no other process by its protocol.
    #[inline]
    pub unsafe fn bytes(&self, at: usize, length: usize) -> &[u8] {
        match self.address(at, length) {
            // SAFETY: inside the mapping by `address`, and initialised because a file's bytes are. The caller guarantees that no
            // code writes to it.
            Some(place) => unsafe { std::slice::from_raw_parts(place.as_ptr(), length) },
            None => &[],
        }
    }

    /// The octets at byte `at`, to write; empty where they would run over the end.
    ///
    /// # Safety
    /// The mapping is writable, and the caller holds the only slice of these octets in this process. Other processes
    /// may read them meanwhile if they distrust the bytes.
    #[inline]
    #[expect(clippy::mut_from_ref, reason = "other processes share the memory; the caller keeps account of who has which bytes")]
    pub unsafe fn bytes_mut(&self, at: usize, length: usize) -> &mut [u8] {
        match self.address(at, length) {
            // SAFETY: inside the mapping by `address`. The caller guarantees that it is writable and not shared.
            Some(place) => unsafe { std::slice::from_raw_parts_mut(place.as_ptr(), length) },
            None => &mut [],
        }
    }

    /// Uses octets that their writer may change meanwhile; `None` where they would run over the end.
    ///
    /// The caller learns from its protocol, after this, if they were changed, and then discards the result.
    #[inline]
    pub fn with<R>(&self, at: usize, length: usize, used: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let place = self.address(at, length)?;
        // SAFETY: inside the mapping by `address`, and mapped for as long as `self`. The octets may change while they are used: any
        // value of each is valid, and the caller then discards the result.
        Some(used(unsafe { std::slice::from_raw_parts(place.as_ptr(), length) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_beyond_the_end_are_refused() {
        let file = crate::create_sealed("test", 8192).unwrap();
        let map = Mapping::read_write(&file, 8192).unwrap();
        assert_eq!(map.with(8190, 2, <[u8]>::len), Some(2));
        for (at, length) in [(8190, 3), (usize::MAX, 1), (8193, 0), (0, usize::MAX)] {
            assert_eq!(map.with(at, length, <[u8]>::len), None);
        }
        assert_eq!(map.position_of(&[1, 2]), None);
        assert!(crate::is_shrink_sealed(&file).unwrap());
    }
}
