//! Finds out, without a bound on the type, whether an argument can be stored unchanged.
//!
//! A macro sees tokens and no types, and a generic function knows only that its argument has `Display`. So method
//! lookup makes the choice: [`Raw`] is found on `&Probe<T>` at once where `T` is [`Capture`]. Otherwise lookup goes one
//! reference further and finds [`Format`]. Both return a value whose `capture` makes the stored value. (Specialisation
//! would be the language's own way, and is not stable.)

use std::fmt;

use crate::{capture::Capture, formatted::Formatted};

/// An argument of a statement, before its way is chosen.
#[derive(Debug)]
pub struct Probe<'a, T: ?Sized>(pub &'a T);

/// The kind of values that are stored unchanged.
#[derive(Debug)]
pub struct Stored;

/// The way of all the others.
#[derive(Debug)]
pub struct Shown;

/// Found first, where it applies.
pub trait Raw {
    /// Returns the kind of this argument.
    #[inline(always)]
    fn way(&self) -> Stored {
        Stored
    }
}

impl<T: Capture + ?Sized> Raw for Probe<'_, T> {}

/// Found where [`Raw`] does not apply.
pub trait Format {
    /// Returns the kind of this argument.
    #[inline(always)]
    fn way(&self) -> Shown {
        Shown
    }
}

impl<T: ?Sized> Format for &Probe<'_, T> {}

impl Stored {
    /// The value itself; how it would be formatted at the call is not used.
    #[inline(always)]
    pub fn capture<'a, T: Capture + ?Sized>(self, value: &'a T, _: fmt::Arguments<'_>) -> T::Captured<'a> {
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
