//! Values that a call stores unchanged.
//!
//! The tag of a value and its fixed bytes are known at compile time. Only texts and optional values add bytes at run
//! time. So the payload of most calls has a constant length and is a few stores.

use std::borrow::Cow;

use crate::{
    cut::kept,
    out::Out,
    tag::{OPTIONAL, Tag},
};

/// A value that can be stored unchanged and formatted elsewhere.
///
/// # Safety
/// [`Capture::write`] writes exactly `FIXED + self.varying()` bytes, without making a log record itself. `varying`
/// returns the same as long as the value is borrowed. The result of [`Capture::hold`] has the same tag and the same
/// fixed bytes, and writes the same.
#[diagnostic::on_unimplemented(
    message = "a log statement needs to know the type of `{Self}` where the statement stands",
    note = "write the type out before the statement: whether an argument is stored or formatted is decided there"
)]
pub unsafe trait Capture {
    /// Kind of the value: a [`Tag`], perhaps with [`OPTIONAL`].
    const TAG: u8;
    /// Number of bytes of every value of the type.
    const FIXED: usize;

    /// The value as a call holds it until it is stored: a copy if it fits into registers, else a reference. A reference
    /// to a number would force the program's own variable into memory, in every loop that logs.
    type Captured<'a>: Capture
    where
        Self: 'a;

    /// The value to be held.
    fn hold(&self) -> Self::Captured<'_>;

    /// Returns the number of further bytes of this value.
    fn varying(&self) -> usize;

    /// Writes the value.
    ///
    /// # Safety
    /// `FIXED + self.varying()` bytes are left in `out`.
    unsafe fn write(&self, out: &mut Out);
}

/// A value that is always present; an optional value is an `Option` of one.
///
/// # Safety
/// As for [`Capture`].
pub unsafe trait Present: Capture {}

macro_rules! numbers {
    ($($type:ty: $tag:expr,)*) => {$(
        // SAFETY: an array of the type's size is written.
        unsafe impl Capture for $type {
            const TAG: u8 = $tag as u8;
            const FIXED: usize = size_of::<$type>();
            type Captured<'a> = $type;

            #[inline(always)]
            fn hold(&self) -> $type {
                *self
            }

            #[inline(always)]
            fn varying(&self) -> usize {
                0
            }

            #[inline(always)]
            unsafe fn write(&self, out: &mut Out) {
                unsafe { out.put(self.to_le_bytes()) };
            }
        }

        // SAFETY: it writes a value without a byte for its absence.
        unsafe impl Present for $type {}
    )*};
}

const WIDE: bool = size_of::<usize>() == 8;

numbers! {
    u8: Tag::U8,
    u16: Tag::U16,
    u32: Tag::U32,
    u64: Tag::U64,
    u128: Tag::U128,
    usize: if WIDE { Tag::U64 } else { Tag::U32 },
    i8: Tag::I8,
    i16: Tag::I16,
    i32: Tag::I32,
    i64: Tag::I64,
    i128: Tag::I128,
    isize: if WIDE { Tag::I64 } else { Tag::I32 },
    f32: Tag::F32,
    f64: Tag::F64,
}

/// Values written as another type's.
macro_rules! written_as {
    ($($type:ty: $tag:expr, $bytes:expr, |$value:ident| $as:expr;)*) => {$(
        // SAFETY: an array of that many bytes is written.
        unsafe impl Capture for $type {
            const TAG: u8 = $tag as u8;
            const FIXED: usize = $bytes;
            type Captured<'a> = $type;

            #[inline(always)]
            fn hold(&self) -> $type {
                *self
            }

            #[inline(always)]
            fn varying(&self) -> usize {
                0
            }

            #[inline(always)]
            unsafe fn write(&self, out: &mut Out) {
                let $value = *self;
                let bytes: [u8; $bytes] = $as;
                unsafe { out.put(bytes) };
            }
        }

        // SAFETY: it writes a value without a byte for its absence.
        unsafe impl Present for $type {}
    )*};
}

written_as! {
    bool: Tag::Bool, 1, |value| [u8::from(value)];
    char: Tag::Char, 4, |value| u32::from(value).to_le_bytes();
}

// SAFETY: `put_text` writes four bytes and the kept part of the text, whose size depends on its length alone.
unsafe impl Capture for str {
    const TAG: u8 = Tag::Str as u8;
    const FIXED: usize = 4;
    type Captured<'a> = &'a str;

    #[inline(always)]
    fn hold(&self) -> &str {
        self
    }

    #[inline(always)]
    fn varying(&self) -> usize {
        kept(self.len())
    }

    #[inline(always)]
    unsafe fn write(&self, out: &mut Out) {
        unsafe { out.put_text(self.as_bytes(), self.len()) };
    }
}

// SAFETY: it writes a value without a byte for its absence.
unsafe impl Present for str {}

/// Implements [`Capture`] for values that are written as another value.
macro_rules! stands_for {
    ($([$($generics:tt)*] $type:ty, $target:ty;)*) => {$(
        // SAFETY: all methods are the target's.
        unsafe impl<$($generics)*> Capture for $type {
            const TAG: u8 = <$target>::TAG;
            const FIXED: usize = <$target>::FIXED;
            type Captured<'held>
                = <$target as Capture>::Captured<'held>
            where
                Self: 'held;

            #[inline(always)]
            fn hold(&self) -> Self::Captured<'_> {
                <$target as Capture>::hold(self)
            }

            #[inline(always)]
            fn varying(&self) -> usize {
                <$target as Capture>::varying(self)
            }

            #[inline(always)]
            unsafe fn write(&self, out: &mut Out) {
                unsafe { <$target as Capture>::write(self, out) };
            }
        }
    )*};
}

stands_for! {
    [] String, str;
    [] Box<str>, str;
    [] Cow<'_, str>, str;
    [T: Capture + ?Sized] &T, T;
    [T: Capture + ?Sized] &mut T, T;
}

// SAFETY: all of these write the value they refer to.
unsafe impl Present for String {}
unsafe impl Present for Box<str> {}
unsafe impl Present for Cow<'_, str> {}
unsafe impl<T: Present + ?Sized> Present for &T {}
unsafe impl<T: Present + ?Sized> Present for &mut T {}

// SAFETY: one byte, and then, if the value is present, the bytes of the value.
unsafe impl<T: Present> Capture for Option<T> {
    const TAG: u8 = OPTIONAL | T::TAG;
    const FIXED: usize = 1;
    type Captured<'a>
        = &'a Option<T>
    where
        T: 'a;

    #[inline(always)]
    fn hold(&self) -> &Option<T> {
        self
    }

    #[inline(always)]
    fn varying(&self) -> usize {
        self.as_ref().map_or(0, |value| T::FIXED + value.varying())
    }

    #[inline(always)]
    unsafe fn write(&self, out: &mut Out) {
        unsafe { out.put([u8::from(self.is_some())]) };
        if let Some(value) = self {
            unsafe { value.write(out) };
        }
    }
}
