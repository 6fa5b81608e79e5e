//! The check of all signatures of a book against its chain, its entries and the bytes of their files.

use std::{collections::HashMap, io::Read};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{
    content::content_digest,
    keys::is_signed,
    record::{NO_RECORD, RecordKind, Signature},
};
use crate::{
    attachment::{Sha, hex},
    entry::{Content, EntryRef, Revision},
    store::{PagePart, Progress, Result, Store, StoreError, naming::is_hidden},
};

/// Records that are read at a time.
const TOGETHER: usize = 500;
/// Moves of an entry that are followed.
const MAX_MOVES: usize = 1000;
/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// A difference between a book and its signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignatureFault {
    /// The name of the book.
    pub book: String,
    /// The entry, if the fault is one of an entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryRef>,
    /// The number of the record in the chain, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The fault, in words.
    pub fault: String,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Verification {
    /// The books that were verified.
    pub books: Vec<String>,
    /// The number of signatures.
    pub signatures: u64,
    /// The number of signed contents that a purge has removed or changed.
    pub purged: u64,
    /// The public keys that were taken for valid.
    pub keys: Vec<String>,
    /// The differences; none if all is as it was signed.
    pub faults: Vec<SignatureFault>,
}

impl std::fmt::Display for SignatureFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.entry, self.number) {
            (Some(entry), Some(number)) => write!(f, "{entry}, record {number}: {}", self.fault),
            (Some(entry), None) => write!(f, "{entry}: {}", self.fault),
            (None, Some(number)) => write!(f, "{}, record {number}: {}", self.book, self.fault),
            (None, None) => write!(f, "{}: {}", self.book, self.fault),
        }
    }
}

/// The place of a signed entry.
struct PlaceOfEntry {
    at: EntryRef,
    /// The current revision and content; `None` if the entry was deleted.
    current: Option<(u32, Content)>,
}

struct Verifier<'a> {
    store: &'a dyn Store,
    book: &'a str,
    found: &'a mut Verification,
    /// The files that were read, and whether their bytes have their digest.
    files: HashMap<Sha, bool>,
}

/// Verifies the signatures of a book, or of all books. `more` are further public keys that are valid.
pub fn verify(store: &dyn Store, book: Option<&str>, more: &[String], progress: Progress<'_>) -> Result<Verification> {
    let mut keys = store.signing_keys().valid()?;
    keys.extend(more.iter().cloned());
    let books = match book {
        Some(name) => vec![store.book(name)?.name],
        None => store.books()?.into_iter().map(|info| info.book.name).collect(),
    };
    let mut found = Verification { keys, ..Verification::default() };
    let total = books.len() as u64;
    for (done, book) in books.iter().enumerate() {
        if !progress(done as u64, total) {
            return Err(StoreError::Full("the verification was ended before it was complete".to_owned()));
        }
        Verifier { store, book, found: &mut found, files: HashMap::new() }.run()?;
    }
    found.books = books;
    Ok(found)
}

