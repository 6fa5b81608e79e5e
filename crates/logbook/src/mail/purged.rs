//! Mails and webhook messages in the queue whose entries were purged.

use tampu_types::Time;

use crate::{
    book::same_name,
    entry::EntryRef,
    store::{
        Store, StoreError,
        naming::{DeletedBook, current_name, is_name_of_deleted},
    },
};

/// Limit of the moves of an entry that are followed.
const MOVES: usize = 16;

/// The subject of a purge.
#[derive(Debug, Clone, Copy)]
pub enum PurgedText<'a> {
    /// An entry, or a part of it.
    Entry(&'a EntryRef),
    /// A deleted logbook with its entries.
    Book(&'a DeletedBook),
}

impl PurgedText<'_> {
    /// Returns true if a mail of this time about an entry has a text of the purge. The logbook may have had another name
    /// then, and the entry another place.
    pub fn is_in(&self, store: &(impl Store + ?Sized), about: &EntryRef, made: Time) -> bool {
        match self {
            PurgedText::Book(deleted) => {
                // A mail that is repeated has a new time, and a new logbook can have the name.
                let is_gone = || matches!(store.book(&about.book), Err(StoreError::NoBook(_)));
                let is_former = || is_name_of_deleted(store, &about.book, deleted.number).unwrap_or(false);
                same_name(&about.book, &deleted.name) && (made <= deleted.at || is_gone()) || is_former()
            }
            PurgedText::Entry(at) => {
                let is_it = |place: &EntryRef| place.id == at.id && same_name(&place.book, &at.book);
                let mut place = about.clone();
                for _ in 0..MOVES {
                    if let Ok(Some(name)) = current_name(store, &place.book) {
                        place.book = name;
                    }
                    if is_it(&place) {
                        return true;
                    }
                    match store.entry(&place) {
                        Err(StoreError::Gone(gone)) if gone.moved_to.is_some() => place = gone.moved_to.unwrap_or(gone.at),
                        _ => return false,
                    }
                }
                false
            }
        }
    }
}
