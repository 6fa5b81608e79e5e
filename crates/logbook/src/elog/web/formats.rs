//! What is no page: tables, XML, files and digests, as ELOG's programs and spreadsheets read them.
//!
//! | asked for | module |
//! |-|-|
//! | `?mode=CSV1`, `CSV2`, `CSV3` of a list or a search | [`table`] |
//! | `?mode=XML` | [`xml`] |
//! | `?mode=Raw`, `?cmd=Download` of an entry, `?cmd=GetMD5` | here, through [`crate::elog::written`] |
//! | `elog.rdf` | [`rss`] |
//! | attachments | [`file`] |
//!
//! A list in one of these formats is all that is found and not a page of it. It is made while it is sent, a few hundred entries at a time; what is
//! short enough goes out as one piece, because ELOG's programs want to be told its length.

use std::{
    collections::HashMap,
    io,
    time::{Duration, Instant},
};

use http::{
    StatusCode,
    header::{CONTENT_DISPOSITION, HeaderValue},
};
use md5::{Digest, Md5};

use super::{Body, BookAsk, Response, address::Part, find, layout, response};
use crate::{
    attachment::hex,
    book::{AttributeDef, same_name},
    elog::{
        export::section,
        written::{stored_name, written},
    },
    entry::{Entry, EntryRef},
    export::{Pages, Pieces},
    search::{MAX_PAGE, Search, Sort, Start},
    store::{Store, StoreError},
};

pub mod file;
pub mod rss;
pub mod table;
pub mod xml;

pub use file::attachment;
pub use rss::rss;

/// Up to this length an answer is sent as one piece, with its length before it.
const WHOLE: usize = 1 << 20;
/// How long whoever asks waits for that; what is not whole by then is sent as it is made.
const WHOLE_TIME: Duration = Duration::from_millis(100);
const END_OF_HEAD: &str = "\n========================================\n";
const PLAIN: &str = "text/plain; charset=utf-8";

/// What a list can be instead of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A table with commas.
    Csv1,
    /// With semicolons.
    Csv2,
    /// With semicolons, and with the texts.
    Csv3,
    /// XML.
    Xml,
    /// As entries stand in ELOG's files, with the line ends of Windows.
    Raw,
}

impl Format {
    /// As it is named in an address, without case.
    pub fn named(name: &str) -> Option<Format> {
        let all =
            [("CSV1", Format::Csv1), ("CSV2", Format::Csv2), ("CSV3", Format::Csv3), ("XML", Format::Xml), ("Raw", Format::Raw)];
        all.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, format)| format)
    }

    fn file_name(self) -> &'static str {
        match self {
            Format::Csv1 | Format::Csv2 | Format::Csv3 => "export.csv",
            Format::Xml => "export.xml",
            Format::Raw => "export.txt",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Format::Csv1 | Format::Csv2 | Format::Csv3 => "text/csv; charset=utf-8",
            Format::Xml => "application/xml; charset=utf-8",
            Format::Raw => PLAIN,
        }
    }
}

