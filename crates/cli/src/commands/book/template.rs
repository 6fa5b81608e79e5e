//! `tampu book template`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use clap::{Args, Subcommand};
use tampu_hub::book::address::encoded;
use tampu_logbook::{
    book::EntryAttribute,
    entry::Encoding,
    store::Store,
    template::{self, Template},
};

use super::{
    Place, failed,
    remote::Remote,
    shown,
    writing::{self, Unasked, attribute},
};
use crate::failure::{Failure, Outcome, written};

/// Keep texts that entries of a logbook begin with
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
    /// Keep one, in place of another of its name
    Save {
        /// The logbook
        book: String,
        /// Its name
        name: String,
        /// An attribute; where it takes several values, once for each
        #[arg(short, long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
        attributes: Vec<(String, String)>,
        /// The text; '-' reads standard input, and so does nothing if that is no terminal
        #[arg(short, long)]
        text: Option<String>,
        /// Read the text from a file
        #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
        file: Option<PathBuf>,
        /// markdown, plain, elcode or html
        #[arg(short, long, default_value = "markdown")]
        encoding: Encoding,
    },
    /// List those of a logbook, one JSON object a line with --json
    List {
        /// The logbook
        book: String,
        /// With what they say
        #[arg(long)]
        json: bool,
    },
    /// Throw one away
    Drop {
        /// The logbook
        book: String,
        /// Its name
        name: String,
    },
}

/// The templates of logbooks, wherever they are.
pub enum Shelf {
    /// Where the data are.
    Here(Box<dyn Store>),
    /// Behind an address.
    There(Remote),
}

impl Shelf {
    /// Those of a place.
    pub fn at(place: &Place) -> Result<Shelf, Failure> {
        Ok(match place.remote("") {
            Some(remote) => Shelf::There(remote),
            None => Shelf::Here(place.open()?),
        })
    }

    fn path(book: &str, name: &str) -> String {
        format!("/books/{}/templates/{}", encoded(book), encoded(name))
    }

    /// One of a logbook; it is an error if there is none of this name.
    pub fn load(&self, book: &str, name: &str) -> Result<Template, Failure> {
        match self {
            Shelf::Here(store) => template::load(&**store, book, name).map_err(failed)?.ok_or_else(|| gone(book, name)),
            Shelf::There(remote) => remote.get(&Shelf::path(book, name)).map_err(failed),
        }
    }

    fn save(&self, book: &str, name: &str, template: &Template) -> Outcome {
        match self {
            Shelf::Here(store) => template::save(&**store, book, name, template).map_err(failed),
            Shelf::There(remote) => {
                let said = serde_json::to_value(template).map_err(|error| Failure::failed("a template as JSON", error))?;
                remote.ask("PUT", &Shelf::path(book, name), Some(&said), &[]).map(drop).map_err(failed)
            }
        }
    }

    fn names(&self, book: &str) -> Result<Vec<String>, Failure> {
        #[derive(serde::Deserialize)]
        struct Named {
            name: String,
        }
        match self {
            Shelf::Here(store) => {
                let book = store.book(book).map_err(failed)?.name;
                template::names(&**store, &book).map_err(failed)
            }
            Shelf::There(remote) => {
                let named: Vec<Named> = remote.get(&format!("/books/{}/templates", encoded(book))).map_err(failed)?;
                Ok(named.into_iter().map(|named| named.name).collect())
            }
        }
    }

    fn forget(&self, book: &str, name: &str) -> Outcome {
        match self {
            Shelf::Here(store) => match template::forget(&**store, book, name).map_err(failed)? {
                true => Ok(()),
                false => Err(gone(book, name)),
            },
            Shelf::There(remote) => remote.ask("DELETE", &Shelf::path(book, name), None, &[]).map(drop).map_err(failed),
        }
    }
}

fn gone(book: &str, name: &str) -> Failure {
    Failure::Failed(format!("'{book}' has no template '{name}'"))
}

impl Templates {
    pub fn run(self, place: &Place) -> Outcome {
        let shelf = Shelf::at(place)?;
        match self.verb {
            Verb::Save { book, name, attributes, text, file, encoding } => {
                let text = writing::text(text.as_deref(), file.as_deref(), Unasked::Reads)?.unwrap_or_default();
                let mut said: Vec<EntryAttribute> = Vec::new();
                for (name, value) in &attributes {
                    match said.iter_mut().find(|known| tampu_logbook::book::same_name(&known.name, name)) {
                        Some(known) => known.values.push(value.clone()),
                        None => said.push(EntryAttribute::new(name, value)),
                    }
                }
                shelf.save(&book, &name, &Template { attributes: said, encoding, text })
            }
            Verb::List { book, json } => {
                let mut out = io::stdout().lock();
                for name in shelf.names(&book)? {
                    let line = if json {
                        let template = shelf.load(&book, &name)?;
                        serde_json::json!({ "name": name, "template": template }).to_string()
                    } else {
                        shown(&name, false)
                    };
                    written(writeln!(out, "{line}"))?;
                }
                Ok(())
            }
            Verb::Drop { book, name } => shelf.forget(&book, &name),
        }
    }
}
