//! Entries of other logbooks, as their exports describe them.

use std::{
    fmt,
    io::{self, Read},
    path::PathBuf,
};

use serde::Serialize;
use tampu_types::Time;

use crate::{
    attachment::Sha,
    book::{AttributeKind, EntryAttribute, MAX_ATTRIBUTES, MAX_NAME, MAX_VALUE, same_name},
    entry::{Encoding, Link},
    store::StoreError,
};

/// Characters of a poster's name.
const MAX_BY: usize = 128;

/// The reason for the end of an import.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The file could not be read.
    #[error("{}: {error}", .path.display())]
    Io { path: PathBuf, error: io::Error },
    /// The file has another format, or its parts do not fit together.
    #[error("{}: {why}", .path.display())]
    Format {
        path: PathBuf,
        /// The reason, with the place in the file.
        why: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An error in one entry of a source, and the action that the import took.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceFault {
    /// The source's file.
    pub file: PathBuf,
    /// The place in the file: a JSON pointer, or a line.
    pub place: String,
    /// The error and the action.
    pub what: String,
}

impl fmt::Display for SourceFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.file.display(), self.place, self.what)
    }
}

/// A file of a foreign entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignFile {
    /// The file's name.
    pub name: String,
    /// The file's place in the source, for [`ForeignSource::open`].
    pub place: String,
    /// The digest that the source states.
    pub sha: Option<Sha>,
    /// The addresses by which the text of the entry refers to the file.
    pub addresses: Vec<String>,
}

/// An entry of another logbook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignEntry {
    /// The identity of the entry, which is the same in every export of its logbook.
    pub key: String,
    /// The key of the entry that it replies to.
    pub parent: Option<String>,
    /// The number it should have, if that number is free.
    pub id: Option<u32>,
    /// The name of the poster.
    pub by: String,
    /// The date, and the zone in minutes east of UTC.
    pub date: Option<(Time, i16)>,
    /// The attributes with their values.
    pub attributes: Vec<EntryAttribute>,
    /// The markup of the text.
    pub encoding: Encoding,
    /// The text in its markup.
    pub text: String,
    /// The links to records, events, transfers, runs and other entries.
    pub links: Vec<Link>,
    /// The files of the entry.
    pub files: Vec<ForeignFile>,
    /// The place of the entry in the source: a JSON pointer, or a line.
    pub place: String,
    /// The errors so far, and the actions.
    pub faults: Vec<String>,
}

/// A source of foreign entries.
pub trait ForeignSource {
    /// The source's file.
    fn path(&self) -> PathBuf;
    /// The name of the source's program, which is part of the keys.
    fn name(&self) -> &'static str;
    /// The types of attributes that are not text.
    fn kinds(&self) -> &'static [(&'static str, AttributeKind)];
    /// Passes all entries on. An entry that cannot be read is a fault. `take` returns false to end the pass.
    fn each(
        &self,
        take: &mut dyn FnMut(Result<ForeignEntry, SourceFault>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError>;
    /// Opens a file of an entry, or returns the reason why its bytes are missing.
    fn open<'a>(&'a self, file: &ForeignFile) -> Result<Box<dyn Read + 'a>, String>;
}

impl ForeignEntry {
    /// Adds a value to an attribute. Characters that no attribute can hold are removed, and reported.
    pub fn add(&mut self, name: &str, value: &str) {
        let safe_name = attribute_name(name);
        let (safe, is_changed) = attribute_value(value);
        if safe.is_empty() {
            return;
        }
        if is_changed {
            self.faults
                .push(format!("a value of '{safe_name}' was changed: line ends, control characters or its end are left out"));
        }
        let place = self.attributes.iter().position(|said| same_name(&said.name, &safe_name));
        match place {
            Some(place) if self.attributes[place].values.contains(&safe) => {}
            Some(place) => self.attributes[place].values.push(safe),
            None if self.attributes.len() >= MAX_ATTRIBUTES => {
                self.faults.push(format!("attribute '{safe_name}': an entry has at most {MAX_ATTRIBUTES}: left out"));
            }
            None => self.attributes.push(EntryAttribute { name: safe_name, values: vec![safe] }),
        }
    }

    /// Sets the poster.
    pub fn set_by(&mut self, name: &str) {
        let kept: String = name.chars().filter(|c| !c.is_control()).take(MAX_BY).collect();
        self.by = kept.trim().to_owned();
    }
}

/// Returns a name that an attribute can have.
fn attribute_name(name: &str) -> String {
    let kept: String = name
        .chars()
        .map(|c| if c.is_control() || c == ':' { ' ' } else { c })
        .take(MAX_NAME)
        .collect::<String>()
        .trim()
        .to_owned();
    // ELOG's files use these names for something else.
    let is_reserved = ["", "id", "text", "date", "encoding", "reply to", "locked by", "in reply to", "attachment"]
        .iter()
        .any(|reserved| same_name(reserved, &kept));
    if is_reserved { format!("{kept} of source").trim().to_owned() } else { kept }
}

/// Returns a value as one line, and true if it was changed in another way than at its ends.
fn attribute_value(value: &str) -> (String, bool) {
    let trimmed = value.trim();
    let mut out = String::with_capacity(trimmed.len().min(MAX_VALUE));
    let mut is_changed = false;
    for c in trimmed.chars() {
        if out.len() + c.len_utf8() > MAX_VALUE {
            return (out, true);
        }
        match c {
            '\n' | '\t' => {
                is_changed |= c == '\n';
                out.push(' ');
            }
            c if c.is_control() => is_changed = true,
            c => out.push(c),
        }
    }
    (out, is_changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_hold_what_a_logbook_can_hold() {
        let mut entry = ForeignEntry::default();
        for (name, value) in [("Tags", "a"), ("tags", "b"), ("Tags", "a"), ("ID", "7"), ("a:b", "x\n\u{7}y"), ("Empty", " \n")] {
            entry.add(name, value);
        }
        let said: Vec<(String, String)> =
            entry.attributes.iter().map(|said| (said.name.clone(), said.values.join("+"))).collect();
        let expected = [("Tags", "a+b"), ("ID of source", "7"), ("a b", "x y")];
        assert_eq!(said, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(entry.faults.len(), 1);
        assert!(attribute_value(&"ä".repeat(MAX_VALUE)).0.len() <= MAX_VALUE);
    }
}
