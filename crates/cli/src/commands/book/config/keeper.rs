//! The place of configurations for commands: the data themselves, or a hub's API.

use tampu_elog::book_config::{change_as_text, read, text};
use tampu_logbook::{
    book::change::{BookEdit, ConfigChange, ConfigText},
    client::Client,
    store::Store,
};

use super::super::place::{Place, failed, refused};
use crate::{
    author::author,
    failure::{Failure, Outcome},
};

/// Changes that are read at a time.
const PAGE: usize = 50;

/// The configurations of logbooks.
pub enum ConfigKeeper {
    Here(Box<dyn Store>),
    There(Client),
}

impl ConfigKeeper {
    pub fn open(place: &Place) -> Result<ConfigKeeper, Failure> {
        Ok(match place.remote(&author(None))? {
            Some(hub) => ConfigKeeper::There(hub),
            None => ConfigKeeper::Here(place.open()?),
        })
    }

    pub fn config(&self, book: &str) -> Result<ConfigText, Failure> {
        match self {
            ConfigKeeper::Here(store) => {
                let book = store.book(book).map_err(failed)?;
                Ok(ConfigText { text: text(&book), version: book.version() })
            }
            ConfigKeeper::There(hub) => hub.config(book).map_err(refused),
        }
    }

    /// Changes a configuration that is still at this version.
    pub fn set(&self, book: &str, new: &str, version: &str) -> Outcome {
        match self {
            ConfigKeeper::Here(store) => {
                let present = store.book(book).map_err(failed)?;
                let new = read(new, &present).map_err(|faults| {
                    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
                    Failure::Failed(format!("nothing was changed: {}", lines.join("; ")))
                })?;
                let edit = BookEdit { book: &new, by: &author(None), what: "", expected: Some(version) };
                store.change_book(edit).map(drop).map_err(failed)
            }
            ConfigKeeper::There(hub) => hub.set_config(book, new, version).map(drop).map_err(refused),
        }
    }

    /// Calls back for each change, the last one first.
    pub fn changes(&self, book: &str, each: &mut dyn FnMut(&ConfigChange) -> Outcome) -> Outcome {
        let mut before = None;
        loop {
            let page: Vec<ConfigChange> = match self {
                ConfigKeeper::Here(store) => {
                    let found = store.book_changes(book, before, PAGE).map_err(failed)?;
                    found.iter().map(|change| change_as_text(change, false)).collect()
                }
                ConfigKeeper::There(hub) => hub.config_changes(book, before).map_err(refused)?,
            };
            page.iter().try_for_each(&mut *each)?;
            let Some(last) = page.last() else { return Ok(()) };
            before = Some(last.number);
        }
    }

    pub fn change(&self, book: &str, number: u32) -> Result<ConfigChange, Failure> {
        match self {
            ConfigKeeper::Here(store) => {
                store.book_change(book, number).map(|change| change_as_text(&change, true)).map_err(failed)
            }
            ConfigKeeper::There(hub) => hub.config_change(book, number).map_err(refused),
        }
    }

    pub fn restore(&self, book: &str, number: u32, before: bool) -> Outcome {
        match self {
            ConfigKeeper::Here(store) => {
                let present = store.book(book).map_err(failed)?;
                let change = store.book_change(book, number).map_err(failed)?;
                let restored = change.restored(before, &present).ok_or_else(|| {
                    Failure::Usage(format!("--before: change {number} made the logbook, and there is nothing before it"))
                })?;
                let what = format!("restored {}{number}", if before { "before " } else { "" });
                let edit = BookEdit { book: &restored, by: &author(None), what: &what, expected: Some(&present.version()) };
                store.change_book(edit).map(drop).map_err(failed)
            }
            ConfigKeeper::There(hub) => hub.restore_config(book, number, before).map(drop).map_err(refused),
        }
    }
}
