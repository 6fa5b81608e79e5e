//! The identity of an entry.

use std::fmt;

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

impl fmt::Display for EntryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.book, self.id)
    }
}
