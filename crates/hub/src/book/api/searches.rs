//! Searches: a page at a time, all as a file, saved under a name, and pushed.

use std::time::Duration;

use http::{HeaderValue, Method, StatusCode, header};
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    elog::web::Body,
    export::{Format, export},
    people::{Resource, Right, Verb},
    search::{Count, Cursor, Hit, MAX_PAGE, Search, Sort, Start, Stopped},
};

use super::{
    Answer, Call,
    Content::{self, Json, List, Nothing},
    Needs, Parameter, Route, nothing, ok, set,
};
use crate::book::{body::Told, problem::Problem, push::Wanted};

const Q: Parameter = ("q", "string", "what to look for, in the language of spec/book-query.md; nothing finds everything");
const BOOK: Parameter = ("book", "string", "in this logbook; several, once for each; all one may read, if nothing is said");
const SORT: Parameter =
    ("sort", "string", "date, id, or an attribute; a minus before it turns it round; -date, if nothing is said");

/// The routes.
pub const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/search",
        id: "search",
        what: "Searches. A page says where the next begins ('next', for 'after'), how many there are, and if it ended early why ('stopped')",
        query: &[
            Q,
            BOOK,
            SORT,
            ("limit", "integer", "entries of the page, 1 to 1000; 20, if nothing is said"),
            ("after", "string", "'next' of the page before"),
            ("skip", "integer", "after this many; 'after' costs less"),
            ("count", "integer", "up to how many are counted exactly; 0 for not at all; 1000, if nothing is said"),
            ("time_ms", "integer", "the search ends after this time with what it has; at most what the hub allows"),
            ("text", "boolean", "with the whole text of each entry"),
        ],
        takes: Nothing,
        gives: (200, Json("SearchPage")),
        needs: Needs::Nobody,
        act: search,
    },
    Route {
        method: Method::GET,
        path: "/search/stream",
        id: "streamSearch",
        what: "Server-sent events: 'match' for an entry that is new or changed and is what is looked for, 'gone' for one that no longer is or was \
               deleted or moved away, 'reset' where changes were missed, 'cut' at the end of one who reads too slowly. Goes on after Last-Event-ID",
        query: &[Q, BOOK, ("after", "integer", "as Last-Event-ID, where that cannot be sent")],
        takes: Nothing,
        gives: (200, Content::Bytes("text/event-stream")),
        needs: Needs::Nobody,
        act: stream,
    },
    Route {
        method: Method::GET,
        path: "/search/export",
        id: "exportSearch",
        what: "All that a search finds, as a file",
        query: &[Q, BOOK, SORT, ("format", "string", "csv, json (an entry a line) or markdown; csv, if nothing is said")],
        takes: Nothing,
        gives: (200, Content::Bytes("text/csv")),
        needs: Needs::Nobody,
        act: as_file,
    },
    Route {
        method: Method::GET,
        path: "/searches",
        id: "listSearches",
        what: "One's saved searches, by name",
        query: &[],
        takes: Nothing,
        gives: (200, List("SavedSearch")),
        needs: Needs::Login,
        act: |call| {
            let saved = call.api.store.saved_searches(&call.who().login)?.into_iter();
            ok(&saved.map(|(name, q)| Saved { name, q }).collect::<Vec<_>>())
        },
    },
    Route {
        method: Method::PUT,
        path: "/searches/{name}",
        id: "saveSearch",
        what: "Saves a search under a name",
        query: &[],
        takes: Json("SearchToSave"),
        gives: (200, Json("SavedSearch")),
        needs: Needs::Login,
        act: save,
    },
    Route {
        method: Method::DELETE,
        path: "/searches/{name}",
        id: "dropSearch",
        what: "Forgets a saved search",
        query: &[],
        takes: Nothing,
        gives: (204, Nothing),
        needs: Needs::Login,
        act: |call| {
            let gone = || Problem::new(StatusCode::NOT_FOUND, "not-there", "you have saved no search of this name");
            call.api.store.drop_search(&call.who().login, call.var(0))?.then_some(()).ok_or_else(gone)?;
            nothing()
        },
    },
];

/// Saved searches of one owner.
const MAX_SAVED: usize = 1000;
/// Characters of a saved search's name.
const MAX_NAME: usize = 128;

