//! The identity of an entry.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The identity of an entry: its book, and its number there, which is never reused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct EntryRef {
    /// The book's name.
    pub book: String,
    /// The number within the book, from 1.
    pub id: u32,
}

impl EntryRef {
    /// This entry of this book.
    pub fn new(book: &str, id: u32) -> EntryRef {
        EntryRef { book: book.to_owned(), id }
    }
}

/// An error: the text names no entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid entry '{0}': write BOOK/NUMBER")]
pub struct BadEntryRef(pub String);

/// Parses a reference as `Shift/12`.
impl FromStr for EntryRef {
    type Err = BadEntryRef;

    fn from_str(text: &str) -> Result<EntryRef, BadEntryRef> {
        let bad = || BadEntryRef(text.to_owned());
        let (book, id) = text.rsplit_once('/').ok_or_else(bad)?;
        let id = id.parse().ok().filter(|id| *id > 0 && !book.is_empty()).ok_or_else(bad)?;
        Ok(EntryRef::new(book, id))
    }
}

impl fmt::Display for EntryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.book, self.id)
    }
}
