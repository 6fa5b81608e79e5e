//! Writes an `.eln` archive.
//!
//! Files come first, entry by entry, while the nodes of the graph go to a spool. The graph is the last member, so
//! memory holds one page of entries and a few bytes for each entry.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    fs::File,
    io::{self, BufWriter, Read, Seek, Write},
    path::Path,
    sync::Arc,
};

use flate2::{Compression, write::DeflateEncoder};
use rawzip::{CompressionMethod, ZipArchiveWriter, time::UtcDateTime};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tampu_types::Time;

use super::{ENTRY, METADATA};
use crate::{
    attachment::{hex, unnamed_file},
    book::AttributeKind,
    entry::Entry,
    export::{
        Pages,
        html::{
            Exported, FolderError,
            links::{addresses, free_name, relinked},
            markup::title,
        },
        searched,
    },
    render,
    search::{Search, Sort, Stop},
    store::{Entries, Logbook, StoreError},
};

/// Exports what a search finds as an archive. `progress` receives the number of exported entries, and returns false to
/// interrupt.
pub fn export_eln(
    store: &Arc<dyn Logbook>,
    search: &Search,
    to: &Path,
    now: Time,
    stop: &Stop,
    progress: &mut dyn FnMut(u64) -> bool,
) -> Result<Exported, FolderError> {
    let io = |error| FolderError::Io { path: to.to_owned(), error };
    let entries: Arc<dyn Entries> = store.clone();
    let search = Search { sort: Sort::Date, descending: false, ..search.clone() };
    let books = searched(&*entries, &search.books)?;
    let children = children(&entries, &search, stop)?;
    // The search may be wrong, so the file is made after its first page.
    let pages = Pages::begin(entries, search, stop.clone())?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut taken = HashSet::new();
    let tags = books.iter().flat_map(|book| &book.attributes).filter(|one| one.kind == AttributeKind::Tags);
    let mut archive = ElnWriter {
        store,
        to,
        root: ascii(to.file_stem().and_then(|stem| stem.to_str()).unwrap_or("logbook")),
        tags: tags.map(|one| one.name.clone()).collect(),
        books: books.iter().map(|book| (book.name.clone(), free_name(&ascii(&book.name), &mut taken))).collect(),
        zip: ZipArchiveWriter::new(BufWriter::new(File::create(to).map_err(io)?)),
        graph: BufWriter::new(unnamed_file(folder).map_err(io)?),
        parts: Vec::new(),
        persons: BTreeSet::new(),
        children,
        out: Exported { books: books.len() as u64, ..Exported::default() },
    };
    for page in pages {
        for entry in page? {
            archive.entry(&entry)?;
        }
        if !progress(archive.out.entries) {
            archive.out.interrupted = true;
            break;
        }
    }
    if archive.out.interrupted {
        // Without its directory the file is no archive, so nobody takes it for a whole one.
        return Ok(archive.out);
    }
    archive.metadata(now)?;
    let ElnWriter { zip, out, .. } = archive;
    zip.finish().map_err(|error| io(io::Error::other(error)))?.flush().map_err(io)?;
    Ok(out)
}

/// The replies to each entry, by its book and number.
type Children = HashMap<(String, u32), Vec<u32>>;

fn children(store: &Arc<dyn Entries>, search: &Search, stop: &Stop) -> Result<Children, FolderError> {
    let mut children = Children::new();
    let query = if search.query.trim().is_empty() { "is:reply".to_owned() } else { format!("({}) is:reply", search.query) };
    for page in Pages::begin(store.clone(), Search { query, ..search.clone() }, stop.clone())? {
        for entry in page? {
            if let Some(parent) = entry.parent {
                children.entry((entry.at.book, parent)).or_default().push(entry.at.id);
            }
        }
    }
    Ok(children)
}

