//! SciLog's snippets: the JSON of its REST API. Its `.eln` archives are read by [`super::eln`].

use std::{io::Read, path::PathBuf};

use serde_json::Value;

use super::{
    date,
    foreign::{ForeignEntry, ForeignFile, ForeignSource, SourceError, SourceFault},
    json_items::{each, list, text},
    olog::open_one,
};
use crate::{attachment::plain_name, book::AttributeKind, entry::Encoding};

/// A file with SciLog's snippets.
pub struct SciLog {
    /// The JSON file.
    pub file: PathBuf,
    /// The folder with the files of snippets, as `ID.EXTENSION`.
    pub files: Option<PathBuf>,
}

/// Converts a snippet; `None` for one that is no message, such as the logbook itself. `above` is the key of the snippet
/// that holds it.
pub fn entry(place: String, snippet: &Value, above: Option<&str>) -> Result<Option<ForeignEntry>, String> {
    let kind = text(snippet, "snippetType").unwrap_or_default();
    if !matches!(kind.as_str(), "" | "paragraph" | "comment" | "message") || snippet["deleted"] == Value::Bool(true) {
        return Ok(None);
    }
    let key = text(snippet, "id").or_else(|| text(snippet, "_id")).ok_or("it has no 'id': left out")?;
    let mut entry = ForeignEntry { key, place, encoding: Encoding::Html, ..ForeignEntry::default() };
    entry.set_by(&text(snippet, "createdBy").unwrap_or_default());
    let created = text(snippet, "createdAt").and_then(|created| date::parse(&created));
    entry.date = Some(created.ok_or("'createdAt' is not a time: left out")?);
    entry.text = text(snippet, "textcontent").unwrap_or_default();
    let is_comment = text(snippet, "linkType").as_deref() == Some("comment") || kind == "comment";
    entry.parent = above.map(str::to_owned).or_else(|| text(snippet, "parentId").filter(|_| is_comment));
    entry.add("Author", &entry.by.clone());
    list(snippet, "tags").for_each(|tag| entry.add("Tags", tag.as_str().unwrap_or_default()));
    for file in list(snippet, "files") {
        let id = text(file, "fileId").or_else(|| text(file, "_id")).unwrap_or_default();
        let extension = text(file, "fileExtension").unwrap_or_default();
        let extension = extension.rsplit('/').next().unwrap_or_default();
        let stored = if extension.is_empty() { id.clone() } else { format!("{id}.{extension}") };
        let name = text(file, "filename").or_else(|| text(file, "filepath")).unwrap_or_else(|| stored.clone());
        let hash = text(file, "fileHash").unwrap_or_default();
        let addresses = if hash.is_empty() { vec![] } else { vec![format!("file:{hash}")] };
        entry.files.push(ForeignFile { name: plain_name(&name), place: stored, sha: None, addresses });
    }
    Ok(Some(entry))
}

impl SciLog {
    /// Passes a snippet and those within it on.
    fn pass(
        &self,
        (place, snippet, above): (String, &Value, Option<&str>),
        take: &mut dyn FnMut(Result<ForeignEntry, SourceFault>) -> Result<bool, SourceError>,
    ) -> Result<bool, SourceError> {
        let read = entry(place.clone(), snippet, above);
        let key = read.as_ref().ok().and_then(|entry| entry.as_ref().map(|entry| entry.key.clone()));
        let go_on = match read {
            Ok(None) => true,
            Ok(Some(entry)) => take(Ok(entry))?,
            Err(what) => take(Err(SourceFault { file: self.file.clone(), place: place.clone(), what }))?,
        };
        for (at, inner) in list(snippet, "subsnippets").enumerate() {
            if !go_on || !self.pass((format!("{place}/subsnippets/{at}"), inner, key.as_deref()), take)? {
                return Ok(false);
            }
        }
        Ok(go_on)
    }
}

impl ForeignSource for SciLog {
    fn path(&self) -> PathBuf {
        self.file.clone()
    }

    fn name(&self) -> &'static str {
        "scilog"
    }

    fn kinds(&self) -> &'static [(&'static str, AttributeKind)] {
        &[("Tags", AttributeKind::Tags)]
    }

    fn each(
        &self,
        take: &mut dyn FnMut(Result<ForeignEntry, SourceFault>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        each(&self.file, "snippets", &mut |place, snippet| self.pass((place, &snippet, None), take))
    }

    fn open<'a>(&'a self, file: &ForeignFile) -> Result<Box<dyn Read + 'a>, String> {
        let folder = self.files.as_deref().ok_or("its bytes are not in the JSON; name their folder (--files DIR)")?;
        open_one(folder, &[&[&plain_name(&file.place)], &[&plain_name(&file.name)]])
    }
}
