//! Entries in the JSON that programs send, and their conversion to the types of the store.
//!
//! A body is read into these types directly, each list with its limit. Rejected: JSON values in between, because a
//! malicious body could then take fifty times its own size in memory.

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use tampu_logbook::{
    attachment::{Attachment, Sha, Upload, plain_name},
    book::{EntryAttribute, MAX_ATTRIBUTES},
    entry::{Content, Encoding, Link, MAX_ATTACHMENTS, MAX_LINKS},
    schema::TimeText,
    store::StoreError,
};
use tampu_types::Time;

use super::call::Call;
use crate::{clock::now, http::problem::Problem};

/// Largest lead of an entry's date over this computer's clock, in nanoseconds.
const AHEAD: i64 = 300 * 1_000_000_000;
/// Values of one attribute.
const MAX_VALUES: usize = 1000;

/// The content of an entry, as a program sends it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Content")]
pub struct ContentIn {
    /// Attributes of the entry.
    pub attributes: AttributesIn,
    /// Encoding of the text.
    pub encoding: Encoding,
    /// Text of the entry.
    pub text: String,
    /// Files that were uploaded, or that the entry has.
    #[serde(deserialize_with = "at_most::<_, _, MAX_ATTACHMENTS>")]
    pub attachments: Vec<AttachmentIn>,
    /// Links to records, events, transfers, runs and other entries.
    #[serde(deserialize_with = "at_most::<_, _, MAX_LINKS>")]
    pub links: Vec<LinkIn>,
}

/// A new entry. Its content stands beside the other fields, and not in an object of its own.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "NewEntry")]
pub struct EntryIn {
    attributes: AttributesIn,
    encoding: Encoding,
    text: String,
    #[serde(deserialize_with = "at_most::<_, _, MAX_ATTACHMENTS>")]
    attachments: Vec<AttachmentIn>,
    #[serde(deserialize_with = "at_most::<_, _, MAX_LINKS>")]
    links: Vec<LinkIn>,
    parent: Option<u32>,
    #[serde(with = "tampu_types::time::rfc3339::option")]
    #[schemars(with = "Option<TimeText>")]
    date: Option<Time>,
    zone: i16,
}

/// A change of one of several entries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EntryEdit")]
pub struct EditIn {
    id: u32,
    /// The revision that was read.
    revision: u32,
    #[serde(default)]
    attributes: AttributesIn,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    text: String,
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_ATTACHMENTS>")]
    attachments: Vec<AttachmentIn>,
    #[serde(default, deserialize_with = "at_most::<_, _, MAX_LINKS>")]
    links: Vec<LinkIn>,
}

impl EditIn {
    /// Returns the entry's number, the revision that was read, and the new content.
    pub fn parts(self) -> (u32, u32, ContentIn) {
        let EditIn { id, revision, attributes, encoding, text, attachments, links } = self;
        (id, revision, ContentIn { attributes, encoding, text, attachments, links })
    }
}

/// The place of a new entry: thread, date and zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// The entry that it replies to.
    pub parent: Option<u32>,
    /// Date of the entry; without it the current time.
    pub date: Option<Time>,
    /// Zone of the date, in minutes east of UTC.
    pub zone: i16,
}

impl EntryIn {
    /// Splits the entry into its content and its place.
    pub fn parts(self) -> Result<(ContentIn, Standing), Problem> {
        let EntryIn { attributes, encoding, text, attachments, links, parent, date, zone } = self;
        if date.is_some_and(|date| date.0 > now().0.saturating_add(AHEAD)) {
            return Err(Problem::bad("body date", "the date is in the future"));
        }
        Ok((ContentIn { attributes, encoding, text, attachments, links }, Standing { parent, date, zone }))
    }
}

/// Reads a list of at most `MOST` elements.
pub fn at_most<'de, D: Deserializer<'de>, T: Deserialize<'de>, const MOST: usize>(from: D) -> Result<Vec<T>, D::Error> {
    struct List<T, const MOST: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST}")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(one) = all.next_element()? {
                if list.len() == MOST {
                    return Err(A::Error::invalid_length(MOST + 1, &self));
                }
                list.push(one);
            }
            Ok(list)
        }
    }

    from.deserialize_seq(List::<T, MOST>(PhantomData))
}

/// `[{"name": "Type", "values": ["Problem"]}]`, or `{"Type": "Problem", "System": ["RICH1", "HLT"]}`.
#[derive(Debug, Default)]
pub struct AttributesIn(Vec<EntryAttribute>);

