//! Description of a log statement: its place in the program, its level, and the parts of its text.
//!
//! It is written once for each statement into the dictionary beside a process's records (the `bytes` module). So
//! another process can make text of the records when this process is dead.

mod bytes;
mod parse;

use std::borrow::Cow;

pub use bytes::BadSite;
pub use parse::BadText;

use crate::spec::Spec;

/// Language whose rules the specs follow. Languages differ: `{:x}` of -1 is `ffffffff` in Rust and `-1` in C++.
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
    /// A literal text.
    Text(Cow<'static, str>),
    /// An argument stands there.
    Argument {
        /// Number of the argument, from 0.
        index: u16,
        /// Spec by which it is shown.
        spec: Spec,
    },
}

/// A log statement's description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Its level's number, 1 to 11.
    pub level: u8,
    /// Language whose rules its specs follow.
    pub dialect: Dialect,
    /// Source file, as the compiler saw it.
    pub file: Cow<'static, str>,
    /// Line in it; 0 if unknown.
    pub line: u32,
    /// The module, or the C++ namespace; may be empty.
    pub module: Cow<'static, str>,
    /// The function; may be empty.
    pub routine: Cow<'static, str>,
    /// The message's parts.
    pub pieces: Cow<'static, [Piece]>,
    /// Number of arguments of a call, the named values among them: at most [`ARGUMENTS_MAX`](crate::ARGUMENTS_MAX).
    pub arguments: u16,
    /// Names of the values that travel beside the message; they are the last arguments, in this order.
    pub names: Cow<'static, [Cow<'static, str>]>,
}

impl Site {
    /// Equals [`Site::default`], for statics.
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

    /// Returns its line, if it is known.
    pub fn known_line(&self) -> Option<u32> {
        (self.line != 0).then_some(self.line)
    }
}
