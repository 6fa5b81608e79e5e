//! Results of searches in one snapshot of a database, kept for those that ask the same again: a further page does not
//! count its search anew, and a list that many people look at is looked up once.
//!
//! The database says which snapshot a search has, by a text or number that changes with every commit. So a remembered
//! result is that of the same search at this moment, and anything that is written empties the memory. Entries are never
//! remembered: they are read for each page.
//!
//! While commits come faster than searches, each result is forgotten before anybody asks for it. So after a few snapshots
//! whose results nobody asked for again, nothing is remembered until a snapshot lasts for several searches.

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
/// Maximum number of remembered tags.
const TAGS: usize = 8;
/// Number of snapshots in sequence whose results nobody asked for again, after which nothing is remembered at once.
const UNUSED: u32 = 4;
/// Number of results and books that a snapshot offers after those, until they are remembered again.
const LASTING: u32 = 8;

/// The first and the last row of entries in a range; `None` without entries.
pub type Ends = Option<(i64, i64)>;

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
    books: Kept<Arc<BookRow>>,
    /// Tags, and whether an entry has them.
    tags: Vec<(String, bool)>,
    /// Ranges of rows, with the first and the last row that an entry has in them.
    ends: Vec<((i64, i64), Ends)>,
    /// True if something was asked for again in this snapshot.
    is_used: bool,
    /// Number of results and books that were offered in this snapshot, up to [`LASTING`].
    offered: u32,
    /// Number of snapshots in sequence before this one without use, up to [`UNUSED`].
    unused: u32,
}

impl<V> Default for SearchMemory<V> {
    fn default() -> SearchMemory<V> {
        let (results, books) = (Kept::default(), Kept::default());
        SearchMemory { snapshot: None, results, books, tags: Vec::new(), ends: Vec::new(), is_used: false, offered: 0, unused: 0 }
    }
}

impl<V: PartialEq + Clone> SearchMemory<V> {
    /// Returns a result in this snapshot.
    pub fn result(&mut self, snapshot: &V, key: &str) -> Option<Remembered> {
        let found = self.results.all.get(key).filter(|_| self.is_of(snapshot)).cloned();
        self.is_used |= found.is_some();
        found
    }

    /// Remembers a result in this snapshot.
    pub fn keep_result(&mut self, snapshot: &V, key: String, result: Remembered) {
        if matches!(&result, Remembered::Places(places) if places.len() > PLACES) {
            return;
        }
        if self.offer(snapshot) {
            let bytes = result.bytes();
            self.results.keep(key, result, bytes);
        }
    }

    /// Returns a book in this snapshot by its folded name.
    pub fn book(&mut self, snapshot: &V, folded: &str) -> Option<Arc<BookRow>> {
        let found = self.books.all.get(folded).filter(|_| self.is_of(snapshot)).cloned();
        self.is_used |= found.is_some();
        found
    }

    /// Remembers a book in this snapshot.
    pub fn keep_book(&mut self, snapshot: &V, folded: String, book: &Arc<BookRow>) {
        if self.offer(snapshot) {
            // In memory it takes about twice the bytes that it has as a text.
            let bytes = serde_json::to_vec(&book.book).map_or(usize::MAX, |text| 2 * text.len());
            self.books.keep(folded, book.clone(), bytes);
        }
    }

    /// Returns whether an entry has a tag in this snapshot, if that is known.
    pub fn tag(&self, snapshot: &V, tag: &str) -> Option<bool> {
        self.tags.iter().find(|(known, _)| self.is_of(snapshot) && known == tag).map(|(_, has)| *has)
    }

    /// Remembers whether an entry has a tag in this snapshot. There are few tags that are asked for in this way.
    pub fn keep_tag(&mut self, snapshot: &V, tag: &str, has: bool) {
        if self.offer(snapshot) && self.tags.len() < TAGS && self.tag(snapshot, tag).is_none() {
            self.tags.push((tag.to_owned(), has));
        }
    }

