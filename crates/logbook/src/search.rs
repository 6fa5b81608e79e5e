//! A search: what is asked of a store, and what it answers.

use std::{
    fmt,
    ops::Range,
    str::FromStr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use crate::{attachment::hex, entry::Entry, query::marks::Marked};

/// Entries of a page, at most.
pub const MAX_PAGE: usize = 1000;
/// Bytes of the texts of a page: with the entry that reaches them it ends, and tells where the next one begins.
pub const MAX_PAGE_BYTES: usize = 16 << 20;

/// By what entries are ordered; where that is the same, by date, then by arrival.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// By date, in whole seconds.
    #[default]
    Date,
    /// By id.
    Id,
    /// By the value of an attribute: numbers as numbers, text without case.
    Attribute(String),
}

/// Where a page begins.
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

/// What is asked.
#[derive(Debug, Clone)]
pub struct Search {
    /// The books' names; none means all.
    pub books: Vec<String>,
    /// In the language of `spec/book-query.md`.
    pub query: String,
    /// The order.
    pub sort: Sort,
    /// Whether it is turned round: the newest first.
    pub descending: bool,
    /// Where the page begins.
    pub start: Start,
    /// Entries of the page, at most [`MAX_PAGE`].
    pub limit: usize,
    /// Up to how many entries are counted exactly; 0 for not at all.
    pub count_to: u64,
    /// Entries that are looked at for the count alone, where the index cannot tell.
    pub count_looks: u64,
    /// After this time the search ends with what it has.
    pub time: Duration,
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
        }
    }
}

/// How many entries there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Count {
    /// So many.
    Exactly(u64),
    /// So many at least, and perhaps more: counting ended there.
    AtLeast(u64),
}

/// Why a search ended early. What it found until then is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stopped {
    /// Its time was over.
    TimeLimit,
    /// Nobody wants its answer any longer.
    Abandoned,
}

/// An entry that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The entry.
    pub entry: Entry,
    /// Its text around the first place that was looked for, in one line.
    pub snippet: Marked,
    /// Marks in the values of attributes, joined as [`crate::book::EntryAttribute::joined`] does; only attributes that have some.
    pub attributes: Vec<(String, Vec<Range<usize>>)>,
}

/// A page of what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The entries, in order.
    pub hits: Vec<Hit>,
    /// How many there are in all; none if it was not asked for.
    pub count: Option<Count>,
    /// Where the next page begins; none if this is the last, or if it is not complete.
    pub next: Option<Cursor>,
    /// Why it is not complete.
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

/// Why a text is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no place in a list: ask for the first page")]
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

/// Ends a search from outside.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
    until: Option<Instant>,
}

impl Stop {
    /// Ends whatever looks at it.
    pub fn stop(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    /// The same, that also ends after this time.
    pub fn within(&self, time: Duration) -> Stop {
        Stop { asked: self.asked.clone(), until: Instant::now().checked_add(time) }
    }

    /// Why whatever looks at it is to end.
    pub fn why(&self) -> Option<Stopped> {
        if self.asked.load(Ordering::Relaxed) {
            return Some(Stopped::Abandoned);
        }
        self.until.is_some_and(|until| Instant::now() >= until).then_some(Stopped::TimeLimit)
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