/// A list in a format: what [`find`] means, all of it.
pub fn list(ask: &BookAsk<'_>, part: Part, format: Format) -> Response {
    let found = match find::find(ask, part) {
        Ok(found) => found,
        Err(find::BadFind::Store(error)) => return ask.failed(&error),
        Err(bad) => return layout::error(ask, StatusCode::NOT_FOUND, &bad.to_string()),
    };
    let store = ask.site.store.clone();
    let entries = match part {
        Part::Last(count) => newest(ask, found.search.clone(), count),
        _ => Pages::begin(store.clone(), found.search.clone(), ask.stop.clone()).map(|pages| {
            Box::new(pages.map(|page| page.map_err(io::Error::other))) as Box<dyn Iterator<Item = io::Result<Vec<Entry>>> + Send>
        }),
    };
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return ask.failed(&error),
    };
    let names: Vec<AttributeDef> = found.attributes;
    let (settings, zone) = (ask.settings.clone(), ask.site.config.zone.clone());
    let (begin, end): (Vec<u8>, &[u8]) = match format {
        Format::Xml => (xml::BEGIN.as_bytes().to_vec(), xml::END.as_bytes()),
        Format::Raw => (Vec::new(), b""),
        table => (table::header(table, &names), b""),
    };
    let body = entries.map(move |page| {
        let (page, mut out) = (page?, Vec::new());
        let answers = Answers::to(&*store, &page).map_err(io::Error::other)?;
        for entry in &page {
            match format {
                Format::Xml => xml::entry(entry, answers.of(entry), &names, &settings, &zone, &mut out),
                Format::Raw => out.extend_from_slice(text_of(entry, answers.of(entry)).replace('\n', "\r\n").as_bytes()),
                table => table::row(table, entry, &names, &settings, &zone, &mut out),
            }
        }
        Ok(out)
    });
    let pieces = std::iter::once(Ok(begin)).chain(body).chain(std::iter::once(Ok(end.to_vec())));
    download(format.content_type(), format.file_name(), Box::new(pieces))
}

/// So many entries of a search, the newest; in its order where they fit a page of the store.
fn newest(
    ask: &BookAsk<'_>,
    search: Search,
    count: u64,
) -> Result<Box<dyn Iterator<Item = io::Result<Vec<Entry>>> + Send>, StoreError> {
    let upwards = !search.descending && search.sort == Sort::Date;
    let search = Search { sort: Sort::Date, descending: true, ..search };
    let mut pages = Pages::begin(ask.site.store.clone(), search, ask.stop.clone())?;
    if count > MAX_PAGE as u64 {
        let mut left = count as usize;
        let cut = move |page: Result<Vec<Entry>, _>| {
            let mut page: Vec<Entry> = page.map_err(io::Error::other)?;
            page.truncate(left);
            left -= page.len();
            Ok(page)
        };
        let mut some = true;
        let pages = pages.map(cut).take_while(move |page: &io::Result<Vec<Entry>>| {
            let go_on = some;
            some = page.as_ref().is_ok_and(|page| !page.is_empty());
            go_on && some || page.is_err()
        });
        return Ok(Box::new(pages));
    }
    let mut entries: Vec<Entry> = Vec::new();
    while entries.len() < count as usize {
        match pages.next() {
            Some(Ok(page)) => entries.extend(page),
            Some(Err(error)) => return Ok(Box::new(std::iter::once(Err(io::Error::other(error))))),
            None => break,
        }
    }
    entries.truncate(count as usize);
    if upwards {
        entries.reverse();
    }
    Ok(Box::new(std::iter::once(Ok(entries))))
}

/// The answers to some entries.
pub struct Answers(HashMap<EntryRef, Vec<u32>>);

impl Answers {
    /// To these.
    pub fn to(store: &dyn Store, entries: &[Entry]) -> Result<Answers, StoreError> {
        let mut by_book: HashMap<&str, Vec<u32>> = HashMap::new();
        entries.iter().for_each(|entry| by_book.entry(&entry.at.book).or_default().push(entry.at.id));
        let mut answers: HashMap<EntryRef, Vec<u32>> = HashMap::new();
        for (book, ids) in by_book {
            for (parent, id) in store.answers(book, &ids)? {
                answers.entry(EntryRef::new(book, parent)).or_default().push(id);
            }
        }
        Ok(Answers(answers))
    }

    /// To this one.
    pub fn of(&self, entry: &Entry) -> &[u32] {
        self.0.get(&entry.at).map_or(&[], Vec::as_slice)
    }
}

/// An entry as it stands in ELOG's files.
fn text_of(entry: &Entry, answers: &[u32]) -> String {
    let names: Vec<String> = entry.content.attachments.iter().map(stored_name).collect();
    written(entry, answers, &names).0
}

