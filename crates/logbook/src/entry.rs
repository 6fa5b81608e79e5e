//! An entry: who wrote what when, in which book, as an answer to what.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use tampu_types::Time;

use crate::{
    attachment::Attachment,
    book::{EntryAttribute, Invalid, check_said, same_name},
};

/// Bytes of an entry's text.
pub const MAX_TEXT: usize = 16 << 20;
/// Attachments of an entry.
pub const MAX_ATTACHMENTS: usize = 1000;
/// Links of an entry.
pub const MAX_LINKS: usize = 1000;
/// Minutes that a zone is east or west of UTC.
pub const MAX_ZONE: u16 = 24 * 60;

/// Where an entry is: its book, and its number there, which is never given to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EntryRef {
    /// The book's name.
    pub book: String,
    /// From 1.
    pub id: u32,
}

impl EntryRef {
    /// This entry of this book.
    pub fn new(book: &str, id: u32) -> EntryRef {
        EntryRef { book: book.to_owned(), id }
    }
}

impl fmt::Display for EntryRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.book, self.id)
    }
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Encoding {
    /// CommonMark, with tables and the like.
    #[default]
    Markdown,
    /// As it stands.
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

/// Why a text names no encoding.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no encoding: write markdown, plain, elcode or html")]
pub struct BadEncoding(pub String);

impl FromStr for Encoding {
    type Err = BadEncoding;

    fn from_str(text: &str) -> Result<Encoding, BadEncoding> {
        let found = Encoding::ALL.into_iter().find(|encoding| encoding.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| BadEncoding(text.to_owned()))
    }
}

/// What an entry can point at beside other entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
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
}

impl LinkKind {
    /// As it is written before the colon.
    pub const fn name(self) -> &'static str {
        match self {
            LinkKind::Record => "record",
            LinkKind::Event => "event",
            LinkKind::Transfer => "transfer",
            LinkKind::Run => "run",
        }
    }
}

/// A typed link, written `run:80123`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// What it points at.
    pub kind: LinkKind,
    /// Which one.
    pub target: String,
}

/// Why a text is no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no link: write record:ID, event:ATTRIBUTE, transfer:ID or run:NUMBER, in one line of at most 1024 bytes")]
pub struct BadLink(pub String);

impl FromStr for Link {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Link, BadLink> {
        let bad = || BadLink(text.to_owned());
        let (kind, target) = text.split_once(':').ok_or_else(bad)?;
        let kinds = [LinkKind::Record, LinkKind::Event, LinkKind::Transfer, LinkKind::Run];
        let kind = kinds.into_iter().find(|known| known.name() == kind).ok_or_else(bad)?;
        let link = Link { kind, target: target.to_owned() };
        if link.is_sound() { Ok(link) } else { Err(bad()) }
    }
}

impl Link {
    fn is_sound(&self) -> bool {
        !self.target.trim().is_empty() && self.target.len() <= 1024 && !self.target.chars().any(char::is_control)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.target)
    }
}

/// What a person writes: everything of an entry that can be edited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Content {
    /// What it says about itself, in the book's order.
    pub attributes: Vec<EntryAttribute>,
    /// How the text is written.
    #[serde(default)]
    pub encoding: Encoding,
    /// The text.
    pub text: String,
    /// Files.
    #[serde(default)]
    pub attachments: Vec<Attachment>,
    /// What it speaks of.
    #[serde(default)]
    pub links: Vec<Link>,
}

impl Content {
    /// The attribute of this name.
    pub fn attribute(&self, name: &str) -> Option<&EntryAttribute> {
        self.attributes.iter().find(|attribute| same_name(&attribute.name, name))
    }

    /// What holds for any entry, whatever its book.
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

/// Whether a zone can be one: a day east or west of UTC at most.
pub fn check_zone(minutes: i16) -> Result<(), Invalid> {
    if minutes.unsigned_abs() <= MAX_ZONE { Ok(()) } else { Err(Invalid::Zone(minutes)) }
}

/// What is to become an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NewEntry {
    /// The book's name.
    pub book: String,
    /// What it answers, of the same book.
    #[serde(default)]
    pub parent: Option<u32>,
    /// What it says.
    #[serde(flatten)]
    pub content: Content,
    /// When it was written; now, if nothing is said.
    #[serde(default)]
    pub date: Option<Time>,
    /// The zone of the place, minutes east of UTC; kept and shown, never calculated with.
    #[serde(default)]
    pub zone: i16,
}

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where it is.
    #[serde(flatten)]
    pub at: EntryRef,
    /// When it was written.
    pub date: Time,
    /// The zone it was written in, minutes east of UTC.
    #[serde(default)]
    pub zone: i16,
    /// Who posted it: a login, or the name of a program.
    pub by: String,
    /// How often it was changed.
    pub revision: u32,
    /// When it was changed last.
    pub changed: Time,
    /// What it answers.
    pub parent: Option<u32>,
    /// The first entry of its thread; its own id if it is the first.
    pub thread: u32,
    /// What it says.
    #[serde(flatten)]
    pub content: Content,
}

/// What happened to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
    /// It was deleted; what it said is in the history.
    Deleted,
    /// It came from ELOG's files, or was changed there.
    Imported,
}

impl Change {
    /// Whether there was no such entry before.
    pub const fn is_coming(self) -> bool {
        matches!(self, Change::Posted | Change::Copied | Change::Moved)
    }
}

/// One step of an entry's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// From 0.
    pub number: u32,
    /// When.
    pub at: Time,
    /// Who.
    pub by: String,
    /// What was done.
    pub what: Change,
    /// What the entry said from then on.
    pub content: Content,
}

/// A place where an entry was and is no longer. Its id is given to nobody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// Where it was.
    #[serde(flatten)]
    pub at: EntryRef,
    /// When it went.
    pub gone: Time,
    /// Who took it away.
    pub by: String,
    /// Where it is now, if it was moved.
    pub moved_to: Option<EntryRef>,
}

/// Who is editing an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Who.
    pub by: String,
    /// From which computer.
    pub host: String,
    /// Since when.
    pub since: Time,
    /// When it ends by itself.
    pub until: Time,
}

/// What somebody has begun to write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// Its number; 0 is a new one.
    #[serde(default)]
    pub number: i64,
    /// Whose it is.
    pub owner: String,
    /// The book's name.
    pub book: String,
    /// The entry that is being edited.
    #[serde(default)]
    pub edits: Option<u32>,
    /// The entry that is being answered.
    #[serde(default)]
    pub parent: Option<u32>,
    /// When it was saved.
    pub saved: Time,
    /// What there is of it.
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
        for text in ["run:80123", "record:3f-1.4#7", "event:sr/vacuum/c01/pressure@2026-11-22T08:00:00", "transfer:a:b"] {
            assert_eq!(text.parse::<Link>().unwrap().to_string(), text);
        }
        for text in ["", "run", "run:", "run: ", "ship:7", "run:a\nb"] {
            assert!(text.parse::<Link>().is_err(), "{text:?}");
        }
    }
}
