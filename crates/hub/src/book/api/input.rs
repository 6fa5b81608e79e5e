//! What is sent: entries as programs write them, in the forms that are easy to write, and made into those of the store.

use std::collections::BTreeMap;

use serde::Deserialize;
use tampu_logbook::{
    attachment::{Attachment, Sha, Upload, plain_name},
    book::EntryAttribute,
    entry::{Content, Encoding, Link},
    store::StoreError,
};
use tampu_types::Time;

use super::Call;
use crate::book::{now, problem::Problem};

/// How far ahead of this computer's clock the date of an entry may be, ns.
const AHEAD: i64 = 300 * 1_000_000_000;

/// What an entry says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ContentIn {
    attributes: AttributesIn,
    encoding: Encoding,
    text: String,
    attachments: Vec<AttachmentIn>,
    links: Vec<LinkIn>,
}

/// A new entry.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct EntryIn {
    #[serde(flatten)]
    content: serde_json::Map<String, serde_json::Value>,
    /// What it answers.
    pub parent: Option<u32>,
    /// When it was written.
    pub date: Option<Time>,
    /// The zone it was written in, minutes east of UTC.
    pub zone: i16,
}

impl EntryIn {
    /// What it says.
    pub fn content(&mut self) -> Result<ContentIn, Problem> {
        if self.date.is_some_and(|date| date.0 > now().0.saturating_add(AHEAD)) {
            return Err(Problem::bad("body date", "it is in the future"));
        }
        let content = serde_json::Value::Object(std::mem::take(&mut self.content));
        serde_json::from_value(content).map_err(|error| Problem::bad("body", error.to_string()))
    }
}

/// `[{"name": "Type", "values": ["Problem"]}]`, or `{"Type": "Problem", "System": ["RICH1", "HLT"]}`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AttributesIn {
    List(Vec<EntryAttribute>),
    Map(BTreeMap<String, Values>),
}

impl Default for AttributesIn {
    fn default() -> AttributesIn {
        AttributesIn::List(Vec::new())
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Several(Vec<String>),
}

/// `"run:80123"`, or `{"kind": "run", "target": "80123"}`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum LinkIn {
    /// As a text.
    Text(String),
    /// In parts.
    Parts(Link),
}

impl LinkIn {
    /// The link.
    pub fn link(self) -> Result<Link, Problem> {
        match self {
            LinkIn::Text(text) => text.parse(),
            LinkIn::Parts(link) => link.to_string().parse(),
        }
        .map_err(|error: tampu_logbook::entry::BadLink| Problem::bad("body links", error.to_string()))
    }
}

/// A file: one that was uploaded, by its SHA-256, or one that the entry has. What else an answer says of a file is taken and not looked at.
#[derive(Debug, Deserialize)]
struct AttachmentIn {
    name: String,
    #[serde(default)]
    sha: Option<Sha>,
}

/// Gives uploads to a store. One that refuses does not lose them: they wait to become an entry's again, so that who sent them need not send them
/// once more.
pub fn give<T>(
    call: &Call<'_>,
    uploads: Vec<Upload>,
    to: impl FnOnce(Vec<Upload>) -> Result<T, StoreError>,
) -> Result<T, Problem> {
    // Where the file system has no second names, a refused file has to be sent again.
    let again: Vec<Upload> = uploads.iter().filter_map(|upload| upload.again().ok()).collect();
    to(uploads).map_err(|error| {
        for upload in again {
            let _ = call.api.staging.keep(&call.by(), upload);
        }
        error.into()
    })
}

impl ContentIn {
    /// Whether it names files.
    pub fn has_files(&self) -> bool {
        !self.attachments.is_empty()
    }

    /// As the store wants it, with the files that are taken out of the staging. `before` is what the entry says so far: its files are its own.
    pub fn content(self, call: &Call<'_>, before: Option<&Content>) -> Result<(Content, Vec<Upload>), Problem> {
        let attributes = match self.attributes {
            AttributesIn::List(list) => list,
            AttributesIn::Map(map) => {
                let attribute = |(name, values): (String, Values)| match values {
                    Values::One(value) => EntryAttribute::new(&name, &value),
                    Values::Several(values) => EntryAttribute { name, values },
                };
                map.into_iter().map(attribute).collect()
            }
        };
        let links = self.links.into_iter().map(LinkIn::link).collect::<Result<Vec<_>, _>>()?;
        let mut content = Content { attributes, encoding: self.encoding, text: self.text, attachments: Vec::new(), links };
        content.check().map_err(StoreError::from)?;
        let (mut uploads, sender) = (Vec::<Upload>::new(), call.by());
        let own = before.map_or(&[][..], |before| &before.attachments);
        // Nothing is taken out of the staging before it is known that all is there.
        for file in &self.attachments {
            let is_own = own.iter().any(|known| known.sha == file.sha);
            if !is_own && !file.sha.as_ref().is_some_and(|sha| call.api.staging.has(&sender, sha)) {
                let detail = format!(
                    "the attachment '{}' was not uploaded by you, and the entry does not have it",
                    file.name.escape_debug()
                );
                let problem = Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, "no-upload", detail);
                return Err(problem.at("body attachments").help("POST /api/v1/uploads first, and give the sha it tells"));
            }
        }
        for file in self.attachments {
            let known = own.iter().find(|known| known.sha == file.sha && known.name == file.name);
            let known = known.or_else(|| own.iter().find(|known| known.sha == file.sha));
            let taken = uploads.iter().find(|upload| Some(upload.sha()) == file.sha.as_ref());
            let attachment = match (known, taken, &file.sha) {
                (Some(known), ..) => Attachment { name: plain_name(&file.name), ..known.clone() },
                (None, Some(upload), _) => upload.attachment(&file.name, now()),
                (None, None, Some(sha)) => match call.api.staging.take(&sender, sha) {
                    Some(upload) => {
                        let attachment = upload.attachment(&file.name, now());
                        uploads.push(upload);
                        attachment
                    }
                    None => return Err(StoreError::NoBlob(file.name).into()),
                },
                (None, None, None) => return Err(StoreError::NoBlob(file.name).into()),
            };
            content.attachments.push(attachment);
        }
        Ok((content, uploads))
    }
}
