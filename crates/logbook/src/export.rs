//! Exports: the whole result of a search as a file for other programs.
//!
//! | format | module | for |
//! |-|-|-|
//! | [`Format::Csv`], [`Format::RawCsv`] | [`csv`] | tables |
//! | [`Format::Json`] | here | programs; nothing is lost |
//! | [`Format::Markdown`] | [`markdown`] | people |
//! | [`Format::Atom`], [`Format::Calendar`] | [`feed`] | feed readers and calendars |
//! | a folder of pages | [`html`] | reading without a server |
//! | a document | [`pdf`] | paper, and people without an account |
//!
//! An export is made in pieces, one for each page of the search. So an export of a million entries holds a few hundred
//! of them in memory. The first page is searched before the export begins, so an invalid query is reported as an error.
//! A later error takes the place of a piece: an incomplete export never looks complete. ELOG's own formats are in
//! [`crate::elog::web::formats`].

use std::{io, str::FromStr, sync::Arc, time::Duration};

use crate::{
    book::{Book, same_name},
    entry::Entry,
    search::{Search, Start, Stop, Stopped},
    store::{Entries, StoreError},
};
use feed::FeedSettings;
use tampu_types::Time;

pub mod csv;
pub mod feed;
pub mod html;
pub mod markdown;
pub mod pdf;

/// Entries of a page.
const PAGE: usize = 200;
/// The time limit of one page.
const PAGE_TIME: Duration = Duration::from_secs(60);

/// The file formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table by RFC 4180, whose cells no spreadsheet takes for formulas.
    Csv,
    /// The same with every cell as it is.
    RawCsv,
    /// One entry on each line, as JSON.
    Json,
    /// A text for people.
    Markdown,
    /// A feed by RFC 4287.
    Atom,
    /// A calendar by RFC 5545.
    Calendar,
}

/// An error: the text names no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown export format '{0}'; use csv, raw-csv, json, markdown, atom or ical")]
pub struct BadFormat(pub String);

impl FromStr for Format {
    type Err = BadFormat;

    fn from_str(text: &str) -> Result<Format, BadFormat> {
        match text.to_ascii_lowercase().as_str() {
            "csv" => Ok(Format::Csv),
            "raw-csv" => Ok(Format::RawCsv),
            "json" | "jsonl" => Ok(Format::Json),
            "markdown" | "md" => Ok(Format::Markdown),
            "atom" => Ok(Format::Atom),
            "ical" | "ics" => Ok(Format::Calendar),
            _ => Err(BadFormat(text.to_owned())),
        }
    }
}

impl Format {
    /// The format's name, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::RawCsv => "raw-csv",
            Format::Json => "json",
            Format::Markdown => "markdown",
            Format::Atom => "atom",
            Format::Calendar => "ical",
        }
    }

    /// The format's media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::Csv | Format::RawCsv => "text/csv; charset=utf-8; header=present",
            Format::Json => "application/x-ndjson",
            Format::Markdown => "text/markdown; charset=utf-8",
            Format::Atom => "application/atom+xml; charset=utf-8",
            Format::Calendar => "text/calendar; charset=utf-8",
        }
    }

    /// The extension of the format's files, without a dot.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::Csv | Format::RawCsv => "csv",
            Format::Json => "jsonl",
            Format::Markdown => "md",
            Format::Atom => "atom",
            Format::Calendar => "ics",
        }
    }
}

/// The pieces of an export.
pub type Pieces = Box<dyn Iterator<Item = io::Result<Vec<u8>>> + Send>;

/// Exports all results of a search, in its order. The search's page, count and time limit are ignored.
pub fn export(store: Arc<dyn Entries>, search: Search, format: Format, stop: Stop) -> Result<Pieces, StoreError> {
    export_with(store, search, format, FeedSettings::default(), stop)
}