impl AttributesIn {
    /// Returns the attributes.
    pub fn list(self) -> Vec<EntryAttribute> {
        self.0
    }
}

impl JsonSchema for AttributesIn {
    fn schema_name() -> Cow<'static, str> {
        "Attributes".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The form of answers, or {\"Type\": \"Problem\", \"System\": [\"RICH1\", \"HLT\"]}",
            "oneOf": [
                { "type": "array", "items": generator.subschema_for::<EntryAttribute>() },
                {
                    "type": "object",
                    "additionalProperties": { "oneOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] },
                },
            ],
        })
    }
}

impl<'de> Deserialize<'de> for AttributesIn {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<AttributesIn, D::Error> {
        struct Attributes;

        impl<'de> Visitor<'de> for Attributes {
            type Value = AttributesIn;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "at most {MAX_ATTRIBUTES} attributes, as {{\"Type\": \"Problem\"}} or [{{\"name\": \"Type\", \"values\": [\"Problem\"]}}]"
                )
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<AttributesIn, A::Error> {
                #[derive(Deserialize)]
                struct One {
                    name: String,
                    values: Values,
                }
                let mut list = Vec::new();
                while let Some(One { name, values: Values(values) }) = all.next_element()? {
                    if list.len() == MAX_ATTRIBUTES {
                        return Err(A::Error::invalid_length(MAX_ATTRIBUTES + 1, &self));
                    }
                    list.push(EntryAttribute { name, values });
                }
                Ok(AttributesIn(list))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<AttributesIn, A::Error> {
                let mut map = BTreeMap::new();
                while let Some((name, Values(values))) = all.next_entry::<String, Values>()? {
                    map.insert(name, values);
                    if map.len() > MAX_ATTRIBUTES {
                        return Err(A::Error::invalid_length(map.len(), &self));
                    }
                }
                Ok(AttributesIn(map.into_iter().map(|(name, values)| EntryAttribute { name, values }).collect()))
            }
        }

        from.deserialize_any(Attributes)
    }
}

/// One value or a list of values.
#[derive(Debug)]
struct Values(Vec<String>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Values, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a text, or a list of at most {MAX_VALUES}")
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Values, E> {
                Ok(Values(if value.is_empty() { vec![] } else { vec![value.to_owned()] }))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, all: A) -> Result<Values, A::Error> {
                at_most::<_, _, MAX_VALUES>(serde::de::value::SeqAccessDeserializer::new(all)).map(Values)
            }
        }

        from.deserialize_any(OneOrSeveral)
    }
}

/// A link, written `"run:80123"` or `{"kind": "run", "target": "80123"}`.
#[derive(Debug)]
pub struct LinkIn(String);

impl JsonSchema for LinkIn {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "LinkIn".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "\"run:80123\", or the form of answers",
            "oneOf": [{ "type": "string" }, generator.subschema_for::<Link>()],
        })
    }
}

impl<'de> Deserialize<'de> for LinkIn {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<LinkIn, D::Error> {
        struct TextOrParts;

        impl<'de> Visitor<'de> for TextOrParts {
            type Value = LinkIn;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a link, as \"run:80123\" or {\"kind\": \"run\", \"target\": \"80123\"}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<LinkIn, E> {
                Ok(LinkIn(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, parts: A) -> Result<LinkIn, A::Error> {
                Link::deserialize(MapAccessDeserializer::new(parts)).map(|link| LinkIn(link.to_string()))
            }
        }

