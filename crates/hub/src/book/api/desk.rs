//! What lies on somebody's desk: drafts, and locks of entries they are editing.

use std::time::Duration;

use http::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    entry::{Draft, Encoding, Lock, MAX_ATTACHMENTS, MAX_LINKS},
    people::{Resource, Verb},
};

use super::{
    Answer, Call,
    Content::{Json, List, Nothing},
    Needs, Route, entries,
    input::{AttachmentIn, AttributesIn, ContentIn, LinkIn, at_most},
    json, nothing, ok,
};
use crate::book::{now, problem::Problem};

/// The routes.
pub const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/books/{book}/entries/{id}/lock",
        id: "getLock",
        what: "Who is editing an entry now; null if nobody is",
        query: &[],
        takes: Nothing,
        gives: (200, Json("LockOrNull")),
        needs: Needs::Nobody,
        act: |call| {
            let entry = entries::readable(call)?;
            ok(&call.api.store.locked(&entry.at)?)
        },
    },
    Route {
        method: Method::PUT,
        path: "/books/{book}/entries/{id}/lock",
        id: "lock",
        what: "Locks an entry while one edits it, or renews one's lock; 423 if somebody else has locked it",
        query: &[],
        takes: Json("NewLock"),
        gives: (200, Json("Lock")),
        needs: Needs::Login,
        act: lock,
    },
    Route {
        method: Method::DELETE,
        path: "/books/{book}/entries/{id}/lock",
        id: "unlock",
        what: "Gives one's lock back; somebody else's stays",
        query: &[],
        takes: Nothing,
        gives: (204, Nothing),
        needs: Needs::Login,
        act: |call| {
            let entry = entries::readable(call)?;
            call.api.store.unlock(&entry.at, &call.by())?;
            nothing()
        },
    },
    Route {
        method: Method::GET,
        path: "/drafts",
        id: "listDrafts",
        what: "One's drafts, the last saved first",
        query: &[],
        takes: Nothing,
        gives: (200, List("Draft")),
        needs: Needs::Login,
        act: |call| ok(&call.api.store.drafts(&call.who().login)?),
    },
    Route {
        method: Method::POST,
        path: "/drafts",
        id: "saveDraft",
        what: "Saves a draft, which is in no search and for nobody else to see; without files",
        query: &[],
        takes: Json("NewDraft"),
        gives: (201, Json("SavedDraft")),
        needs: Needs::Login,
        act: |call| save(call, 0),
    },
    Route {
        method: Method::PUT,
        path: "/drafts/{number}",
        id: "changeDraft",
        what: "Saves a draft over the one of this number",
        query: &[],
        takes: Json("NewDraft"),
        gives: (200, Json("SavedDraft")),
        needs: Needs::Login,
        act: |call| {
            let number = call.number(0, "number of a draft")?;
            if !call.api.store.drafts(&call.who().login)?.iter().any(|draft| draft.number == number) {
                return Err(gone());
            }
            save(call, number)
        },
    },
    Route {
        method: Method::DELETE,
        path: "/drafts/{number}",
        id: "dropDraft",
        what: "Throws a draft away",
        query: &[],
        takes: Nothing,
        gives: (204, Nothing),
        needs: Needs::Login,
        act: |call| {
            let number = call.number(0, "number of a draft")?;
            call.api.store.drop_draft(&call.who().login, number)?.then_some(()).ok_or_else(gone)?;
            nothing()
        },
    },
];

/// How long a lock may last, s.
const LONGEST_LOCK: u64 = 24 * 3600;

fn gone() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-there", "you have no draft of this number")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewLock {
    /// For how long.
    #[serde(default = "ten_minutes")]
    seconds: u64,
    /// From which computer; what the connection says, if nothing is said.
    #[serde(default)]
    host: String,
}

fn ten_minutes() -> u64 {
    600
}

fn lock(call: &mut Call<'_>) -> Result<Answer, Problem> {
    let NewLock { seconds, host } = call.json()?;
    if !(1..=LONGEST_LOCK).contains(&seconds) {
        return Err(Problem::bad("body seconds", format!("1 to {LONGEST_LOCK}")));
    }
    if host.chars().count() > 255 || host.chars().any(char::is_control) {
        return Err(Problem::bad("body host", "at most 255 characters, none of them a control character"));
    }
    let entry = entries::readable(call)?;
    call.ask(Verb::Edit, Resource::Entry(&entry))?;
    let host = if host.is_empty() { call.met.from.to_string() } else { host };
    let lock: Lock = call.api.store.lock(&entry.at, &call.by(), &host, Duration::from_secs(seconds))?;
    ok(&lock)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewDraft {
    book: String,
    #[serde(default)]
    edits: Option<u32>,
    #[serde(default)]
    parent: Option<u32>,
    #[serde(default)]
    attributes: AttributesIn,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    text: String,
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_ATTACHMENTS>")]
    attachments: Vec<AttachmentIn>,
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_LINKS>")]
    links: Vec<LinkIn>,
}

#[derive(Serialize)]
struct SavedDraft {
    number: i64,
}

fn save(call: &mut Call<'_>, number: i64) -> Result<Answer, Problem> {
    let NewDraft { book, edits, parent, attributes, encoding, text, attachments, links } = call.json()?;
    call.ask(Verb::Read, Resource::Book(&book))?;
    let said = ContentIn { attributes, encoding, text, attachments, links };
    // A draft refers to no blob, so that none is there for a draft alone.
    if said.has_files() {
        return Err(Problem::bad("body attachments", "a draft has no files").help("give them with the entry"));
    }
    let (content, _) = said.content(call, None)?;
    let draft = Draft { number, owner: call.who().login.clone(), book, edits, parent, saved: now(), content };
    let saved = call.api.store.save_draft(&draft)?;
    json(if number == 0 { StatusCode::CREATED } else { StatusCode::OK }, &SavedDraft { number: saved })
}
