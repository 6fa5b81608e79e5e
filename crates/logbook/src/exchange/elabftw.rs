//! eLabFTW's experiments and resources: the JSON of its export and of its API, and its CSV. Its `.eln` archives are
//! read by [`super::eln`].

use std::{io::Read, path::PathBuf};

use serde_json::Value;

use super::{
    csv_table, date,
    foreign::{ForeignEntry, ForeignFile, ForeignSource, SourceError, SourceFault},
    json_items::{each, list, number, text},
    olog::open_one,
};
use crate::{attachment::plain_name, book::AttributeKind, entry::Encoding};

/// A file of eLabFTW.
pub struct Elabftw {
    /// The JSON or CSV file.
    pub file: PathBuf,
    /// The folder with the uploads of entries.
    pub files: Option<PathBuf>,
    /// True if the file is CSV.
    pub is_csv: bool,
}

/// Members that become attributes of another name.
const NAMED: [(&str, &str); 6] = [
    ("title", "Subject"),
    ("category_title", "Category"),
    ("category", "Category"),
    ("status_title", "Status"),
    ("rating", "Rating"),
    ("elabid", "eLabFTW id"),
];

/// Converts an experiment or a resource of the JSON. Its comments follow as replies.
pub fn entries(place: &str, item: &Value) -> Result<Vec<ForeignEntry>, String> {
    let id = number(item, "id");
    let key = text(item, "elabid").filter(|key| !key.is_empty()).or_else(|| id.map(|id| format!("id {id}")));
    let key = key.ok_or("it has neither 'elabid' nor 'id': left out")?;
    let mut entry = ForeignEntry { key: key.clone(), place: place.to_owned(), ..ForeignEntry::default() };
    entry.id = id.and_then(|id| u32::try_from(id).ok());
    let by = text(item, "fullname").unwrap_or_else(|| {
        let part = |name| text(item, name).unwrap_or_default();
        format!("{} {}", part("firstname"), part("lastname"))
    });
    entry.set_by(&by);
    let created = ["created_at", "date"].iter().find_map(|name| date_of(&text(item, name)?));
    entry.date = Some(created.ok_or("neither 'created_at' nor 'date' is a time: left out")?);
    entry.text = text(item, "body").unwrap_or_default();
    entry.encoding = if number(item, "content_type") == Some(2) { Encoding::Markdown } else { Encoding::Html };
    entry.add("Author", &entry.by.clone());
    for (member, name) in NAMED {
        entry.add(name, &text(item, member).unwrap_or_default());
    }
    match &item["tags"] {
        Value::String(tags) => tags.split('|').for_each(|tag| entry.add("Tags", tag)),
        _ => list(item, "tags").for_each(|tag| entry.add("Tags", tag.as_str().unwrap_or_default())),
    }
    let metadata = match &item["metadata"] {
        Value::String(json) => serde_json::from_str(json).unwrap_or_else(|error| {
            entry.faults.push(format!("'metadata' is not JSON ({error}): left out"));
            Value::Null
        }),
        other => other.clone(),
    };
    for (name, field) in metadata["extra_fields"].as_object().into_iter().flatten() {
        match &field["value"] {
            Value::Array(values) => values.iter().for_each(|value| entry.add(name, value.as_str().unwrap_or_default())),
            _ => entry.add(name, &text(field, "value").unwrap_or_default()),
        }
    }
    for upload in list(item, "uploads") {
        let long = text(upload, "long_name").unwrap_or_default();
        let sha = text(upload, "hash").and_then(|hash| hash.try_into().ok());
        let addresses = if long.is_empty() { vec![] } else { vec![format!("app/download.php?f={long}")] };
        entry.files.push(ForeignFile { name: text(upload, "real_name").unwrap_or_default(), place: long, sha, addresses });
    }
    let mut all = vec![entry];
    for (at, comment) in list(item, "comments").enumerate() {
        let place = format!("{place}/comments/{at}");
        let created = text(comment, "created_at").and_then(|created| date_of(&created));
        let number = text(comment, "id").unwrap_or_else(|| at.to_string());
        let parent = Some(key.clone());
        let mut reply = ForeignEntry { key: format!("{key} comment {number}"), parent, place, ..ForeignEntry::default() };
        reply.date = created.or(all[0].date);
        reply.set_by(&text(comment, "fullname").unwrap_or_default());
        reply.text = text(comment, "comment").unwrap_or_default();
        reply.encoding = Encoding::Html;
        reply.add("Author", &reply.by.clone());
        all.push(reply);
    }
    Ok(all)
}

