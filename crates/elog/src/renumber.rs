//! Entries that need another number: the second one of a number, and those with a number that cannot be one.
//!
//! The number is above all others, rounded up to a thousand, so that elogd does not give it to its next entries. A later
//! import recognises the entry by its digest and gives it the same number.

use std::collections::{HashMap, HashSet};

use tampu_logbook::{
    entry::{EntryRef, MAX_ID},
    store::{Imports, Store, StoreError},
};

/// Numbers that stay free for the next entries of elogd.
const FREE: u32 = 100;
/// New numbers begin after a multiple of this one.
const ROUND: u32 = 1000;

/// Gives numbers to the entries of one book.
pub struct Renumber<'a> {
    store: &'a dyn Store,
    book: &'a str,
    /// The valid numbers of the source.
    taken: HashSet<u32>,
    /// Imported entries by their digests.
    imported: HashMap<[u8; 16], u32>,
    next: u32,
}

impl<'a> Renumber<'a> {
    /// Reads what the store has of a book. `taken` are the valid numbers of the source.
    pub fn new(store: &'a dyn Store, book: &'a str, taken: HashSet<u32>) -> Result<Renumber<'a>, StoreError> {
        let imported = match Imports::all_imports(store, book) {
            Ok(all) => all,
            Err(StoreError::NoBook(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        let highest = taken.iter().copied().chain(imported.iter().map(|(id, _)| *id)).max().unwrap_or_default();
        let next = (highest.saturating_add(FREE) / ROUND + 1).saturating_mul(ROUND).saturating_add(1);
        Ok(Renumber { store, book, taken, imported: imported.into_iter().map(|(id, digest)| (digest, id)).collect(), next })
    }

    /// Returns the number of an entry, which has one of these digests; `None` if all numbers are used.
    pub fn number(&mut self, digests: &[[u8; 16]]) -> Result<Option<u32>, StoreError> {
        let known = digests.iter().find_map(|digest| self.imported.get(digest).copied());
        if let Some(id) = known.filter(|id| self.taken.insert(*id)) {
            return Ok(Some(id));
        }
        while self.next <= MAX_ID {
            let id = self.next;
            self.next += 1;
            if !self.taken.contains(&id) && self.is_free(id)? {
                self.taken.insert(id);
                return Ok(Some(id));
            }
        }
        Ok(None)
    }

    /// Returns true if the store has never had an entry of a number.
    fn is_free(&self, id: u32) -> Result<bool, StoreError> {
        match self.store.entry(&EntryRef::new(self.book, id)) {
            Err(StoreError::NoEntry(_) | StoreError::NoBook(_)) => Ok(true),
            Ok(_) | Err(StoreError::Gone(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
