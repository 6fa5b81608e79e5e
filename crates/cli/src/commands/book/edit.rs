//! `tampu book edit`.

use clap::Args;
use tampu_logbook::{
    book::locked::{LockedBy, keeps_locked},
    entry::EntryRef,
    store::{EntryEdit, Logbook, pages::thread_entries},
};

use super::{
    place::{Place, failed},
    text::entry_ref,
    writing::{Unasked, Writing},
};
use crate::failure::Outcome;

/// Change the given parts of an entry; its history keeps the earlier text
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tampu book edit Shift/12 -a Type='Problem Fixed' --revision 0\n  tampu book edit Shift/12 --thread -a Type=Fixed"
)]
pub struct Edit {
    /// The entry: BOOK/NUMBER
    #[arg(value_parser = entry_ref, value_name = "ENTRY")]
    at: EntryRef,
    /// Change the entry only if it is at this revision
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
    /// Give the attributes to all entries of the thread, all of them or none
    #[arg(long, conflicts_with_all = ["revision", "text", "file", "attachment"])]
    thread: bool,
    #[command(flatten)]
    writing: Writing,
}

impl Edit {
    pub fn run(self, place: &Place) -> Outcome {
        let store = place.store(&self.writing.author())?;
        if self.thread {
            return self.whole_thread(&*store);
        }
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

    fn whole_thread(&self, store: &dyn Logbook) -> Outcome {
        let book = store.book(&self.at.book).map_err(failed)?;
        let mut changes = Vec::new();
        for entry in thread_entries(store, &self.at, true) {
            let entry = entry.map_err(failed)?;
            let mut content = entry.content;
            let was = content.attributes.clone();
            self.writing.apply(store, &book.name, &mut content, Unasked::Leaves)?;
            keeps_locked(&book, &was, &content.attributes, LockedBy::People).map_err(|why| failed(why.into()))?;
            changes.push(EntryEdit { at: entry.at, expected: entry.revision, content });
        }
        let places: Vec<EntryRef> = changes.iter().map(|one| one.at.clone()).collect();
        let revisions = store.edit_all(changes, &self.writing.author()).map_err(failed)?;
        places.iter().zip(revisions).try_for_each(|(at, revision)| self.writing.tell(at, Some(revision)))
    }
}
