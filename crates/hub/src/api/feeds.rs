//! Feeds of a search: Atom for feed readers, iCalendar for calendars.
//!
//! Programs ask for a feed again and again. So a response has an ETag that is made of the number of the last change, the
//! search, and the rights of the caller. A request with that ETag is answered before any entry is read.

use http::{HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use tampu_logbook::{
    attachment::hex,
    export::{Format, export_with, feed::FeedSettings, searched},
    search::Search,
};

use super::{
    call::{Answer, Call, GET, Route},
    searches::{BOOK, Q, asked, books},
};
use crate::{
    clock::now,
    http::{
        admission::WorkKind,
        body::ResponseBody,
        headers::{set, text},
        problem::Problem,
        route::Content,
    },
};

/// Routes of feeds.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/search/feed.atom",
        id: "atomFeed",
        what: "Returns the newest entries that a search finds as an Atom feed (RFC 4287). If-None-Match saves a feed without changes",
        query: &[Q, BOOK, ("limit", "integer", "entries, 1 to 1000; 100, if missing")],
        gives: (200, Content::Bytes("application/atom+xml")),
        work: WorkKind::Export,
        act: |call| feed(call, Format::Atom, (100, 1000)),
        ..GET
    },
    Route {
        path: "/search/calendar.ics",
        id: "calendar",
        what: "Returns the newest entries that a search finds as a calendar (RFC 5545): an event for each attribute that is a date, or else at the \
               entry's date. If-None-Match saves a calendar without changes",
        query: &[Q, BOOK, ("limit", "integer", "entries, 1 to 100000; 1000, if missing")],
        gives: (200, Content::Bytes("text/calendar")),
        work: WorkKind::Export,
        act: |call| feed(call, Format::Calendar, (1000, 100_000)),
        ..GET
    },
];

/// Nanoseconds for which a query with a relative time keeps its ETag.
const RELATIVE: i64 = 3600 * 1_000_000_000;

fn feed(call: &mut Call<'_>, format: Format, (usual, most): (usize, usize)) -> Result<Answer, Problem> {
    let limit = call.parsed("limit")?.unwrap_or(usual);
    if !(1..=most).contains(&limit) {
        return Err(Problem::bad("query limit", format!("1 to {most}")));
    }
    let nothing_to_read = || Problem::new(StatusCode::NOT_FOUND, "not-there", "there is no logbook that you may read");
    let search = asked(call, books(call)?.ok_or_else(nothing_to_read)?)?;
    let settings = FeedSettings { pages: call.api.settings.elog_url.clone(), limit: Some(limit) };
    let etag = etag(call, &search, format, &settings)?;
    let known = text(&call.head.headers, header::IF_NONE_MATCH).unwrap_or_default();
    let is_known = known.split(',').any(|known| known.trim() == etag);
    let body = if is_known {
        ResponseBody::Whole(bytes::Bytes::new())
    } else {
        ResponseBody::of_pieces(export_with(call.api.store.clone(), search, format, settings, call.stop.clone())?)
    };
    let mut answer = http::Response::new(body);
    if is_known {
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = answer.headers_mut();
    set(headers, header::CONTENT_TYPE, format.content_type());
    set(headers, header::ETAG, &etag);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    Ok(answer)
}

/// Returns the ETag of a feed: it changes with every entry, with the logbooks' attributes, and with what the caller may see.
fn etag(call: &Call<'_>, search: &Search, format: Format, settings: &FeedSettings) -> Result<String, Problem> {
    let mut of = Sha256::new();
    let mut add = |part: &str| {
        of.update((part.len() as u64).to_le_bytes());
        of.update(part.as_bytes());
    };
    // A change that comes meanwhile only makes the next request read the feed again.
    add(&call.api.store.last_change()?.to_string());
    add(env!("CARGO_PKG_VERSION"));
    add(&format!("{} {settings:?} {:?} {:?} {:?}", format.name(), search.books, search.sort, search.shown));
    add(&search.query);
    add(&(now().0 / RELATIVE).to_string());
    for book in searched(&*call.api.store, &search.books)? {
        add(&serde_json::to_string(&book).unwrap_or_default());
    }
    Ok(format!("\"{}\"", &hex(&of.finalize())[..32]))
}