/// `?cmd=Download` of an entry: its bytes in ELOG's files.
pub fn entry(ask: &BookAsk<'_>, id: u32) -> Response {
    let store = ask.site.store();
    let read = || {
        let entry = store.entry(&EntryRef::new(&ask.book.name, id))?;
        let answers = Answers::to(store, std::slice::from_ref(&entry))?;
        let text = text_of(&entry, answers.of(&entry));
        let lock = if ask.settings.use_lock() { store.locked(&entry.at)? } else { None };
        Ok(match lock {
            // The head ends with the first line of `=`; nothing in it has a line end of its own.
            Some(lock) => text.replacen(END_OF_HEAD, &format!("\nLocked by: {} on {}{END_OF_HEAD}", lock.by, lock.host), 1),
            None => text,
        })
    };
    match read() {
        Ok(text) => named(response(StatusCode::OK, PLAIN, text.into_bytes()), "export.txt"),
        Err(error) => ask.failed(&error),
    }
}

/// `?cmd=GetMD5`: a digest of what each entry is in ELOG's files, and with 0 for its number one of the book's configuration.
pub fn md5(ask: &BookAsk<'_>) -> Response {
    let search = Search {
        books: vec![ask.book.name.clone()],
        sort: Sort::Id,
        descending: false,
        start: Start::First,
        ..Search::default()
    };
    let store = ask.site.store.clone();
    let pages = match Pages::begin(store.clone(), search, ask.stop.clone()) {
        Ok(pages) => pages,
        Err(error) => return ask.failed(&error),
    };
    let line = |id: u32, text: &str| format!("ID: {id:6} MD5:{}\n", hex(&Md5::digest(text.as_bytes())));
    let mut config = String::new();
    // What its line cannot hold is nothing that a program compares.
    section(&ask.book.name, &ask.book, &mut config, &mut Vec::new());
    let begin = line(0, &config).into_bytes();
    let body = pages.map(move |page| {
        let (page, mut out) = (page.map_err(io::Error::other)?, String::new());
        let answers = Answers::to(&*store, &page).map_err(io::Error::other)?;
        page.iter().for_each(|entry| out.push_str(&line(entry.at.id, &text_of(entry, answers.of(entry)))));
        Ok(out.into_bytes())
    });
    whole_if_short(PLAIN, Box::new(std::iter::once(Ok(begin)).chain(body)))
}

/// An answer that is saved as a file.
fn download(kind: &'static str, name: &str, pieces: Pieces) -> Response {
    named(whole_if_short(kind, pieces), name)
}

fn named(mut answer: Response, name: &str) -> Response {
    if answer.status() == StatusCode::OK
        && let Ok(value) = HeaderValue::from_str(&format!("inline; filename=\"{name}\""))
    {
        answer.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    answer
}

/// What fits is one piece; what fails within it is told as a failure.
fn whole_if_short(kind: &'static str, mut pieces: Pieces) -> Response {
    let (mut begin, begun) = (Vec::new(), Instant::now());
    while begin.len() < WHOLE && begun.elapsed() < WHOLE_TIME {
        match pieces.next() {
            Some(Ok(piece)) => begin.extend_from_slice(&piece),
            Some(Err(error)) => {
                let mut answer = layout::bare(StatusCode::INTERNAL_SERVER_ERROR, "The export ended before its end");
                answer.extensions_mut().insert(super::Failure(error.to_string()));
                return answer;
            }
            None => return response(StatusCode::OK, kind, begin),
        }
    }
    let mut answer = response(StatusCode::OK, kind, Vec::new());
    *answer.body_mut() = Body::Pieces(Box::new(std::iter::once(Ok(begin)).chain(pieces)));
    answer
}

/// A value of an entry under an attribute's name; nothing if it says nothing.
fn value_of(entry: &Entry, name: &str) -> String {
    let said = entry.content.attributes.iter().find(|said| same_name(&said.name, name));
    said.map(|said| said.joined()).unwrap_or_default()
}
