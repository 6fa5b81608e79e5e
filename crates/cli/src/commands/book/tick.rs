//! `tampu book tick`.

use std::io::{self, Write};

use clap::Args;
use serde_json::json;
use tampu_logbook::{checklist, entry::EntryRef};

use super::{
    place::{Place, failed},
    text::{entry_ref, shown},
};
use crate::{
    author::author,
    failure::{Failure, Outcome, written},
};

/// Show the checklist of an entry, or tick items of it; its history keeps who ticked what
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu book tick Shift/12\n  tampu book tick Shift/12 1 3\n  tampu book tick Shift/12 3 --undo"
)]
pub struct Tick {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    /// Items, counted from 1
    #[arg(value_name = "ITEM")]
    items: Vec<usize>,
    /// Remove the ticks
    #[arg(long, requires = "items")]
    undo: bool,
    /// The author [default: the user that runs this]
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Write JSON objects, one a line
    #[arg(long)]
    json: bool,
}

impl Tick {
    pub fn run(self, place: &Place) -> Outcome {
        let by = author(self.author.as_deref());
        let store = place.store(&by)?;
        let entry = store.entry(&self.at).map_err(failed)?;
        let items = checklist::items(&entry.content);
        if items.is_empty() {
            return Err(Failure::Usage(format!(
                "{} has no checklist: write lines such as '- [ ] open the valve' in Markdown",
                self.at
            )));
        }
        if let Some(none) = self.items.iter().find(|item| !(1..=items.len()).contains(*item)) {
            return Err(Failure::Usage(format!("{} has no item {none}; its items are 1 to {}", self.at, items.len())));
        }
        let mut content = entry.content;
        if !self.items.is_empty() {
            let done: Vec<bool> =
                (1..).zip(&items).map(|(nth, item)| if self.items.contains(&nth) { !self.undo } else { item.done }).collect();
            content.text = checklist::ticked(&content, &done);
            store.edit(&self.at, content.clone(), vec![], &by, Some(entry.revision)).map_err(failed)?;
        }
        let mut out = io::stdout().lock();
        for (nth, item) in (1..).zip(checklist::items(&content)) {
            let line = match self.json {
                true => json!({ "item": nth, "done": item.done, "text": item.text }).to_string(),
                false => format!("{nth} [{}] {}", if item.done { "x" } else { " " }, shown(&item.text, false)),
            };
            written(writeln!(out, "{line}"))?;
        }
        Ok(())
    }
}
