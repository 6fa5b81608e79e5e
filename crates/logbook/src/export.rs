//! What a search finds, as a file for other programs: CSV, JSON lines, Markdown. All that is found, and not a page of it.
//!
//! | format | module | for |
//! |-|-|-|
//! | [`Format::Csv`] | [`csv`] | tables |
//! | [`Format::Json`] | here | programs; nothing is lost |
//! | [`Format::Markdown`] | [`markdown`] | people |
//!
//! Pieces are made a page of the search at a time, so that an export of a million entries holds a few hundred of them. The first page is searched before there is an answer: what is wrong
//! with a query is told as that. What ends an export later is an error in the place of a piece: it never looks whole when it is not. ELOG's own
//! formats are in [`crate::elog::web::formats`].

use std::{io, str::FromStr, sync::Arc, time::Duration};

use crate::{
    book::{Book, same_name},
    entry::Entry,
    search::{Search, Start, Stop, Stopped},
    store::{Store, StoreError},
};

pub mod csv;
pub mod markdown;

/// Entries of a page.
const PAGE: usize = 200;
/// How long one page may take.
const PAGE_TIME: Duration = Duration::from_secs(60);

/// As what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table, as RFC 4180 has it.
    Csv,
    /// An entry a line, as JSON.
    Json,
    /// A text for people.
    Markdown,
}

/// Why a text names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no format of an export: write csv, json or markdown")]
pub struct BadFormat(pub String);

impl FromStr for Format {
    type Err = BadFormat;

    fn from_str(text: &str) -> Result<Format, BadFormat> {
        match text.to_ascii_lowercase().as_str() {
            "csv" => Ok(Format::Csv),
            "json" | "jsonl" => Ok(Format::Json),
            "markdown" | "md" => Ok(Format::Markdown),
            _ => Err(BadFormat(text.to_owned())),
        }
    }
}

impl Format {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Markdown => "markdown",
        }
    }

    /// What a server says it is.
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Csv => "text/csv; charset=utf-8; header=present",
            Format::Json => "application/x-ndjson",
            Format::Markdown => "text/markdown; charset=utf-8",
        }
    }

    /// What a file of it ends in.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "jsonl",
            Format::Markdown => "md",
        }
    }
}

/// The pieces of an export.
pub type Pieces = Box<dyn Iterator<Item = io::Result<Vec<u8>>> + Send>;

/// Exports all that a search finds, in its order. Its page, count and time do not count here.
pub fn export(store: Arc<dyn Store>, search: Search, format: Format, stop: Stop) -> Result<Pieces, StoreError> {
    let books = searched(&*store, &search.books)?;
    let pages = Pages::begin(store, search, stop)?;
    Ok(match format {
        Format::Csv => {
            let columns = csv::columns(&books);
            pieces(csv::header(&columns), pages, move |entry, out| csv::row(&columns, entry, out))
        }
        Format::Json => pieces(Vec::new(), pages, json),
        Format::Markdown => pieces(Vec::new(), pages, markdown::entry),
    })
}

fn json(entry: &Entry, out: &mut Vec<u8>) {
    // An entry is made of texts and numbers, which have no way to fail.
    if serde_json::to_writer(&mut *out, entry).is_ok() {
        out.push(b'\n');
    }
}

/// The books that are searched; none named means all.
pub fn searched(store: &dyn Store, names: &[String]) -> Result<Vec<Book>, StoreError> {
    if names.is_empty() {
        return Ok(store.books()?.into_iter().map(|info| info.book).collect());
    }
    let mut books: Vec<Book> = Vec::new();
    for name in names {
        if !books.iter().any(|book| same_name(&book.name, name)) {
            books.push(store.book(name)?);
        }
    }
    Ok(books)
}

/// The pieces of what begins so and goes on with entries, each as `write` has it.
pub fn pieces(begin: Vec<u8>, pages: Pages, mut write: impl FnMut(&Entry, &mut Vec<u8>) + Send + 'static) -> Pieces {
    let page = move |page: Result<Vec<Entry>, PageError>| {
        let mut out = Vec::new();
        page.map_err(io::Error::other)?.iter().for_each(|entry| write(entry, &mut out));
        Ok(out)
    };
    let first = (!begin.is_empty()).then_some(Ok(begin));
    Box::new(first.into_iter().chain(pages.map(page)))
}

/// Why there is no further page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A page took too long, or nobody waits for it.
    #[error("the export ended before its end: {}", match .0 { Stopped::TimeLimit => "its time was over", Stopped::Abandoned => "nobody waits for it" })]
    Stopped(Stopped),
}

/// All entries that a search finds, a page at a time. After an error there is no more.
pub struct Pages {
    store: Arc<dyn Store>,
    search: Search,
    stop: Stop,
    first: Option<Result<Vec<Entry>, PageError>>,
    more: bool,
}

impl Pages {
    /// Searches the first page.
    pub fn begin(store: Arc<dyn Store>, search: Search, stop: Stop) -> Result<Pages, StoreError> {
        let search = Search { start: Start::First, limit: PAGE, count_to: 0, time: PAGE_TIME, ..search };
        let mut pages = Pages { store, search, stop, first: None, more: true };
        match pages.page() {
            Err(PageError::Store(error)) => return Err(error),
            first => {
                pages.more &= first.is_ok();
                pages.first = Some(first);
            }
        }
        Ok(pages)
    }

    fn page(&mut self) -> Result<Vec<Entry>, PageError> {
        let page = self.store.search(&self.search, &self.stop)?;
        if let Some(why) = page.stopped {
            return Err(PageError::Stopped(why));
        }
        self.more = page.next.is_some();
        if let Some(next) = page.next {
            self.search.start = Start::After(next);
        }
        Ok(page.hits.into_iter().map(|hit| hit.entry).collect())
    }
}

impl Iterator for Pages {
    type Item = Result<Vec<Entry>, PageError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if !self.more {
            return None;
        }
        let page = self.page();
        self.more &= page.is_ok();
        Some(page)
    }
}
