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
/// Maximum number of their bytes, about; with more, all are forgotten.
const MOST_BYTES: usize = 512 << 10;
/// Bytes of a result or a position beside its text, about.
const EACH: usize = 96;
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

impl Remembered {
    /// Returns about how many bytes it takes.
    fn bytes(&self) -> usize {
        match self {
            Remembered::Places(places) => places.iter().map(|place| place.key.len() + EACH).sum(),
            Remembered::Count(_) => 0,
        }
    }
}

/// Things by their keys, bounded in number and bytes.
#[derive(Debug)]
struct Kept<T> {
    all: HashMap<String, T>,
    bytes: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { all: HashMap::new(), bytes: 0 }
    }
}

impl<T> Kept<T> {
    /// Keeps a thing of so many bytes; one that is larger than all may be together is not kept.
    fn keep(&mut self, key: String, value: T, bytes: usize) {
        let bytes = bytes.saturating_add(key.len() + EACH);
        if bytes > MOST_BYTES {
            return;
        }
        if self.all.len() >= MOST || self.bytes + bytes > MOST_BYTES {
            *self = Kept::default();
        }
        self.bytes += bytes;
        self.all.insert(key, value);
    }
}

/// Results of searches in one snapshot.
#[derive(Debug)]
pub struct SearchMemory<V> {
    snapshot: Option<V>,
    results: Kept<Remembered>,
    books: Kept<BookRow>,
}

impl<V> Default for SearchMemory<V> {
    fn default() -> SearchMemory<V> {
        SearchMemory { snapshot: None, results: Kept::default(), books: Kept::default() }
    }
}

impl<V: PartialEq + Clone> SearchMemory<V> {
    /// Returns a result in this snapshot.
    pub fn result(&self, snapshot: &V, key: &str) -> Option<Remembered> {
        self.results.all.get(key).filter(|_| self.is_of(snapshot)).cloned()
    }

    /// Remembers a result in this snapshot.
    pub fn keep_result(&mut self, snapshot: &V, key: String, result: Remembered) {
        if matches!(&result, Remembered::Places(places) if places.len() > PLACES) {
            return;
        }
        self.begin(snapshot);
        let bytes = result.bytes();
        self.results.keep(key, result, bytes);
    }

    /// Returns a book in this snapshot by its folded name.
    pub fn book(&self, snapshot: &V, folded: &str) -> Option<BookRow> {
        self.books.all.get(folded).filter(|_| self.is_of(snapshot)).cloned()
    }

    /// Remembers a book in this snapshot.
    pub fn keep_book(&mut self, snapshot: &V, folded: String, book: BookRow) {
        self.begin(snapshot);
        // In memory it takes about twice the bytes that it has as a text.
        let bytes = serde_json::to_vec(&book.book).map_or(usize::MAX, |text| 2 * text.len());
        self.books.keep(folded, book, bytes);
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
        assert!(memory.results.all.len() <= MOST);
        let place = OrderKey { key: "k".repeat(1000), row: 1 };
        for nth in 0..2 * MOST {
            memory.keep_result(&2, nth.to_string(), Remembered::Places(vec![place.clone(); 100].into()));
            let bytes: usize = memory.results.all.values().map(Remembered::bytes).sum();
            assert!(bytes <= MOST_BYTES && memory.result(&2, &nth.to_string()).is_some());
        }
        memory.keep_result(&2, "k".repeat(MOST_BYTES), Remembered::Count(Count::Exactly(0)));
        assert!(memory.result(&2, &"k".repeat(MOST_BYTES)).is_none());
    }
}
