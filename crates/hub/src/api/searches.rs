//! Searches: one page at a time, as a file of all results, saved under a name, or pushed.

use std::time::Duration;

use http::{HeaderValue, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    export::{Format, export},
    people::{Resource, Right, Verb},
    search::{Count, Cursor, Hit, MAX_PAGE, Search, Sort, Start, Stopped},
};

use super::{
    call::{Answer, Call, DELETE, GET, PUT, Route, nothing, ok},
    pdf,
    push::SearchSubscription,
};
use crate::http::route::{
    Content::{self, Nothing},
    Login, json_of,
};
use crate::{
    clock::now,
    http::{admission::WorkKind, body::ResponseBody, headers::set, problem::Problem, route::Parameter},
};

pub(super) const Q: Parameter =
    ("q", "string", "the query, in the language of spec/book-query.md; an empty one finds everything");
pub(super) const BOOK: Parameter = ("book", "string", "the logbook, may be repeated; all that the caller may read, if missing");
const SORT: Parameter = ("sort", "string", "date, id, or an attribute, descending with a minus before it; -date, if missing");

/// Routes of searches.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/search",
        id: "search",
        what: "Searches. A page has the cursor of the next one ('next', for 'after'), the number of hits, and the reason if it ended early ('stopped')",
        query: &[
            Q,
            BOOK,
            SORT,
            ("limit", "integer", "entries of the page, 1 to 1000; 20, if missing"),
            ("after", "string", "'next' of the page before"),
            ("skip", "integer", "skips this many; 'after' costs less"),
            (
                "count",
                "integer",
                "limit up to which hits are counted exactly, at most 10000 for guests; 0 for no count; 1000, if missing",
            ),
            ("time_ms", "integer", "the search ends after this time with the hits so far; at most the hub's own limit"),
            ("text", "boolean", "with the whole text of each entry"),
        ],
        gives: (200, json_of::<SearchPage>()),
        work: WorkKind::Search,
        act: search,
        ..GET
    },
    Route {
        path: "/search/stream",
        id: "streamSearch",
        what: "Server-sent events: 'match' for an entry that is new or changed and matches, 'gone' for one that no longer matches, or was \
               deleted or moved away, 'reset' where changes were missed, 'cut' at the end for a client that reads too slowly. Continues after Last-Event-ID",
        query: &[Q, BOOK, ("after", "string", "as Last-Event-ID, for clients that cannot send it")],
        gives: (200, Content::Bytes("text/event-stream")),
        act: stream,
        ..GET
    },
    Route {
        path: "/search/export",
        id: "exportSearch",
        what: "Returns everything a search finds as a file",
        query: &[
            Q,
            BOOK,
            SORT,
            (
                "format",
                "string",
                "csv (safe for spreadsheets), raw-csv (cells as they are), json (one entry a line), markdown, atom, ical or pdf; csv, if missing",
            ),
            ("thread", "boolean", "for pdf: each entry with its whole thread"),
        ],
        gives: (200, Content::Bytes("text/csv")),
        work: WorkKind::Export,
        act: as_file,
        ..GET
    },
    Route {
        path: "/searches",
        id: "listSearches",
        what: "Lists the caller's saved searches, by name",
        gives: (200, json_of::<Vec<SavedSearch>>()),
        login: Login::Required,
        act: |call| {
            let saved = call.api.store.saved_searches(&call.who().login)?.into_iter();
            ok(&saved.map(|(name, q)| SavedSearch { name, q }).collect::<Vec<_>>())
        },
        ..GET
    },
    Route {
        path: "/searches/{name}",
        id: "saveSearch",
        what: "Saves a search under a name",
        takes: json_of::<SearchToSave>(),
        gives: (200, json_of::<SavedSearch>()),
        login: Login::Required,
        act: save,
        ..PUT
    },
    Route {
        path: "/searches/{name}",
        id: "dropSearch",
        what: "Deletes a saved search",
        gives: (204, Nothing),
        login: Login::Required,
        act: |call| {
            let gone = || Problem::new(StatusCode::NOT_FOUND, "not-there", "you have no saved search of this name");
            call.api.store.drop_search(&call.who().login, call.var(0))?.then_some(()).ok_or_else(gone)?;
            nothing()
        },
        ..DELETE
    },
];

/// Maximum number of saved searches of one owner.
const MAX_SAVED: usize = 1000;
/// Entries that are counted for a guest.
const GUEST_COUNT: u64 = 10_000;
/// Characters of a saved search's name.
const MAX_NAME: usize = 128;

#[derive(Serialize, JsonSchema)]
struct SearchPage {
    hits: Vec<Hit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Stopped>,
}

