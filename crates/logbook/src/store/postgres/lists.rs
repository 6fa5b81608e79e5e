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
pub const MOST: usize = 1 << 17;
/// Number of rows that are fetched for each time that a list was needed.
const FOR_EACH_NEED: usize = 10_000;
/// Number of new entries of a book after which a list is continued. Until then each search asks for the entries after it.
pub const GROWTH: u64 = 512;
/// Maximum number of lists, and of their rows and numbers together: 32 MB.
const LISTS: usize = 512;
const ROWS: usize = 4_000_000;

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
    /// The number of rows of all lists, and of the numbers that name them.
    weight: usize,
    now: u64,
}

/// The lists of a store, by book and numbers.
#[derive(Debug, Default)]
pub struct ListMemory(Mutex<Lists>);

impl ListMemory {
    /// Returns the next step to the list of each of these sets of numbers, or `None` if one of them is not worth fetching now.
    /// Lists that are to be fetched count as too dear until [`ListMemory::keep`] has them: so a fetch that the time limit ends is
    /// not repeated by each further search, and searches at the same time do not fetch the same.
    pub fn next_steps(&self, state: BookState, sets: &[Vec<i64>]) -> Option<Vec<Step>> {
        let lists = &mut *self.0.lock();
        lists.now += 1;
        let keys: Vec<(i64, Box<[i64]>)> = sets.iter().map(|numbers| (state.book, numbers.as_slice().into())).collect();
        let mut steps = Vec::with_capacity(keys.len());
        for key in &keys {
            steps.push(lists.step(state, key));
        }
        let steps: Option<Vec<Step>> = steps.into_iter().collect();
        for (key, step) in keys.into_iter().zip(steps.iter().flatten()) {
            if let Step::Fetch(limit) = step {
                lists.claim(state, key, *limit);
            }
        }
        lists.shorten();
        steps
    }

    /// Keeps what was fetched: the list, or that it has more rows than `limit`.
    pub fn keep(&self, state: BookState, numbers: &[i64], limit: usize, list: Option<&List>) {
        let lists = &mut *self.0.lock();
        let slot = lists.slot(state, (state.book, numbers.into()));
        match list {
            Some(list) => {
                slot.length = list.rows.len();
                slot.is_long = slot.length > FEW;
                slot.list = Some(list.clone());
                lists.weight += list.rows.len();
            }
            None => {
                slot.is_long = true;
                slot.needed = 1;
                slot.is_too_long = limit >= MOST;
            }
        }
        lists.shorten();
    }
}

impl Lists {
    /// Returns the next step to a list; `None` if it is not worth fetching now.
    fn step(&mut self, state: BookState, key: &(i64, Box<[i64]>)) -> Option<Step> {
        let Some(slot) = self.all.get_mut(key) else { return Some(Step::Fetch(FEW)) };
        slot.used = self.now;
        if slot.state != state {
            self.weight -= slot.list.take().map_or(0, |list| list.rows.len());
            (slot.state, slot.needed) = (state, 0);
        }
        match &slot.list {
            Some(list) => Some(Step::Known(list.clone())),
            None if slot.is_too_long => None,
            None if !slot.is_long => Some(Step::Fetch(FEW)),
            None => {
                slot.needed += 1;
                (slot.needed > 1 + slot.length / FOR_EACH_NEED).then_some(Step::Fetch(MOST))
            }
        }
    }

    /// Marks a list that is about to be fetched as too dear: the next attempt, if this one fails, comes later each time.
    fn claim(&mut self, state: BookState, key: (i64, Box<[i64]>), limit: usize) {
        let slot = self.slot(state, key);
        slot.needed = 0;
        slot.is_long = true;
        if limit >= MOST {
            slot.length = (2 * slot.length).clamp(FOR_EACH_NEED, MOST);
        }
    }

    /// Returns the slot of a list, without the list.
    fn slot(&mut self, state: BookState, key: (i64, Box<[i64]>)) -> &mut Slot {
        let (used, numbers) = (self.now, key.1.len());
        let weight = &mut self.weight;
        let slot = self.all.entry(key).or_insert_with(|| {
            *weight += numbers;
            Slot { state, list: None, needed: 0, length: 0, is_long: false, is_too_long: false, used }
        });
        *weight -= slot.list.take().map_or(0, |list| list.rows.len());
        (slot.state, slot.used) = (state, used);
        slot
    }

