//! The logbook: what people and programs write down about what happened, found again in milliseconds.
//!
//! A *book* has *entries*; an entry says something about itself in *attributes*, has a text, attachments and typed links, and may answer another
//! one. Every change is kept, and an id is never given twice. What a site has written with ELOG is taken over as it is, and can be taken back.
//!
//! | subject | module |
//! |-|-|
//! | books and attributes | [`book`] |
//! | entries, replies, history, drafts, locks, links | [`entry`] |
//! | attachments | [`attachment`] |
//! | what entries begin with | [`template`] |
//! | what keeps them: the trait, and the one built in | [`store`] |
//! | a search: order, pages, counts, its end | [`search`] |
//! | the query language | [`query`] |
//! | ELOG's files, in and out | [`elog`] |
//! | what is shown: sanitised HTML | [`render`] |
//! | who may do what | [`people`] |
//! | what a search finds, as a file | [`export`] |
//! | words, and the text a reader reads | [`text`], [`plain`], [`elcode`] |
//!
//! The contracts are `spec/book-query.md` (the query language), `spec/book-store.md` (the directory) and `spec/book-elog.md`.
//!
//! ```
//! use tampu_logbook::{
//!     book::{AttributeDef, AttributeKind, Book, EntryAttribute},
//!     entry::{Content, NewEntry},
//!     search::{Search, Stop},
//!     store::{Store, sqlite::SqliteStore},
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
pub mod elcode;
pub mod elog;
pub mod entry;
pub mod export;
pub mod people;
pub mod plain;
pub mod query;
pub mod render;
pub mod search;
pub mod store;
pub mod template;
pub mod text;
