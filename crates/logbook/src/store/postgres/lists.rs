//! Lists of the rows that have a word, kept in memory.
//!
//! Searches ask for the same words again and again, while posts only add entries after the last one. So a list stays true
//! up to the row that was the book's last one, and the database is asked only for what came after it. Anything else, such as
//! an edit, ends the lists of its book ([`BookState`]).
//!
//! A list of few rows is fetched when it is first needed. A longer one is fetched when it is needed again in the same state
//! of its book, the longer it was before the more often: in a book where many entries are edited, a list is of use for a
//! short time only. A very long one is never fetched, because a search for such a word finds a page, and the number up to
//! which it counts, in the newest entries.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;

use crate::store::verdicts::BookState;

/// Number of rows up to which a list is fetched at once.
pub const FEW: usize = 256;
/// Maximum number of rows of a list.
pub const MOST: usize = 1 << 20;
/// Number of rows that are fetched for each time that a list was needed.
const FOR_EACH_NEED: usize = 10_000;
/// Number of new entries of a book after which a list is continued. Until then each search asks for the entries after it.
pub const GROWTH: u64 = 512;
/// Maximum number of lists and of their rows together: 64 MB.
const LISTS: usize = 512;
const ROWS: usize = 8_000_000;

/// The rows of a book's entries that have one of some numbers.
#[derive(Debug, Clone)]
pub struct List {
    /// In ascending order.
    pub rows: Arc<[i64]>,
    /// The book's last row when the list was made, and the number of its entries.
    pub until: i64,
    pub entries: u64,
}

/// The next step to a list.
#[derive(Debug)]
pub enum Step {
    /// It is known.
    Known(List),
    /// It is to be fetched, up to this number of rows.
    Fetch(usize),
    /// It is not worth it now.
    Skip,
}

#[derive(Debug)]
struct Slot {
    state: BookState,
    list: Option<List>,
    /// Number of times it was needed in this state, while it had more than [`FEW`] rows and was not fetched.
    needed: usize,
    /// The number of rows that it had when it was fetched last.
    length: usize,
    /// True if it had more than [`FEW`] rows, in this state or before.
    is_long: bool,
    /// True if it had more than [`MOST`].
    is_too_long: bool,
    used: u64,
}

#[derive(Debug, Default)]
struct Lists {
    all: HashMap<(i64, Box<[i64]>), Slot>,
    rows: usize,
    now: u64,
}

/// The lists of a store, by book and numbers.
#[derive(Debug, Default)]
pub struct ListMemory(Mutex<Lists>);

impl ListMemory {
    /// Returns the next step to the list of these numbers.
    pub fn next_step(&self, state: BookState, numbers: &[i64]) -> Step {
        let lists = &mut *self.0.lock();
        lists.now += 1;
        // A key that is only looked up would have to be made, too: the map's own type of key is owned.
        let Some(slot) = lists.all.get_mut(&(state.book, numbers.into())) else { return Step::Fetch(FEW) };
        slot.used = lists.now;
        if slot.state != state {
            lists.rows -= slot.list.take().map_or(0, |list| list.rows.len());
            (slot.state, slot.needed) = (state, 0);
        }
        match &slot.list {
            Some(list) => Step::Known(list.clone()),
            None if slot.is_too_long => Step::Skip,
            None if !slot.is_long => Step::Fetch(FEW),
            None => {
                slot.needed += 1;
                if slot.needed > 1 + slot.length / FOR_EACH_NEED { Step::Fetch(MOST) } else { Step::Skip }
            }
        }
    }

