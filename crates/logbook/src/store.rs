//! What keeps a logbook. [`Store`] is what everything above needs of one; [`sqlite::SqliteStore`] is the one built in. What a
//! store has to do is said by the conformance suite in `tests/conformance.rs`, which is generic over the store.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tampu_types::Time;

use crate::{
    attachment::{Bytes, Sha, Upload},
    book::{Book, Invalid},
    entry::{Change, Content, Draft, Entry, EntryRef, Lock, NewEntry, Revision, Tombstone},
    query::BadQuery,
    search::{Page, Search, Stop},
};

mod import;
mod index;
mod page;
mod pool;
pub mod postgres;
mod shelf;
pub mod sqlite;
mod stream;
mod write;

/// Bytes of an attachment, unless a caller says less.
pub const MAX_ATTACHMENT: u64 = 1 << 40;
/// Changes of entries that a store remembers at least for whoever waits for them; older ones may be gone.
pub const CHANGES_KEPT: u64 = 100_000;

/// Drafts one owner can have; saving a further one is refused.
const MAX_DRAFTS: i64 = 1000;

/// Why a store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such book.
    #[error("there is no logbook '{0}'")]
    NoBook(String),
    /// No such entry, and there never was.
    #[error("there is no entry {0}")]
    NoEntry(EntryRef),
    /// It was there.
    #[error("{}", gone(.0))]
    Gone(Box<Tombstone>),
    /// What was to be written is not as it must be.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The query is none.
    #[error(transparent)]
    Query(#[from] BadQuery),
    /// A page was asked for after a place of another search.
    #[error("the page belongs to another search: ask for the first page")]
    OtherSearch,
    /// Somebody has changed it meanwhile.
    #[error("entry {at} was changed meanwhile: it is at revision {is}, not {expected}")]
    Changed {
        /// Which one.
        at: EntryRef,
        /// What was expected.
        expected: u32,
        /// What it is.
        is: u32,
    },
    /// It has an answer that was not there when somebody looked.
    #[error("entry {0} was answered meanwhile: look at it again")]
    Answered(EntryRef),
    /// Somebody else is editing it.
    #[error("entry {at} is being edited by {} on {} since {}", .lock.by, .lock.host, .lock.since)]
    Locked {
        /// Which one.
        at: EntryRef,
        /// By whom.
        lock: Box<Lock>,
    },
    /// An attachment that was not uploaded.
    #[error("the attachment '{0}' was not uploaded, and no entry has it")]
    NoBlob(String),
    /// A record that somebody has changed meanwhile.
    #[error("the {kind} '{name}' was changed meanwhile: it is at version {is}, not {expected}")]
    RecordChanged {
        /// What it is.
        kind: String,
        /// Which one.
        name: String,
        /// What was expected; 0 is none.
        expected: u64,
        /// What it is; 0 is none.
        is: u64,
    },
    /// No more of something.
    #[error("{0}")]
    Full(String),
    /// The directory cannot be used.
    #[error("{}: {why}", .path.display())]
    Directory {
        /// Which one.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which one.
        path: PathBuf,
        /// What happened.
        error: io::Error,
    },
    /// The database.
    #[error("the logbook's database: {0}")]
    Database(#[from] rusqlite::Error),
    /// PostgreSQL did not do it.
    #[error("the logbook's database: {}", refusal(.0))]
    Postgres(Box<::postgres::Error>),
    /// PostgreSQL cannot be reached, or the connection ended.
    #[error("the logbook's database server: {0}")]
    Lost(String),
    /// A store in another process did not do it, or does not answer.
    #[error("{why}")]
    Elsewhere {
        /// What it said, or what happened.
        why: String,
        /// Whether nobody answered.
        unreachable: bool,
    },
    /// What the database holds is not what was written into it.
    #[error("the logbook's database is damaged: {0}")]
    Damaged(String),
}

impl StoreError {
    /// Whether the disk is full, or what of it may be used: the store's, or its server's.
    pub fn is_disk_full(&self) -> bool {
        match self {
            StoreError::Io { error, .. } => matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
            StoreError::Database(error) => error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            StoreError::Postgres(error) => error.code() == Some(&::postgres::error::SqlState::DISK_FULL),
            _ => false,
        }
    }
}

fn gone(tombstone: &Tombstone) -> String {
    match &tombstone.moved_to {
        Some(to) => format!("entry {} was moved to {to}", tombstone.at),
        None => format!("entry {} was deleted by {} at {}", tombstone.at, tombstone.by, tombstone.gone),
    }
}

impl From<::postgres::Error> for StoreError {
    fn from(error: ::postgres::Error) -> StoreError {
        // Classes 08 and 57P: connections, and a server that is ended by somebody.
        let ended = match error.as_db_error() {
            Some(refused) => refused.code().code().starts_with("08") || refused.code().code().starts_with("57P"),
            None => error.is_closed() || std::error::Error::source(&error).is_some_and(|cause| cause.is::<io::Error>()),
        };
        if ended { StoreError::Lost(refusal(&error)) } else { StoreError::Postgres(Box::new(error)) }
    }
}

/// An error of PostgreSQL with what caused it.
fn refusal(error: &::postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(refused), _) => format!("{} ({})", refused.message(), refused.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

/// What a store returns.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A book and how much is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BookInfo {
    /// The book.
    #[serde(flatten)]
    pub book: Book,
    /// Its entries.
    pub entries: u64,
    /// When the newest was written.
    pub newest: Option<Time>,
}

/// An entry as it comes from ELOG's files, or is put back.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// Its id there.
    pub id: u32,
    /// What it is.
    pub entry: NewEntry,
    /// The first entry of its thread.
    pub thread: u32,
    /// A digest of where it came from: the same again changes nothing.
    pub digest: [u8; 16],
    /// Whose draft it is: it becomes one here, and follows the source's until somebody saves it here or throws it away.
    pub draft: Option<String>,
}

