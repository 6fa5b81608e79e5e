//! Logbooks, and their access rules.

use http::{StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    book::{Book, change::BookEdit, same_name},
    people::{
        Access, PeopleError, Resource, Right, Verb,
        access::{EVERY_BOOK, EditPolicy, Grant},
    },
    signature::policy::SigningPolicy,
    store::{BookInfo, StoreError},
};

use super::book_config;
use super::call::{Answer, Call, GET, PUT, Route, json, ok};
use crate::http::headers::set;
use crate::http::problem::Problem;
use crate::http::route::{IfMatch, json_of};

/// Routes of logbooks.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books",
        id: "listBooks",
        what: "Lists the logbooks that the caller may read: their attributes, their number of entries, the caller's rights",
        gives: (200, json_of::<Vec<BookView>>()),
        act: |call| ok(&visible(call)?),
        ..GET
    },
    Route {
        path: "/books/{book}",
        id: "getBook",
        what: "Returns a logbook",
        gives: (200, json_of::<BookView>()),
        act: |call| ok(&one(call, call.var(0))?),
        ..GET
    },
    Route {
        path: "/books/{book}",
        id: "putBook",
        what: "Makes a logbook, which needs an administrator of the site, or changes its settings, which needs the right 'admin'. Its entries stay. \
               'If-None-Match: *' only makes it; If-Match has the version that was read, as /books/{book}/config returns it",
        takes: json_of::<Book>(),
        gives: (200, json_of::<BookView>()),
        may_create: true,
        if_match: IfMatch::Optional,
        act: put,
        ..PUT
    },
    Route {
        path: "/books/{book}/access",
        id: "getAccess",
        what: "Returns the access rules of a logbook, and how long its entries can be changed; '*' has the rules of logbooks without their own. \
               The ETag is their version",
        gives: (200, json_of::<Access>()),
        act: access,
        ..GET
    },
    Route {
        path: "/books/{book}/access",
        id: "setAccess",
        what: "Sets the access rules of a logbook, and how long its entries can be changed. The rules for signatures stay if 'signing' is missing; \
               another one needs an administrator of the site. With If-Match, only the version that was read is replaced",
        takes: json_of::<NewAccess>(),
        gives: (200, json_of::<Access>()),
        if_match: IfMatch::Optional,
        act: set_access,
        ..PUT
    },
];

/// A logbook, and the rights that the caller has in it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "BookInfo")]
struct BookView {
    #[serde(flatten)]
    info: BookInfo,
    may: Vec<Right>,
}

fn shown(call: &Call<'_>, mut info: BookInfo) -> BookView {
    let may = call.who().rights.of(&info.book.name).to_vec();
    if !may.contains(&Right::Admin) {
        // A configuration contains paths and names of people.
        info.book.elog.clear();
    }
    BookView { info, may }
}

fn visible(call: &Call<'_>) -> Result<Vec<BookView>, Problem> {
    let books = call.api.store.books()?.into_iter();
    Ok(books.map(|info| shown(call, info)).filter(|shown| shown.may.contains(&Right::Read)).collect())
}

fn one(call: &Call<'_>, name: &str) -> Result<BookView, Problem> {
    call.ask(Verb::Read, Resource::Book(name))?;
    let found = call.api.store.books()?.into_iter().find(|info| same_name(&info.book.name, name));
    found.map(|info| shown(call, info)).ok_or_else(|| StoreError::NoBook(name.to_owned()).into())
}

fn may_administer(call: &Call<'_>, book: &str) -> Result<(), Problem> {
    if book == EVERY_BOOK {
        return call.need_admin();
    }
    call.ask(Verb::Administer, Resource::Book(book))
}

/// Access rules to set.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewAccess {
    /// The grants; the rights of several grants add up.
    #[serde(default)]
    grants: Vec<Grant>,
    /// True if guests also have the rights that the site's setting gives them.
    #[serde(default)]
    site_guests: bool,
    /// The rule for changes of entries.
    #[serde(default)]
    policy: EditPolicy,
    /// The rules for signatures; without them, the present ones stay.
    #[serde(default)]
    signing: Option<SigningPolicy>,
}

/// Answers with access rules and their version.
fn with_version(access: &Access, version: u64) -> Result<Answer, Problem> {
    let mut answer = ok(access)?;
    set(answer.headers_mut(), header::ETAG, &format!("\"{version}\""));
    Ok(answer)
}