/// Exports the results of a search as [`export`] does, with the settings of a feed.
pub fn export_with(
    store: Arc<dyn Entries>,
    search: Search,
    format: Format,
    settings: FeedSettings,
    stop: Stop,
) -> Result<Pieces, StoreError> {
    let books = searched(&*store, &search.books)?;
    let query = search.query.clone();
    let mut pages = Pages::begin(store, search, stop)?;
    pages.left = settings.limit.unwrap_or(usize::MAX);
    Ok(match format {
        Format::Csv | Format::RawCsv => {
            let (columns, raw) = (csv::columns(&books), format == Format::RawCsv);
            pieces(csv::header(&columns, raw), pages, move |entry, out| csv::row(&columns, entry, raw, out))
        }
        Format::Json => pieces(Vec::new(), pages, json),
        Format::Markdown => pieces(Vec::new(), pages, markdown::entry),
        Format::Atom => {
            let begin = feed::atom_begin(&books, &query, pages.newest_change());
            let entries = pieces(begin, pages, move |entry, out| feed::atom_entry(&settings, entry, out));
            ended(entries, feed::ATOM_END)
        }
        Format::Calendar => {
            let dates = feed::DateAttributes::of(&books);
            let begin = feed::CALENDAR_BEGIN.to_vec();
            ended(pieces(begin, pages, move |entry, out| dates.events(&settings, entry, out)), feed::CALENDAR_END)
        }
    })
}

/// Appends the end of a file to its pieces, unless an error has ended them.
fn ended(mut pieces: Pieces, end: &'static [u8]) -> Pieces {
    let mut end = Some(end);
    Box::new(std::iter::from_fn(move || match pieces.next() {
        Some(Err(error)) => {
            end = None;
            Some(Err(error))
        }
        Some(piece) => Some(piece),
        None => end.take().map(|end| Ok(end.to_vec())),
    }))
}

fn json(entry: &Entry, out: &mut Vec<u8>) {
    // An entry contains only texts and numbers, so this does not fail.
    if serde_json::to_writer(&mut *out, entry).is_ok() {
        out.push(b'\n');
    }
}

/// Returns the searched books; an empty list means all.
pub fn searched(store: &dyn Entries, names: &[String]) -> Result<Vec<Book>, StoreError> {
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

/// The pieces of an export: its beginning, then the entries as `write` formats them.
pub fn pieces(begin: Vec<u8>, pages: Pages, mut write: impl FnMut(&Entry, &mut Vec<u8>) + Send + 'static) -> Pieces {
    let page = move |page: Result<Vec<Entry>, PageError>| {
        let mut out = Vec::new();
        page.map_err(io::Error::other)?.iter().for_each(|entry| write(entry, &mut out));
        Ok(out)
    };
    let first = (!begin.is_empty()).then_some(Ok(begin));
    Box::new(first.into_iter().chain(pages.map(page)))
}

/// The reasons that end an export early.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A page reached its time limit, or its caller left.
    #[error("the export is incomplete: {}", match .0 { Stopped::TimeLimit => "a page reached the time limit", Stopped::Abandoned => "the export was stopped" })]
    Stopped(Stopped),
}

/// All results of a search, a page at a time. An error ends the iteration.
pub struct Pages {
    store: Arc<dyn Entries>,
    search: Search,
    stop: Stop,
    first: Option<Result<Vec<Entry>, PageError>>,
    more: bool,
    /// The number of entries that may still come.
    left: usize,
}

impl Pages {
    /// Searches the first page.
    pub fn begin(store: Arc<dyn Entries>, search: Search, stop: Stop) -> Result<Pages, StoreError> {
        Pages::begin_few(store, search, stop, u64::MAX)
    }

    /// Searches the first page of a caller who takes about `few` entries.
    pub fn begin_few(store: Arc<dyn Entries>, search: Search, stop: Stop, few: u64) -> Result<Pages, StoreError> {
        let limit = usize::try_from(few).unwrap_or(PAGE).clamp(1, PAGE);
        let search = Search { start: Start::First, limit, count_to: 0, time: PAGE_TIME, ..search };
        let mut pages = Pages { store, search, stop, first: None, more: true, left: usize::MAX };
        match pages.page() {
            Err(PageError::Store(error)) => return Err(error),
            first => {
                pages.more &= first.is_ok();
                pages.first = Some(first);
            }
        }
        Ok(pages)
    }

    /// Returns the time of the newest change among the entries of the first page.
    fn newest_change(&self) -> Time {
        let first = self.first.as_ref().and_then(|page| page.as_ref().ok());
        first.into_iter().flatten().map(|entry| entry.changed).max().unwrap_or_default()
    }

    /// Returns a page without the entries that are too many.
    fn cut(&mut self, page: Result<Vec<Entry>, PageError>) -> Result<Vec<Entry>, PageError> {
        page.map(|mut page| {
            page.truncate(self.left);
            self.left -= page.len();
            page
        })
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
            return Some(self.cut(first));
        }
        if !self.more || self.left == 0 {
            return None;
        }
        let page = self.page();
        self.more &= page.is_ok();
        Some(self.cut(page))
    }
}
