//! Verdicts on entries: results of parts of queries that the index does not decide, kept for further searches with such a part.
//!
//! A regular expression, or a phrase of more than two words in PostgreSQL, is checked against the entries themselves. The
//! next page, the count, and the same search with one more word check the same entries again. A verdict stays true as long
//! as its book only gets entries after its last one: all other changes alter [`BookRow::rewrites`].

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use super::book_row::BookRow;

/// Maximum number of verdicts for one part of a query in one book.
const VERDICTS: usize = 4096;
/// Maximum number of parts; the one that was not used for the longest time is forgotten first.
const PARTS: usize = 64;
/// Maximum length of a part's text, in bytes.
const LENGTH: usize = 4096;

/// The state of a book in which verdicts were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BookState {
    /// Distinguishes databases that may both have a book of this number: the number of lost connections before.
    pub database: u64,
    pub book: i64,
    pub rewrites: u64,
}

impl BookState {
    pub fn of(database: u64, book_row: &BookRow) -> BookState {
        BookState { database, book: book_row.num, rewrites: book_row.rewrites }
    }
}

/// The verdicts for one part, by row. Concurrent searches share them. With too many, those on the newest entries stay, which
/// most searches check.
#[derive(Debug, Default)]
pub struct Verdicts(Mutex<BTreeMap<i64, bool>>);

impl Verdicts {
    pub fn get(&self, row: i64) -> Option<bool> {
        self.0.lock().get(&row).copied()
    }

    pub fn keep(&self, row: i64, matches: bool) {
        let mut all = self.0.lock();
        all.insert(row, matches);
        if all.len() > VERDICTS {
            all.pop_first();
        }
    }
}

#[derive(Debug)]
struct KnownPart {
    state: BookState,
    part: String,
    used: u64,
    verdicts: Arc<Verdicts>,
}

/// The verdicts of a store.
#[derive(Debug, Default)]
pub struct VerdictMemory {
    parts: Mutex<(u64, Vec<KnownPart>)>,
}

impl VerdictMemory {
    /// Returns the verdicts for a part of a query, named by a text, in a state of a book.
    pub fn of(&self, state: BookState, part: &str) -> Arc<Verdicts> {
        if part.len() > LENGTH {
            return Arc::default();
        }
        let (now, parts) = &mut *self.parts.lock();
        *now += 1;
        let found = parts.iter_mut().find(|known| known.state.book == state.book && known.part == part);
        if let Some(known) = found {
            if known.state != state {
                (known.state, known.verdicts) = (state, Arc::default());
            }
            known.used = *now;
            return known.verdicts.clone();
        }
        if parts.len() >= PARTS
            && let Some(oldest) = (0..parts.len()).min_by_key(|&at| parts[at].used)
        {
            parts.swap_remove(oldest);
        }
        let verdicts = Arc::<Verdicts>::default();
        parts.push(KnownPart { state, part: part.to_owned(), used: *now, verdicts: verdicts.clone() });
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_end_with_the_state_of_the_book() {
        let memory = VerdictMemory::default();
        let state = |database, book, rewrites| BookState { database, book, rewrites };
        memory.of(state(0, 1, 0), "/a/").keep(7, true);
        assert_eq!(memory.of(state(0, 1, 0), "/a/").get(7), Some(true));
        assert_eq!(memory.of(state(0, 1, 0), "/b/").get(7), None);
        assert_eq!(memory.of(state(0, 2, 0), "/a/").get(7), None);
        assert_eq!(memory.of(state(0, 1, 1), "/a/").get(7), None);
        // A search in the snapshot before has the state before, and begins anew.
        assert_eq!(memory.of(state(0, 1, 0), "/a/").get(7), None);
        memory.of(state(0, 1, 0), "/a/").keep(7, true);
        assert_eq!(memory.of(state(1, 1, 0), "/a/").get(7), None);
    }

    #[test]
    fn memory_is_bounded() {
        let memory = VerdictMemory::default();
        let state = BookState { database: 0, book: 1, rewrites: 0 };
        memory.of(state, "kept").keep(1, true);
        for nth in 0..3 * PARTS {
            let verdicts = memory.of(state, &format!("part {nth}"));
            (0..2 * VERDICTS as i64).for_each(|row| verdicts.keep(row, true));
            assert!(verdicts.0.lock().len() <= VERDICTS);
            assert_eq!((verdicts.get(0), verdicts.get(2 * VERDICTS as i64 - 1)), (None, Some(true)), "the newest stay");
            assert_eq!(memory.of(state, "kept").get(1), Some(true), "a part in use is not forgotten");
        }
        assert!(memory.parts.lock().1.len() <= PARTS);
        memory.of(state, &"x".repeat(LENGTH + 1)).keep(1, true);
        assert_eq!(memory.of(state, &"x".repeat(LENGTH + 1)).get(1), None);
    }
}
