//! Lists and entries that are not pages: tables, XML, files and digests, as ELOG's programs and spreadsheets read them.
//!
//! | requested by | module |
//! |-|-|
//! | `?mode=CSV1`, `CSV2`, `CSV3` of a list or a search | [`table`] |
//! | `?mode=XML` | [`xml`] |
//! | `?mode=Raw`, `?cmd=Download` of an entry, `?cmd=GetMD5` | here, through [`crate::file_text`] |
//! | `elog.rdf` | [`rss`] |
//! | attachments | [`file`] |
//!
//! A list in one of these formats holds all entries found and not a page of them. It is made while it is sent, a few
//! hundred entries at a time. A short list goes out as one piece, because ELOG's programs need its length.

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
use tampu_logbook::{
    attachment::{hex, stored_name::stored_name},
    book::AttributeDef,
    entry::{Entry, EntryRef},
    export::{Pages, Pieces},
    search::{MAX_PAGE, Search, Sort, Start},
    store::{Store, StoreError},
};

use crate::{
    export::section,
    file_text::file_text,
    pages::{
        address::ListPart,
        find,
        formats::format::PLAIN,
        layout,
        request::BookRequest,
        response::{self, Body, Response},
    },
};

pub mod file;
pub mod format;
pub mod rss;
pub mod table;
pub mod xml;

pub use file::attachment;
pub use format::ListFormat;
pub use rss::rss;

/// Maximum length of a response that is sent as one piece, with its length before it.
const WHOLE: usize = 1 << 20;
/// The time after which an incomplete list is sent in pieces.
const WHOLE_TIME: Duration = Duration::from_millis(100);
const END_OF_HEAD: &str = "\n========================================\n";
/// Answers with a list in a format: all entries that [`find`] returns.
pub fn list(request: &BookRequest<'_>, part: ListPart, format: ListFormat) -> Response {
    let found = match find::find(request, part) {
        Ok(found) => found,
        Err(find::BadListSearch::Store(error)) => return request.failed(&error),
        Err(bad) => return layout::error(request, StatusCode::NOT_FOUND, &bad.to_string()),
    };
    let store = request.site.store.clone();
    let entries = match part {
        ListPart::Last(count) => newest(request, found.search.clone(), count),
        _ => Pages::begin(store.clone(), found.search.clone(), request.stop.clone()).map(|pages| {
            Box::new(pages.map(|page| page.map_err(io::Error::other))) as Box<dyn Iterator<Item = io::Result<Vec<Entry>>> + Send>
        }),
    };
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => return request.failed(&error),
    };
    let names: Vec<AttributeDef> = found.attributes;
    let (settings, config, zone) = (request.settings.clone(), request.site.config.clone(), request.zone.clone());
    let (begin, end): (Vec<u8>, &[u8]) = match format {
        ListFormat::Xml => (xml::BEGIN.as_bytes().to_vec(), xml::END.as_bytes()),
        ListFormat::Raw => (Vec::new(), b""),
        table => (table::header(table, &names, config.raw_csv), b""),
    };
    let body = entries.map(move |page| {
        let (page, mut out) = (page?, Vec::new());
        let answers = RepliesByEntry::to(&*store, &page).map_err(io::Error::other)?;
        for entry in &page {
            match format {
                ListFormat::Xml => xml::entry(entry, answers.of(entry), &names, &settings, &zone, &mut out),
                ListFormat::Raw => out.extend_from_slice(text_of(entry, answers.of(entry)).replace('\n', "\r\n").as_bytes()),
                table => table::row(table, entry, &names, &settings, &zone, config.raw_csv, &mut out),
            }
        }
        Ok(out)
    });
    let pieces = std::iter::once(Ok(begin)).chain(body).chain(std::iter::once(Ok(end.to_vec())));
    download(format.content_type(), format.file_name(), Box::new(pieces))
}