        from.deserialize_any(TextOrParts)
    }
}

impl LinkIn {
    /// Parses the link.
    pub fn link(self) -> Result<Link, Problem> {
        self.0.parse().map_err(|error: tampu_logbook::entry::BadLink| Problem::bad("body links", error.to_string()))
    }
}

/// A file, by its SHA-256: one that was uploaded, or one that the entry has. Other fields of a response's attachment
/// are accepted and ignored.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "FileOfEntry")]
pub struct AttachmentIn {
    name: String,
    #[serde(default)]
    sha: Option<Sha>,
}

impl AttachmentIn {
    /// Returns the file's name without a path, and its digest.
    pub fn named(self) -> (String, Option<Sha>) {
        (plain_name(&self.name), self.sha)
    }
}

/// Hands uploads to a store. If the store rejects the entry, the uploads wait for another one, so that they need not be
/// sent again.
pub fn give<T>(
    call: &Call<'_>,
    uploads: Vec<Upload>,
    to: impl FnOnce(Vec<Upload>) -> Result<T, StoreError>,
) -> Result<T, Problem> {
    // Without hard links, a rejected file has to be sent again.
    let again: Vec<Upload> = uploads.iter().filter_map(|upload| upload.again().ok()).collect();
    let all: Vec<Sha> = uploads.iter().map(|upload| upload.sha().clone()).collect();
    let (staging, sender) = (&call.api.staging, call.by());
    match to(uploads) {
        Ok(done) => {
            all.iter().for_each(|sha| staging.done(&sender, sha));
            Ok(done)
        }
        Err(error) => {
            for upload in again {
                let _ = staging.keep(&sender, upload);
            }
            Err(error.into())
        }
    }
}

impl ContentIn {
    /// Converts to the store's content, and takes the files out of the staging. `before` is the entry's current
    /// content, whose files are its own.
    pub fn content(self, call: &Call<'_>, before: Option<&Content>) -> Result<(Content, Vec<Upload>), Problem> {
        let AttributesIn(attributes) = self.attributes;
        let links = self.links.into_iter().map(LinkIn::link).collect::<Result<Vec<_>, _>>()?;
        let mut content = Content { attributes, encoding: self.encoding, text: self.text, attachments: Vec::new(), links };
        content.check().map_err(StoreError::from)?;
        let (mut uploads, sender) = (Vec::<Upload>::new(), call.by());
        let own = before.map_or(&[][..], |before| &before.attachments);
        // Files leave the staging only after all of them were found there.
        for file in &self.attachments {
            let is_own = own.iter().any(|known| known.sha == file.sha);
            if !is_own && !file.sha.as_ref().is_some_and(|sha| call.api.staging.has(&sender, sha)) {
                let detail = format!(
                    "the attachment '{}' was not uploaded by you, and the entry does not have it",
                    file.name.escape_debug()
                );
                let problem = Problem::new(http::StatusCode::UNPROCESSABLE_ENTITY, "no-upload", detail);
                return Err(problem.at("body attachments").help("POST /api/v1/uploads first, and use the sha it returns"));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<EntryIn, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn both_ways_to_write_mean_the_same() {
        let list = r#"{"attributes": [{"name": "System", "values": ["RICH1", "HLT"]}, {"name": "Type", "values": ["Problem"]}],
            "links": [{"kind": "run", "target": "7"}], "text": "x", "parent": 3, "zone": 60}"#;
        let map = r#"{"attributes": {"Type": "Problem", "System": ["RICH1", "HLT"]}, "links": ["run:7"], "text": "x", "parent": 3,
            "zone": 60}"#;
        let [one, other] = [list, map].map(|text| read(text).unwrap());
        assert_eq!(one.attributes.0, other.attributes.0);
        assert_eq!((one.links[0].0.as_str(), other.links[0].0.as_str()), ("run:7", "run:7"));
        assert_eq!((other.text.as_str(), other.parent, other.zone), ("x", Some(3), 60));
        assert!(read("{}").unwrap().attributes.0.is_empty());
    }

    /// Invalid input ends the reading at its place, and not after all of it is in memory.
    #[test]
    fn nothing_is_held_that_an_entry_cannot_have() {
        let many = |part: &str, most: usize| vec![part; most + 1].join(",");
        for (text, told) in [
            (r#"{"attributes": 7}"#.to_owned(), "attributes, as"),
            (r#"{"attributes": {"Type": 7}}"#.to_owned(), "a text, or a list"),
            (r#"{"links": [7]}"#.to_owned(), "a link, as"),
            (r#"{"text": ["a"]}"#.to_owned(), "expected a string"),
            (r#"{"nothing": [[[]]]}"#.to_owned(), "unknown field `nothing`"),
            (format!(r#"{{"attributes": {{"Type": [{}]}}}}"#, many("\"\"", MAX_VALUES)), "at most 1000"),
            (format!(r#"{{"attributes": [{}]}}"#, many(r#"{"name":"a","values":[]}"#, MAX_ATTRIBUTES)), "at most 256"),
            (format!(r#"{{"links": [{}]}}"#, many("\"run:1\"", MAX_LINKS)), "at most 1000"),
            (format!(r#"{{"attachments": [{}]}}"#, many(r#"{"name":"a"}"#, MAX_ATTACHMENTS)), "at most 1000"),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        let names: Vec<String> = (0..=MAX_ATTRIBUTES).map(|n| format!("\"a{n}\":\"\"")).collect();
        assert!(read(&format!(r#"{{"attributes": {{{}}}}}"#, names.join(","))).unwrap_err().contains("at most 256"));
    }
}
