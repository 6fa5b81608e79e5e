//! Changes of a logbook's configuration, which the store keeps beside the logbook.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::Book;
use crate::{attachment::hex, schema::TimeText};

/// The number of changes that are kept for a logbook. With a further one, the oldest is dropped.
pub const MAX_CHANGES: u32 = 200;

/// A change of a logbook's configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BookChange {
    /// The number of the change, from 1.
    pub number: u32,
    /// The time of the change.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub at: Time,
    /// The user, or the part of the program, that made it; empty if it is unknown.
    pub by: String,
    /// The kind of change: `made`, `changed`, `restored 3`.
    pub what: String,
    /// The configuration before; absent if the logbook was new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Book>,
    /// The configuration after.
    pub after: Book,
}

/// The configuration of a logbook as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigText {
    /// Lines `Name = value`, as in a section of `elogd.cfg`. `(left out)` stands for a password, and keeps it.
    pub text: String,
    /// The version, which is the `ETag` as well.
    pub version: String,
}

/// A change of a logbook's configuration, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigChange {
    /// The number of the change, from 1.
    pub number: u32,
    /// The time of the change.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub at: Time,
    /// The user, or the part of the program, that made it; empty if it is unknown.
    pub by: String,
    /// The kind of change: `made`, `changed`, `restored 3`.
    pub what: String,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
    /// The text before; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The text after; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// A new configuration of a logbook.
#[derive(Debug, Clone, Copy)]
pub struct BookEdit<'a> {
    pub book: &'a Book,
    /// The user, or the part of the program, that makes the change.
    pub by: &'a str,
    /// The kind of change; empty stands for `made` or `changed`.
    pub what: &'a str,
    /// The version ([`Book::version`]) that the caller has read. Another one is an error. Empty: the logbook must be new.
    pub expected: Option<&'a str>,
}

impl<'a> BookEdit<'a> {
    /// A change of any version.
    pub fn of(book: &'a Book, by: &'a str) -> BookEdit<'a> {
        BookEdit { book, by, what: "", expected: None }
    }
}

impl BookChange {
    /// Returns the configuration after the change, or before it, under the present name. `None` stands for the time before
    /// the book.
    pub fn restored(&self, before: bool, present: &Book) -> Option<Book> {
        let book = if before { self.before.as_ref()? } else { &self.after };
        Some(Book { name: present.name.clone(), ..book.clone() })
    }
}

impl Book {
    /// Returns the version of the configuration: equal texts for equal configurations.
    pub fn version(&self) -> String {
        // A book has texts and lists only, so this does not fail.
        let text = serde_json::to_vec(self).unwrap_or_default();
        hex(&Sha256::digest(text)[..12])
    }
}