#[derive(Serialize, JsonSchema)]
struct SavedSearch {
    name: String,
    q: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchToSave {
    q: String,
}

/// Returns the logbooks that are searched: those named in the request, or all that the caller may read. Returns `None`
/// if no logbook remains.
pub(super) fn books(call: &Call<'_>) -> Result<Option<Vec<String>>, Problem> {
    let named: Vec<String> = call.query.iter().filter(|(name, _)| name == "book").map(|(_, book)| book.clone()).collect();
    named.iter().try_for_each(|book| call.ask(Verb::Read, Resource::Book(book)))?;
    let books = if named.is_empty() { call.who().rights.books(Right::Read) } else { named };
    Ok((!books.is_empty()).then_some(books))
}

/// Reads the search from the parameters, without the page.
pub(super) fn asked(call: &Call<'_>, books: Vec<String>) -> Result<Search, Problem> {
    let sort = call.parameter("sort").unwrap_or("-date");
    let (by, descending) = sort.strip_prefix('-').map_or((sort, false), |by| (by, true));
    let sort = match by.to_ascii_lowercase().as_str() {
        "" | "date" => Sort::Date,
        "id" => Sort::Id,
        "thread" => Sort::Thread,
        _ => Sort::Attribute(by.to_owned()),
    };
    let time = Duration::from_millis(call.api.settings.search_ms);
    let (query, shown) = (call.parameter("q").unwrap_or_default().to_owned(), call.api.people.shown(call.who())?);
    Ok(Search { books, query, sort, descending, time, shown, ..Search::default() })
}

fn search(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let Some(books) = books(call)? else {
        return ok(&SearchPage { hits: vec![], count: Some(Count::Exactly(0)), next: None, stopped: None });
    };
    let mut search = asked(call, books)?;
    search.limit = call.parsed("limit")?.unwrap_or(search.limit);
    if !(1..=MAX_PAGE).contains(&search.limit) {
        return Err(Problem::bad("query limit", format!("1 to {MAX_PAGE}")));
    }
    search.start = match (call.parsed::<Cursor>("after")?, call.parsed::<u64>("skip")?) {
        (Some(_), Some(_)) => return Err(Problem::bad("query skip", "either 'after' or 'skip'")),
        (Some(cursor), None) => Start::After(cursor),
        (None, Some(skip)) => Start::Skip(skip),
        (None, None) => Start::First,
    };
    if let Some(count) = call.parsed::<u64>("count")? {
        let count = counted(count, call.who().is_guest());
        (search.count_to, search.count_looks) = (count, count.max(search.count_looks));
    }
    if let Some(ms) = call.parsed("time_ms")? {
        search.time = search.time.min(Duration::from_millis(ms));
    }
    let with_text = call.flag("text")?;
    let mut page = call.api.store.search(&search, call.stop)?;
    if !with_text {
        page.hits.iter_mut().for_each(|hit| hit.entry.content.text.clear());
    }
    ok(&SearchPage { hits: page.hits, count: page.count, next: page.next.map(|next| next.to_string()), stopped: page.stopped })
}

/// Returns up to which number hits are counted, of the number that a caller wants.
fn counted(wanted: u64, is_guest: bool) -> u64 {
    if is_guest { wanted.min(GUEST_COUNT) } else { wanted }
}

fn as_file(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let (is_pdf, threads) = (call.parameter("format").is_some_and(|name| name.eq_ignore_ascii_case("pdf")), call.flag("thread")?);
    if threads && !is_pdf {
        return Err(Problem::bad("query thread", "only format=pdf has threads"));
    }
    let format: Format = if is_pdf { Format::Csv } else { call.parsed("format")?.unwrap_or(Format::Csv) };
    let nothing_to_read = || Problem::new(StatusCode::NOT_FOUND, "not-there", "there is no logbook that you may read");
    let books = books(call)?.ok_or_else(nothing_to_read)?;
    if is_pdf {
        return pdf::search(call, asked(call, books)?, threads);
    }
    let pieces = export(call.api.store.clone(), asked(call, books)?, format, call.stop.clone())?;
    let mut answer = http::Response::new(ResponseBody::of_pieces(pieces));
    let headers = answer.headers_mut();
    set(headers, header::CONTENT_TYPE, format.content_type());
    set(headers, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"logbook.{}\"", format.extension()));
    Ok(answer)
}

fn stream(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let last = call.head.headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::trim).filter(|id| !id.is_empty());
    let wrong = |_| Problem::bad("header Last-Event-ID", "invalid event id; send an id of this stream");
    let after = match last {
        Some(id) => Some(id.parse::<u64>().map_err(wrong)?),
        None => call.parsed("after")?,
    };
    let nothing_to_read = || Problem::new(StatusCode::NOT_FOUND, "not-there", "there is no logbook that you may read");
    let named = call.query.iter().any(|(name, _)| name == "book");
    let books = books(call)?.ok_or_else(nothing_to_read)?;
    // Without named logbooks, the search includes logbooks that are created later.
    let books = if named { books } else { Vec::new() };
    let wanted =
        SearchSubscription { books, query: call.parameter("q").unwrap_or_default().to_owned(), after, auth: call.auth.clone() };
    let told = call.api.pushes.subscribe(wanted, call.head)?;
    let mut answer = http::Response::new(told);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies must not buffer events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(answer)
}

fn save(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let SearchToSave { q } = call.json()?;
    let (login, name) = (call.who().login.clone(), call.var(0).to_owned());
    if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) || q.len() > 4096 {
        return Err(Problem::bad("body", format!("a name has at most {MAX_NAME} characters, a query 4096 bytes")));
    }
    let saved = call.api.store.saved_searches(&login)?;
    if saved.len() >= MAX_SAVED && !saved.iter().any(|(known, _)| *known == name) {
        return Err(Problem::new(StatusCode::CONFLICT, "full", format!("you have {MAX_SAVED} saved searches"))
            .help("delete some of them"));
    }
    // Rejects an invalid query before it is saved.
    let names: Vec<String> = Vec::new();
    tampu_logbook::query::parse(&q, &names, now()).map_err(tampu_logbook::store::StoreError::from)?;
    call.api.store.save_search(&login, &name, &q)?;
    ok(&SavedSearch { name, q })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_does_not_count_a_whole_logbook() {
        assert_eq!((counted(100_000_000, true), counted(7, true)), (GUEST_COUNT, 7));
        assert_eq!(counted(100_000_000, false), 100_000_000);
    }
}
