//! Changes of books' configurations as records: their kind, their names, their contents.
//!
//! A name is the book's number and the change's number, both of fixed width, so that names are in the order of changes. The
//! history of a book follows its number, and not its name.

use super::{Result, StoreError};
use crate::book::change::BookChange;

/// The kind of the records.
pub const BOOK_CHANGE: &str = "book-change";

/// Returns the name of the record of a change.
pub fn change_name(num: i64, number: u32) -> String {
    format!("{num:05}/{number:010}")
}

/// Returns the number of the change with this name.
pub fn change_number(name: &str) -> Result<u32> {
    let number = name.split_once('/').and_then(|(_, number)| number.parse().ok());
    number.ok_or_else(|| StoreError::Damaged(format!("{BOOK_CHANGE} '{name}': invalid name")))
}

/// Reads the contents of a record.
pub fn change_of(book: &str, text: &str) -> Result<BookChange> {
    serde_json::from_str(text).map_err(|error| StoreError::Damaged(format!("a change of book '{book}': {error}")))
}
