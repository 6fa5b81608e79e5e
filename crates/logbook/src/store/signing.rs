//! Signatures of entries, in terms of tables.

use tampu_types::Time;

use super::{
    Result, StoreError,
    book_row::{BookRow, damaged, json},
    index::Tables,
    now,
};
use crate::{
    entry::{Content, Entry, EntryRef},
    signature::{
        content_digest,
        keys::SigningKeys,
        record::{NO_RECORD, RecordKind, Signature},
    },
};

/// A record of a chain as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainRecord {
    /// The number in the chain.
    pub number: u64,
    /// The place of the entry.
    pub at: EntryRef,
    /// The record as JSON.
    pub text: String,
}

/// Reads a record of an entry.
pub fn record_of(book: &str, id: u32, text: &str) -> Result<Signature> {
    serde_json::from_str(text).map_err(|error| damaged(book, id, format!("a signature: {error}")))
}

/// The operations that signatures need, beside those of a writer.
pub trait SigningTables: Tables {
    /// Returns the signing key of the store.
    fn signing_keys(&self) -> &SigningKeys;
    /// Returns the last record of a chain.
    fn last_record(&mut self, chain: i64) -> Result<Option<String>>;
    /// Appends a record to a chain, for an entry at its place.
    fn add_record(&mut self, chain: i64, number: u64, at: (i64, u32), record: &str) -> Result<()>;
    /// Returns the records about an entry.
    fn records_of(&mut self, num: i64, id: u32) -> Result<Vec<String>>;
    /// Sets the number of records of an entry.
    fn set_signed(&mut self, num: i64, id: u32, count: usize) -> Result<()>;
    /// Returns time and author of a revision.
    fn revision_line(&mut self, num: i64, id: u32, number: u32) -> Result<Option<(Time, String)>>;
}

impl<T: SigningTables> Signing for T {}

/// Signatures, in terms of tables.
pub trait Signing: SigningTables + Sized {
    /// Returns the signatures of an entry.
    fn signatures_of(&mut self, book_row: &BookRow, id: u32) -> Result<Vec<Signature>> {
        let records = self.records_of(book_row.num, id)?;
        records.iter().map(|text| record_of(&book_row.book.name, id, text)).collect()
    }

    /// Fails if a signature locks the entry.
    fn refuse_if_signed(&mut self, entry: &Entry) -> Result<()> {
        if is_locked(entry) { Err(StoreError::Signed(entry.at.clone())) } else { Ok(()) }
    }

    /// Completes a record, signs it and appends it to the chain of its book.
    fn append(&mut self, book_row: &BookRow, mut record: Signature) -> Result<Signature> {
        let at = record.entry.clone();
        let bad = |why: &str| damaged(&at.book, at.id, why);
        let last = match self.last_record(book_row.num)? {
            Some(text) => Some(record_of(&at.book, at.id, &text)?),
            None => None,
        };
        record.number = match &last {
            Some(last) => last.number.checked_add(1).ok_or_else(|| bad("the chain of signatures is full"))?,
            None => 1,
        };
        record.previous = last.map_or_else(|| NO_RECORD.to_owned(), |last| last.hash());
        let line = self.revision_line(book_row.num, at.id, record.revision)?;
        (record.changed, record.changed_by) = line.ok_or_else(|| bad("its history has no line of the signed revision"))?;
        self.signing_keys().sign(&mut record)?;
        self.add_record(book_row.num, record.number, (book_row.num, at.id), &json(&record)?)?;
        let count = self.records_of(book_row.num, at.id)?.len();
        self.set_signed(book_row.num, at.id, count)?;
        Ok(record)
    }

    /// Appends a record for each signed revision whose content a purge has changed. `content` returns the content of a
    /// revision that is left.
    fn record_purge(
        &mut self,
        book_row: &BookRow,
        id: u32,
        (by, reason): (&str, &str),
        content: impl Fn(&mut Self, u32) -> Result<Option<Content>>,
    ) -> Result<()> {
        let known = self.signatures_of(book_row, id)?;
        let mut revisions: Vec<u32> = known.iter().map(|record| record.revision).collect();
        revisions.sort_unstable();
        revisions.dedup();
        for revision in revisions {
            let Some(last) = known.iter().rev().find(|record| record.revision == revision) else { continue };
            let digest = content_digest(&content(self, revision)?.unwrap_or_default());
            if digest == last.content {
                continue;
            }
            let record = Signature {
                kind: RecordKind::Purge,
                entry: EntryRef::new(&book_row.book.name, id),
                content: digest,
                by: by.to_owned(),
                name: String::new(),
                meaning: reason.to_owned(),
                method: "right admin".to_owned(),
                at: now(),
                locks: false,
                ..last.clone()
            };
            self.append(book_row, record)?;
        }
        Ok(())
    }
}

/// Returns true if a signature locks the entry.
pub fn is_locked(entry: &Entry) -> bool {
    entry.signatures.iter().any(|signature| signature.locks)
}
