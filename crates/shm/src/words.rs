//! Words that several processes read and write at once, as types.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// A type that can lie in memory which other processes change at any time.
///
/// # Safety
/// The type is `repr(C)` or an atomic, has no padding that matters, holds no pointer, and any bytes are a value of it. All access
/// through a shared reference is atomic, or to bytes that are never written after the memory got its name. It does not drop.
pub unsafe trait SharedWords: Send + Sync {}

// SAFETY: an atomic; any bytes are a value.
unsafe impl SharedWords for AtomicU64 {}
// SAFETY: an atomic; any bytes are a value.
unsafe impl SharedWords for AtomicU32 {}
// SAFETY: an array has its element's properties, and no padding.
unsafe impl<T: SharedWords, const N: usize> SharedWords for [T; N] {}

/// Declares a struct of shared words: `repr(C)`, aligned to a cache line of 64 bytes, of [`SharedWords`] fields only.
#[macro_export]
macro_rules! shared_words {
    ($(#[$about:meta])* $visibility:vis struct $name:ident {
        $($(#[$field_about:meta])* $field_visibility:vis $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$about])*
        #[repr(C, align(64))]
        $visibility struct $name { $($(#[$field_about])* $field_visibility $field: $type),* }

        const _: () = {
            const fn shared<T: $crate::SharedWords>() {}
            $(shared::<$type>();)*
        };
        // SAFETY: `repr(C)`, and the lines above check that every field consists of shared words.
        unsafe impl $crate::SharedWords for $name {}
    };
}
