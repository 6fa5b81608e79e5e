//! The entries of an `.eln` archive: of this logbook, SciLog, eLabFTW and other members of the consortium.
//!
//! Each dataset of the archive is an entry, but a `Book` of SciLog, which only holds others. A comment is a reply.

use std::{
    collections::{HashMap, HashSet},
    io::Read,
    path::{Path, PathBuf},
};

use super::{
    ENTRY,
    archive::ElnArchive,
    metadata::{Crate, Node, id, is_a, is_remote, local, text, texts},
};
use crate::{
    attachment::reference::address,
    book::{AttributeKind, MAX_VALUE},
    entry::{Encoding, Entry},
    exchange::{
        date,
        foreign::{ForeignEntry, ForeignFile, ForeignSource, SourceError, SourceFault},
    },
};

/// Bytes of the JSON of one entry.
const MAX_ENTRY: u64 = 64 << 20;
/// Files that describe an entry for the program that wrote the archive.
const DESCRIPTIONS: [&str; 3] = [ENTRY, "export-elabftw.json", "elabftw-export.json"];

/// An `.eln` archive as a source.
pub struct Eln {
    archive: ElnArchive,
    graph: Crate,
}

impl Eln {
    /// Opens an archive, checks its members, and reads its graph.
    pub fn open(path: &Path) -> Result<Eln, SourceError> {
        let archive = ElnArchive::open(path)?;
        let graph = Crate::parse(&archive.metadata()?);
        let graph = graph.map_err(|error| SourceError::Format { path: path.to_owned(), why: error.to_string() })?;
        Ok(Eln { archive, graph })
    }

    /// Reads an entry as this logbook wrote it.
    fn own(&self, path: &str, entry: &mut ForeignEntry) -> Result<(), String> {
        let bytes = self.archive.bytes(path, MAX_ENTRY)?;
        let own: Entry = serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))?;
        entry.id = Some(own.at.id);
        entry.set_by(&own.by);
        entry.date = Some((own.date, own.zone));
        entry.attributes = own.content.attributes;
        (entry.encoding, entry.text, entry.links) = (own.content.encoding, own.content.text, own.content.links);
        // The text refers to its files as it did there.
        for file in &mut entry.files {
            let known = own.content.attachments.iter().find(|known| known.sha.is_some() && known.sha == file.sha);
            file.addresses = known.map(address).into_iter().collect();
        }
        for lost in own.content.attachments.iter().filter(|known| known.sha.is_none()) {
            entry.files.push(ForeignFile { name: lost.name.clone(), ..ForeignFile::default() });
        }
        Ok(())
    }
}

/// Passes the entries of a graph on, each with the local id of its node. `take` returns false to end the pass.
pub fn entries<E>(graph: &Crate, take: &mut dyn FnMut(String, ForeignEntry) -> Result<bool, E>) -> Result<(), E> {
    let parents = parents(graph);
    // Some programs give every dataset an empty or the same identifier.
    let mut keys: HashMap<String, String> = HashMap::new();
    let mut taken: HashSet<String> = HashSet::new();
    for node in graph.nodes().iter().filter(|node| is_entry(node)) {
        let mut key = key(node);
        if !taken.insert(key.clone()) {
            key = format!("{key} {}", local(id(node)));
        }
        keys.insert(local(id(node)), key);
    }
    for node in graph.nodes().iter().filter(|node| is_entry(node)) {
        let of = local(id(node));
        let mut entry = ForeignEntry { place: place(node), ..ForeignEntry::default() };
        describe(graph, node, &mut entry);
        files(graph, node, &mut entry);
        entry.key = keys.get(&of).cloned().unwrap_or_default();
        entry.parent = parents.get(&of).and_then(|parent| keys.get(parent)).cloned();
        if !take(of, entry)? {
            break;
        }
    }
    Ok(())
}

/// Returns the parent of each comment and of each dataset within another, by their local ids.
fn parents(graph: &Crate) -> HashMap<String, String> {
    let mut parents = HashMap::new();
    for node in graph.nodes().iter().filter(|node| is_entry(node)) {
        for member in ["comment", "hasPart"] {
            for part in graph.linked(node, member) {
                if is_entry(part) {
                    parents.entry(local(id(part))).or_insert_with(|| local(id(node)));
                }
            }
        }
        if let Some(above) = graph.linked(node, "parentItem").first() {
            parents.insert(local(id(node)), local(id(above)));
        }
    }
    parents
}

