//! Entries: posting, reading, editing, deleting, copying, moving; what happened to them, and what they speak of.

use http::{Method, StatusCode, header};
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    book::same_name,
    entry::{Content, Entry, EntryRef, Lock, NewEntry, Revision},
    people::{PeopleError, Resource, Right, Verb, ask},
    render,
    store::StoreError,
};

use super::{
    Answer, Call,
    Content::{Json, List, Nothing},
    Needs, Route, encoded, entry_path,
    input::{ContentIn, EntryIn, LinkIn, Standing, give},
    json, ok, set,
};
use crate::book::problem::Problem;

const REPLIES: super::Parameter = ("replies", "boolean", "with all answers to it");

/// The routes.
pub const ROUTES: &[Route] = &[
    Route {
        method: Method::POST,
        path: "/books/{book}/entries",
        id: "postEntry",
        what: "Posts an entry, or with 'parent' a reply. When it is answered it is durable and in every search",
        query: &[],
        takes: Json("NewEntry"),
        gives: (201, Json("Revised")),
        needs: Needs::Nobody,
        act: post,
    },
    Route {
        method: Method::GET,
        path: "/books/{book}/entries/{id}",
        id: "getEntry",
        what: "An entry; its revision is the ETag",
        query: &[("html", "boolean", "also its text as HTML that is safe to show")],
        takes: Nothing,
        gives: (200, Json("ShownEntry")),
        needs: Needs::Nobody,
        act: get,
    },
    Route {
        method: Method::PUT,
        path: "/books/{book}/entries/{id}",
        id: "editEntry",
        what: "Changes an entry: the body is all it says from then on. If-Match names the revision it was read at; 412 if somebody has changed it meanwhile",
        query: &[],
        takes: Json("Content"),
        gives: (200, Json("Revised")),
        needs: Needs::Nobody,
        act: edit,
    },
    Route {
        method: Method::DELETE,
        path: "/books/{book}/entries/{id}",
        id: "deleteEntry",
        what: "Deletes an entry; its number is given to no other, and what it said stays in its history",
        query: &[REPLIES],
        takes: Nothing,
        gives: (200, Json("Deleted")),
        needs: Needs::Nobody,
        act: delete,
    },
    Route {
        method: Method::POST,
        path: "/books/{book}/entries/{id}/copy",
        id: "copyEntry",
        what: "Makes an entry once more in a logbook",
        query: &[],
        takes: Json("Target"),
        gives: (201, Json("Revised")),
        needs: Needs::Nobody,
        act: |call| take_along(call, false),
    },
    Route {
        method: Method::POST,
        path: "/books/{book}/entries/{id}/move",
        id: "moveEntry",
        what: "Takes an entry to another logbook, with its history",
        query: &[],
        takes: Json("Target"),
        gives: (201, Json("Revised")),
        needs: Needs::Nobody,
        act: |call| take_along(call, true),
    },
    Route {
        method: Method::GET,
        path: "/books/{book}/entries/{id}/history",
        id: "getHistory",
        what: "All that happened to an entry, the first first; also to one that was deleted",
        query: &[],
        takes: Nothing,
        gives: (200, List("Revision")),
        needs: Needs::Nobody,
        act: history,
    },
    Route {
        method: Method::GET,
        path: "/books/{book}/entries/{id}/thread",
        id: "getThread",
        what: "All entries of the thread an entry belongs to, by date",
        query: &[],
        takes: Nothing,
        gives: (200, List("Entry")),
        needs: Needs::Nobody,
        act: |call| {
            call.ask(Verb::Read, Resource::Book(call.var(0)))?;
            ok(&call.api.store.thread(&call.entry_ref()?)?)
        },
    },
    Route {
        method: Method::GET,
        path: "/books/{book}/entries/{id}/links",
        id: "getLinks",
        what: "What an entry speaks of: records, events, transfers, runs",
        query: &[],
        takes: Nothing,
        gives: (200, List("Link")),
        needs: Needs::Nobody,
        act: |call| {
            call.ask(Verb::Read, Resource::Book(call.var(0)))?;
            ok(&call.api.store.entry(&call.entry_ref()?)?.content.links)
        },
    },
    Route {
        method: Method::POST,
        path: "/books/{book}/entries/{id}/links",
        id: "addLink",
        what: "Adds to what an entry speaks of, as \"run:80123\"; that is an edit of it",
        query: &[],
        takes: Json("NewLink"),
        gives: (200, Json("Revised")),
        needs: Needs::Nobody,
        act: |call| {
            let link = call.json::<NewLink>()?.link.link()?;
            change(call, |content| {
                if !content.links.contains(&link) {
                    content.links.push(link.clone());
                }
                Ok(())
            })
        },
    },
    Route {
        method: Method::DELETE,
        path: "/books/{book}/entries/{id}/links/{link}",
        id: "dropLink",
        what: "Takes a link out of an entry; that is an edit of it",
        query: &[],
        takes: Nothing,
        gives: (200, Json("Revised")),
        needs: Needs::Nobody,
        act: |call| {
            let link = call.var(2).to_owned();
            change(call, |content| {
                let before = content.links.len();
                content.links.retain(|known| known.to_string() != link);
                let gone = || {
                    Problem::new(StatusCode::NOT_FOUND, "not-there", format!("the entry has no link '{}'", link.escape_debug()))
                };
                if content.links.len() < before { Ok(()) } else { Err(gone()) }
            })
        },
    },
];

