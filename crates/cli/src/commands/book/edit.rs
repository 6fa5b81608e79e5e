//! `tampu book edit`.

use clap::Args;
use tampu_logbook::{
    book::locked::{LockedBy, keeps_locked},
    entry::EntryRef,
};

use super::{
    place::{Place, failed},
    text::entry_ref,
    writing::{Unasked, Writing},
};
use crate::failure::Outcome;

/// Change the given parts of an entry; its history keeps the earlier text
#[derive(Debug, Args)]
#[command(after_help = "Example: tampu book edit Shift/12 -a Type='Problem Fixed' --revision 0")]
pub struct Edit {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    /// Change the entry only if it is at this revision
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
    #[command(flatten)]
    writing: Writing,
}

impl Edit {
    pub fn run(self, place: &Place) -> Outcome {
        let store = place.store(&self.writing.author())?;
        let entry = store.entry(&self.at).map_err(failed)?;
        let expected = self.revision.unwrap_or(entry.revision);
        let mut content = entry.content;
        let was = content.attributes.clone();
        let uploads = self.writing.apply(&*store, &entry.at.book, &mut content, Unasked::Leaves)?;
        let book = store.book(&entry.at.book).map_err(failed)?;
        keeps_locked(&book, &was, &content.attributes, LockedBy::People).map_err(|why| failed(why.into()))?;
        let revision = store.edit(&self.at, content, uploads, &self.writing.author(), Some(expected)).map_err(failed)?;
        self.writing.tell(&entry.at, Some(revision))
    }
}
