//! Finds out, without a bound on the type, whether an argument can be stored as it is.
//!
//! A macro sees tokens and no types, and a generic function may know no more of its argument than that it has `Display`. So the
//! choice is left to method lookup: [`Raw`] is found on `&Probe<T>` at once where `T` is [`Capture`]; where it is not, lookup
//! goes one reference further and finds [`Format`]. Both give a value whose `capture` makes what is stored. (Specialisation
//! would be the language's own way, and is not stable.)

use std::fmt;

use crate::{capture::Capture, formatted::Formatted};

/// An argument of a statement, before its way is chosen.
#[derive(Debug)]
pub struct Probe<'a, T: ?Sized>(pub &'a T);

/// The way of values that are stored as they are.
#[derive(Debug)]
pub struct Stored;

/// The way of all the others.
#[derive(Debug)]
pub struct Shown;

/// Found first, where it applies.
pub trait Raw {
    /// The way this argument goes.
    #[inline(always)]
    fn way(&self) -> Stored {
        Stored
    }
}

impl<T: Capture + ?Sized> Raw for Probe<'_, T> {}

/// Found where [`Raw`] does not apply.
pub trait Format {
    /// The way this argument goes.
    #[inline(always)]
    fn way(&self) -> Shown {
        Shown
    }
}

impl<T: ?Sized> Format for &Probe<'_, T> {}

impl Stored {
    /// The value itself; how it would be formatted at the call is not used.
    #[inline(always)]
    pub fn capture<'a, T: Capture + ?Sized>(self, value: &'a T, _: fmt::Arguments<'_>) -> T::Held<'a> {
        value.hold()
    }
}

impl Shown {
    /// The text that the value has now.
    #[inline]
    pub fn capture<T: ?Sized>(self, _: &T, shown: fmt::Arguments<'_>) -> Formatted {
        Formatted::new(shown)
    }
}