struct ElnWriter<'a> {
    store: &'a Arc<dyn Logbook>,
    to: &'a Path,
    /// The folder in the archive.
    root: String,
    /// The folder of each book.
    books: HashMap<String, String>,
    /// Attributes that are keywords.
    tags: HashSet<String>,
    zip: ZipArchiveWriter<BufWriter<File>>,
    /// Nodes of the graph, each after a comma.
    graph: BufWriter<File>,
    /// The folders of all entries.
    parts: Vec<String>,
    persons: BTreeSet<String>,
    children: Children,
    out: Exported,
}

impl ElnWriter<'_> {
    fn io(&self, error: io::Error) -> FolderError {
        FolderError::Io { path: self.to.to_owned(), error }
    }

    fn node(&mut self, node: &Value) -> Result<(), FolderError> {
        let text = format!(",\n{node}");
        self.graph.write_all(text.as_bytes()).map_err(|error| self.io(error))
    }

    /// Writes a member. Returns its size.
    fn member(&mut self, name: &str, changed: Time, from: &mut dyn Read) -> Result<u64, FolderError> {
        let path = format!("{}/{name}", self.root);
        deflated(&mut self.zip, &path, changed, from).map_err(|error| self.io(io::Error::other(error)))
    }

    /// Writes the files and the nodes of an entry.
    fn entry(&mut self, entry: &Entry) -> Result<(), FolderError> {
        let content = &entry.content;
        let book = self.books.get(&entry.at.book).cloned().unwrap_or_else(|| ascii(&entry.at.book));
        let folder = format!("{book}/{}", entry.at.id);
        let mut taken = HashSet::from([ENTRY.to_owned()]);
        let (mut parts, mut paths) = (Vec::new(), Vec::new());
        let json = serde_json::to_vec(entry).map_err(|error| self.io(io::Error::other(error)))?;
        let own = format!("{folder}/{ENTRY}");
        self.member(&own, entry.changed, &mut json.as_slice())?;
        parts.push(reference(&format!("./{own}")));
        self.node(&json!({
            "@id": format!("./{own}"), "@type": "File", "name": ENTRY, "description": "The entry as Tampu keeps it",
            "encodingFormat": "application/json", "contentSize": json.len().to_string(), "sha256": hex(&Sha256::digest(&json)),
        }))?;
        for attachment in &content.attachments {
            let path = format!("{folder}/{}", free_name(&ascii(&attachment.name), &mut taken));
            paths.push(path.clone());
            let bytes = match attachment.sha.as_ref().map(|sha| self.store.attachment(sha)) {
                Some(Ok(bytes)) => Some(bytes),
                Some(Err(error)) if !matches!(error, StoreError::Io { .. } | StoreError::NoBlob(_)) => return Err(error.into()),
                _ => None,
            };
            let (Some(mut bytes), Some(sha)) = (bytes, &attachment.sha) else {
                self.out.notes.push(format!("entry {}: the bytes of '{}' are missing", entry.at, attachment.name));
                continue;
            };
            let size = self.member(&path, attachment.added, &mut bytes)?;
            self.out.attachments += 1;
            parts.push(reference(&format!("./{path}")));
            self.node(&json!({
                "@id": format!("./{path}"), "@type": "File", "name": attachment.name, "contentSize": size.to_string(),
                "sha256": sha.as_str(), "encodingFormat": media_type(&attachment.name), "dateCreated": attachment.added.to_rfc3339(),
            }))?;
        }
        let (mut keywords, mut measured) = (Vec::new(), Vec::new());
        for (at, said) in content.attributes.iter().enumerate().filter(|(_, said)| !said.values.is_empty()) {
            if self.tags.contains(&said.name) {
                keywords.extend(said.values.iter().cloned());
            }
            let id = format!("#attribute-{book}-{}-{at}", entry.at.id);
            measured.push(reference(&id));
            let (name, value) = (&said.name, said.joined());
            self.node(&json!({ "@id": id, "@type": "PropertyValue", "propertyID": name, "name": name, "value": value }))?;
        }
        let dataset = |id: u32| reference(&format!("./{book}/{id}/"));
        let replies = self.children.remove(&(entry.at.book.clone(), entry.at.id)).unwrap_or_default();
        let replies: Vec<Value> = replies.into_iter().map(dataset).collect();
        let html = render::html(content.encoding, &content.text, &|_| "#".to_owned());
        let of_files = addresses(&content.attachments, &|at| paths.get(at).map(|path| format!("./{path}")));
        let mut node = json!({
            "@id": format!("./{folder}/"),
            "@type": if entry.parent.is_some() { json!(["Dataset", "Comment"]) } else { json!("Dataset") },
            "name": title(entry), "identifier": entry.at.to_string(), "author": reference(&person(&entry.by)),
            "dateCreated": entry.date.to_rfc3339(), "dateModified": entry.changed.to_rfc3339(),
            "text": relinked(&html, &of_files), "encodingFormat": "text/html", "genre": "logbook entry",
            "keywords": keywords, "hasPart": parts, "variableMeasured": measured, "comment": replies,
        });
        if let Some(parent) = entry.parent {
            node["parentItem"] = dataset(parent);
        }
        self.persons.insert(entry.by.clone());
        self.parts.push(folder);
        self.out.entries += 1;
        self.node(&node)
    }

    /// Writes the metadata as the last member.
    fn metadata(&mut self, now: Time) -> Result<(), FolderError> {
        for by in std::mem::take(&mut self.persons) {
            self.node(&json!({ "@id": person(&by), "@type": "Person", "name": by, "identifier": by }))?;
        }
        self.node(&json!({ "@id": "#tampu", "@type": "Organization", "name": "Tampu" }))?;
        let date = now.to_rfc3339();
        let descriptor = json!({
            "@id": METADATA, "@type": "CreativeWork", "about": reference("./"),
            "conformsTo": reference("https://w3id.org/ro/crate/1.1"), "dateCreated": date, "sdPublisher": reference("#tampu"),
        });
        let all: Vec<Value> = std::mem::take(&mut self.parts).iter().map(|part| reference(&format!("./{part}/"))).collect();
        let root = json!({
            "@id": "./", "@type": "Dataset", "name": self.root, "description": "Entries of a logbook", "datePublished": date,
            "license": "The owner of the logbook decides about its use", "hasPart": all,
        });
        let begin = format!("{{\"@context\": \"https://w3id.org/ro/crate/1.1/context\", \"@graph\": [\n{descriptor},\n{root}");
        self.graph.flush().map_err(|error| self.io(error))?;
        let mut spool = self.graph.get_ref().try_clone().map_err(|error| self.io(error))?;
        spool.rewind().map_err(|error| self.io(error))?;
        let mut whole = begin.as_bytes().chain(spool).chain(&b"\n]}\n"[..]);
        self.member(METADATA, now, &mut whole).map(drop)
    }
}

