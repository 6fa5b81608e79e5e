//! Entries: the content, its author, its date, its book, and the entry that it replies to.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tampu_types::Time;

use crate::{
    attachment::Attachment,
    book::{EntryAttribute, Invalid, check_said, same_name},
    schema::TimeText,
    signature::record::Signature,
};

pub use entry_ref::{BadEntryRef, EntryRef};

pub mod entry_ref;

/// The highest id that an import may bring, that of a C `int` as in ELOG. A book with a higher one would soon have no
/// ids left.
pub const MAX_ID: u32 = i32::MAX as u32;
/// Bytes of an entry's text.
pub const MAX_TEXT: usize = 16 << 20;
/// Attachments of an entry.
pub const MAX_ATTACHMENTS: usize = 1000;
/// Links of an entry.
pub const MAX_LINKS: usize = 1000;
/// Minutes that a zone is east or west of UTC.
pub const MAX_ZONE: u16 = 24 * 60;

/// The markup of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// CommonMark, with tables and the like.
    #[default]
    Markdown,
    /// The text without markup.
    Plain,
    /// ELOG's tags in brackets.
    ElCode,
    /// HTML; shown only after it has been cleaned.
    Html,
}

impl Encoding {
    /// All there are.
    pub const ALL: [Encoding; 4] = [Encoding::Markdown, Encoding::Plain, Encoding::ElCode, Encoding::Html];

    /// As ELOG's files name it; `Markdown` is not known to ELOG.
    pub const fn name(self) -> &'static str {
        match self {
            Encoding::Markdown => "Markdown",
            Encoding::Plain => "plain",
            Encoding::ElCode => "ELCode",
            Encoding::Html => "HTML",
        }
    }
}

/// An error: the text names no encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown encoding '{0}'; use markdown, plain, elcode or html")]
pub struct BadEncoding(pub String);

impl FromStr for Encoding {
    type Err = BadEncoding;

    fn from_str(text: &str) -> Result<Encoding, BadEncoding> {
        let found = Encoding::ALL.into_iter().find(|encoding| encoding.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| BadEncoding(text.to_owned()))
    }
}

/// The kinds of targets of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LinkKind {
    /// A log record, by its id.
    Record,
    /// An event of an attribute, by the attribute's name, with `@` and a time where one is meant.
    Event,
    /// A bulk transfer, by its id.
    Transfer,
    /// A run, by its number or name.
    Run,
    /// Another entry, by its book and number.
    Entry,
}

impl LinkKind {
    /// As it is written before the colon.
    pub const fn name(self) -> &'static str {
        match self {
            LinkKind::Record => "record",
            LinkKind::Event => "event",
            LinkKind::Transfer => "transfer",
            LinkKind::Run => "run",
            LinkKind::Entry => "entry",
        }
    }
}

/// A typed link, written `run:80123`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The type of the target.
    pub kind: LinkKind,
    /// The target's id or name.
    pub target: String,
}

/// An error: the text is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid link '{0}'; write record:ID, event:ATTRIBUTE, transfer:ID, run:NUMBER or entry:BOOK/NUMBER, in one line of at most 1024 bytes"
)]
pub struct BadLink(pub String);

impl FromStr for Link {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Link, BadLink> {
        let bad = || BadLink(text.to_owned());
        let (kind, target) = text.split_once(':').ok_or_else(bad)?;
        let kinds = [LinkKind::Record, LinkKind::Event, LinkKind::Transfer, LinkKind::Run, LinkKind::Entry];
        let kind = kinds.into_iter().find(|known| known.name() == kind).ok_or_else(bad)?;
        let link = Link { kind, target: target.to_owned() };
        if link.is_sound() { Ok(link) } else { Err(bad()) }
    }
}

impl Link {
    fn is_sound(&self) -> bool {
        let is_text = !self.target.trim().is_empty() && self.target.len() <= 1024 && !self.target.chars().any(char::is_control);
        is_text && (self.kind != LinkKind::Entry || self.target.parse::<EntryRef>().is_ok())
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.target)
    }
}

