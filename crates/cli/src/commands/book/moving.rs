//! `tampu book delete`, `copy` and `move`.

use std::io::{self, Write};

use clap::Args;
use tampu_logbook::entry::EntryRef;

use super::{Place, entry_ref, failed};
use crate::failure::{Outcome, written};

/// Delete an entry; its number is given to no other, and what it said stays in its history
#[derive(Debug, Args)]
pub struct Delete {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    #[command(flatten)]
    how: How,
}

/// Make an entry once more in a logbook; prints where it is
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

/// Take an entry to another logbook, with its history; prints where it is
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
    /// With all answers to it
    #[arg(long)]
    replies: bool,
    /// Who does it
    #[arg(long, env = "USER", value_name = "NAME", default_value = "unknown", hide_env_values = true)]
    by: String,
}

impl Delete {
    pub fn run(self, place: &Place) -> Outcome {
        let count = place.store(&self.how.by)?.delete(&self.at, &self.how.by, self.how.replies).map_err(failed)?;
        written(writeln!(io::stdout().lock(), "{count} deleted"))
    }
}

impl Copy {
    pub fn run(self, place: &Place) -> Outcome {
        let at = place.store(&self.how.by)?.copy(&self.at, &self.to, &self.how.by, self.how.replies).map_err(failed)?;
        written(writeln!(io::stdout().lock(), "{at}"))
    }
}

impl Move {
    pub fn run(self, place: &Place) -> Outcome {
        let at = place.store(&self.how.by)?.move_to(&self.at, &self.to, &self.how.by, self.how.replies).map_err(failed)?;
        written(writeln!(io::stdout().lock(), "{at}"))
    }
}
