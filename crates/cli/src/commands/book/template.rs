//! `tampu book template`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use tampu_logbook::{book::EntryAttribute, entry::Encoding, template::Template};

use super::{
    place::{Place, failed},
    text::shown,
    writing::{self, Unasked, attribute},
};
use crate::failure::{Outcome, written};

/// Manage texts that entries of a logbook begin with
///
/// In the text and in values {date}, {time}, {author}, {book} and {shift} (night, morning, evening, UTC) stand for what they say when an entry is
/// posted with --template, and so does what --set names there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu book template save Shift begin -a Type=Routine -a Author={author} -t '# {shift} shift of {date}'\n  \
    tampu book post Shift --template begin"
)]
pub struct Templates {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Save a template, in place of another of its name
    Save {
        /// Name of the logbook
        book: String,
        /// Name of the new item
        name: String,
        /// An attribute of the entry; repeatable, also for several values of one attribute
        #[arg(short, long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
        attributes: Vec<(String, String)>,
        /// The text; '-' reads standard input. Without a text, a new entry is read from standard input, unless that is a terminal
        #[arg(short, long, value_name = "TEXT")]
        text: Option<String>,
        /// Read the text from this file
        #[arg(long, value_name = "FILE", conflicts_with = "text")]
        file: Option<PathBuf>,
        /// Markup of the text: markdown, plain, elcode or html
        #[arg(short, long, value_name = "ENCODING", default_value = "markdown")]
        encoding: Encoding,
        /// Write JSON objects, one a line
        #[arg(long)]
        json: bool,
    },
    /// List the templates of a logbook
    List {
        /// Name of the logbook
        book: String,
        /// Write JSON objects, one a line
        #[arg(long)]
        json: bool,
    },
    /// Remove a template
    Drop {
        /// Name of the logbook
        book: String,
        /// Name of the new item
        name: String,
        /// Write JSON objects, one a line
        #[arg(long)]
        json: bool,
    },
}

fn done(what: &str, book: &str, name: &str) -> Outcome {
    written(writeln!(io::stdout().lock(), "{}", serde_json::json!({ what: name, "book": book })))
}

impl Templates {
    pub fn run(self, place: &Place) -> Outcome {
        let logbook = place.store("")?;
        match self.verb {
            Verb::Save { book, name, attributes, text, file, encoding, json } => {
                let text = writing::text(text.as_deref(), file.as_deref(), Unasked::Reads)?.unwrap_or_default();
                let mut said: Vec<EntryAttribute> = Vec::new();
                for (name, value) in &attributes {
                    match said.iter_mut().find(|known| tampu_logbook::book::same_name(&known.name, name)) {
                        Some(known) => known.values.push(value.clone()),
                        None => said.push(EntryAttribute::new(name, value)),
                    }
                }
                logbook.save_template(&book, &name, &Template { attributes: said, encoding, text }).map_err(failed)?;
                if json { done("saved", &book, &name) } else { Ok(()) }
            }
            Verb::List { book, json } => {
                let mut out = io::stdout().lock();
                for name in logbook.templates(&book).map_err(failed)? {
                    let line = if json {
                        let template = logbook.template(&book, &name).map_err(failed)?;
                        serde_json::json!({ "name": name, "template": template }).to_string()
                    } else {
                        shown(&name, false)
                    };
                    written(writeln!(out, "{line}"))?;
                }
                Ok(())
            }
            Verb::Drop { book, name, json } => {
                logbook.drop_template(&book, &name).map_err(failed)?;
                if json { done("dropped", &book, &name) } else { Ok(()) }
            }
        }
    }
}