/// The part of an entry that people write and edit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Content {
    /// The attributes, in the book's order.
    pub attributes: Vec<EntryAttribute>,
    /// The markup of the text.
    #[serde(default)]
    pub encoding: Encoding,
    /// The text in its markup, at most [`MAX_TEXT`] bytes.
    pub text: String,
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// Links to log records, events, transfers, runs and other entries.
    #[serde(default)]
    pub links: Vec<Link>,
}

impl Content {
    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&EntryAttribute> {
        self.attributes.iter().find(|attribute| same_name(&attribute.name, name))
    }

    /// Removes all attributes but these, for a caller from whom the others are hidden. `None` stands for all.
    pub fn keep_shown(&mut self, shown: Option<&[String]>) {
        if let Some(shown) = shown {
            self.attributes.retain(|said| shown.iter().any(|name| same_name(name, &said.name)));
        }
    }

    /// Returns about how many bytes it takes in memory.
    pub fn bytes(&self) -> usize {
        let attribute = |said: &EntryAttribute| said.name.len() + said.values.iter().map(|value| value.len() + 24).sum::<usize>();
        let attributes: usize = self.attributes.iter().map(attribute).sum();
        let links: usize = self.links.iter().map(|link| link.target.len() + 32).sum();
        let files: usize = self.attachments.iter().map(|file| file.name.len() + 160).sum();
        self.text.len() + attributes + links + files
    }

    /// Checks the rules for any entry, independent of its book.
    pub fn check(&self) -> Result<(), Invalid> {
        check_said(&self.attributes)?;
        for (what, is, most) in [
            ("bytes of text", self.text.len(), MAX_TEXT),
            ("attachments", self.attachments.len(), MAX_ATTACHMENTS),
            ("links", self.links.len(), MAX_LINKS),
        ] {
            if is > most {
                return Err(Invalid::TooLarge(format!("{is} {what}; at most {most}")));
            }
        }
        if let Some(attachment) = self.attachments.iter().find(|attachment| !attachment.is_sound()) {
            return Err(Invalid::AttachmentName(attachment.name.clone()));
        }
        match self.links.iter().find(|link| !link.is_sound()) {
            Some(link) => Err(Invalid::TooLarge(BadLink(link.to_string()).to_string())),
            None => Ok(()),
        }
    }
}

/// Checks a time zone, in minutes: at most a day east or west of UTC.
pub fn check_zone(minutes: i16) -> Result<(), Invalid> {
    if minutes.unsigned_abs() <= MAX_ZONE { Ok(()) } else { Err(Invalid::Zone(minutes)) }
}

/// An entry to post.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NewEntry {
    /// The book's name.
    pub book: String,
    /// The entry of the same book that it replies to.
    #[serde(default)]
    pub parent: Option<u32>,
    #[serde(flatten)]
    pub content: Content,
    /// The date of the entry; the time of posting by default.
    #[serde(default, with = "tampu_types::time::rfc3339::stored_option")]
    pub date: Option<Time>,
    /// The zone of the place, minutes east of UTC; kept and shown, never calculated with.
    #[serde(default)]
    pub zone: i16,
}

/// A posted entry, in its current revision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    #[serde(flatten)]
    pub at: EntryRef,
    /// The date of the entry.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub date: Time,
    /// The zone it was written in, minutes east of UTC.
    #[serde(default)]
    pub zone: i16,
    /// The poster: a login, or the name of a program.
    pub by: String,
    /// The number of changes so far.
    pub revision: u32,
    /// The time of the last change.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub changed: Time,
    /// The number of the entry that this one replies to.
    pub parent: Option<u32>,
    /// The first entry of its thread; its own id if it is the first.
    pub thread: u32,
    #[serde(flatten)]
    pub content: Content,
    /// The records of its signatures, also those of earlier revisions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Signature>,
}