    /// Returns the first and the last row that an entry has in a range, if they are known in this snapshot.
    pub fn ends(&self, snapshot: &V, rows: (i64, i64)) -> Option<Ends> {
        self.ends.iter().find(|(known, _)| self.is_of(snapshot) && *known == rows).map(|(_, ends)| *ends)
    }

    /// Remembers the first and the last row of a range.
    pub fn keep_ends(&mut self, snapshot: &V, rows: (i64, i64), ends: Ends) {
        if self.offer(snapshot) && self.ends.len() < MOST && self.ends(snapshot, rows).is_none() {
            self.ends.push((rows, ends));
        }
    }

    fn is_of(&self, snapshot: &V) -> bool {
        self.snapshot.as_ref() == Some(snapshot)
    }

    /// Forgets everything of another snapshot, and returns true if something of this one is to be remembered.
    fn offer(&mut self, snapshot: &V) -> bool {
        if !self.is_of(snapshot) {
            let unused = if self.is_used || self.snapshot.is_none() { 0 } else { UNUSED.min(self.unused + 1) };
            *self = SearchMemory { snapshot: Some(snapshot.clone()), unused, ..SearchMemory::default() };
        }
        self.offered = LASTING.min(self.offered + 1);
        self.unused < UNUSED || self.offered == LASTING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_snapshot_has_nothing_of_this_one() {
        let mut memory = SearchMemory::default();
        let count = |memory: &mut SearchMemory<u32>, snapshot, key: &str| match memory.result(&snapshot, key) {
            Some(Remembered::Count(Count::Exactly(count))) => Some(count),
            _ => None,
        };
        memory.keep_result(&1, "a".to_owned(), Remembered::Count(Count::Exactly(7)));
        assert_eq!((count(&mut memory, 1, "a"), count(&mut memory, 1, "b"), count(&mut memory, 2, "a")), (Some(7), None, None));
        // A search that began earlier may end later.
        memory.keep_result(&2, "b".to_owned(), Remembered::Count(Count::Exactly(8)));
        assert_eq!((count(&mut memory, 1, "a"), count(&mut memory, 2, "a"), count(&mut memory, 2, "b")), (None, None, Some(8)));
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

    #[test]
    fn tags_and_ends_are_those_of_the_snapshot() {
        let mut memory = SearchMemory::<u32>::default();
        memory.keep_tag(&1, "a", true);
        memory.keep_ends(&1, (0, 9), Some((3, 4)));
        memory.keep_ends(&1, (0, 2), None);
        assert_eq!((memory.tag(&1, "a"), memory.tag(&1, "b"), memory.tag(&2, "a")), (Some(true), None, None));
        assert_eq!((memory.ends(&1, (0, 9)), memory.ends(&1, (0, 2))), (Some(Some((3, 4))), Some(None)));
        assert_eq!((memory.ends(&1, (0, 1)), memory.ends(&2, (0, 9))), (None, None));
        memory.keep_tag(&2, "a", false);
        assert_eq!((memory.tag(&2, "a"), memory.tag(&1, "a"), memory.ends(&1, (0, 9))), (Some(false), None, None));
    }

    #[test]
    fn nothing_is_remembered_while_commits_come_faster_than_searches() {
        let mut memory = SearchMemory::default();
        let keep = |memory: &mut SearchMemory<u32>, snapshot, key: &str| {
            memory.keep_result(&snapshot, key.to_owned(), Remembered::Count(Count::Exactly(1)));
            memory.results.all.contains_key(key)
        };
        let kept = (0..100).filter(|snapshot| keep(&mut memory, *snapshot, "a")).count();
        assert_eq!(kept, UNUSED as usize);
        // A snapshot that lasts is remembered, and one after it at once if it was used.
        let kept = (0..20).filter(|nth| keep(&mut memory, 100, &nth.to_string())).count();
        assert_eq!(kept, 20 - LASTING as usize + 1);
        assert!(!keep(&mut memory, 101, "a"), "nobody asked for results of the snapshot before");
        for nth in 0..LASTING {
            keep(&mut memory, 101, &nth.to_string());
        }
        assert!(memory.result(&101, &(LASTING - 1).to_string()).is_some());
        assert!(keep(&mut memory, 102, "a"));
    }
}
