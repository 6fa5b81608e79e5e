//! Logbooks, and who may do what in them.

use http::{Method, StatusCode};
use serde::Serialize;
use tampu_logbook::{
    book::{Book, same_name},
    people::{Access, Resource, Right, Verb, access::EVERY_BOOK},
    store::{BookInfo, StoreError},
};

use super::{
    Answer, Call,
    Content::{Json, List, Nothing},
    Needs, Route, json, ok,
};
use crate::book::problem::Problem;

/// The routes.
pub const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/books",
        id: "listBooks",
        what: "The logbooks one may read: their attributes, how many entries they have, what one may do in them",
        query: &[],
        takes: Nothing,
        gives: (200, List("BookInfo")),
        needs: Needs::Nobody,
        act: |call| ok(&visible(call)?),
    },
    Route {
        method: Method::GET,
        path: "/books/{book}",
        id: "getBook",
        what: "One logbook",
        query: &[],
        takes: Nothing,
        gives: (200, Json("BookInfo")),
        needs: Needs::Nobody,
        act: |call| ok(&one(call, call.var(0))?),
    },
    Route {
        method: Method::PUT,
        path: "/books/{book}",
        id: "putBook",
        what: "Makes a logbook, for who looks after the site; or changes what one is, for who administers it. Its entries stay",
        query: &[],
        takes: Json("Book"),
        gives: (200, Json("BookInfo")),
        needs: Needs::Nobody,
        act: put,
    },
    Route {
        method: Method::GET,
        path: "/books/{book}/access",
        id: "getAccess",
        what: "Who may do what in a logbook, and how long entries can be changed; '*' is what holds where nothing is said",
        query: &[],
        takes: Nothing,
        gives: (200, Json("Access")),
        needs: Needs::Nobody,
        act: |call| {
            may_administer(call, call.var(0))?;
            ok(&call.api.people.access(call.var(0))?.0)
        },
    },
    Route {
        method: Method::PUT,
        path: "/books/{book}/access",
        id: "setAccess",
        what: "Says who may do what in a logbook, and how long entries can be changed",
        query: &[],
        takes: Json("Access"),
        gives: (200, Json("Access")),
        needs: Needs::Nobody,
        act: |call| {
            may_administer(call, call.var(0))?;
            let access: Access = call.json()?;
            call.api.people.set_access(call.var(0), &access)?;
            ok(&access)
        },
    },
];

/// A logbook, and what one may do in it.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    info: BookInfo,
    may: Vec<Right>,
}

fn shown(call: &Call<'_>, mut info: BookInfo) -> Shown {
    let may = call.who().rights.of(&info.book.name).to_vec();
    if !may.contains(&Right::Admin) {
        // A configuration tells of paths and people.
        info.book.elog.clear();
    }
    Shown { info, may }
}

fn visible(call: &Call<'_>) -> Result<Vec<Shown>, Problem> {
    let books = call.api.store.books()?.into_iter();
    Ok(books.map(|info| shown(call, info)).filter(|shown| shown.may.contains(&Right::Read)).collect())
}

fn one(call: &Call<'_>, name: &str) -> Result<Shown, Problem> {
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

fn put(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let name = call.var(0).to_owned();
    let is_new = match call.api.store.book(&name) {
        Ok(_) => false,
        Err(StoreError::NoBook(_)) => true,
        Err(error) => return Err(error.into()),
    };
    if is_new {
        call.need_admin()?;
    } else {
        call.ask(Verb::Administer, Resource::Book(&name))?;
    }
    let book: Book = call.json()?;
    if !same_name(&book.name, &name) {
        return Err(Problem::bad("body name", format!("'{}' is not the name in the path", book.name.escape_debug())));
    }
    call.api.store.put_book(&book)?;
    call.api.people.forget();
    let info = call.api.store.books()?.into_iter().find(|info| same_name(&info.book.name, &name));
    let info = info.ok_or(StoreError::NoBook(name))?;
    let may = if is_new { Right::ALL.to_vec() } else { call.who().rights.of(&info.book.name).to_vec() };
    json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &Shown { info, may })
}