/// Reads a date, also one of eight digits as in old exports.
fn date_of(text: &str) -> Option<(tampu_types::Time, i16)> {
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return date::parse(&format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]));
    }
    date::parse(text)
}

/// Converts a line of the CSV. Columns without a known name become attributes.
pub fn row(line: u64, names: &[String], values: &[String]) -> Result<ForeignEntry, String> {
    let column = |known: &str| {
        let at = names.iter().position(|name| name.trim().eq_ignore_ascii_case(known))?;
        values.get(at).map(|value| value.trim()).filter(|value| !value.is_empty())
    };
    let key = column("elabid").map(str::to_owned).or_else(|| column("id").map(|id| format!("id {id}")));
    let key = key.ok_or("it has neither 'elabid' nor 'id': left out")?;
    let mut entry = ForeignEntry { key, place: format!("line {line}"), ..ForeignEntry::default() };
    entry.id = column("id").and_then(|id| id.parse().ok());
    let author = ["fullname", "author", "userid"].iter().find_map(|name| column(name));
    entry.set_by(author.unwrap_or_default());
    let created = ["created_at", "date", "timestamp"].iter().find_map(|name| date_of(column(name)?));
    entry.date = Some(created.ok_or("neither 'created_at' nor 'date' is a time: left out")?);
    let body = ["body", "content", "text"].iter().find_map(|name| column(name)).unwrap_or_default();
    entry.text = body.to_owned();
    entry.encoding = if body.contains('<') { Encoding::Html } else { Encoding::Plain };
    entry.add("Author", &entry.by.clone());
    for (name, value) in names.iter().zip(values) {
        let lower = name.trim().to_ascii_lowercase();
        match lower.as_str() {
            "id" | "date" | "created_at" | "timestamp" | "body" | "content" | "text" | "fullname" | "author" | "userid" => {}
            "tags" => value.split(['|', ',']).for_each(|tag| entry.add("Tags", tag)),
            lower => {
                let known = NAMED.iter().find(|(member, _)| *member == lower);
                entry.add(known.map_or(name.trim(), |(_, known)| known), value);
            }
        }
    }
    Ok(entry)
}

impl ForeignSource for Elabftw {
    fn path(&self) -> PathBuf {
        self.file.clone()
    }

    fn name(&self) -> &'static str {
        "elabftw"
    }

    fn kinds(&self) -> &'static [(&'static str, AttributeKind)] {
        &[("Tags", AttributeKind::Tags)]
    }

    fn each(
        &self,
        take: &mut dyn FnMut(Result<ForeignEntry, SourceFault>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        let fault = |place: String, what: String| SourceFault { file: self.file.clone(), place, what };
        if self.is_csv {
            return csv_table::each(&self.file, &mut |line, names, values| {
                take(row(line, names, values).map_err(|what| fault(format!("line {line}"), what)))
            });
        }
        each(&self.file, "items", &mut |place, item| match entries(&place, &item) {
            Err(what) => take(Err(fault(place, what))),
            Ok(all) => {
                for entry in all {
                    if !take(Ok(entry))? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
        })
    }

    fn open<'a>(&'a self, file: &ForeignFile) -> Result<Box<dyn Read + 'a>, String> {
        let folder = self.files.as_deref().ok_or("its bytes are not in the file; name their folder (--files DIR)")?;
        // eLabFTW stores uploads in folders of two digits.
        let (first, rest) = file.place.split_once('/').unwrap_or(("", &file.place));
        open_one(folder, &[&[first, rest], &[&plain_name(rest)], &[&plain_name(&file.name)]])
    }
}
