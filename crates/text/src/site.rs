//! What is known of a log statement before it runs: where it stands, how grave it is, and how its text is put together.
//!
//! It is written once for each statement into the dictionary that lies beside a process's records (the `bytes` module), so that
//! another process can make text of them when this one is dead.

mod bytes;
mod parse;

use std::borrow::Cow;

pub use bytes::BadSite;
pub use parse::BadText;

use crate::spec::Spec;

/// Whose rules the specs follow where they differ. `{:x}` of -1 is `ffffffff` in Rust and `-1` in C++.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Dialect {
    /// The rules of Rust's `format!`.
    #[default]
    Rust = 0,
    /// The rules of the C++ library fmt, and with few exceptions of C++20.
    Fmt = 1,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// It stands there as it is.
    Text(Cow<'static, str>),
    /// An argument stands there.
    Argument {
        /// Which one, counted from 0.
        index: u16,
        /// How it is shown.
        spec: Spec,
    },
}

/// A log statement's description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Its level's number, 1 to 11.
    pub level: u8,
    /// Whose rules its specs follow.
    pub dialect: Dialect,
    /// Source file, as the compiler saw it.
    pub file: Cow<'static, str>,
    /// Line in it; 0 if nobody knows.
    pub line: u32,
    /// The module, or the C++ namespace; may be empty.
    pub module: Cow<'static, str>,
    /// The function; may be empty.
    pub routine: Cow<'static, str>,
    /// The message's parts.
    pub pieces: Cow<'static, [Piece]>,
    /// How many arguments a call has, the named values among them: at most [`ARGUMENTS_MAX`](crate::ARGUMENTS_MAX).
    pub arguments: u16,
    /// Names of the values that travel beside the message; they are the last arguments, in this order.
    pub names: Cow<'static, [Cow<'static, str>]>,
}

impl Site {
    /// What [`Site::default`] gives, for statics.
    pub const EMPTY: Site = Site {
        level: 0,
        dialect: Dialect::Rust,
        file: Cow::Borrowed(""),
        line: 0,
        module: Cow::Borrowed(""),
        routine: Cow::Borrowed(""),
        pieces: Cow::Borrowed(&[]),
        arguments: 0,
        names: Cow::Borrowed(&[]),
    };

    /// Its line, where somebody knows it.
    pub fn known_line(&self) -> Option<u32> {
        (self.line != 0).then_some(self.line)
    }
}