/// Where an entry is, and at which revision.
#[derive(Serialize)]
struct Revised {
    #[serde(flatten)]
    at: EntryRef,
    revision: u32,
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    entry: Entry,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<Lock>,
    /// Whether who asks may change it now.
    may_edit: bool,
}

#[derive(Serialize)]
struct Deleted {
    deleted: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Target {
    to: String,
    #[serde(default)]
    replies: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewLink {
    link: LinkIn,
}

/// An answer about an entry at a revision.
pub fn revised(status: StatusCode, at: EntryRef, revision: u32) -> Result<Answer, Problem> {
    let path = entry_path(&at);
    let mut answer = json(status, &Revised { at, revision })?;
    set(answer.headers_mut(), header::ETAG, &format!("\"{revision}\""));
    if status == StatusCode::CREATED {
        set(answer.headers_mut(), header::LOCATION, &path);
    }
    Ok(answer)
}

/// The revision that a change is for; none if any will do.
pub fn expected(call: &Call<'_>) -> Result<Option<u32>, Problem> {
    let place = "header If-Match";
    let said = call.head.headers.get(header::IF_MATCH).map(|said| said.to_str().unwrap_or_default().trim());
    match said {
        None => {
            let problem = Problem::new(StatusCode::PRECONDITION_REQUIRED, "no-revision", "say which revision you change");
            Err(problem.at(place).help("send the ETag the entry was read with as If-Match; '*' changes whatever there is"))
        }
        Some("*") => Ok(None),
        Some(said) => {
            let number = said.strip_prefix('"').and_then(|said| said.strip_suffix('"')).and_then(|said| said.parse().ok());
            number.map(Some).ok_or_else(|| Problem::bad(place, format!("'{}' is no ETag of an entry", said.escape_debug())))
        }
    }
}

/// An entry that one may read.
pub fn readable(call: &Call<'_>) -> Result<Entry, Problem> {
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    Ok(call.api.store.entry(&call.entry_ref()?)?)
}

fn post(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let book = call.var(0).to_owned();
    call.ask(Verb::Post, Resource::Book(&book))?;
    let (content, Standing { parent, date, zone }) = call.json::<EntryIn>()?.parts()?;
    let (content, uploads) = content.content(call, None)?;
    let new = NewEntry { book, parent, content, date, zone };
    let at = give(call, uploads, |uploads| call.api.store.post(new, uploads, &call.by()))?;
    revised(StatusCode::CREATED, at, 0)
}

fn get(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let with_html = call.flag("html")?;
    let entry = readable(call)?;
    let html = with_html.then(|| {
        let link = |target: &str| match target.rsplit_once('/') {
            Some((book, id)) => format!("{}/books/{}/entries/{}", super::BASE, encoded(book), encoded(id)),
            None => format!("{}/books/{}/entries/{}", super::BASE, encoded(&entry.at.book), encoded(target)),
        };
        render::html(entry.content.encoding, &entry.content.text, &link)
    });
    let etag = format!("\"{}\"", entry.revision);
    let locked = call.api.store.locked(&entry.at)?;
    let who = call.who();
    let may_edit = match ask(&*call.api.store, &who.login, &who.rights, Verb::Edit, Resource::Entry(&entry)) {
        Ok(()) => true,
        Err(PeopleError::Refused(_)) => false,
        Err(error) => return Err(error.into()),
    };
    let mut answer = ok(&Shown { entry, html, locked, may_edit })?;
    set(answer.headers_mut(), header::ETAG, &etag);
    Ok(answer)
}

fn edit(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let entry = readable(call)?;
    call.ask(Verb::Edit, Resource::Entry(&entry))?;
    let expected = expected(call)?;
    if let Some(expected) = expected.filter(|expected| *expected != entry.revision) {
        return Err(StoreError::Changed { at: entry.at, expected, is: entry.revision }.into());
    }
    let said: ContentIn = call.json()?;
    let (content, uploads) = said.content(call, Some(&entry.content))?;
    let edit = |uploads| call.api.store.edit(&entry.at, content, uploads, &call.by(), expected);
    let revision = give(call, uploads, edit)?;
    revised(StatusCode::OK, entry.at, revision)
}

/// Changes a part of an entry. Who says nothing of a revision changes the one that is there; of two at once, one is told to try again.
fn change(call: &mut Call<'_>, act: impl Fn(&mut Content) -> Result<(), Problem>) -> Result<Answer, Problem> {
    let entry = readable(call)?;
    call.ask(Verb::Edit, Resource::Entry(&entry))?;
    let expected = if call.head.headers.contains_key(header::IF_MATCH) { expected(call)? } else { None };
    let mut content = entry.content;
    act(&mut content)?;
    let revision = call.api.store.edit(&entry.at, content, vec![], &call.by(), Some(expected.unwrap_or(entry.revision)))?;
    revised(StatusCode::OK, entry.at, revision)
}

fn delete(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let replies = call.flag("replies")?;
    let entry = readable(call)?;
    let seen = may_delete(call, &entry, replies)?;
    let (store, by) = (&call.api.store, call.by());
    let deleted = if replies { store.delete_seen(&entry.at, &by, &seen)? } else { store.delete(&entry.at, &by, false)? };
    ok(&Deleted { deleted })
}

/// Refuses who may not delete an entry and, where they are wanted, all answers to it; tells which these are. An answer that comes afterwards
/// may be one they may not delete.
fn may_delete(call: &Call<'_>, entry: &Entry, replies: bool) -> Result<Vec<u32>, Problem> {
    let ask = |one: Entry| call.ask(Verb::Delete, Resource::Entry(&one)).map(|()| one.at.id);
    family(call, entry, replies)?.into_iter().map(ask).collect()
}

/// An entry and, where they are wanted, all answers to it.
fn family(call: &Call<'_>, entry: &Entry, replies: bool) -> Result<Vec<Entry>, Problem> {
    let mut family = vec![entry.clone()];
    if replies {
        let mut thread = call.api.store.thread(&entry.at)?;
        loop {
            let is_next = |one: &Entry| one.parent.is_some_and(|parent| family.iter().any(|known| known.at.id == parent));
            let (next, rest): (Vec<_>, Vec<_>) = thread.into_iter().partition(is_next);
            if next.is_empty() {
                break;
            }
            family.extend(next);
            thread = rest;
        }
    }
    Ok(family)
}

fn take_along(call: &mut Call<'_>, moving: bool) -> Result<Answer, Problem> {
    let Target { to, replies } = call.json()?;
    let entry = readable(call)?;
    call.ask(Verb::Post, Resource::Book(&to))?;
    let leaves = moving && !same_name(&to, &entry.at.book);
    let seen = if leaves { may_delete(call, &entry, replies)? } else { vec![] };
    let (store, by) = (&call.api.store, call.by());
    let at = match (moving, replies) {
        (true, true) if leaves => store.move_seen(&entry.at, &to, &by, &seen)?,
        (true, _) => store.move_to(&entry.at, &to, &by, replies)?,
        (false, _) => store.copy(&entry.at, &to, &by, replies)?,
    };
    let revision = store.entry(&at)?.revision;
    revised(StatusCode::CREATED, at, revision)
}

fn history(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let at = call.entry_ref()?;
    let history: Vec<Revision> = call.api.store.history(&at)?;
    // An entry that moved has its history where it is now, and that is for who may read there.
    if history.is_empty()
        && let Err(StoreError::Gone(tombstone)) = call.api.store.entry(&at)
        && let Some(to) = &tombstone.moved_to
        && !call.who().rights.may(Right::Read, &to.book)
    {
        return Err(StoreError::NoEntry(at).into());
    }
    ok(&history)
}