/// What became of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It is new.
    New,
    /// It was changed there since it was imported, and here too now.
    Changed,
    /// It is as it was.
    Same,
    /// It was changed there and here; what is here stays.
    Conflict,
    /// It was deleted or moved here; it stays so. What an import itself deleted comes back.
    Gone,
    /// It is a draft, and its owner has as many as there can be.
    Full,
}

/// What is kept beside the logbooks under a kind and a name: a user, who may do what, a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// From 1; one more with each change. A record that was dropped begins again.
    pub version: u64,
    /// What it says.
    pub value: Value,
}

/// That something happened to an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The change's number; those of a store rise, with gaps.
    pub number: u64,
    /// The entry.
    #[serde(flatten)]
    pub at: EntryRef,
    /// What happened to it. An entry that was moved has two changes, one where it was and one where it is.
    pub what: Change,
}

/// How far something is that takes long; `false` ends it.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

/// Keeps logbooks.
pub trait Store: Send + Sync {
    /// All books, by name.
    fn books(&self) -> Result<Vec<BookInfo>>;
    /// One book.
    fn book(&self, name: &str) -> Result<Book>;
    /// Makes a book, or changes what it is. Its entries stay.
    fn put_book(&self, book: &Book) -> Result<()>;

    /// Takes the bytes of an attachment in, at most `limit`; they become an entry's by [`Store::post`] or [`Store::edit`].
    fn upload(&self, from: &mut dyn Read, limit: u64) -> Result<Upload>;
    /// An attachment's bytes.
    fn attachment(&self, sha: &Sha) -> Result<Bytes>;