impl Verifier<'_> {
    fn fault(&mut self, entry: Option<&EntryRef>, number: Option<u64>, fault: impl Into<String>) {
        let fault = SignatureFault { book: self.book.to_owned(), entry: entry.cloned(), number, fault: fault.into() };
        self.found.faults.push(fault);
    }

    fn run(&mut self) -> Result<()> {
        let records = self.chain()?;
        self.head(&records)?;
        for (record, at) in &records {
            if record.kind == RecordKind::Signature
                && let Some(place) = self.place(record, at)?
            {
                self.content(record, &place)?;
            }
        }
        for (record, _) in &records {
            match record.kind {
                RecordKind::Signature => self.found.signatures += 1,
                RecordKind::Purge => self.found.purged += 1,
            }
        }
        for (at, expected, is) in self.store.wrongly_signed(self.book)? {
            self.fault(Some(&at), None, format!("the entry had {expected} records of signatures, and has {is}"));
        }
        Ok(())
    }

    /// Reads the chain and checks its links and its signatures.
    fn chain(&mut self) -> Result<Vec<(Signature, EntryRef)>> {
        let (mut records, mut after, mut previous) = (Vec::new(), 0, NO_RECORD.to_owned());
        loop {
            let page = self.store.chain(self.book, after, TOGETHER)?;
            let Some(end) = page.last() else { return Ok(records) };
            let end = end.number;
            for row in page {
                let number = Some(row.number);
                if row.number != after + 1 {
                    let missing = if row.number == after + 2 {
                        format!("record {} of the chain is missing", after + 1)
                    } else {
                        format!("records {} to {} of the chain are missing", after + 1, row.number.saturating_sub(1))
                    };
                    self.fault(None, None, missing);
                }
                let is_after_gap = row.number != after + 1;
                after = row.number;
                let record: Signature = match serde_json::from_str(&row.text) {
                    Ok(record) => record,
                    Err(error) => {
                        self.fault(Some(&row.at), number, format!("the record cannot be read: {error}"));
                        previous.clear();
                        continue;
                    }
                };
                if !is_after_gap && !previous.is_empty() && record.previous != previous {
                    self.fault(Some(&record.entry), number, "the record does not follow the one before: one of them was changed");
                }
                previous = record.hash();
                if record.number != row.number {
                    self.fault(Some(&record.entry), number, format!("the record has the number {}", record.number));
                } else if !is_signed(&record) {
                    self.fault(Some(&record.entry), number, "the signature of the record is wrong: the record was changed");
                } else if !self.found.keys.contains(&record.key) {
                    let fault = format!(
                        "it is signed with the key {}, which this site does not know; if it is a key of yours, add it to 'signing/known-keys'",
                        record.key
                    );
                    self.fault(Some(&record.entry), number, fault);
                }
                records.push((record, row.at));
            }
            after = after.max(end);
        }
    }

    /// Checks that the chain has the last record that this site has seen.
    fn head(&mut self, records: &[(Signature, EntryRef)]) -> Result<()> {
        let chain = self.store.chain_number(self.book)?;
        let Some(head) = self.store.signing_keys().head(chain)? else { return Ok(()) };
        match records.iter().find(|(record, _)| record.number == head.number) {
            Some((record, _)) if record.hash() == head.hash => {}
            Some(_) => self.fault(None, Some(head.number), "it is not the record that this site has seen under this number"),
            None => {
                let last = records.last().map_or(0, |(record, _)| record.number);
                let fault = format!("the chain ends with record {last}, and this site has seen {}", head.number);
                self.fault(None, None, fault);
            }
        }
        Ok(())
    }

    /// Follows the moves of an entry since it was signed.
    fn place(&mut self, record: &Signature, stored: &EntryRef) -> Result<Option<PlaceOfEntry>> {
        // The book may have another name since then.
        let (mut at, number) = (EntryRef::new(self.book, record.entry.id), Some(record.number));
        for _ in 0..MAX_MOVES {
            let place = match self.store.entry(&at) {
                Ok(entry) => PlaceOfEntry { at: entry.at.clone(), current: Some((entry.revision, entry.content)) },
                Err(StoreError::Gone(gone)) => match gone.moved_to {
                    // A deleted book is verified when it is restored.
                    Some(to) if is_hidden(&to.book) => return Ok(None),
                    Some(to) => {
                        at = to;
                        continue;
                    }
                    None => PlaceOfEntry { at: gone.at, current: None },
                },
                Err(error @ (StoreError::NoEntry(_) | StoreError::NoBook(_) | StoreError::Damaged(_))) => {
                    self.fault(Some(&record.entry), number, format!("the signed entry cannot be read: {error}"));
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            if place.at != *stored {
                self.fault(Some(&record.entry), number, format!("the record stands with entry {stored}"));
            }
            return Ok(Some(place));
        }
        self.fault(Some(&record.entry), number, "the entry was moved in a circle");
        Ok(None)
    }

    /// Checks a signed content: that of the revision, and that of the entry if it is locked.
    fn content(&mut self, record: &Signature, place: &PlaceOfEntry) -> Result<()> {
        let (at, number) = (&place.at, Some(record.number));
        let part = PagePart { after: Some(i64::from(record.revision) - 1), limit: 1 };
        let page = match self.store.history_page(at, part) {
            Ok(page) => page,
            Err(StoreError::Damaged(why)) => {
                self.fault(Some(at), number, format!("its history cannot be read: {why}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let Some(revision) = page.revisions.into_iter().find(|revision| revision.number == record.revision) else {
            self.fault(Some(at), number, format!("revision {} is missing", record.revision));
            return Ok(());
        };
        let mut valid = vec![record.content.clone()];
        for purge in self.store.signatures(at)?.into_iter().filter(|known| known.kind == RecordKind::Purge) {
            if purge.revision == record.revision && is_signed(&purge) && self.found.keys.contains(&purge.key) {
                valid.push(purge.content);
            }
        }
        self.revision(record, at, &revision, &valid)?;
        if record.locks {
            match &place.current {
                None if valid.len() == 1 => self.fault(Some(at), number, "it was deleted although its signature locks it"),
                Some((is, content)) if *is != record.revision && !valid.contains(&content_digest(content)) => {
                    self.fault(Some(at), number, "it was changed although its signature locks it");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks a revision against the digests that are valid for its content.
    fn revision(&mut self, record: &Signature, at: &EntryRef, revision: &Revision, valid: &[String]) -> Result<()> {
        let number = Some(record.number);
        if !valid.contains(&content_digest(&revision.content)) {
            self.fault(Some(at), number, format!("revision {} is not as it was signed", record.revision));
            return Ok(());
        }
        if revision.at != record.changed || revision.by != record.changed_by {
            self.fault(Some(at), number, format!("author or time of revision {} is not as it was signed", record.revision));
        }
        if let Ok(entry) = self.store.entry(at)
            && entry.revision == record.revision
            && (entry.by != record.author || entry.date != record.date)
        {
            self.fault(Some(at), number, "poster or date of the entry is not as it was signed");
        }
        for file in &revision.content.attachments {
            let Some(sha) = &file.sha else { continue };
            let bytes = self.store.attachment(sha).map_err(|error| error.to_string());
            let is_same = match self.files.get(sha) {
                Some(known) => Ok(*known),
                None => bytes.and_then(|bytes| digest_of(bytes).map_err(|error| error.to_string())).map(|is| is == sha.as_str()),
            };
            if let Ok(is_same) = is_same {
                self.files.insert(sha.clone(), is_same);
            }
            match is_same {
                Ok(true) => {}
                Ok(false) => self.fault(Some(at), number, format!("the bytes of '{}' are not as they were signed", file.name)),
                Err(why) => self.fault(Some(at), number, format!("the file '{}' cannot be read: {why}", file.name)),
            }
        }
        Ok(())
    }
}

/// Returns the SHA-256 of the bytes of a reader.
fn digest_of(mut from: impl Read) -> std::io::Result<String> {
    let (mut hash, mut piece) = (Sha256::new(), vec![0; PIECE]);
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&piece[..count]),
        }
    }
}
