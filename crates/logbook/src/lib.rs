//! The logbook: entries that people and programs write about events, found again in milliseconds.
//!
//! A *book* has *entries*; an entry has *attributes*, a text, attachments and typed links, and may be a reply to
//! another entry. Every change is kept, and an id is never given twice. The crate `tampu-elog` imports the logbooks of
//! an ELOG site and exports them again; this crate does not need it.
//!
//! | subject | module |
//! |-|-|
//! | books and attributes | [`book`] |
//! | entries, replies, history, drafts, locks, links | [`entry`] |
//! | attachments | [`attachment`] |
//! | templates of entries; their checklists | [`template`], [`checklist`] |
//! | stores: the traits, SQLite and PostgreSQL | [`store`] |
//! | a search: order, pages, counts, its end | [`search`] |
//! | the query language | [`query`] |
//! | sanitised HTML of entries | [`render`] |
//! | users, logins, rights | [`people`] |
//! | electronic signatures of entries | [`signature`] |
//! | search results as a file | [`export`] |
//! | archives and exports of other logbooks | [`exchange`] |
//! | mail: the queue and the mail server | [`mail`] |
//! | the logbook of a hub, over HTTP (feature `client`, on by default) | [`client`] |
//! | words, and the visible text of an entry | [`text`], [`plain`], [`elcode`] |
//!
//! The contracts are `spec/book-query.md` (the query language), `spec/book-store.md` (the directory) and
//! `spec/book-elog.md`.
//!
//! ```
//! use tampu_logbook::{
//!     book::{AttributeDef, AttributeKind, Book, EntryAttribute},
//!     entry::{Content, NewEntry},
//!     search::{Search, Stop},
//!     store::{Entries, sqlite::SqliteStore},
//! };
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let store = SqliteStore::open(dir)?;
//! let system = AttributeDef::with_options("System", AttributeKind::Options, &["RICH1", "HLT"]);
//! store.put_book(&Book::new("Shift", vec![system, AttributeDef::new("Subject", AttributeKind::Text)]))?;
//!
//! let content = Content {
//!     attributes: vec![EntryAttribute::new("System", "RICH1"), EntryAttribute::new("Subject", "HV trip")],
//!     text: "Channel 7 of `LHC:MAG-01/cur` tripped at 08:15.".to_owned(),
//!     ..Content::default()
//! };
//! let at = store.post(NewEntry { book: "Shift".to_owned(), content, ..NewEntry::default() }, vec![], "zoe")?;
//!
//! let search = Search { query: "MAG-01/cur system:rich1".to_owned(), ..Search::default() };
//! let page = store.search(&search, &Stop::default())?;
//! assert_eq!(page.hits[0].entry.at, at);
//! # Ok(())
//! # }
//! ```

pub mod attachment;
pub mod book;
pub mod checklist;
#[cfg(feature = "client")]
pub mod client;
pub mod elcode;
pub mod entry;
pub mod exchange;
pub mod export;
pub mod mail;
pub mod notify;
pub mod people;
pub mod plain;
pub mod query;
pub mod render;
pub mod schema;
pub mod search;
pub mod signature;
pub mod store;
pub mod template;
pub mod text;
