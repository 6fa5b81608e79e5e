//! The end positions of earlier pages. The next page of a search begins at the end of the previous one.

use std::collections::{BTreeMap, HashMap};

use parking_lot::Mutex;
use tampu_logbook::search::Cursor;
use tampu_types::Time;

/// Maximum number of searches with cached positions, and of positions for each. When it is exceeded, all are dropped.
const MARKED_SEARCHES: usize = 64;

const MARKS: usize = 1000;

/// The key of a remembered position: the books, the query, the order, and true if it is descending.
pub(super) type CursorKey = (Vec<String>, String, String, bool);

/// Cached positions of all searches.
#[derive(Debug, Default)]
pub struct PageCursors(Mutex<HashMap<CursorKey, SearchCursors>>);

/// The first positions of a search's pages, valid for one version of its books.
type SearchCursors = (BooksVersion, BTreeMap<u64, Cursor>);

/// A version of the books, which changes when entries are added or removed.
pub(super) type BooksVersion = (u64, Option<Time>);

impl PageCursors {
    pub(super) fn get(&self, key: &CursorKey, version: BooksVersion, at: u64) -> Option<Cursor> {
        let marks = self.0.lock();
        marks.get(key).filter(|(known, _)| *known == version)?.1.get(&at).cloned()
    }

    pub(super) fn put(&self, key: CursorKey, version: BooksVersion, at: u64, cursor: Cursor) {
        let mut marks = self.0.lock();
        if marks.len() >= MARKED_SEARCHES && !marks.contains_key(&key) {
            marks.clear();
        }
        let (known, places) = marks.entry(key).or_default();
        if *known != version || places.len() >= MARKS {
            places.clear();
            *known = version;
        }
        places.insert(at, cursor);
    }
}