/// Returns the newest entries of a search; in its order if they fit a page of the store.
fn newest(
    request: &BookRequest<'_>,
    search: Search,
    count: u64,
) -> Result<Box<dyn Iterator<Item = io::Result<Vec<Entry>>> + Send>, StoreError> {
    let upwards = !search.descending && search.sort == Sort::Date;
    let search = Search { sort: Sort::Date, descending: true, ..search };
    let mut pages = Pages::begin_few(request.site.store.clone(), search, request.stop.clone(), count)?;
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

/// The replies to some entries.
pub struct RepliesByEntry(HashMap<EntryRef, Vec<u32>>);

impl RepliesByEntry {
    /// Looks up the replies to some entries.
    pub fn to(store: &dyn Store, entries: &[Entry]) -> Result<RepliesByEntry, StoreError> {
        let mut by_book: HashMap<&str, Vec<u32>> = HashMap::new();
        entries.iter().for_each(|entry| by_book.entry(&entry.at.book).or_default().push(entry.at.id));
        let mut answers: HashMap<EntryRef, Vec<u32>> = HashMap::new();
        for (book, ids) in by_book {
            for (parent, id) in store.answers(book, &ids)? {
                answers.entry(EntryRef::new(book, parent)).or_default().push(id);
            }
        }
        Ok(RepliesByEntry(answers))
    }

    /// Returns the replies to an entry.
    pub fn of(&self, entry: &Entry) -> &[u32] {
        self.0.get(&entry.at).map_or(&[], Vec::as_slice)
    }
}

/// Returns an entry as text of ELOG's files.
fn text_of(entry: &Entry, answers: &[u32]) -> String {
    let names: Vec<String> = entry.content.attachments.iter().map(stored_name).collect();
    file_text(entry, answers, &names).0
}

/// `?cmd=Download` of an entry: its bytes in ELOG's files.
pub fn entry(request: &BookRequest<'_>, id: u32) -> Response {
    let store = request.site.store();
    let read = || {
        let entry = request.read_entry(id)?;
        let answers = RepliesByEntry::to(store, std::slice::from_ref(&entry))?;
        let text = text_of(&entry, answers.of(&entry));
        let lock = if request.settings.use_lock() { store.locked(&entry.at)? } else { None };
        Ok(match lock {
            // The head ends with the first line of `=`; no value in it has a line end.
            Some(lock) => text.replacen(END_OF_HEAD, &format!("\nLocked by: {} on {}{END_OF_HEAD}", lock.by, lock.host), 1),
            None => text,
        })
    };
    match read() {
        Ok(text) => named(response::with_bytes(StatusCode::OK, PLAIN, text.into_bytes()), "export.txt"),
        Err(error) => request.failed(&error),
    }
}

/// `?cmd=GetMD5`: the digest of each entry's text in ELOG's files, and, under number 0, the digest of the book's
/// configuration.
pub fn md5(request: &BookRequest<'_>) -> Response {
    let search = Search {
        books: vec![request.book.name.clone()],
        sort: Sort::Id,
        descending: false,
        start: Start::First,
        shown: request.shown().map(|shown| (request.book.name.clone(), shown)).into_iter().collect(),
        ..Search::default()
    };
    let store = request.site.store.clone();
    let pages = match Pages::begin(store.clone(), search, request.stop.clone()) {
        Ok(pages) => pages,
        Err(error) => return request.failed(&error),
    };
    let line = |id: u32, text: &str| format!("ID: {id:6} MD5:{}\n", hex(&Md5::digest(text.as_bytes())));
    let mut config = String::new();
    // Programs do not compare what this line cannot hold.
    section(&request.book.name, &request.book, None, &mut config, &mut Vec::new());
    let begin = line(0, &config).into_bytes();
    let body = pages.map(move |page| {
        let (page, mut out) = (page.map_err(io::Error::other)?, String::new());
        let answers = RepliesByEntry::to(&*store, &page).map_err(io::Error::other)?;
        page.iter().for_each(|entry| out.push_str(&line(entry.at.id, &text_of(entry, answers.of(entry)))));
        Ok(out.into_bytes())
    });
    whole_if_short(PLAIN, Box::new(std::iter::once(Ok(begin)).chain(body)))
}

/// Returns a response that a browser saves as a file.
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

/// Sends a short content as one piece. A failure within it becomes an error response.
fn whole_if_short(kind: &'static str, mut pieces: Pieces) -> Response {
    let (mut begin, begun) = (Vec::new(), Instant::now());
    while begin.len() < WHOLE && begun.elapsed() < WHOLE_TIME {
        match pieces.next() {
            Some(Ok(piece)) => begin.extend_from_slice(&piece),
            Some(Err(error)) => {
                let mut answer = response::bare(StatusCode::INTERNAL_SERVER_ERROR, "The export is not complete");
                answer.extensions_mut().insert(crate::pages::response::LoggedFailure(error.to_string()));
                return answer;
            }
            None => return response::with_bytes(StatusCode::OK, kind, begin),
        }
    }
    let mut answer = response::with_bytes(StatusCode::OK, kind, Vec::new());
    *answer.body_mut() = Body::Pieces(Box::new(std::iter::once(Ok(begin)).chain(pieces)));
    answer
}
