//! Olog's entries: the JSON of its REST API, such as the answer of `/Olog/logs/search`.
//!
//! The files of entries are not part of that JSON. They are looked for in a folder, as `ID/NAME` (the way of Olog's
//! addresses), or under the id of the attachment.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    date,
    foreign::{ForeignEntry, ForeignFile, ForeignSource, SourceError, SourceFault},
    json_items::{each, list, number, text},
};
use crate::{attachment::plain_name, book::AttributeKind, entry::Encoding};

/// The property that groups entries into threads.
const GROUP: &str = "Log Entry Group";

/// A file with Olog's entries.
pub struct Olog {
    /// The JSON file.
    pub file: PathBuf,
    /// The folder with the files of entries.
    pub files: Option<PathBuf>,
}

/// Converts an entry of Olog.
pub fn entry(place: String, log: &Value) -> Result<ForeignEntry, String> {
    let id = number(log, "id").filter(|id| *id > 0).ok_or("'id' is not a positive number: left out")?;
    let mut entry = ForeignEntry { key: id.to_string(), id: u32::try_from(id).ok(), place, ..ForeignEntry::default() };
    entry.set_by(&text(log, "owner").unwrap_or_default());
    let created = match (&log["createdDate"], number(log, "createdDate")) {
        (_, Some(milliseconds)) => date::of_milliseconds(milliseconds),
        (Value::String(text), _) => date::parse(text),
        _ => None,
    };
    entry.date = Some(created.ok_or("'createdDate' is not a time in milliseconds: left out")?);
    // `source` is the text with its marks; `description` the same without them.
    let (source, description) = (text(log, "source").unwrap_or_default(), text(log, "description").unwrap_or_default());
    (entry.encoding, entry.text) =
        if source.trim().is_empty() { (Encoding::Plain, description) } else { (Encoding::Markdown, source) };
    entry.add("Author", &entry.by.clone());
    for (name, member) in [("Subject", "title"), ("Level", "level")] {
        entry.add(name, &text(log, member).unwrap_or_default());
    }
    for (name, member) in [("Logbooks", "logbooks"), ("Tags", "tags")] {
        list(log, member).for_each(|one| entry.add(name, &text(one, "name").unwrap_or_default()));
    }
    for property in list(log, "properties") {
        let name = text(property, "name").unwrap_or_default();
        for attribute in list(property, "attributes") {
            let (of, value) = (text(attribute, "name").unwrap_or_default(), text(attribute, "value").unwrap_or_default());
            entry.add(&format!("{name} {of}"), &value);
        }
    }
    for event in list(log, "events") {
        if let (Some(name), Some((time, _))) = (text(event, "name"), number(event, "instant").and_then(date::of_milliseconds)) {
            entry.add(&format!("Event {name}"), &time.to_rfc3339());
        }
    }
    for attachment in list(log, "attachments") {
        let name = text(attachment, "filename").unwrap_or_default();
        let attached = text(attachment, "id").unwrap_or_default();
        let addresses = if attached.is_empty() { vec![] } else { vec![format!("attachment/{attached}")] };
        entry.files.push(ForeignFile { place: format!("{id}/{attached}"), name, sha: None, addresses });
    }
    Ok(entry)
}

/// Returns the id of the group of an entry.
fn group(log: &Value) -> Option<String> {
    let of = list(log, "properties").find(|property| text(property, "name").as_deref() == Some(GROUP))?;
    list(of, "attributes").find(|attribute| text(attribute, "name").as_deref() == Some("id")).and_then(|id| text(id, "value"))
}

impl ForeignSource for Olog {
    fn path(&self) -> PathBuf {
        self.file.clone()
    }

    fn name(&self) -> &'static str {
        "olog"
    }

    fn kinds(&self) -> &'static [(&'static str, AttributeKind)] {
        &[("Tags", AttributeKind::Tags), ("Logbooks", AttributeKind::Tags)]
    }

    fn each(
        &self,
        take: &mut dyn FnMut(Result<ForeignEntry, SourceFault>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        // The first entry of a group, by its number, begins the thread of the group.
        let mut groups: std::collections::HashMap<String, i64> = std::collections::HashMap::new();
        each(&self.file, "logs", &mut |_, log| {
            if let (Some(group), Some(id)) = (group(&log), number(&log, "id")) {
                let first = groups.entry(group).or_insert(id);
                *first = id.min(*first);
            }
            Ok(true)
        })?;
        each(&self.file, "logs", &mut |place, log| {
            let first = group(&log).and_then(|group| groups.get(&group).copied());
            let read = entry(place.clone(), &log).map(|mut entry| {
                entry.parent = first.map(|first| first.to_string()).filter(|first| *first != entry.key);
                entry
            });
            take(read.map_err(|what| SourceFault { file: self.file.clone(), place, what }))
        })
    }

    fn open<'a>(&'a self, file: &ForeignFile) -> Result<Box<dyn Read + 'a>, String> {
        let folder = self.files.as_deref().ok_or("its bytes are not in the JSON; name their folder (--files DIR)")?;
        let (id, attached) = file.place.split_once('/').unwrap_or((&file.place, ""));
        open_one(folder, &[&[id, &plain_name(&file.name)], &[&plain_name(attached)], &[&plain_name(&file.name)]])
    }
}

/// Opens the first of some files of a folder that exists. Each is given by the parts of its path, which are plain names.
pub(super) fn open_one<'a>(folder: &Path, candidates: &[&[&str]]) -> Result<Box<dyn Read + 'a>, String> {
    let mut tried = Vec::new();
    for parts in candidates {
        if parts.iter().any(|part| part.is_empty() || matches!(*part, "." | ".." | "attachment") || part.contains(['/', '\\'])) {
            continue;
        }
        let path = parts.iter().fold(folder.to_owned(), |path, part| path.join(part));
        // A link may lead out of the folder.
        let is_file = std::fs::symlink_metadata(&path).is_ok_and(|file| file.is_file());
        match File::open(&path) {
            Ok(file) if is_file => return Ok(Box::new(file)),
            _ => tried.push(parts.join("/")),
        }
    }
    Err(format!("no file is at {} in {}", tried.join(" or "), folder.display()))
}