    /// Keeps what was fetched: the list, or that it has more rows than `limit`.
    pub fn keep(&self, state: BookState, numbers: &[i64], limit: usize, list: Option<&List>) {
        let lists = &mut *self.0.lock();
        let used = lists.now;
        let fresh = || Slot { state, list: None, needed: 0, length: 0, is_long: false, is_too_long: false, used };
        let slot = lists.all.entry((state.book, numbers.into())).or_insert_with(fresh);
        lists.rows -= slot.list.take().map_or(0, |list| list.rows.len());
        (slot.state, slot.used) = (state, used);
        match list {
            Some(list) => {
                lists.rows += list.rows.len();
                slot.length = list.rows.len();
                slot.is_long = slot.length > FEW;
                slot.list = Some(list.clone());
            }
            None => {
                slot.is_long = true;
                slot.needed = 1;
                slot.is_too_long = limit >= MOST;
            }
        }
        while lists.all.len() > LISTS || lists.rows > ROWS {
            let Some(oldest) = lists.all.iter().min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone()) else { return };
            let rows = lists.all.remove(&oldest).and_then(|slot| slot.list).map_or(0, |list| list.rows.len());
            lists.rows -= rows;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(rewrites: u64) -> BookState {
        BookState { database: 0, book: 1, rewrites }
    }

    fn list(rows: usize) -> List {
        List { rows: (0..rows as i64).collect(), until: 1 << 40, entries: rows as u64 }
    }

    #[test]
    fn a_long_list_is_fetched_when_it_is_needed_again() {
        let memory = ListMemory::default();
        assert!(matches!(memory.next_step(state(0), &[1, 2]), Step::Fetch(FEW)));
        memory.keep(state(0), &[1, 2], FEW, None);
        assert!(matches!(memory.next_step(state(0), &[1, 2]), Step::Fetch(MOST)));
        memory.keep(state(0), &[1, 2], MOST, Some(&list(1000)));
        assert!(matches!(memory.next_step(state(0), &[1, 2]), Step::Known(list) if list.rows.len() == 1000));
        // After an edit it is needed twice again, and a longer one more often.
        assert!(matches!(memory.next_step(state(1), &[1, 2]), Step::Skip));
        assert!(matches!(memory.next_step(state(1), &[1, 2]), Step::Fetch(MOST)));
        memory.keep(state(1), &[3], MOST, Some(&list(5 * FOR_EACH_NEED)));
        let skipped = (0..20).take_while(|_| matches!(memory.next_step(state(2), &[3]), Step::Skip)).count();
        assert_eq!(skipped, 6);
        memory.keep(state(1), &[1, 2], MOST, None);
        for rewrites in [1, 2, 2, 2] {
            assert!(matches!(memory.next_step(state(rewrites), &[1, 2]), Step::Skip), "a very long one is never fetched again");
        }
    }

    #[test]
    fn a_short_list_is_fetched_at_once_and_ends_with_its_state() {
        let memory = ListMemory::default();
        memory.keep(state(0), &[7], FEW, Some(&list(3)));
        assert!(matches!(memory.next_step(state(0), &[7]), Step::Known(_)));
        assert!(matches!(memory.next_step(state(1), &[7]), Step::Fetch(FEW)));
        let other = BookState { book: 2, ..state(1) };
        assert!(matches!(memory.next_step(other, &[7]), Step::Fetch(FEW)));
        assert_eq!(memory.0.lock().rows, 0);
    }

    #[test]
    fn memory_is_bounded() {
        let memory = ListMemory::default();
        for nth in 0..3 * LISTS as i64 {
            memory.next_step(state(0), &[nth]);
            memory.keep(state(0), &[nth], FEW, Some(&list(5)));
            assert!(matches!(memory.next_step(state(0), &[nth]), Step::Known(_)));
        }
        let sizes = |lists: &Lists| (lists.all.len(), lists.rows);
        assert_eq!(sizes(&memory.0.lock()), (LISTS, 5 * LISTS));
        let long = list(MOST);
        for nth in 0..20 {
            memory.next_step(state(0), &[-1, nth]);
            memory.keep(state(0), &[-1, nth], MOST, Some(&long));
            let lists = memory.0.lock();
            assert!(lists.rows <= ROWS);
            assert_eq!(lists.rows, lists.all.values().filter_map(|slot| Some(slot.list.as_ref()?.rows.len())).sum::<usize>());
        }
    }
}