impl Entry {
    /// Removes all attributes but these, for a caller from whom the others are hidden. `None` stands for all. The digests
    /// of signed contents go as well: a guess of a hidden value could be tried on them.
    pub fn keep_shown(&mut self, shown: Option<&[String]>) {
        self.content.keep_shown(shown);
        if shown.is_some() {
            self.signatures.iter_mut().for_each(Signature::withhold);
        }
    }
}

/// The kinds of changes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It was posted.
    Posted,
    /// Its content was changed.
    Edited,
    /// It was made from another entry.
    Copied,
    /// It came here from another place.
    Moved,
    /// The entry was deleted; its content stays in the history.
    Deleted,
    /// It came from ELOG's files, or was changed there.
    Imported,
    /// Texts or files of it were removed for good, also from its history.
    Purged,
}

impl Change {
    /// Returns whether the change adds an entry to the book.
    pub const fn is_coming(self) -> bool {
        matches!(self, Change::Posted | Change::Copied | Change::Moved)
    }
}

/// One step of an entry's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revision {
    /// The revision's number, from 0.
    pub number: u32,
    /// The time of the change.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub at: Time,
    /// The author of the change.
    pub by: String,
    pub what: Change,
    /// The content after the change; it is empty if it was purged.
    pub content: Content,
    /// A remark about a purge: what was purged and why, or that this content was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The former place of an entry that was deleted or moved. Its id is never reused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The entry's former place.
    #[serde(flatten)]
    pub at: EntryRef,
    /// The time of deletion or move.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    pub gone: Time,
    /// The user who deleted or moved it.
    pub by: String,
    /// The new place of an entry that was moved.
    pub moved_to: Option<EntryRef>,
}

/// A lock of an entry: one user edits it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// The user who edits.
    pub by: String,
    /// From which computer.
    pub host: String,
    /// The time at which editing began.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub since: Time,
    /// The time at which the lock expires.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub until: Time,
}

/// An entry that a user has begun to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Draft {
    /// Its number; 0 is a new one.
    #[serde(default, with = "tampu_types::id_text::stored")]
    #[schemars(with = "String")]
    pub number: i64,
    /// The login of the user.
    pub owner: String,
    /// The book's name.
    pub book: String,
    /// The entry that is being edited.
    #[serde(default)]
    pub edits: Option<u32>,
    /// The entry that is being answered.
    #[serde(default)]
    pub parent: Option<u32>,
    /// The time of the last save.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    #[schemars(with = "TimeText")]
    pub saved: Time,
    /// The content so far.
    #[serde(flatten)]
    pub content: Content,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attachments_lead_nowhere_and_zones_are_on_earth() {
        let named = |name: &str, elog: Option<&str>| {
            let elog = elog.map(str::to_owned);
            let attachment = Attachment { name: name.to_owned(), sha: None, size: 0, added: Time(0), elog };
            Content { attachments: vec![attachment], ..Content::default() }.check().is_ok()
        };
        assert!(named("trend plot.png", None) && named("bericht_ä.txt", Some("080910_002050_x.txt")));
        for name in ["", "..", "a/b", "a\\b", "C:x", "a\nb", " a", &"x".repeat(300)] {
            assert!(!named(name, None), "{name:?}");
        }
        assert!(!named("a", Some("080910_002050_a\n$@MID@$: 1")));
        assert!(
            check_zone(-720).is_ok() && check_zone(1440).is_ok() && check_zone(1441).is_err() && check_zone(i16::MIN).is_err()
        );
    }

    #[test]
    fn links_are_read_as_they_are_written() {
        for text in [
            "run:80123",
            "record:3f-1.4#7",
            "event:sr/vacuum/c01/pressure@2026-11-22T08:00:00",
            "transfer:a:b",
            "entry:Shift/Night/12",
        ] {
            assert_eq!(text.parse::<Link>().unwrap().to_string(), text);
        }
        for text in ["", "run", "run:", "run: ", "ship:7", "run:a\nb", "entry:Shift", "entry:Shift/0", "entry:/7"] {
            assert!(text.parse::<Link>().is_err(), "{text:?}");
        }
    }
}
