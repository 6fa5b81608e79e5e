//! `tampu book rename` and `undelete`, and the deletion of a logbook.

use std::io::{self, BufRead, IsTerminal, Write};

use clap::Args;
use serde_json::json;
use tampu_logbook::{
    book::same_name,
    mail::purged::PurgedText,
    store::naming::{DeletedBook, deleted_books},
};

use super::{
    place::{Place, failed},
    text::{minute, shown},
};
use crate::{
    author::author,
    failure::{Failure, Outcome, written},
    plural::counted,
};

/// Give a logbook another name; its entries, rights, rules, drafts and templates follow
///
/// The pages lead from the former name to the new one, and imports from ELOG and follow mode find the logbook. Through a hub this needs an administrator of the site.
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu book rename Shift 'Shift log'")]
pub struct Rename {
    /// The logbook
    book: String,
    /// Its new name
    to: String,
    /// The author [default: the user that runs this]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

/// Restore a deleted logbook with its entries, rights and templates
///
/// Through a hub this needs an administrator of the site.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu book delete --list\n  tampu book undelete Shift\n  tampu book undelete 3 --as 'Old shifts'"
)]
pub struct Undelete {
    /// The name of the logbook, or its number in the list of deleted ones
    #[arg(value_name = "NAME|NUMBER")]
    which: String,
    /// Restore it under this name
    #[arg(long = "as", value_name = "NAME")]
    to: Option<String>,
    /// The author [default: the user that runs this]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Rename {
    pub fn run(self, place: &Place) -> Outcome {
        let by = author(self.author.as_deref());
        let book = match place.remote(&by)? {
            Some(hub) => hub.rename_book(&self.book, &self.to).map_err(super::place::refused)?,
            None => place.open()?.rename_book(&self.book, &self.to, &by).map_err(failed)?,
        };
        if self.json {
            return written(writeln!(io::stdout().lock(), "{}", json!(book)));
        }
        let (was, is) = (shown(&self.book, false), shown(&book.name, false));
        eprintln!(
            "tampu: '{was}' is '{is}'; tampu.toml needs the new name where it names '{was}'; access rules about '{was}' hold for '{is}', too"
        );
        Ok(())
    }
}

impl Undelete {
    pub fn run(self, place: &Place) -> Outcome {
        let by = author(self.author.as_deref());
        let number = find(place, &self.which)?.number;
        let book = match place.remote(&by)? {
            Some(hub) => hub.undelete_book(number, self.to.as_deref()).map_err(super::place::refused)?,
            None => place.open()?.undelete_book(number, self.to.as_deref(), &by).map_err(failed)?,
        };
        if self.json {
            return written(writeln!(io::stdout().lock(), "{}", json!(book)));
        }
        eprintln!("tampu: '{}' is restored", shown(&book.name, false));
        Ok(())
    }
}

fn deleted(place: &Place) -> Result<Vec<DeletedBook>, Failure> {
    match place.remote("")? {
        Some(hub) => hub.deleted_books().map_err(super::place::refused),
        None => deleted_books(&*place.open()?).map_err(failed),
    }
}

/// Finds a deleted logbook by its name or number; of several with the name, the last one.
pub fn find(place: &Place, which: &str) -> Result<DeletedBook, Failure> {
    let all = deleted(place)?;
    let named = all.iter().rfind(|book| same_name(&book.name, which) && book.purged.is_none());
    let found = named.or_else(|| all.iter().find(|book| which.parse() == Ok(book.number)));
    found.cloned().ok_or_else(|| {
        let which = shown(which, false);
        Failure::Failed(format!("no deleted logbook has the name or number '{which}'; 'tampu book delete --list' lists them"))
    })
}

/// Prints the deleted logbooks.
pub fn list(place: &Place, as_json: bool) -> Outcome {
    let mut out = io::stdout().lock();
    for book in deleted(place)? {
        written(if as_json {
            writeln!(out, "{}", json!(book))
        } else {
            let purged = book.purged.map(|why| format!(", purged by {}", shown(&why, false))).unwrap_or_default();
            let (name, entries) = (shown(&book.name, false), counted(book.entries, "entry"));
            writeln!(out, "{} {name}: {entries}, deleted {} by {}{purged}", book.number, minute(book.at), shown(&book.by, false))
        })?;
    }
    Ok(())
}

/// Deletes a logbook, after a question at the terminal.
pub fn delete(place: &Place, name: &str, by: &str, yes: bool, as_json: bool) -> Outcome {
    let shown_name = shown(name, false);
    if !yes {
        if !io::stdin().is_terminal() {
            let text = format!("to delete the logbook '{shown_name}' without a terminal, add --yes; an entry is BOOK/NUMBER");
            return Err(Failure::Usage(text));
        }
        eprint!(
            "tampu: delete the logbook '{shown_name}' with all of its entries? 'tampu book undelete' restores it. Type yes: "
        );
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).map_err(|error| Failure::failed("standard input", error))?;
        if answer.trim() != "yes" {
            return Err(Failure::Failed("nothing was deleted".to_owned()));
        }
    }
    let book = match place.remote(by)? {
        Some(hub) => hub.delete_book(name).map_err(super::place::refused)?,
        None => place.open()?.delete_book(name, by).map_err(failed)?,
    };
    if as_json {
        return written(writeln!(io::stdout().lock(), "{}", json!(book)));
    }
    eprintln!("tampu: '{shown_name}' is deleted; 'tampu book undelete {}' restores it", book.number);
    Ok(())
}

/// Removes a deleted logbook for good.
pub fn purge(place: &Place, deleted: &DeletedBook, reason: &str, by: &str, as_json: bool) -> Outcome {
    let done = match place.remote(by)? {
        Some(hub) => hub.purge_book(deleted.number, reason).map_err(super::place::refused)?,
        None => {
            let store = place.open()?;
            let done = store.purge_book(deleted.number, reason, by).map_err(failed)?;
            place.forget_mails(&*store, PurgedText::Book(&done))?;
            done
        }
    };
    if as_json {
        return written(writeln!(io::stdout().lock(), "{}", json!(done)));
    }
    let (name, entries) = (shown(&done.name, false), counted(done.entries, "entry"));
    written(writeln!(io::stdout().lock(), "'{name}': {entries} removed for good; backups made before still have them"))
}
