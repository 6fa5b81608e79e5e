//! Drafts, and locks of entries while they are edited.

use std::time::Duration;

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    entry::{Draft, Encoding, Lock, MAX_ATTACHMENTS, MAX_LINKS},
    people::{Resource, Right, Verb},
};

use super::{
    call::{Answer, Call, DELETE, GET, POST, PUT, Route, TEXT, json, nothing, ok},
    entries,
    input::{AttachmentIn, AttributesIn, ContentIn, LinkIn, at_most},
};
use crate::http::route::{Content::Nothing, Login, json_of};
use crate::{clock::now, http::problem::Problem};

/// Routes of drafts and locks.
pub const ROUTES: &[Route] = &[
    Route {
        path: "/books/{book}/entries/{id}/lock",
        id: "getLock",
        what: "Returns the lock of an entry; null if nobody is editing it",
        gives: (200, json_of::<Option<Lock>>()),
        act: |call| {
            let entry = entries::readable(call)?;
            ok(&call.api.store.locked(&entry.at)?)
        },
        ..GET
    },
    Route {
        path: "/books/{book}/entries/{id}/lock",
        id: "lock",
        what: "Locks an entry for editing, or renews the caller's lock; 423 if another user has locked it",
        takes: json_of::<NewLock>(),
        gives: (200, json_of::<Lock>()),
        login: Login::Required,
        act: lock,
        ..PUT
    },
    Route {
        path: "/books/{book}/entries/{id}/lock",
        id: "unlock",
        what: "Releases the caller's lock; another user's stays",
        gives: (204, Nothing),
        login: Login::Required,
        act: |call| {
            let entry = entries::readable(call)?;
            call.check_token(&entry.at.book, &[Right::Write, Right::EditOwn, Right::EditAny])?;
            call.api.store.unlock(&entry.at, &call.by())?;
            nothing()
        },
        ..DELETE
    },
    Route {
        path: "/drafts",
        id: "listDrafts",
        what: "Lists the caller's drafts in logbooks that the caller may read, the last saved first",
        gives: (200, json_of::<Vec<Draft>>()),
        login: Login::Required,
        act: |call| ok(&readable_drafts(call)?),
        ..GET
    },
    Route {
        path: "/drafts",
        id: "saveDraft",
        what: "Saves a draft, without files. It is in no search, and only its owner can read it",
        takes: json_of::<NewDraft>(),
        body: TEXT,
        gives: (201, json_of::<SavedDraft>()),
        login: Login::Required,
        act: |call| save(call, 0),
        ..POST
    },
    Route {
        path: "/drafts/{number}",
        id: "changeDraft",
        what: "Replaces the draft of this number",
        takes: json_of::<NewDraft>(),
        body: TEXT,
        gives: (200, json_of::<SavedDraft>()),
        login: Login::Required,
        act: |call| {
            let number = call.number(0, "number of a draft")?;
            if !readable_drafts(call)?.iter().any(|draft| draft.number == number) {
                return Err(gone());
            }
            save(call, number)
        },
        ..PUT
    },
    Route {
        path: "/drafts/{number}",
        id: "dropDraft",
        what: "Deletes a draft",
        gives: (204, Nothing),
        login: Login::Required,
        act: |call| {
            let number = call.number(0, "number of a draft")?;
            call.api.store.drop_draft(&call.who().login, number)?.then_some(()).ok_or_else(gone)?;
            nothing()
        },
        ..DELETE
    },
];

/// Returns the caller's drafts, without those of logbooks that the caller may not read now: a draft of a change has the
/// text of the entry.
fn readable_drafts(call: &Call<'_>) -> Result<Vec<Draft>, Problem> {
    let mut drafts = call.api.store.drafts(&call.who().login)?;
    drafts.retain(|draft| call.who().rights.may(Right::Read, &draft.book));
    Ok(drafts)
}

/// Longest lock, in seconds.
const LONGEST_LOCK: u64 = 24 * 3600;

fn gone() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-there", "you have no draft of this number")
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewLock {
    /// Length of the lock.
    #[serde(default = "ten_minutes")]
    seconds: u64,
    /// The caller's computer; without it the address of the connection.
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
    let host = if host.is_empty() { call.auth.from.to_string() } else { host };
    let lock: Lock = call.api.store.lock(&entry.at, &call.by(), &host, Duration::from_secs(seconds))?;
    ok(&lock)
}

#[derive(Deserialize, JsonSchema)]
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

#[derive(Serialize, JsonSchema)]
struct SavedDraft {
    #[serde(with = "tampu_types::id_text")]
    #[schemars(with = "String")]
    number: i64,
}

fn save(call: &mut Call<'_>, number: i64) -> Result<Answer, Problem> {
    let NewDraft { book, edits, parent, attributes, encoding, text, attachments, links } = call.json()?;
    call.ask(Verb::Read, Resource::Book(&book))?;
    let said = ContentIn { attributes, encoding, text, attachments, links };
    // A draft refers to no file, so that no file is kept for a draft alone.
    if said.has_files() {
        return Err(Problem::bad("body attachments", "a draft has no files").help("give them with the entry"));
    }
    let (content, _) = said.content(call, None)?;
    let draft = Draft { number, owner: call.who().login.clone(), book, edits, parent, saved: now(), content };
    let saved = call.api.store.save_draft(&draft)?;
    json(if number == 0 { StatusCode::CREATED } else { StatusCode::OK }, &SavedDraft { number: saved })
}
