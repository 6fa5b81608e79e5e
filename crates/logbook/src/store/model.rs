//! Values of stores beside entries: book listings, imports, records, changes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tampu_types::Time;

use super::error::StoreError;
use crate::{
    book::Book,
    entry::{Change, Content, EntryRef, NewEntry},
    schema::TimeText,
};

/// Bytes of an attachment, unless a caller says less.
pub const MAX_ATTACHMENT: u64 = 1 << 40;
/// The minimum number of changes of entries that a store keeps for subscribers; older ones may be gone.
pub const CHANGES_KEPT: u64 = 100_000;

/// Drafts one owner can have; saving a further one is refused.
pub(super) const MAX_DRAFTS: i64 = 1000;

/// The result of a store's operation.
pub type Result<T> = std::result::Result<T, StoreError>;

/// A book and how much is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BookInfo {
    /// The book's settings.
    #[serde(flatten)]
    pub book: Book,
    /// The number of its entries.
    pub entries: u64,
    /// The date of the newest entry.
    #[serde(default, with = "tampu_types::time::rfc3339::stored_option")]
    #[schemars(with = "Option<TimeText>")]
    pub newest: Option<Time>,
}

/// A deleted logbook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeletedBook {
    /// The number by which it is restored.
    pub number: u32,
    /// The name that it had.
    pub name: String,
    /// The number of its entries.
    pub entries: u64,
    /// The time of the deletion.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub at: Time,
    /// The user that deleted it.
    pub by: String,
    /// The user, and the reason, of the purge; then its contents are gone for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purged: Option<String>,
}

/// An entry to import, from ELOG's files or from a backup.
#[derive(Debug, Clone, Default)]
pub struct Imported {
    /// Its id there.
    pub id: u32,
    /// The entry's content.
    pub entry: NewEntry,
    /// The first entry of its thread.
    pub thread: u32,
    /// A digest of where it came from: the same again changes nothing.
    pub digest: [u8; 16],
    /// The draft's owner, if it is a draft. It follows the source's draft until its owner saves or deletes it here.
    pub draft: Option<String>,
    /// The poster there; the importer if it is `None`.
    pub author: Option<String>,
}

/// A change of one of several entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryEdit {
    pub at: EntryRef,
    /// The revision that the caller has read.
    pub expected: u32,
    /// The new content, without new files.
    pub content: Content,
}

/// The result of importing one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It is new.
    New,
    /// It was changed there since it was imported, and here too now.
    Changed,
    /// It is as it was.
    Same,
    /// The entry was changed there and here; the content here stays.
    Conflict,
    /// The entry was deleted or moved here, and stays so. An entry that an import deleted comes back.
    Gone,
    /// It is a draft, and its owner has as many as there can be.
    Full,
}

/// A record beside the logbooks, under a kind and a name: a user, access rules, a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// From 1; one more with each change. A record that was dropped begins again.
    pub version: u64,
    /// The record's contents.
    pub value: Value,
}

/// That something happened to an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The change's number; those of a store rise, with gaps.
    pub number: u64,
    #[serde(flatten)]
    pub at: EntryRef,
    /// The kind of change. A move is two changes, one in the old book and one in the new.
    pub what: Change,
}

/// A callback with the work done and the total; `false` ends the work.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;
