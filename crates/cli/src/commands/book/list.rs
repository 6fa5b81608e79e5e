//! `tampu book list`.

use std::io::{self, Write};

use clap::Args;

use super::{
    place::{Place, failed},
    text::{minute, shown},
};
use crate::{
    failure::{Outcome, written},
    plural::counted,
    time_text,
};

/// List the logbooks: how many entries, the newest, their attributes
#[derive(Debug, Args)]
pub struct List {
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(self, place: &Place) -> Outcome {
        let books = place.store("")?.books().map_err(failed)?;
        if books.is_empty() {
            eprintln!("tampu: no logbooks in {}: make one with 'tampu book make NAME'{}", place.told(), place.others());
        }
        let mut out = io::stdout().lock();
        let width = books.iter().map(|info| info.book.name.chars().count()).max().unwrap_or(0).clamp(4, 40);
        for info in &books {
            if self.json {
                let line = time_text::json_line(info, "a logbook")?;
                written(writeln!(out, "{line}"))?;
                continue;
            }
            let newest = info.newest.map_or("-".to_owned(), minute);
            let names: Vec<String> = info.book.attributes.iter().map(|attribute| shown(&attribute.name, false)).collect();
            let name = shown(&info.book.name, false);
            written(writeln!(out, "{name:<width$}  {:>16}  {newest:<20}  {}", counted(info.entries, "entry"), names.join(", ")))?;
        }
        Ok(())
    }
}
