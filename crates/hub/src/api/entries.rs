//! Entries: post, read, edit, delete, copy, move; their history and their links.

use std::{collections::HashSet, sync::Arc, time::Duration};

use http::{Method, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    book::{
        locked::{LockedBy, keeps_locked},
        same_name,
    },
    client::address::{BASE, encoded, entry_path},
    entry::{Content, Entry, EntryRef, Link, Lock, NewEntry, Revision},
    people::{ElogCommand, Resource, Right, Verb},
    render::{self, NOT_RENDERED, Unfinished},
    search::MAX_PAGE,
    store::{
        EntryEdit, EntryLooks, PagePart, StoreError, is_locked,
        pages::{family, thread_entries},
    },
};

use super::{
    call::{Answer, Call, DELETE, GET, POST, PUT, Route, TEXT, json, ok},
    input::{ContentIn, EditIn, EntryIn, LinkIn, Standing, give},
    posted::mail_about,
};
use crate::http::{
    admission::WorkKind,
    headers::set,
    problem::Problem,
    route::{IfMatch, Parameter, json_of},
};

/// Entries or revisions of a page, if the request names no number.
const PAGE: usize = 100;
const REPLIES: Parameter = ("replies", "boolean", "with all replies to it");

const LIMIT: Parameter = ("limit", "integer", "1 to 1000 of them; a page with long contents has fewer");
const AFTER: Parameter = ("after", "string", "'next' of the page before");

/// Routes of entries.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/entries",
        id: "postEntry",
        what: "Posts an entry, or with 'parent' a reply. The response is sent when the entry is durable and in every search",
        takes: json_of::<EntryIn>(),
        gives: (201, json_of::<Revised>()),
        body: TEXT,
        act: post,
        ..POST
    },
    Route {
        path: "/books/{book}/entries",
        id: "editEntries",
        what: "Replaces the contents of up to 1000 entries, as of a thread, each at the revision that was read: all of them or none",
        takes: json_of::<Vec<EditIn>>(),
        gives: (200, json_of::<Vec<Revised>>()),
        body: TEXT,
        act: edit_all,
        ..PUT
    },
    Route {
        path: "/books/{book}/entries/{id}",
        id: "getEntry",
        what: "Returns an entry; its revision is the ETag",
        query: &[("html", "boolean", "with the text as safe HTML")],
        gives: (200, json_of::<ShownEntry>()),
        work: WorkKind::Page,
        act: get,
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}",
        id: "editEntry",
        what: "Replaces the content of an entry. If-Match names the revision that was read; 412 if the entry has changed since",
        takes: json_of::<ContentIn>(),
        gives: (200, json_of::<Revised>()),
        body: TEXT,
        if_match: IfMatch::Required,
        act: edit,
        ..PUT
    },
    Route {
        path: "/books/{book}/entries/{id}",
        id: "deleteEntry",
        what: "Deletes an entry; its number is never used again, and its history stays",
        query: &[REPLIES],
        gives: (200, json_of::<Deleted>()),
        act: delete,
        ..DELETE
    },
    Route {
        path: "/books/{book}/entries/{id}/copy",
        id: "copyEntry",
        what: "Copies an entry to a logbook",
        takes: json_of::<Destination>(),
        gives: (201, json_of::<Revised>()),
        act: |call| take_along(call, false),
        ..POST
    },
    Route {
        path: "/books/{book}/entries/{id}/move",
        id: "moveEntry",
        what: "Moves an entry to another logbook, with its history",
        takes: json_of::<Destination>(),
        gives: (201, json_of::<Revised>()),
        act: |call| take_along(call, true),
        ..POST
    },
    Route {
        path: "/books/{book}/entries/{id}/history",
        id: "getHistory",
        what: "Returns a page of an entry's history, the oldest revision first; also of a deleted one. 'next', for 'after', is missing on the last page",
        query: &[LIMIT, AFTER],
        gives: (200, json_of::<RevisionsPage>()),
        work: WorkKind::Search,
        act: history,
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}/thread",
        id: "getThread",
        what: "Returns a page of an entry's thread, by date. 'next', for 'after', is missing on the last page",
        query: &[LIMIT, AFTER, ("text", "boolean", "with the texts, unless it is false")],
        gives: (200, json_of::<EntriesPage>()),
        work: WorkKind::Search,
        act: thread,
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}/looks",
        id: "getLooks",
        what: "Returns how many readers looked at an entry, in all and on the last days with readers; each counts once a day",
        gives: (200, json_of::<EntryLooks>()),
        act: |call| {
            readable(call)?;
            ok(&call.api.store.looks(&call.entry_ref()?)?)
        },
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}/links",
        id: "getLinks",
        what: "Lists the links of an entry: records, events, transfers, runs, other entries",
        gives: (200, json_of::<Vec<Link>>()),
        act: |call| {
            call.ask(Verb::Read, Resource::Book(call.var(0)))?;
            ok(&call.api.store.entry(&call.entry_ref()?)?.content.links)
        },
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}/links",
        id: "addLink",
        what: "Adds a link to an entry, as \"run:80123\", which is an edit",
        takes: json_of::<NewLink>(),
        gives: (200, json_of::<Revised>()),
        if_match: IfMatch::Optional,
        act: |call| {
            let link = call.json::<NewLink>()?.link.link()?;
            change(call, |content| {
                if !content.links.contains(&link) {
                    content.links.push(link.clone());
                }
                Ok(())
            })
        },
        ..POST
    },
    Route {
        path: "/books/{book}/entries/{id}/links/{link}",
        id: "dropLink",
        what: "Removes a link from an entry, which is an edit",
        gives: (200, json_of::<Revised>()),
        if_match: IfMatch::Optional,
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
        ..DELETE
    },
];

