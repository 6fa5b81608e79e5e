//! Drafts, and locks of entries while they are edited.

use std::time::Duration;

use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_logbook::{
    attachment::{Attachment, Sha},
    entry::{Draft, Encoding, EntryRef, Lock, MAX_ATTACHMENTS, MAX_LINKS},
    people::{Resource, Right, Verb},
    store::StoreError,
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
        gives: (200, json_of::<Vec<ShownDraft>>()),
        login: Login::Required,
        act: |call| {
            let drafts = readable_drafts(call)?.into_iter().map(|draft| shown(call, draft));
            ok(&drafts.collect::<Result<Vec<_>, _>>()?)
        },
        ..GET
    },
    Route {
        path: "/drafts",
        id: "saveDraft",
        what: "Saves a draft. It is in no search, and only its owner can read it. Its uploaded files wait for the entry for three days after the \
               last save, also over a restart of the hub",
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
            let drafts = call.api.store.drafts(&call.who().login)?;
            call.api.store.drop_draft(&call.who().login, number)?.then_some(()).ok_or_else(gone)?;
            let (dropped, others): (Vec<_>, Vec<_>) = drafts.into_iter().partition(|draft| draft.number == number);
            let needed: Vec<&Sha> = others.iter().flat_map(files_of).collect();
            dropped.iter().flat_map(files_of).filter(|sha| !needed.contains(sha)).for_each(|sha| {
                call.api.staging.release(&call.by(), sha);
            });
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

/// Returns the digests of a draft's files.
fn files_of(draft: &Draft) -> impl Iterator<Item = &Sha> {
    draft.content.attachments.iter().filter_map(|file| file.sha.as_ref())
}

/// A draft, and its files that the hub no longer has.
#[derive(Serialize, JsonSchema)]
struct ShownDraft {
    #[serde(flatten)]
    draft: Draft,
    /// Names of files that have to be uploaded again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

/// Returns the files of the entry that a draft changes, if the caller can read it.
fn own_files(call: &Call<'_>, book: &str, edits: Option<u32>) -> Result<Vec<Attachment>, Problem> {
    let Some(id) = edits else { return Ok(Vec::new()) };
    call.ask(Verb::Read, Resource::Book(book))?;
    match call.api.store.entry(&EntryRef::new(book, id)) {
        Ok(entry) => Ok(entry.content.attachments),
        // The draft outlives its entry.
        Err(StoreError::NoEntry(_) | StoreError::Gone(_)) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn shown(call: &Call<'_>, mut draft: Draft) -> Result<ShownDraft, Problem> {
    let by = call.by();
    let waits = |file: &Attachment| file.sha.as_ref().is_some_and(|sha| call.api.staging.has(&by, sha));
    let mut missing = Vec::new();
    if !draft.content.attachments.iter().all(waits) {
        let own = own_files(call, &draft.book, draft.edits)?;
        draft.content.attachments.retain(|file| {
            let is_there = waits(file) || file.sha.is_some() && own.iter().any(|known| known.sha == file.sha);
            if !is_there {
                missing.push(file.name.clone());
            }
            is_there
        });
    }
    Ok(ShownDraft { draft, missing })
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
    /// Names of files that the hub does not have, and that are not in the draft.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

fn save(call: &mut Call<'_>, number: i64) -> Result<Answer, Problem> {
    let NewDraft { book, edits, parent, attributes, encoding, text, attachments, links } = call.json()?;
    call.ask(Verb::Read, Resource::Book(&book))?;
    let said = ContentIn { attributes, encoding, text, attachments: Vec::new(), links };
    let (mut content, _) = said.content(call, None)?;
    // The files stay in the staging: the store has no file for a draft alone. A missing one must not lose the text.
    let (own, by) = (own_files(call, &book, edits.filter(|_| !attachments.is_empty()))?, call.by());
    let mut missing = Vec::new();
    for file in attachments {
        let (name, sha) = file.named();
        let known = own.iter().find(|known| sha.is_some() && known.sha == sha).cloned();
        let held = || {
            let size = call.api.staging.hold(&by, sha.as_ref()?)?;
            Some(Attachment { name: name.clone(), sha: sha.clone(), size, added: now(), elog: None })
        };
        match known.map(|known| Attachment { name: name.clone(), ..known }).or_else(held) {
            Some(file) => content.attachments.push(file),
            None => missing.push(name),
        }
    }
    let draft = Draft { number, owner: call.who().login.clone(), book, edits, parent, saved: now(), content };
    let saved = call.api.store.save_draft(&draft)?;
    json(if number == 0 { StatusCode::CREATED } else { StatusCode::OK }, &SavedDraft { number: saved, missing })
}