fn access(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let book = call.var(0);
    may_administer(call, book)?;
    // A change between the two is one of another version then.
    let version = call.api.people.access_version(book)?;
    with_version(&call.api.people.access(book)?.0, version)
}

/// Returns the version of the access rules that the caller has read, if the caller names one.
fn expected_access(call: &Call<'_>) -> Result<Option<u64>, Problem> {
    let Some(said) = call.head.headers.get(header::IF_MATCH).map(|said| said.to_str().unwrap_or_default().trim()) else {
        return Ok(None);
    };
    let number = said.strip_prefix('"').and_then(|said| said.strip_suffix('"')).and_then(|number| number.parse().ok());
    match number {
        Some(version) => Ok(Some(version)),
        None if said == "*" => Ok(None),
        None => Err(Problem::bad("header If-Match", "not an ETag of these rules").help("send the ETag they were read with")),
    }
}

fn set_access(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let book = call.var(0).to_owned();
    may_administer(call, &book)?;
    let expected = expected_access(call)?;
    let NewAccess { grants, site_guests, policy, signing } = call.json()?;
    let present = call.api.people.access(&book)?.0.signing;
    let signing = signing.unwrap_or_else(|| present.clone());
    if signing != present && !call.who().admin {
        let detail = "the rules for signatures are set by an administrator of the site";
        let problem = Problem::new(StatusCode::FORBIDDEN, "no-right", detail).at("body signing");
        return Err(problem.help("leave 'signing' out: the present rules stay"));
    }
    let access = Access { grants, site_guests, policy, signing };
    call.api.people.set_access_at(&book, &access, expected).map_err(|error| match error {
        PeopleError::Store(StoreError::RecordChanged { .. }) => {
            let detail = format!("the access rules of '{}' have changed since they were read", book.escape_debug());
            let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "changed", detail).at("header If-Match");
            problem.help("read them again, and apply your change to the present ones")
        }
        other => other.into(),
    })?;
    with_version(&access, call.api.people.access_version(&book)?)
}

/// Returns true if the request makes a logbook and changes none that is there.
fn must_be_new(call: &Call<'_>) -> Result<bool, Problem> {
    match call.head.headers.get(header::IF_NONE_MATCH).map(|said| said.as_bytes().trim_ascii()) {
        None => Ok(false),
        Some(b"*") => Ok(true),
        Some(_) => Err(Problem::bad("header If-None-Match", "expected '*', for a logbook that is not there yet")),
    }
}

fn exists(name: &str) -> Problem {
    let problem =
        Problem::new(StatusCode::PRECONDITION_FAILED, "exists", format!("the logbook '{}' exists", name.escape_debug()));
    problem.at("header If-None-Match").help("choose another name, or change the logbook without this header")
}

fn put(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let name = call.var(0).to_owned();
    let present = match call.api.store.book(&name) {
        Ok(book) => Some(book),
        Err(StoreError::NoBook(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let is_new = present.is_none();
    let must_be_new = must_be_new(call)?;
    // A logbook that another made just now is not among the rights of this caller yet.
    if is_new || must_be_new {
        call.need_admin()?;
    } else {
        call.ask(Verb::Administer, Resource::Book(&name))?;
    }
    let book: Book = call.json()?;
    if !same_name(&book.name, &name) {
        return Err(Problem::bad("body name", format!("'{}' is not the name in the path", book.name.escape_debug())));
    }
    match present {
        Some(_) if must_be_new => return Err(exists(&name)),
        // The version that was read is that of a logbook that is gone.
        None if call.head.headers.contains_key(header::IF_MATCH) => return Err(StoreError::BookChanged(name).into()),
        Some(present) => book_config::store(call, &present, &book, "")?,
        None => {
            let by = call.by();
            let expected = must_be_new.then_some("");
            match call.api.store.change_book(BookEdit { expected, ..BookEdit::of(&book, &by) }) {
                Err(StoreError::BookExists(_)) => return Err(exists(&name)),
                made => made?,
            };
            call.api.people.forget();
        }
    }
    let info = call.api.store.books()?.into_iter().find(|info| same_name(&info.book.name, &name));
    let info = info.ok_or(StoreError::NoBook(name))?;
    let may = if is_new { Right::ALL.to_vec() } else { call.who().rights.of(&info.book.name).to_vec() };
    json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &BookView { info, may })
}
