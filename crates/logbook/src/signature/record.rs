//! The records of a chain, and their signed bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::fields::Fields;
use crate::{attachment::hex, entry::entry_ref::EntryRef, schema::TimeText};

/// The hash before the first record of a chain.
pub const NO_RECORD: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// The note on a record that its reader cannot check.
pub const WITHHELD: &str = "not checkable for you: it covers attributes that you do not see";
/// The first field of the bytes of a statement.
const STATEMENT: &str = "tampu-signature-1";

/// The kind of a record in a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecordKind {
    /// A person signed a revision.
    #[default]
    Signature,
    /// A purge removed a signed content, or a part of it. `content` is the digest of the rest.
    Purge,
}

impl RecordKind {
    /// The name in statements.
    pub const fn name(self) -> &'static str {
        match self {
            RecordKind::Signature => "signature",
            RecordKind::Purge => "purge",
        }
    }
}

/// A signature of a revision of an entry, or another record of a book's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Signature {
    /// The number in the chain of the book, from 1.
    pub number: u64,
    /// The kind of the record.
    #[serde(default)]
    pub kind: RecordKind,
    /// The entry's place when the record was made.
    pub entry: EntryRef,
    /// The revision that it is about.
    pub revision: u32,
    /// The SHA-256 of the content, in hexadecimal digits; empty if it is `withheld`.
    pub content: String,
    /// The poster of the entry.
    pub author: String,
    /// The date of the entry.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub date: Time,
    /// The author of the revision.
    pub changed_by: String,
    /// The time of the revision.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub changed: Time,
    /// The login of the person who signed.
    pub by: String,
    /// The full name of that person.
    pub name: String,
    /// The meaning of the signature, as `approved`; the reason of a purge.
    pub meaning: String,
    /// The proof that the person gave, as `password`.
    pub method: String,
    /// The time of the signature.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub at: Time,
    /// True if the entry cannot be changed since it was signed.
    #[serde(default)]
    pub locks: bool,
    /// The hash of the record before, in hexadecimal digits.
    pub previous: String,
    /// The public key of the site, in hexadecimal digits.
    pub key: String,
    /// The Ed25519 signature of the statement, in hexadecimal digits; empty if it is `withheld`.
    pub signature: String,
    /// True if the reader does not see all attributes of the entry. The reader cannot check the record then. It is set in
    /// answers only, and is no part of the statement.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// A request to sign the current revision of an entry. The caller has checked the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignature {
    pub at: EntryRef,
    /// The revision that the person has read.
    pub revision: u32,
    /// The login of the person.
    pub by: String,
    /// The full name of the person.
    pub name: String,
    /// The meaning of the signature.
    pub meaning: String,
    /// The proof that the person gave.
    pub method: String,
    /// True if the entry cannot be changed from now on.
    pub locks: bool,
}

impl Signature {
    /// Returns the signed bytes.
    pub fn statement(&self) -> Vec<u8> {
        let mut fields = Fields::default();
        fields.add(STATEMENT).add(&self.number.to_string()).add(self.kind.name());
        fields.add(&self.entry.book).add(&self.entry.id.to_string()).add(&self.revision.to_string()).add(&self.content);
        fields.add(&self.author).add(&self.date.0.to_string()).add(&self.changed_by).add(&self.changed.0.to_string());
        fields.add(&self.by).add(&self.name).add(&self.meaning).add(&self.method).add(&self.at.0.to_string());
        fields.add(if self.locks { "1" } else { "0" }).add(&self.previous).add(&self.key);
        fields.0
    }

    /// Returns the hash of the record, which the next one of the chain names.
    pub fn hash(&self) -> String {
        let mut fields = Fields(self.statement());
        fields.add(&self.signature);
        hex(&Sha256::digest(fields.0))
    }

    /// Removes everything that is made from the content, for a reader who does not see all of it.
    pub fn withhold(&mut self) {
        self.content.clear();
        self.signature.clear();
        self.withheld = true;
    }

    /// The word for the record in front of [`told`](Signature::told).
    pub const fn label(&self) -> &'static str {
        match self.kind {
            RecordKind::Signature => "Signed",
            RecordKind::Purge => "Signed text changed",
        }
    }

    /// Returns meaning, person and time for people; with the revision, if it is not the `current` one of the entry.
    pub fn told(&self, current: u32) -> String {
        let name = if self.name.is_empty() { String::new() } else { format!("{} ", self.name) };
        let at = self.at.to_acs();
        let at = at.get(..19).unwrap_or(&at).replace('T', " ");
        let of = if self.revision == current { String::new() } else { format!(", of the earlier revision {}", self.revision) };
        let part = if self.withheld { format!(", {WITHHELD}") } else { String::new() };
        format!("{}, {name}({}), {at} UTC{of}{part}", self.meaning, self.by)
    }
}