#[derive(Serialize)]
struct Page {
    hits: Vec<Hit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<Count>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Stopped>,
}

#[derive(Serialize)]
struct Saved {
    name: String,
    q: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToSave {
    q: String,
}

/// The books that are searched: those named, if they may be read, else all that may. None if there is none.
fn books(call: &Call<'_>) -> Result<Option<Vec<String>>, Problem> {
    let named: Vec<String> = call.query.iter().filter(|(name, _)| name == "book").map(|(_, book)| book.clone()).collect();
    named.iter().try_for_each(|book| call.ask(Verb::Read, Resource::Book(book)))?;
    let books = if named.is_empty() { call.who().rights.books(Right::Read) } else { named };
    Ok((!books.is_empty()).then_some(books))
}

/// What is asked, but for the page.
fn asked(call: &Call<'_>, books: Vec<String>) -> Search {
    let sort = call.parameter("sort").unwrap_or("-date");
    let (by, descending) = sort.strip_prefix('-').map_or((sort, false), |by| (by, true));
    let sort = match by.to_ascii_lowercase().as_str() {
        "" | "date" => Sort::Date,
        "id" => Sort::Id,
        _ => Sort::Attribute(by.to_owned()),
    };
    let time = Duration::from_millis(call.api.settings.search_ms);
    Search { books, query: call.parameter("q").unwrap_or_default().to_owned(), sort, descending, time, ..Search::default() }
}

fn search(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let Some(books) = books(call)? else {
        return ok(&Page { hits: vec![], count: Some(Count::Exactly(0)), next: None, stopped: None });
    };
    let mut search = asked(call, books);
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
    ok(&Page { hits: page.hits, count: page.count, next: page.next.map(|next| next.to_string()), stopped: page.stopped })
}

fn as_file(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let format: Format = call.parsed("format")?.unwrap_or(Format::Csv);
    let nothing_to_read = || Problem::new(StatusCode::NOT_FOUND, "not-there", "there is no logbook that you may read");
    let books = books(call)?.ok_or_else(nothing_to_read)?;
    let pieces = export(call.api.store.clone(), asked(call, books), format, call.stop.clone())?;
    let mut answer = http::Response::new(Told::from(Body::Pieces(pieces)));
    let headers = answer.headers_mut();
    set(headers, header::CONTENT_TYPE, format.content_type());
    set(headers, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"logbook.{}\"", format.extension()));
    Ok(answer)
}

fn stream(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let last = call.head.headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::trim).filter(|id| !id.is_empty());
    let wrong = |_| Problem::bad("header Last-Event-ID", "it is no number of an event");
    let after = match last {
        Some(id) => Some(id.parse::<u64>().map_err(wrong)?),
        None => call.parsed("after")?,
    };
    let nothing_to_read = || Problem::new(StatusCode::NOT_FOUND, "not-there", "there is no logbook that you may read");
    let named = call.query.iter().any(|(name, _)| name == "book");
    let books = books(call)?.ok_or_else(nothing_to_read)?;
    // A book that is made later counts too, if none was named.
    let books = if named { books } else { Vec::new() };
    let wanted = Wanted { books, query: call.parameter("q").unwrap_or_default().to_owned(), after, met: call.met.clone() };
    let told = call.api.pushes.subscribe(wanted, call.head)?;
    let mut answer = http::Response::new(told);
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Proxies are not to gather what is pushed.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    Ok(answer)
}

fn save(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let ToSave { q } = call.json()?;
    let (login, name) = (call.who().login.clone(), call.var(0).to_owned());
    if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) || q.len() > 4096 {
        return Err(Problem::bad("body", format!("a name has at most {MAX_NAME} characters, a query 4096 bytes")));
    }
    let saved = call.api.store.saved_searches(&login)?;
    if saved.len() >= MAX_SAVED && !saved.iter().any(|(known, _)| *known == name) {
        return Err(Problem::new(StatusCode::CONFLICT, "full", format!("you have {MAX_SAVED} saved searches"))
            .help("forget some of them"));
    }
    // What cannot be understood is told now and not when it is used.
    let names: Vec<String> = Vec::new();
    tampu_logbook::query::parse(&q, &names, crate::book::now()).map_err(tampu_logbook::store::StoreError::from)?;
    call.api.store.save_search(&login, &name, &q)?;
    ok(&Saved { name, q })
}
