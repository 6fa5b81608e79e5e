//! Searches: the request to a store, and the page that it returns.

use std::{fmt, ops::Range, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{attachment::hex, book::same_name, entry::Entry, query::marks::Marked};

pub use tampu_workers::{Stop, StopReason};

pub mod cost;

/// Entries of a page, at most.
pub const MAX_PAGE: usize = 1000;
/// Bytes of the texts of a page. The page ends with the entry that reaches them, and says where the next page begins.
pub const MAX_PAGE_BYTES: usize = 16 << 20;

/// The order of entries. Equal ones are ordered by date, then by arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// By date, in whole seconds.
    #[default]
    Date,
    /// By the number within the book.
    Id,
    /// The first entries of threads, by the newest entry of each thread. Replies are not found.
    Thread,
    /// By the value of an attribute: numbers as numbers, text without case.
    Attribute(String),
}

/// The beginning of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Start {
    /// At the beginning.
    #[default]
    First,
    /// After the last entry of another page; costs the same wherever that is.
    After(Cursor),
    /// After this many entries; they are stepped over.
    Skip(u64),
}

/// A request for one page of a search.
#[derive(Debug, Clone)]
pub struct Search {
    /// The books' names; none means all.
    pub books: Vec<String>,
    /// In the language of `spec/book-query.md`.
    pub query: String,
    pub sort: Sort,
    /// If true, the order is reversed: the newest come first.
    pub descending: bool,
    /// The beginning of the page.
    pub start: Start,
    /// Entries of the page, at most [`MAX_PAGE`].
    pub limit: usize,
    /// Up to how many entries are counted exactly; 0 for not at all.
    pub count_to: u64,
    /// The number of entries that are read only to count them, where the index does not know the count.
    pub count_looks: u64,
    /// The time limit. After it, the search returns the entries that it has found.
    pub time: Duration,
    /// Books of which the caller sees only these attributes. The others are neither shown nor searched, and give no order.
    pub shown: Vec<(String, Vec<String>)>,
}

impl Search {
    /// Returns the attributes of a book that the caller sees; `None` stands for all.
    pub fn shown_in(&self, book: &str) -> Option<&[String]> {
        self.shown.iter().find(|(name, _)| same_name(name, book)).map(|(_, shown)| &shown[..])
    }
}

/// Returns true if an attribute is hidden from a caller who sees these; `None` stands for all.
pub fn is_hidden(shown: Option<&[String]>, name: &str) -> bool {
    shown.is_some_and(|shown| !shown.iter().any(|one| same_name(one, name)))
}

impl Default for Search {
    fn default() -> Search {
        Search {
            books: Vec::new(),
            query: String::new(),
            sort: Sort::Date,
            descending: true,
            start: Start::First,
            limit: 20,
            count_to: 1000,
            count_looks: 300,
            time: Duration::from_secs(5),
            shown: Vec::new(),
        }
    }
}

/// The number of entries that a search finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    /// The exact number.
    Exactly(u64),
    /// So many at least, and perhaps more: counting ended there.
    AtLeast(u64),
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    pub entry: Entry,
    /// Its text around the first place that was looked for, in one line.
    pub snippet: Marked,
    /// Marks in the values of attributes, joined as [`crate::book::EntryAttribute::joined`] does; only attributes that have some.
    pub attributes: Vec<(String, Vec<Range<usize>>)>,
}

/// A page of results.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The entries, in order.
    pub hits: Vec<Hit>,
    /// The number of entries in all; `None` if it was not requested.
    pub count: Option<Count>,
    /// The beginning of the next page; `None` on the last page and on an incomplete one.
    pub next: Option<Cursor>,
    /// The reason for an incomplete page.
    pub stopped: Option<Stopped>,
}

/// A place between two entries of an order. As a text it is good for an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// Of which search: a digest of its query, books and order.
    pub(crate) of: u32,
    /// The last entry's key in the order.
    pub(crate) key: String,
    /// The last entry's place by date.
    pub(crate) row: i64,
}

/// An error: the text is not a cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid page cursor '{0}'; request the first page")]
pub struct BadCursor(pub String);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}.{:x}.{}", self.of, self.row, hex(self.key.as_bytes()))
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;

    fn from_str(text: &str) -> Result<Cursor, BadCursor> {
        let parse = || {
            let (of, rest) = text.split_once('.')?;
            let (row, key) = rest.split_once('.').filter(|(_, key)| key.len() % 2 == 0)?;
            let pairs = key.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
            let key = String::from_utf8(pairs.collect::<Option<Vec<u8>>>()?).ok()?;
            Some(Cursor { of: u32::from_str_radix(of, 16).ok()?, row: i64::from_str_radix(row, 16).ok()?, key })
        };
        parse().ok_or_else(|| BadCursor(text.to_owned()))
    }
}

/// The reason for the early end of a search. Its results until then are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// Its time was over.
    TimeLimit,
    /// The caller left.
    Abandoned,
}

impl From<StopReason> for Stopped {
    fn from(reason: StopReason) -> Stopped {
        match reason {
            StopReason::Requested => Stopped::Abandoned,
            StopReason::TimeLimit => Stopped::TimeLimit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        let cursor = Cursor { of: 7, key: "müller".to_owned(), row: 1 << 60 };
        assert_eq!(cursor.to_string().parse(), Ok(cursor));
        for text in ["", "7", "7.1", "x.1.", "7.1.f", "7.1.ff", "7.1.€"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }
}