/// Appends a compressed member, last changed then, to an archive. Returns its size.
fn deflated(
    zip: &mut ZipArchiveWriter<BufWriter<File>>,
    path: &str,
    changed: Time,
    from: &mut dyn Read,
) -> Result<u64, rawzip::Error> {
    let changed = UtcDateTime::from_unix(changed.0.div_euclid(1_000_000_000));
    let (mut entry, config) = zip.new_file(path).last_modified(changed).compression_method(CompressionMethod::DEFLATE).start()?;
    let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
    let size = io::copy(from, &mut writer)?;
    let (encoder, descriptor) = writer.finish()?;
    encoder.finish()?;
    entry.finish(descriptor)?;
    Ok(size)
}

fn reference(id: &str) -> Value {
    json!({ "@id": id })
}

/// Returns the id of a person.
fn person(name: &str) -> String {
    format!("#person-{}", percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC))
}

/// Returns a name of ASCII letters, digits, points, lines and underscores, which needs no percent-coding.
fn ascii(name: &str) -> String {
    let safe: String = name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect();
    if safe.is_empty() { "_".to_owned() } else { safe }
}

/// Returns the media type of a file's name.
fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "pdf" => "application/pdf",
        "csv" => "text/csv",
        "json" => "application/json",
        "txt" | "log" | "dat" => "text/plain",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        _ => "application/octet-stream",
    }
}