    /// Posts an entry: when this returns it is durable and in every search.
    fn post(&self, new: NewEntry, uploads: Vec<Upload>, by: &str) -> Result<EntryRef>;
    /// Posts entries of one book, all of them or none. Where a number is given, an entry answers the one of that place in the list, which comes
    /// before it.
    fn post_all(&self, new: Vec<(NewEntry, Option<usize>)>, by: &str) -> Result<Vec<EntryRef>>;
    /// An entry.
    fn entry(&self, at: &EntryRef) -> Result<Entry>;
    /// Changes an entry; `expected` is the revision it was read at. Returns the new revision.
    fn edit(&self, at: &EntryRef, content: Content, uploads: Vec<Upload>, by: &str, expected: Option<u32>) -> Result<u32>;
    /// Deletes an entry, and with `replies` all answers to it. Returns how many.
    fn delete(&self, at: &EntryRef, by: &str, replies: bool) -> Result<u64>;
    /// Makes the entry, and with `replies` all answers to it, once more in a book. Returns where the first is.
    fn copy(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef>;
    /// Takes the entry, and with `replies` all answers to it, to another book; its history goes along. Returns where the first is.
    fn move_to(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef>;
    /// Deletes an entry and all answers to it, if they are these: what came since somebody has looked is not theirs to delete unseen.
    fn delete_seen(&self, at: &EntryRef, by: &str, seen: &[u32]) -> Result<u64> {
        self.delete(at, by, seen.len() > 1)
    }
    /// Takes an entry and all answers to it to another book, if they are these.
    fn move_seen(&self, at: &EntryRef, to: &str, by: &str, seen: &[u32]) -> Result<EntryRef> {
        self.move_to(at, to, by, seen.len() > 1)
    }
    /// All that happened to an entry, the first first; also to one that was deleted.
    fn history(&self, at: &EntryRef) -> Result<Vec<Revision>>;
    /// The whole thread an entry belongs to, by date.
    fn thread(&self, at: &EntryRef) -> Result<Vec<Entry>>;

    /// The answers to these entries of a book: what is answered and what answers it; those to one entry by date.
    fn answers(&self, book: &str, to: &[u32]) -> Result<Vec<(u32, u32)>> {
        let mut answers = Vec::new();
        for &id in to {
            let thread = match self.thread(&EntryRef::new(book, id)) {
                Ok(thread) => thread,
                // It went meanwhile.
                Err(StoreError::Gone(_) | StoreError::NoEntry(_)) => continue,
                Err(error) => return Err(error),
            };
            answers.extend(thread.iter().filter(|entry| entry.parent == Some(id)).map(|entry| (id, entry.at.id)));
        }
        Ok(answers)
    }

    /// Locks an entry while somebody edits it, for this long; a lock of one's own is renewed.
    fn lock(&self, at: &EntryRef, by: &str, host: &str, time: Duration) -> Result<Lock>;
    /// Gives a lock back; somebody else's stays.
    fn unlock(&self, at: &EntryRef, by: &str) -> Result<()>;
    /// Makes somebody's lock another's, for this long, without a moment in which nobody has it; whether it was still theirs.
    fn hand_lock(&self, at: &EntryRef, from: &str, to: (&str, &str), time: Duration) -> Result<bool>;
    /// Who has locked an entry now.
    fn locked(&self, at: &EntryRef) -> Result<Option<Lock>>;

    /// Saves a draft, a new one or over the one of its number. Returns the number.
    fn save_draft(&self, draft: &Draft) -> Result<i64>;
    /// Somebody's drafts, the last saved first.
    fn drafts(&self, owner: &str) -> Result<Vec<Draft>>;
    /// Throws a draft away; whether it was there.
    fn drop_draft(&self, owner: &str, number: i64) -> Result<bool>;

    /// Searches.
    fn search(&self, search: &Search, stop: &Stop) -> Result<Page>;
    /// Saves a query under a name.
    fn save_search(&self, owner: &str, name: &str, query: &str) -> Result<()>;
    /// Somebody's saved queries, by name.
    fn saved_searches(&self, owner: &str) -> Result<Vec<(String, String)>>;
    /// Forgets one; whether it was there.
    fn drop_search(&self, owner: &str, name: &str) -> Result<bool>;

    /// What is kept under a kind and a name.
    fn record(&self, kind: &str, name: &str) -> Result<Option<Record>>;
    /// All of a kind, by name.
    fn records(&self, kind: &str) -> Result<Vec<(String, Record)>>;
    /// Keeps a value, if what is there has the version that is expected; 0 is that nothing is there. Returns the new version.
    fn put_record(&self, kind: &str, name: &str, value: &Value, expected: Option<u64>) -> Result<u64>;
    /// Forgets one; whether it was there.
    fn drop_record(&self, kind: &str, name: &str) -> Result<bool>;

    /// The number of the last change of an entry; 0 if there is none.
    fn last_change(&self) -> Result<u64>;
    /// The changes after one, in order, at most so many; of the last [`CHANGES_KEPT`] all.
    fn changes(&self, after: u64, most: usize) -> Result<Vec<EntryChange>>;
    /// Waits until there is a change after this one, whoever makes it, at most for this long. Returns the number of the last.
    fn wait_for_change(&self, after: u64, time: Duration) -> Result<u64>;

    /// Takes entries of one book with their ids, in one transaction. What each became, in their order. An answer to what is gone here
    /// begins a thread.
    fn import(&self, book: &str, entries: Vec<Imported>, uploads: Vec<Upload>, by: &str) -> Result<Vec<ImportOutcome>>;
    /// After the last import: what makes searches quick is put in order.
    fn imported(&self) -> Result<()>;
    /// The digests that entries of a book were imported with, by id; not of those that are gone.
    fn digests(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>>;

    /// Holds everything against itself. What is wrong, a line each.
    fn check(&self, progress: Progress<'_>) -> Result<Vec<String>>;
    /// Copies everything, as it is at one moment, into a directory that can be opened in place of this one. Goes on while others write.
    fn backup(&self, to: &Path, progress: Progress<'_>) -> Result<()>;
}

fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}
