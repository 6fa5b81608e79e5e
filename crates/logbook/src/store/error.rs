//! Errors of a store.

use std::{io, path::PathBuf, time::Duration};

use crate::{
    book::Invalid,
    entry::{EntryRef, Lock, Tombstone},
    query::BadQuery,
    signature::{Signature, keys::KeyError},
    store::quota::OverQuota,
};

/// The longest time that a thread waits for a connection to the database.
pub const WAIT: Duration = Duration::from_secs(10);

/// An error of a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// No such book.
    #[error("there is no logbook '{0}'")]
    NoBook(String),
    /// A logbook has the name already.
    #[error("there is a logbook '{0}' already; choose another name")]
    BookExists(String),
    /// No deleted logbook has the number.
    #[error("there is no deleted logbook with the number {0}")]
    NoDeletedBook(u32),
    /// No such entry, now or earlier.
    #[error("there is no entry {0}")]
    NoEntry(EntryRef),
    /// The entry was deleted or moved.
    #[error("{}", gone(.0))]
    Gone(Box<Tombstone>),
    /// The book has no such template.
    #[error("'{book}' has no template '{name}'")]
    NoTemplate {
        /// The book's name.
        book: String,
        /// The template's name.
        name: String,
    },
    /// An invalid book or entry.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// An invalid query.
    #[error(transparent)]
    Query(#[from] BadQuery),
    /// The order of a search is not one of its logbooks.
    #[error("there is no order by '{name}'; use date, id{}", .keys.iter().map(|key| format!(", {key}")).collect::<String>())]
    NoOrder {
        /// The order that the search names.
        name: String,
        /// The attributes of the logbooks of the search.
        keys: Vec<String>,
    },
    /// The cursor of the request belongs to another search.
    #[error("the page belongs to another search: ask for the first page")]
    OtherSearch,
    /// The entry was changed since the caller read it.
    #[error("entry {at} was changed by another user: it is at revision {is}, not {expected}")]
    Changed {
        at: EntryRef,
        /// The revision that the caller expected.
        expected: u32,
        /// The current revision.
        is: u32,
    },
    /// The configuration of a book was changed since the caller read it.
    #[error("the configuration of '{0}' was changed by another user; read it again")]
    BookChanged(String),
    /// The book has no such change of its configuration.
    #[error("'{book}' has no change {number} of its configuration; the last {} are kept", crate::book::change::MAX_CHANGES)]
    NoBookChange {
        /// The book's name.
        book: String,
        number: u32,
    },
    /// The entry has a reply that the caller has not seen.
    #[error("entry {0} has a new reply; read the thread again")]
    Answered(EntryRef),
    /// Another user is editing the entry.
    #[error("entry {at} is being edited by {} on {} since {}", .lock.by, .lock.host, .lock.since)]
    Locked {
        at: EntryRef,
        /// The lock of the other user.
        lock: Box<Lock>,
    },
    /// A signature locks the entry.
    #[error("entry {0} is signed and cannot be changed; reply to it to correct it")]
    Signed(EntryRef),
    /// The person has signed the revision with this meaning.
    #[error("entry {at} has this signature: {}", signature.told(.signature.revision))]
    SignedAlready {
        at: EntryRef,
        /// The signature that is there.
        signature: Box<Signature>,
    },
    /// The signing key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An attachment that was not uploaded.
    #[error("the attachment '{0}' was not uploaded, and no entry has it")]
    NoBlob(String),
    /// A record that was changed since the caller read it.
    #[error("the {kind} '{name}' was changed by another process: it is at version {is}, not {expected}")]
    RecordChanged {
        /// The record's kind.
        kind: String,
        /// The record's name.
        name: String,
        /// The version that the caller expected; 0 for no record.
        expected: u64,
        /// The current version; 0 for no record.
        is: u64,
    },
    /// No connection to the database was free in time.
    #[error("the logbook's database is busy: no connection was free for {} s; try again", WAIT.as_secs())]
    Busy,
    /// The files of a change do not fit a quota.
    #[error(transparent)]
    OverQuota(Box<OverQuota>),
    /// A limit is reached.
    #[error("{0}")]
    Full(String),
    /// The directory cannot be used.
    #[error("{}: {why}", .path.display())]
    Directory {
        path: PathBuf,
        /// The reason, in words.
        why: String,
    },
    /// An error of the file system.
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    /// An error of SQLite.
    #[error("the logbook's database: {0}")]
    Database(#[from] rusqlite::Error),
    /// PostgreSQL rejected the operation.
    #[error("the logbook's database: {}", refusal(.0))]
    Postgres(Box<::postgres::Error>),
    /// PostgreSQL cannot be reached, or the connection ended.
    #[error("the logbook's database server: {0}")]
    Lost(String),
    /// The hub that serves the store rejected the request, or does not respond.
    #[cfg(feature = "client")]
    #[error(transparent)]
    Client(Box<crate::client::ClientError>),
    /// Contents of the database that no release of this program has written.
    #[error("the logbook's database is damaged: {0}")]
    Damaged(String),
}

impl StoreError {
    /// Returns whether the disk or a quota is full, of the store or of its server.
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

#[cfg(feature = "client")]
impl From<crate::client::ClientError> for StoreError {
    fn from(error: crate::client::ClientError) -> StoreError {
        StoreError::Client(Box::new(error))
    }
}

impl From<::postgres::Error> for StoreError {
    fn from(error: ::postgres::Error) -> StoreError {
        // Classes 08 and 57P: connection errors, and a server that is being shut down.
        let ended = match error.as_db_error() {
            Some(refused) => refused.code().code().starts_with("08") || refused.code().code().starts_with("57P"),
            None => error.is_closed() || std::error::Error::source(&error).is_some_and(|cause| cause.is::<io::Error>()),
        };
        if ended { StoreError::Lost(refusal(&error)) } else { StoreError::Postgres(Box::new(error)) }
    }
}

/// Returns an error of PostgreSQL with its cause.
pub(super) fn refusal(error: &::postgres::Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(refused), _) => format!("{} ({})", refused.message(), refused.code().code()),
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}
