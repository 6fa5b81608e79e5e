//! Helpers for tests of stores.

#![allow(dead_code, reason = "each test uses a part of it")]

pub mod lasting;

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute},
    entry::{Content, NewEntry},
    search::{Page, Search, Stop},
    store::Store,
};
use tampu_types::Time;

/// A book with an attribute of most kinds.
pub fn shift_book(name: &str) -> Book {
    let attributes = vec![
        AttributeDef::new("Author", AttributeKind::Text),
        AttributeDef::with_options("Type", AttributeKind::Options, &["Routine", "Problem"]),
        AttributeDef { extendable: true, ..AttributeDef::with_options("System", AttributeKind::Multiple, &["RICH1", "HLT"]) },
        AttributeDef::new("Energy", AttributeKind::Numeric),
        AttributeDef::new("Subject", AttributeKind::Text),
    ];
    Book::new(name, attributes)
}

/// An entry of that book.
pub fn entry(book: &str, author: &str, subject: &str, text: &str) -> NewEntry {
    let attributes = vec![EntryAttribute::new("Author", author), EntryAttribute::new("Subject", subject)];
    let content = Content { attributes, text: text.to_owned(), ..Content::default() };
    NewEntry { book: book.to_owned(), content, date: Some(Time(1_221_000_000_000_000_000)), ..NewEntry::default() }
}

/// The ids of the first page, the newest first.
pub fn ids(store: &dyn Store, query: &str) -> Vec<u32> {
    found(store, query).hits.iter().map(|hit| hit.entry.at.id).collect()
}

/// The first page.
pub fn found(store: &dyn Store, query: &str) -> Page {
    let search = Search { query: query.to_owned(), limit: 1000, ..Search::default() };
    store.search(&search, &Stop::default()).unwrap_or_else(|error| panic!("{query}: {error}"))
}
