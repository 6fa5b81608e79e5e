//! Results of searches in one snapshot of a database, kept for those that ask the same again: a further page does not
//! count its search anew, and a list that many people look at is looked up once.
//!
//! The database says which snapshot a search has, by a text or number that changes with every commit. So a remembered
//! result is that of the same search at this moment, and anything that is written empties the memory. Entries are never
//! remembered: they are read for each page.

use std::{collections::HashMap, sync::Arc};

use super::book_row::{BookRow, OrderKey};
use crate::search::Count;

/// Maximum number of results, and of books; with more, all are forgotten.
const MOST: usize = 128;
/// Maximum number of positions of a result.
const PLACES: usize = 256;

/// A result of a search.
#[derive(Debug, Clone)]
pub enum Remembered {
    /// The positions of a page, with one more if there is a further page.
    Places(Arc<[OrderKey]>),
    /// The number of entries that it finds.
    Count(Count),
}

/// Results of searches in one snapshot.
#[derive(Debug)]
pub struct SearchMemory<V> {
    snapshot: Option<V>,
    results: HashMap<String, Remembered>,
    books: HashMap<String, BookRow>,
}

impl<V> Default for SearchMemory<V> {
    fn default() -> SearchMemory<V> {
        SearchMemory { snapshot: None, results: HashMap::new(), books: HashMap::new() }
    }
}

impl<V: PartialEq + Clone> SearchMemory<V> {
    /// Returns a result in this snapshot.
    pub fn result(&self, snapshot: &V, key: &str) -> Option<Remembered> {
        self.results.get(key).filter(|_| self.is_of(snapshot)).cloned()
    }

    /// Remembers a result in this snapshot.
    pub fn keep_result(&mut self, snapshot: &V, key: String, result: Remembered) {
        if matches!(&result, Remembered::Places(places) if places.len() > PLACES) {
            return;
        }
        self.begin(snapshot);
        if self.results.len() >= MOST {
            self.results.clear();
        }
        self.results.insert(key, result);
    }

    /// Returns a book in this snapshot by its folded name.
    pub fn book(&self, snapshot: &V, folded: &str) -> Option<BookRow> {
        self.books.get(folded).filter(|_| self.is_of(snapshot)).cloned()
    }

    /// Remembers a book in this snapshot.
    pub fn keep_book(&mut self, snapshot: &V, folded: String, book: BookRow) {
        self.begin(snapshot);
        if self.books.len() >= MOST {
            self.books.clear();
        }
        self.books.insert(folded, book);
    }

    fn is_of(&self, snapshot: &V) -> bool {
        self.snapshot.as_ref() == Some(snapshot)
    }

    /// Forgets everything of another snapshot.
    fn begin(&mut self, snapshot: &V) {
        if !self.is_of(snapshot) {
            *self = SearchMemory { snapshot: Some(snapshot.clone()), ..SearchMemory::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_snapshot_has_nothing_of_this_one() {
        let mut memory = SearchMemory::default();
        let count = |memory: &SearchMemory<u32>, snapshot, key: &str| match memory.result(&snapshot, key) {
            Some(Remembered::Count(Count::Exactly(count))) => Some(count),
            _ => None,
        };
        memory.keep_result(&1, "a".to_owned(), Remembered::Count(Count::Exactly(7)));
        assert_eq!((count(&memory, 1, "a"), count(&memory, 1, "b"), count(&memory, 2, "a")), (Some(7), None, None));
        // A search that began earlier may end later.
        memory.keep_result(&2, "b".to_owned(), Remembered::Count(Count::Exactly(8)));
        assert_eq!((count(&memory, 1, "a"), count(&memory, 2, "a"), count(&memory, 2, "b")), (None, None, Some(8)));
        for nth in 0..2 * MOST {
            memory.keep_result(&2, nth.to_string(), Remembered::Count(Count::Exactly(0)));
        }
        assert!(memory.results.len() <= MOST);
    }
}