    /// Forgets the lists that were not used for the longest time, while there are too many.
    fn shorten(&mut self) {
        while self.all.len() > LISTS || self.weight > ROWS {
            let Some(oldest) = self.all.iter().min_by_key(|(_, slot)| slot.used).map(|(key, _)| key.clone()) else { return };
            let rows = self.all.remove(&oldest).and_then(|slot| slot.list).map_or(0, |list| list.rows.len());
            self.weight -= rows + oldest.1.len();
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

    fn step(memory: &ListMemory, state: BookState, numbers: &[i64]) -> Option<Step> {
        memory.next_steps(state, &[numbers.to_vec()]).map(|steps| steps.into_iter().next().unwrap())
    }

    #[test]
    fn a_long_list_is_fetched_when_it_is_needed_again() {
        let memory = ListMemory::default();
        assert!(matches!(step(&memory, state(0), &[1, 2]), Some(Step::Fetch(FEW))));
        memory.keep(state(0), &[1, 2], FEW, None);
        assert!(matches!(step(&memory, state(0), &[1, 2]), Some(Step::Fetch(MOST))));
        memory.keep(state(0), &[1, 2], MOST, Some(&list(1000)));
        assert!(matches!(step(&memory, state(0), &[1, 2]), Some(Step::Known(list)) if list.rows.len() == 1000));
        // After an edit it is needed twice again, and a longer one more often.
        assert!(step(&memory, state(1), &[1, 2]).is_none());
        assert!(matches!(step(&memory, state(1), &[1, 2]), Some(Step::Fetch(MOST))));
        memory.keep(state(1), &[3], MOST, Some(&list(5 * FOR_EACH_NEED)));
        assert_eq!((0..20).take_while(|_| step(&memory, state(2), &[3]).is_none()).count(), 6);
        memory.keep(state(1), &[1, 2], MOST, None);
        for rewrites in [1, 2, 2, 2] {
            assert!(step(&memory, state(rewrites), &[1, 2]).is_none(), "a very long one is never fetched again");
        }
    }

    #[test]
    fn a_short_list_is_fetched_at_once_and_ends_with_its_state() {
        let memory = ListMemory::default();
        memory.keep(state(0), &[7], FEW, Some(&list(3)));
        assert!(matches!(step(&memory, state(0), &[7]), Some(Step::Known(_))));
        assert!(matches!(step(&memory, state(1), &[7]), Some(Step::Fetch(FEW))));
        let other = BookState { book: 2, ..state(1) };
        assert!(matches!(step(&memory, other, &[7]), Some(Step::Fetch(FEW))));
        assert_eq!(memory.0.lock().weight, 2, "two keys, and no list");
    }

    #[test]
    fn a_fetch_that_fails_is_tried_again_later_each_time_and_by_one_search() {
        let memory = ListMemory::default();
        assert!(matches!(step(&memory, state(0), &[1]), Some(Step::Fetch(FEW))));
        let mut skipped = Vec::new();
        for _ in 0..6 {
            skipped.push((0..1000).take_while(|_| step(&memory, state(0), &[1]).is_none()).count());
        }
        assert_eq!(skipped, [1, 2, 3, 5, 9, 14]);
        memory.keep(state(0), &[1], MOST, Some(&list(1000)));
        assert!(matches!(step(&memory, state(0), &[1]), Some(Step::Known(_))));
    }

    #[test]
    fn nothing_is_fetched_beside_a_list_that_is_not_worth_it() {
        let memory = ListMemory::default();
        memory.keep(state(0), &[1], MOST, None);
        for _ in 0..3 {
            assert!(memory.next_steps(state(0), &[vec![1], vec![2]]).is_none());
        }
        assert!(matches!(step(&memory, state(0), &[2]), Some(Step::Fetch(FEW))), "it was not claimed");
    }

    #[test]
    fn memory_is_bounded() {
        let memory = ListMemory::default();
        for nth in 0..3 * LISTS as i64 {
            step(&memory, state(0), &[nth]);
            memory.keep(state(0), &[nth], FEW, Some(&list(5)));
            assert!(matches!(step(&memory, state(0), &[nth]), Some(Step::Known(_))));
        }
        let sizes = |lists: &Lists| (lists.all.len(), lists.weight);
        assert_eq!(sizes(&memory.0.lock()), (LISTS, 6 * LISTS));
        let long = list(MOST);
        for nth in 0..40 {
            step(&memory, state(0), &[-1, nth]);
            memory.keep(state(0), &[-1, nth], MOST, Some(&long));
            let lists = memory.0.lock();
            let weight =
                |(key, slot): (&(i64, Box<[i64]>), &Slot)| key.1.len() + slot.list.as_ref().map_or(0, |list| list.rows.len());
            assert!(lists.weight <= ROWS);
            assert_eq!(lists.weight, lists.all.iter().map(weight).sum::<usize>());
        }
    }
}
