//! The signature of an entry, in terms of tables.

use super::{Result, StoreError, now, signing::Signing, write::Write};
use crate::{
    entry::{Content, Entry},
    signature::{
        content_digest,
        record::{NewSignature, RecordKind, Signature},
    },
};

/// A record about an entry and a content, without its place in the chain.
fn record(entry: &Entry, revision: u32, content: &Content) -> Signature {
    Signature {
        number: 0,
        kind: RecordKind::Signature,
        entry: entry.at.clone(),
        revision,
        content: content_digest(content),
        author: entry.by.clone(),
        date: entry.date,
        changed_by: String::new(),
        changed: entry.changed,
        by: String::new(),
        name: String::new(),
        meaning: String::new(),
        method: String::new(),
        at: now(),
        locks: false,
        previous: String::new(),
        key: String::new(),
        signature: String::new(),
        withheld: false,
    }
}

impl<T: Write> SignEntry for T {}

/// The signature of an entry, in terms of tables.
pub trait SignEntry: Write {
    /// Signs the current revision of an entry.
    fn sign(&mut self, new: &NewSignature) -> Result<Signature> {
        let NewSignature { at, revision, by, name, meaning, method, locks } = new.clone();
        let book_row = self.book_row(&at.book)?;
        let row = self.find(&book_row, at.id)?;
        let entry = self.load(&book_row, row)?.ok_or(StoreError::NoEntry(at))?;
        if entry.revision != revision {
            return Err(StoreError::Changed { at: entry.at, expected: revision, is: entry.revision });
        }
        self.refuse_if_locked(&book_row, &entry.at, &by)?;
        let is_same = |known: &&Signature| {
            known.kind == RecordKind::Signature && known.revision == revision && known.by == by && known.meaning == meaning
        };
        if let Some(known) = entry.signatures.iter().find(is_same) {
            return Err(StoreError::SignedAlready { at: entry.at.clone(), signature: Box::new(known.clone()) });
        }
        let record = Signature { by, name, meaning, method, locks, ..record(&entry, revision, &entry.content) };
        self.append(&book_row, record)
    }
}