/// Reads an entry from its node.
fn describe(graph: &Crate, node: &Node, entry: &mut ForeignEntry) {
    let authors = graph.linked(node, "author");
    let names: Vec<String> = authors.iter().map(|person| person_name(person)).filter(|name| !name.is_empty()).collect();
    let said = text(node, "author").filter(|_| authors.is_empty());
    entry.set_by(names.first().or(said.as_ref()).map_or("", String::as_str));
    entry.add("Author", &if names.is_empty() { said.unwrap_or_default() } else { names.join(", ") });
    entry.date = ["dateCreated", "datePublished", "dateModified"].iter().find_map(|name| date::parse(&text(node, name)?));
    let body = text(node, "text").or_else(|| text(node, "description")).unwrap_or_default();
    let format = text(node, "encodingFormat").unwrap_or_default();
    entry.encoding = match format.split(';').next().unwrap_or_default().trim() {
        "text/markdown" => Encoding::Markdown,
        "text/plain" => Encoding::Plain,
        "text/html" => Encoding::Html,
        _ if body.contains('<') || body.contains("&#") => Encoding::Html,
        _ => Encoding::Plain,
    };
    entry.text = body;
    entry.add("Subject", &text(node, "name").unwrap_or_default());
    texts(node, "keywords", true).iter().for_each(|tag| entry.add("Tags", tag));
    for (member, name) in [("genre", "Category"), ("creativeWorkStatus", "Status"), ("url", "Source")] {
        entry.add(name, &text(node, member).unwrap_or_default());
    }
    for member in ["variableMeasured", "additionalProperty"] {
        for property in graph.linked(node, member) {
            let name = text(property, "propertyID").or_else(|| text(property, "name")).unwrap_or_default();
            let unit = text(property, "unitText").map(|unit| format!(" {unit}")).unwrap_or_default();
            let value = text(property, "value").map(|value| value + &unit).unwrap_or_default();
            // A whole description for another program is no attribute.
            if value.len() <= MAX_VALUE {
                entry.add(&name, &value);
            } else {
                entry.faults.push(format!("property '{}': its value is too long: left out", name.escape_debug()));
            }
        }
    }
    for mentioned in graph.linked(node, "mentions") {
        let parts = [text(mentioned, "name"), Some(id(mentioned).to_owned())];
        let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
        entry.add("Mentions", &parts.join(" "));
    }
}

/// Finds the files of an entry.
fn files(graph: &Crate, node: &Node, entry: &mut ForeignEntry) {
    for part in graph.linked(node, "hasPart") {
        let path = local(id(part));
        let last = path.rsplit('/').next().unwrap_or_default().to_owned();
        if is_entry(part) || path.is_empty() || DESCRIPTIONS.contains(&last.as_str()) {
            continue;
        }
        if is_remote(id(part)) {
            entry.add("Mentions", id(part));
            continue;
        }
        let sha = text(part, "sha256").and_then(|sha| sha.to_ascii_lowercase().try_into().ok());
        let written = id(part).trim_start_matches("./").to_owned();
        let mut addresses = vec![format!("./{path}"), format!("./{written}"), written, path.clone()];
        addresses.extend(text(part, "alternateName").map(|long| format!("app/download.php?f={long}")));
        entry.files.push(ForeignFile { name: text(part, "name").unwrap_or(last), place: path, sha, addresses });
    }
}

/// Returns true for a node that is an entry.
fn is_entry(node: &Node) -> bool {
    let known = local(id(node));
    let is_kind = ["Dataset", "Message", "Comment"].iter().any(|kind| is_a(node, kind));
    is_kind && !known.is_empty() && known != "." && !is_a(node, "Book") && (!is_remote(id(node)) || is_a(node, "Comment"))
}

/// Returns the identity of an entry. A path alone is none, because another archive can have the same.
fn key(node: &Node) -> String {
    let of_path = || format!("{} {}", local(id(node)), text(node, "dateCreated").unwrap_or_default());
    text(node, "identifier").unwrap_or_else(of_path)
}

fn place(node: &Node) -> String {
    format!("@id '{}'", id(node).escape_debug())
}

/// Returns the name of a person.
fn person_name(person: &Node) -> String {
    let whole = [text(person, "givenName"), text(person, "familyName")].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let name = text(person, "name").or(Some(whole).filter(|whole| !whole.is_empty())).or_else(|| text(person, "email"));
    name.unwrap_or_else(|| local(id(person)).rsplit('/').next().unwrap_or_default().to_owned())
}

impl ForeignSource for Eln {
    fn path(&self) -> PathBuf {
        self.archive.path().to_owned()
    }

    fn name(&self) -> &'static str {
        "eln"
    }

    fn kinds(&self) -> &'static [(&'static str, AttributeKind)] {
        &[("Tags", AttributeKind::Tags)]
    }

    fn each(
        &self,
        take: &mut dyn FnMut(Result<ForeignEntry, SourceFault>) -> Result<bool, SourceError>,
    ) -> Result<(), SourceError> {
        for id in &self.graph.doubled {
            let what = "a second node has this id: left out".to_owned();
            if !take(Err(SourceFault { file: self.path(), place: format!("@id '{}'", id.escape_debug()), what }))? {
                return Ok(());
            }
        }
        entries(&self.graph, &mut |of, mut entry| {
            let own = format!("{of}/{ENTRY}");
            if self.archive.has(&own)
                && let Err(why) = self.own(&own, &mut entry)
            {
                entry.faults.push(format!("{why}: the graph is used"));
            }
            take(Ok(entry))
        })
    }

    fn open<'a>(&'a self, file: &ForeignFile) -> Result<Box<dyn Read + 'a>, String> {
        if file.place.is_empty() {
            return Err("its bytes were missing in the exported logbook".to_owned());
        }
        self.archive.read(&file.place)
    }
}