/// An entry's place and its revision.
#[derive(Serialize, JsonSchema)]
pub struct Revised {
    #[serde(flatten)]
    at: EntryRef,
    revision: u32,
}

#[derive(Serialize, JsonSchema)]
struct ShownEntry {
    #[serde(flatten)]
    entry: Entry,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<Lock>,
    /// True if the caller may change the entry now.
    may_edit: bool,
}

#[derive(Serialize, JsonSchema)]
struct RevisionsPage {
    revisions: Vec<Revision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct EntriesPage {
    entries: Vec<Entry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Deleted {
    deleted: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Target")]
struct Destination {
    to: String,
    #[serde(default)]
    replies: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewLink {
    link: LinkIn,
}

/// Makes the response about an entry at a revision.
pub fn revised(status: StatusCode, at: EntryRef, revision: u32) -> Result<Answer, Problem> {
    let path = entry_path(&at);
    let mut answer = json(status, &Revised { at, revision })?;
    set(answer.headers_mut(), header::ETAG, &format!("\"{revision}\""));
    if status == StatusCode::CREATED {
        set(answer.headers_mut(), header::LOCATION, &path);
    }
    Ok(answer)
}

/// Returns the revision that a change is for; `None` means any. Without the header, a route that requires it is a
/// problem, and another one is for the `current` revision.
pub fn expected(call: &Call<'_>, current: u32) -> Result<Option<u32>, Problem> {
    let place = "header If-Match";
    let said = call.head.headers.get(header::IF_MATCH).map(|said| said.to_str().unwrap_or_default().trim());
    match said {
        None if call.route.if_match == IfMatch::Required => {
            let problem = Problem::new(StatusCode::PRECONDITION_REQUIRED, "no-revision", "the revision to change is missing");
            Err(problem.at(place).help("send the ETag the entry was read with as If-Match; '*' changes any revision"))
        }
        None => Ok(Some(current)),
        Some("*") => Ok(None),
        Some(said) => {
            let number = said.strip_prefix('"').and_then(|said| said.strip_suffix('"')).and_then(|said| said.parse().ok());
            number.map(Some).ok_or_else(|| {
                Problem::bad(place, format!("invalid ETag '{}'; send the ETag of the entry, or '*'", said.escape_debug()))
            })
        }
    }
}

/// Returns the address of an entry that a text of a logbook names.
pub fn link_in(book: &str) -> impl Fn(&str) -> String {
    move |target| {
        let (book, id) = target.rsplit_once('/').unwrap_or((book, target));
        format!("{BASE}/books/{}/entries/{}", encoded(book), encoded(id))
    }
}

/// Returns the entry of the path without the attributes that are hidden from the caller, if the caller may read it.
pub fn readable(call: &Call<'_>) -> Result<Entry, Problem> {
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    readable_entry(call, call.entry_ref()?.id)
}

/// Returns an entry of the path's logbook in the same way.
pub fn readable_entry(call: &Call<'_>, id: u32) -> Result<Entry, Problem> {
    readable_at(call, &EntryRef::new(call.var(0), id))
}

/// Returns any entry in the same way.
pub fn readable_at(call: &Call<'_>, at: &EntryRef) -> Result<Entry, Problem> {
    call.ask(Verb::Read, Resource::Book(&at.book))?;
    let mut entry = call.api.store.entry(at)?;
    entry.keep_shown(call.shown(&at.book)?.as_deref());
    Ok(entry)
}

fn post(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let book = call.var(0).to_owned();
    // A long body is not received from a caller who may not post.
    call.ask_as(None, Verb::Post, Resource::Book(&book))?;
    let (content, Standing { parent, date, zone }) = call.json::<EntryIn>()?.parts()?;
    let command = if parent.is_some() { ElogCommand::Reply } else { ElogCommand::New };
    call.ask_as(Some(command), Verb::Post, Resource::Book(&book))?;
    let (content, uploads) = content.content(call, None)?;
    let new = NewEntry { book, parent, content, date, zone };
    let at = give(call, uploads, |uploads| call.api.store.post(new, uploads, &call.by()))?;
    mail_about(call, &at, false);
    revised(StatusCode::CREATED, at, 0)
}

/// Rejects a request for a long text while other answers have all room.
pub fn no_room() -> Problem {
    let detail = "other answers with long texts are being made, and there is no memory for more";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail).help("try again")
}

fn get(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let with_html = call.flag("html")?;
    let entry = readable(call)?;
    if !with_html {
        call.api.rendered.hold(&entry.content.text, call.stop).map_err(|Unfinished| no_room())?;
    }
    let html = with_html.then(|| {
        let link = link_in(&entry.at.book);
        let render = || {
            let stop = call.stop.within(Duration::from_millis(call.api.settings.search_ms));
            render::html_until(entry.content.encoding, &entry.content.text, &link, &stop)
        };
        let html = call.api.rendered.html(&entry, "", call.stop, render);
        html.map_or_else(|Unfinished| NOT_RENDERED.to_owned(), Arc::unwrap_or_clone)
    });
    if call.head.method == Method::GET {
        call.api.looks.count(&entry.at, &call.auth.reader());
    }
    let etag = format!("\"{}\"", entry.revision);
    let locked = call.api.store.locked(&entry.at)?;
    let may_edit = match call.ask(Verb::Edit, Resource::Entry(&entry)) {
        Ok(()) => !is_locked(&entry),
        Err(problem) if (400..500).contains(&problem.status) => false,
        Err(problem) => return Err(problem),
    };
    let mut answer = ok(&ShownEntry { entry, html, locked, may_edit })?;
    set(answer.headers_mut(), header::ETAG, &etag);
    Ok(answer)
}

fn edit(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let entry = readable(call)?;
    call.ask(Verb::Edit, Resource::Entry(&entry))?;
    let expected = expected(call, entry.revision)?;
    if let Some(expected) = expected.filter(|expected| *expected != entry.revision) {
        return Err(StoreError::Changed { at: entry.at, expected, is: entry.revision }.into());
    }
    let said: ContentIn = call.json()?;
    let (content, uploads) = said.content(call, Some(&entry.content))?;
    let book = call.api.store.book(&entry.at.book)?;
    keeps_locked(&book, &entry.content.attributes, &content.attributes, LockedBy::People).map_err(StoreError::from)?;
    let edit = |uploads| call.api.store.edit(&entry.at, content, uploads, &call.by(), expected);
    let revision = give(call, uploads, edit)?;
    mail_about(call, &entry.at, true);
    revised(StatusCode::OK, entry.at, revision)
}

/// Maximum number of entries that one request changes.
const MOST_EDITS: usize = 1000;

fn edit_all(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let book = call.api.store.book(call.var(0))?;
    call.ask(Verb::Read, Resource::Book(&book.name))?;
    let edits: Vec<EditIn> = call.json()?;
    if edits.is_empty() || edits.len() > MOST_EDITS {
        return Err(Problem::bad("body", format!("1 to {MOST_EDITS} entries")));
    }
    let shown = call.shown(&book.name)?;
    let mut changes = Vec::with_capacity(edits.len());
    for edit in edits {
        let (id, expected, said) = edit.parts();
        let mut entry = call.api.store.entry(&EntryRef::new(&book.name, id))?;
        entry.keep_shown(shown.as_deref());
        call.ask(Verb::Edit, Resource::Entry(&entry))?;
        let (content, new_files) = said.content(call, Some(&entry.content))?;
        if !new_files.is_empty() {
            // They wait for another request.
            for upload in new_files {
                let _ = call.api.staging.keep(&call.by(), upload);
            }
            let problem = Problem::bad("body attachments", format!("entry {id} gets a new file"));
            return Err(problem.help("change one entry to add files to it"));
        }
        keeps_locked(&book, &entry.content.attributes, &content.attributes, LockedBy::People).map_err(StoreError::from)?;
        changes.push(EntryEdit { at: entry.at, expected, content });
    }
    let places: Vec<EntryRef> = changes.iter().map(|one| one.at.clone()).collect();
    let revisions = call.api.store.edit_all(changes, &call.by())?;
    ok(&places.into_iter().zip(revisions).map(|(at, revision)| Revised { at, revision }).collect::<Vec<_>>())
}

/// Changes a part of an entry. Without `If-Match` the current revision is changed; of two changes at once one fails and
/// may be retried.
fn change(call: &mut Call<'_>, act: impl Fn(&mut Content) -> Result<(), Problem>) -> Result<Answer, Problem> {
    let entry = readable(call)?;
    call.ask(Verb::Edit, Resource::Entry(&entry))?;
    let expected = expected(call, entry.revision)?;
    let mut content = entry.content;
    let was = content.attributes.clone();
    act(&mut content)?;
    let book = call.api.store.book(&entry.at.book)?;
    keeps_locked(&book, &was, &content.attributes, LockedBy::People).map_err(StoreError::from)?;
    let revision = call.api.store.edit(&entry.at, content, vec![], &call.by(), Some(expected.unwrap_or(entry.revision)))?;
    revised(StatusCode::OK, entry.at, revision)
}

fn delete(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let replies = call.flag("replies")?;
    let entry = readable(call)?;
    let seen = may_delete(call, ElogCommand::Delete, &entry, replies)?;
    let (store, by) = (&call.api.store, call.by());
    let deleted = if replies { store.delete_seen(&entry.at, &by, &seen)? } else { store.delete(&entry.at, &by, false)? };
    ok(&Deleted { deleted })
}

/// Checks that the caller may delete an entry and, with `replies`, all replies to it. Returns the ids that were
/// checked, because a reply that comes later may be one the caller may not delete.
fn may_delete(call: &Call<'_>, command: ElogCommand, entry: &Entry, replies: bool) -> Result<Vec<u32>, Problem> {
    let mut seen = vec![entry.at.id];
    call.ask_as(Some(command), Verb::Delete, Resource::Entry(entry))?;
    if replies {
        seen = family(&*call.api.store, &entry.at)?;
        let members: HashSet<u32> = seen.iter().copied().collect();
        for one in thread_entries(&*call.api.store, &entry.at, false) {
            let one = one?;
            if members.contains(&one.at.id) {
                call.ask_as(Some(command), Verb::Delete, Resource::Entry(&one))?;
            }
        }
    }
    Ok(seen)
}

fn take_along(call: &mut Call<'_>, moving: bool) -> Result<Answer, Problem> {
    let Destination { to, replies } = call.json()?;
    let entry = readable(call)?;
    call.ask(Verb::Post, Resource::Book(&to))?;
    let leaves = moving && !same_name(&to, &entry.at.book);
    let command = if moving { ElogCommand::MoveTo } else { ElogCommand::CopyTo };
    call.ask_as(Some(command), Verb::Read, Resource::Book(&entry.at.book))?;
    let seen = if leaves { may_delete(call, command, &entry, replies)? } else { vec![] };
    if !moving && call.shown(&entry.at.book)?.is_some() {
        let detail = format!("attributes of the logbook '{}' are hidden from you, and a copy would show them", entry.at.book);
        return Err(Problem::new(StatusCode::FORBIDDEN, "no-right", detail));
    }
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
    let part = part(call)?;
    let mut page = call.api.store.history_page(&at, part)?;
    let shown = call.shown(&at.book)?;
    page.revisions.iter_mut().for_each(|revision| revision.content.keep_shown(shown.as_deref()));
    // The history of an entry that was moved is at its new place, for callers who may read there.
    if part.after.is_none()
        && page.revisions.is_empty()
        && let Err(StoreError::Gone(tombstone)) = call.api.store.entry(&at)
        && let Some(to) = &tombstone.moved_to
        && !call.who().rights.may(Right::Read, &to.book)
    {
        return Err(StoreError::NoEntry(at).into());
    }
    ok(&RevisionsPage { revisions: page.revisions, next: page.next.map(|next| next.to_string()) })
}

fn thread(call: &mut Call<'_>) -> Result<Answer, Problem> {
    call.ask(Verb::Read, Resource::Book(call.var(0)))?;
    let with_text = call.parsed::<bool>("text")?.unwrap_or(true);
    let mut page = call.api.store.thread_page(&call.entry_ref()?, part(call)?, with_text)?;
    let shown = call.shown(call.var(0))?;
    page.entries.iter_mut().for_each(|entry| entry.keep_shown(shown.as_deref()));
    ok(&EntriesPage { entries: page.entries, next: page.next.map(|next| next.to_string()) })
}

/// Reads the part of a thread or a history that is wanted.
fn part(call: &Call<'_>) -> Result<PagePart, Problem> {
    let limit = call.parsed("limit")?.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad("query limit", format!("1 to {MAX_PAGE}")));
    }
    Ok(PagePart { after: call.parsed("after")?, limit })
}
