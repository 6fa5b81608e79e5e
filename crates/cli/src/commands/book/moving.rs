//! `tampu book delete`, `copy` and `move`.

use std::io::{self, Write};

use clap::Args;
use serde_json::json;
use tampu_logbook::entry::EntryRef;

use super::{
    naming,
    place::{Place, failed},
    text::entry_ref,
};
use crate::{
    author::author,
    failure::{Failure, Outcome, written},
    plural::counted,
};

/// Delete an entry, or a logbook; both can be restored
///
/// The number of an entry is not used again, and its text stays in its history. A logbook is deleted with its entries, rights and templates, until 'tampu book undelete' restores it or 'tampu book purge' removes it for good. Through a hub this needs an administrator of the site.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu book delete Shift/12 --replies\n  tampu book delete Shift --yes\n  tampu book delete --list"
)]
pub struct Delete {
    /// The entry as BOOK/NUMBER, or the name of the logbook
    #[arg(value_name = "ENTRY|BOOK", required_unless_present = "list")]
    what: Option<String>,
    /// List the deleted logbooks
    #[arg(long, conflicts_with_all = ["what", "replies", "yes"])]
    list: bool,
    /// Do not ask for confirmation to delete a logbook
    #[arg(long, conflicts_with = "replies")]
    yes: bool,
    #[command(flatten)]
    how: How,
}

/// Copy an entry into a logbook and print the place of the copy
#[derive(Debug, Args)]
pub struct Copy {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    /// The logbook it is copied to
    to: String,
    #[command(flatten)]
    how: How,
}

/// Move an entry to another logbook, with its history, and print its new place
#[derive(Debug, Args)]
pub struct Move {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    /// The logbook it goes to
    to: String,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
struct How {
    /// Include all replies to the entry
    #[arg(long)]
    replies: bool,
    /// The author [default: the user that runs this]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl How {
    fn author(&self) -> String {
        author(self.author.as_deref())
    }

    /// Prints the place of an entry.
    fn show(&self, at: &EntryRef) -> Outcome {
        let mut out = io::stdout().lock();
        written(if self.json { writeln!(out, "{}", json!(at)) } else { writeln!(out, "{at}") })
    }
}

impl Delete {
    pub fn run(self, place: &Place) -> Outcome {
        let author = self.how.author();
        let Some(what) = &self.what else { return naming::list(place, self.how.json) };
        if !what.contains('/') {
            if self.how.replies {
                return Err(Failure::Usage("--replies is for an entry: write BOOK/NUMBER".to_owned()));
            }
            return naming::delete(place, what, &author, self.yes, self.how.json);
        }
        if self.yes {
            return Err(Failure::Usage("--yes is for a logbook; an entry is deleted without a question".to_owned()));
        }
        let at = entry_ref(what).map_err(Failure::Usage)?;
        let count = place.store(&author)?.delete(&at, &author, self.how.replies).map_err(failed)?;
        let mut out = io::stdout().lock();
        written(if self.how.json {
            writeln!(out, "{}", json!({ "deleted": count }))
        } else {
            writeln!(out, "{} deleted", counted(count, "entry"))
        })
    }
}

impl Copy {
    pub fn run(self, place: &Place) -> Outcome {
        let author = self.how.author();
        let at = place.store(&author)?.copy(&self.at, &self.to, &author, self.how.replies).map_err(failed)?;
        self.how.show(&at)
    }
}

impl Move {
    pub fn run(self, place: &Place) -> Outcome {
        let author = self.how.author();
        let at = place.store(&author)?.move_to(&self.at, &self.to, &author, self.how.replies).map_err(failed)?;
        self.how.show(&at)
    }
}
