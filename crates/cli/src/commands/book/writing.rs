//! What the commands that write entries have in common.

use std::{
    fs::File,
    io::{self, IsTerminal, Read, Write},
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use tampu_logbook::{
    attachment::Upload,
    book::EntryAttribute,
    entry::{Content, Encoding, EntryRef, Link, MAX_TEXT},
    store::{MAX_ATTACHMENT, Store},
};

use super::{failed, shown};
use crate::{
    failure::{Failure, Outcome, written},
    time_expression::now,
};

/// What an entry says.
#[derive(Debug, Args)]
pub struct Writing {
    /// An attribute; where it takes several values, once for each
    #[arg(short, long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, String)>,
    /// The text; '-' reads standard input. A new entry's is read there too if it is no terminal and nothing else says the text
    #[arg(short, long)]
    text: Option<String>,
    /// Read the text from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// markdown, plain, elcode or html
    #[arg(short, long)]
    encoding: Option<Encoding>,
    /// A file that goes with it
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// What it speaks of: record:ID, event:ATTRIBUTE, transfer:ID, run:NUMBER
    #[arg(long, value_name = "LINK")]
    link: Vec<Link>,
    /// Who writes
    #[arg(long, env = "USER", value_name = "NAME", default_value = "unknown", hide_env_values = true)]
    pub by: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub fn attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("'{text}': write NAME=VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Whether a text is read from standard input though nobody says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// It is, unless that is a terminal.
    Reads,
    /// It is not: what stands there is somebody else's.
    Leaves,
}

impl Writing {
    /// Puts what was said over what there is, and takes the files in.
    /// The logbook is asked for its attributes, so that one nobody knows is remarked on.
    pub fn apply(&self, store: &dyn Store, book: &str, content: &mut Content, unasked: Unasked) -> Result<Vec<Upload>, Failure> {
        let mut said: Vec<EntryAttribute> = Vec::new();
        for (name, value) in &self.attributes {
            match said.iter_mut().find(|known| tampu_logbook::book::same_name(&known.name, name)) {
                Some(known) => known.values.push(value.clone()),
                None => said.push(EntryAttribute::new(name, value)),
            }
        }
        if !said.is_empty()
            && let Ok(book) = store.book(book)
        {
            for attribute in said.iter().filter(|said| book.attribute(&said.name).is_none()) {
                let names: Vec<&str> = book.attributes.iter().map(|known| known.name.as_str()).collect();
                let (name, names) = (shown(&attribute.name, false), shown(&names.join(", "), false));
                eprintln!("tampu: '{}' has no attribute '{name}'; the entry keeps it. It has: {names}", shown(&book.name, false));
            }
        }
        for attribute in said {
            content.attributes.retain(|known| !tampu_logbook::book::same_name(&known.name, &attribute.name));
            content.attributes.push(attribute);
        }
        if let Some(text) = text(self.text.as_deref(), self.file.as_deref(), unasked)? {
            content.text = text;
        }
        if let Some(encoding) = self.encoding {
            content.encoding = encoding;
        }
        content.links.extend(self.link.iter().cloned());
        let mut uploads = Vec::new();
        for path in &self.attach {
            let mut file = File::open(path).map_err(|error| Failure::failed(path.display(), error))?;
            let upload = store.upload(&mut file, MAX_ATTACHMENT).map_err(failed)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            content.attachments.push(upload.attachment(&name, now()));
            uploads.push(upload);
        }
        Ok(uploads)
    }

    /// Tells which entry it is.
    pub fn tell(&self, at: &EntryRef, revision: Option<u32>) -> Outcome {
        let mut out = io::stdout().lock();
        if self.json {
            let mut object = json!(at);
            if let Some(revision) = revision {
                object["revision"] = json!(revision);
            }
            return written(writeln!(out, "{object}"));
        }
        written(writeln!(out, "{at}"))
    }
}

/// The text that was said, is in a file, or stands on standard input; none if there is none.
pub fn text(said: Option<&str>, file: Option<&Path>, unasked: Unasked) -> Result<Option<String>, Failure> {
    let read = |mut from: Box<dyn Read>, name: &str| {
        let mut text = String::new();
        from.by_ref().take(MAX_TEXT as u64 + 1).read_to_string(&mut text).map_err(|error| Failure::failed(name, error))?;
        Ok(Some(text))
    };
    match (said, file) {
        (Some(text), _) if text != "-" => Ok(Some(text.to_owned())),
        (_, Some(path)) => {
            let file = File::open(path).map_err(|error| Failure::failed(path.display(), error))?;
            read(Box::new(file), &path.display().to_string())
        }
        (None, None) if unasked == Unasked::Leaves || io::stdin().is_terminal() => Ok(None),
        (said, None) => {
            let read = read(Box::new(io::stdin()), "standard input")?;
            // Nothing on standard input is no text, unless it was asked for.
            Ok(read.filter(|read| said.is_some() || !read.is_empty()))
        }
    }
}
