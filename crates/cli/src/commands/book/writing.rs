//! Options of the commands that write entries.

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
    store::{Logbook, MAX_ATTACHMENT},
};

use super::{place::failed, text::shown};
use crate::{
    author::author,
    failure::{Failure, Outcome, written},
    time_expression::now,
};

/// Content of an entry, as options.
#[derive(Debug, Args)]
pub struct Writing {
    /// An attribute of the entry; repeatable, also for several values of one attribute
    #[arg(short, long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, String)>,
    /// Keep attributes that the logbook does not have
    #[arg(long)]
    force: bool,
    /// The text; '-' reads standard input. Without a text, a new entry is read from standard input, unless that is a terminal
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    text: Option<String>,
    /// Read the text from this file
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
    /// Markup of the text: markdown, plain, elcode or html
    #[arg(short, long, value_name = "ENCODING")]
    encoding: Option<Encoding>,
    /// A file to attach; repeatable
    #[arg(long, value_name = "FILE")]
    attachment: Vec<PathBuf>,
    /// A link: record:ID, event:ATTRIBUTE, transfer:ID, run:NUMBER or entry:BOOK/NUMBER; repeatable
    #[arg(long, value_name = "LINK")]
    link: Vec<Link>,
    /// The author [default: the user that runs this]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Write JSON objects, one a line
    #[arg(long)]
    pub json: bool,
}

pub fn attribute(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("'{text}': write NAME=VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// Treatment of standard input without an option for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unasked {
    /// Standard input is read, unless it is a terminal.
    Reads,
    /// Standard input is not read: it may belong to another program.
    Leaves,
}

impl Writing {
    /// Returns the author: the user of this process by default.
    pub fn author(&self) -> String {
        author(self.author.as_deref())
    }

    /// Applies the options to the present contents, and attaches the files. An attribute that the logbook does not have
    /// is an error without `--force`: mostly it is misspelt.
    pub fn apply(
        &self,
        store: &dyn Logbook,
        book: &str,
        content: &mut Content,
        unasked: Unasked,
    ) -> Result<Vec<Upload>, Failure> {
        let mut said: Vec<EntryAttribute> = Vec::new();
        for (name, value) in &self.attributes {
            match said.iter_mut().find(|known| tampu_logbook::book::same_name(&known.name, name)) {
                Some(known) => known.values.push(value.clone()),
                None => said.push(EntryAttribute::new(name, value)),
            }
        }
        if !self.force
            && !said.is_empty()
            && let Ok(book) = store.book(book)
        {
            // An old entry may have an attribute that its book has removed.
            let new: Vec<EntryAttribute> = said.iter().filter(|said| content.attribute(&said.name).is_none()).cloned().collect();
            book.check_names(&new).map_err(|error| {
                Failure::Usage(format!("{}; correct the name, or keep it with --force", shown(&error.to_string(), false)))
            })?;
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
        for path in &self.attachment {
            let mut file = File::open(path).map_err(|error| Failure::failed(path.display(), error))?;
            let upload = store.upload(&mut file, MAX_ATTACHMENT).map_err(failed)?;
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            content.attachments.push(upload.attachment(&name, now()));
            uploads.push(upload);
        }
        Ok(uploads)
    }

    /// Prints the reference of the entry.
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

/// Returns the text of the option, of a file, or of standard input; `None` without a text.
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
        (None, None) if unasked == Unasked::Leaves => Ok(None),
        (None, None) if io::stdin().is_terminal() => {
            Err(Failure::Usage("an entry needs a text: give it with -t TEXT, --file FILE, or on standard input".to_owned()))
        }
        (said, None) => {
            let read = read(Box::new(io::stdin()), "standard input")?;
            // An empty standard input is no text, unless the text was requested with `-`.
            Ok(read.filter(|read| said.is_some() || !read.is_empty()))
        }
    }
}
