//! The set of stored ids: each record is kept once, however often the transport delivers it.
//!
//! A ring numbers its records from 0, and nearly all of them arrive. They arrive interleaved, because each level is its
//! own stream. While a slow stream is behind, interval sets alone would break into one interval a record. So numbers
//! are kept in pages of 4096 bits. A full page leaves only its mark in a set of intervals. A number costs 2 ns, and a
//! whole run of numbers a few ns. A record costs one bit where numbers stay missing for ever.
//!
//! Most rings are those of processes that have ended after a few records. So the newest page needs no bits while its
//! numbers are one run; such a ring costs about 150 bytes instead of 900.
//!
//! Records from files have no ring: their ids are 96-bit hashes and are kept as such.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    ops::Range,
};

use tampu_types::Incarnation;

use crate::ids::hash::Mixed;

const PAGE_BITS: u32 = 12;
const PAGE: u64 = 1 << PAGE_BITS;
const WORDS: usize = PAGE as usize / 64;

/// A run of consecutive numbers of one ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Run {
    pub(crate) ring: u32,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

impl Run {
    /// Adds the number if it continues the run; returns whether it does.
    pub(crate) fn extend(&mut self, ring: u32, number: u64) -> bool {
        let continues = self.ring == ring && self.first.checked_add(self.count) == Some(number);
        self.count += u64::from(continues);
        continues
    }
}

/// Set of the ids that are in the archive.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    rings: HashMap<(Incarnation, u32), Numbers, Mixed>,
    imported: HashSet<[u8; 12], BuildHasherDefault<AlreadyHashed>>,
}

/// Returns whether ids of this incarnation are hashes of imported records.
pub(crate) fn is_imported(incarnation: Incarnation) -> bool {
    incarnation == Incarnation::default()
}

/// The 96 bits of an imported record's id.
pub(crate) fn imported_id(ring: u32, number: u64) -> [u8; 12] {
    let mut id = [0; 12];
    id[..4].copy_from_slice(&ring.to_le_bytes());
    id[4..].copy_from_slice(&number.to_le_bytes());
    id
}

impl Seen {
    /// Counts the new ids. Changes nothing.
    pub(crate) fn missing(&self, runs: &[(Incarnation, Run)]) -> u64 {
        let of_ring = |runs: &[(Incarnation, Run)]| {
            let (incarnation, Run { ring, .. }) = runs[0];
            let runs = runs.iter().map(|&(_, run)| run);
            if is_imported(incarnation) {
                let new = |number: &u64| !self.imported.contains(&imported_id(ring, *number));
                return runs.flat_map(run_numbers).filter(new).count() as u64;
            }
            let numbers = self.rings.get(&(incarnation, ring));
            runs.map(|run| numbers.map_or(run.count, |numbers| numbers.missing(run.first, run.count))).sum()
        };
        runs.chunk_by(same_ring).map(of_ring).sum()
    }

    /// Returns the last stored number of a ring.
    pub(crate) fn last(&self, incarnation: Incarnation, ring: u32) -> Option<u64> {
        let numbers = self.rings.get(&(incarnation, ring))?;
        let of_full = numbers.full.last_key_value().map(|(_, end)| (end << PAGE_BITS) - 1);
        let of_page = numbers.pages.last_key_value().and_then(|(page, content)| {
            let (place, word) = content.words.iter().enumerate().rfind(|(_, word)| **word != 0)?;
            Some((page << PAGE_BITS) + 64 * place as u64 + u64::from(63 - word.leading_zeros()))
        });
        let of_newest = numbers.newest.as_ref().map(|(page, bits)| (page << PAGE_BITS) + bits.end - 1);
        of_full.max(of_page).max(of_newest)
    }

    /// Adds these ids; returns the number of new ones.
    pub(crate) fn insert(&mut self, runs: &[(Incarnation, Run)]) -> u64 {
        let mut new = 0;
        // The ring is looked up once for all its consecutive runs: a level's batch may hold every other number of a ring.
        for runs in runs.chunk_by(same_ring) {
            let (incarnation, Run { ring, .. }) = runs[0];
            let runs = runs.iter().map(|&(_, run)| run);
            if is_imported(incarnation) {
                new +=
                    runs.flat_map(run_numbers).filter(|&number| self.imported.insert(imported_id(ring, number))).count() as u64;
            } else {
                let numbers = self.rings.entry((incarnation, ring)).or_default();
                new += runs.map(|run| numbers.insert(run.first, run.count)).sum::<u64>();
            }
        }
        new
    }
}

/// Returns the runs in order, with adjacent runs joined.
pub(crate) fn joined(runs: &[(Incarnation, Run)]) -> Vec<(Incarnation, Run)> {
    let mut sorted = runs.to_vec();
    sorted.sort_unstable();
    let mut joined: Vec<(Incarnation, Run)> = Vec::new();
    for (incarnation, run) in sorted {
        match joined.last_mut() {
            Some((life, last)) if *life == incarnation && last.ring == run.ring && run.first - last.first <= last.count => {
                last.count = last.count.max(run.first - last.first + run.count);
            }
            _ => joined.push((incarnation, run)),
        }
    }
    joined
}

fn same_ring((life, run): &(Incarnation, Run), (next_life, next): &(Incarnation, Run)) -> bool {
    life == next_life && run.ring == next.ring
}

fn run_numbers(run: Run) -> impl Iterator<Item = u64> {
    (0..run.count).filter_map(move |index| run.first.checked_add(index))
}

/// Set of the numbers of one ring.
#[derive(Debug, Default)]
struct Numbers {
    /// Full pages, as intervals: first page to the page after the last.
    full: BTreeMap<u64, u64>,
    pages: BTreeMap<u64, Page>,
    /// A page whose numbers are one run of bits. It is neither full nor among the pages.
    newest: Option<(u64, Range<u64>)>,
}

#[derive(Debug)]
struct Page {
    present: u64,
    words: Box<[u64; WORDS]>,
}

/// Splits a run into pages, each with its range of bits.
fn by_page(first: u64, count: u64) -> impl Iterator<Item = (u64, Range<u64>)> {
    let end = first.saturating_add(count);
    let mut at = first;
    std::iter::from_fn(move || {
        (at < end).then(|| {
            let page = at >> PAGE_BITS;
            let from = at & (PAGE - 1);
            let taken = (PAGE - from).min(end - at);
            at += taken;
            (page, from..from + taken)
        })
    })
}

fn length(bits: &Range<u64>) -> u64 {
    bits.end.saturating_sub(bits.start)
}

/// Returns the bits that both ranges have.
fn common(one: &Range<u64>, other: &Range<u64>) -> Range<u64> {
    one.start.max(other.start)..one.end.min(other.end)
}

/// Splits a range of bits into words, each with its mask.
fn by_word(bits: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let mut at = bits.start;
    std::iter::from_fn(move || {
        (at < bits.end).then(|| {
            let from = at % 64;
            let taken = (64 - from).min(bits.end - at);
            let mask = if taken == 64 { u64::MAX } else { ((1 << taken) - 1) << from };
            let word = (at / 64) as usize;
            at += taken;
            (word, mask)
        })
    })
}

impl Numbers {
    fn is_full(&self, page: u64) -> bool {
        self.full.range(..=page).next_back().is_some_and(|(_, &end)| page < end)
    }

    fn missing(&self, first: u64, count: u64) -> u64 {
        let missing_of = |(page, bits): (u64, Range<u64>)| match self.pages.get(&page) {
            Some(page) => by_word(bits).map(|(word, mask)| u64::from((mask & !page.words[word]).count_ones())).sum(),
            None if self.is_full(page) => 0,
            None => match &self.newest {
                Some((newest, run)) if *newest == page => length(&bits) - length(&common(&bits, run)),
                _ => length(&bits),
            },
        };
        by_page(first, count).map(missing_of).sum()
    }

    fn insert(&mut self, first: u64, count: u64) -> u64 {
        by_page(first, count).map(|(page, bits)| self.insert_in(page, bits)).sum()
    }

    fn insert_in(&mut self, number: u64, bits: Range<u64>) -> u64 {
        if let Some(new) = self.insert_in_newest(number, &bits) {
            return new;
        }
        if !self.pages.contains_key(&number) && self.is_full(number) {
            return 0;
        }
        self.insert_in_page(number, bits)
    }

    /// Adds bits of the newest page, or begins it, if its numbers stay one run. Returns the number of new ones.
    fn insert_in_newest(&mut self, number: u64, bits: &Range<u64>) -> Option<u64> {
        if let Some((newest, run)) = &mut self.newest {
            if *newest == number && bits.start <= run.end && run.start <= bits.end {
                let before = length(run);
                *run = run.start.min(bits.start)..run.end.max(bits.end);
                let now = length(run);
                if now == PAGE {
                    self.newest = None;
                    self.fill(number);
                }
                return Some(now - before);
            }
            if *newest > number {
                return None;
            }
            // The run is broken, or a newer page begins.
            let (before, run) = self.newest.take()?;
            self.insert_in_page(before, run);
        }
        let is_new = length(bits) < PAGE && !self.pages.contains_key(&number) && !self.is_full(number);
        is_new.then(|| {
            self.newest = Some((number, bits.clone()));
            length(bits)
        })
    }

    fn insert_in_page(&mut self, number: u64, bits: Range<u64>) -> u64 {
        let page = self.pages.entry(number).or_insert_with(|| Page { present: 0, words: Box::new([0; WORDS]) });
        let mut new = 0;
        for (word, mask) in by_word(bits) {
            new += u64::from((mask & !page.words[word]).count_ones());
            page.words[word] |= mask;
        }
        page.present += new;
        if page.present == PAGE {
            self.pages.remove(&number);
            self.fill(number);
        }
        new
    }

    fn fill(&mut self, page: u64) {
        let end = self.full.remove(&(page + 1)).unwrap_or(page + 1);
        match self.full.range_mut(..page).next_back() {
            Some((_, before)) if *before == page => *before = end,
            _ => {
                self.full.insert(page, end);
            }
        }
    }
}

/// Hasher for the ids of imported records, which are hashes already.
#[derive(Debug, Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last_chunk::<8>() {
            // The value is multiplied, because files of other programs may hold ids that are not hashes.
            self.0 = u64::from_le_bytes(*last).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_usize(&mut self, _length: usize) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIFE: Incarnation = Incarnation { boot: 1, pid: 2, start: 3 };

    #[test]
    fn full_pages_take_no_room() {
        let mut seen = Seen::default();
        // Two streams of one ring, one far behind the other.
        for number in (0..100 * PAGE).step_by(2) {
            assert_eq!(seen.insert(&[(LIFE, Run { ring: 0, first: number, count: 1 })]), 1);
        }
        for number in (1..100 * PAGE).step_by(2) {
            assert_eq!(seen.insert(&[(LIFE, Run { ring: 0, first: number, count: 1 })]), 1);
        }
        let numbers = &seen.rings[&(LIFE, 0)];
        assert_eq!((numbers.pages.len(), numbers.full.len()), (0, 1));
        assert_eq!(seen.insert(&[(LIFE, Run { ring: 0, first: 0, count: 100 * PAGE })]), 0);
    }

    #[test]
    fn a_ring_whose_numbers_are_one_run_takes_no_page() {
        let mut seen = Seen::default();
        for first in (0..PAGE / 2).step_by(10) {
            assert_eq!(seen.insert(&[(LIFE, Run { ring: 0, first, count: 12 })]), if first == 0 { 12 } else { 10 });
        }
        assert!(seen.rings[&(LIFE, 0)].pages.is_empty());
        assert_eq!(seen.insert(&[(LIFE, Run { ring: 0, first: PAGE - 1, count: 1 })]), 1);
        assert_eq!(seen.rings[&(LIFE, 0)].pages.len(), 1, "two runs need bits");
    }

    #[test]
    fn the_last_numbers_of_all_are_no_trap() {
        let mut seen = Seen::default();
        assert_eq!(seen.insert(&[(LIFE, Run { ring: 0, first: u64::MAX - 1, count: 5 })]), 1);
        assert_eq!(seen.insert(&[(Incarnation::default(), Run { ring: 0, first: u64::MAX, count: 2 })]), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

        #[test]
        fn as_a_plain_set_does(
            runs in proptest::collection::vec((0u32..2, 0u64..3 * PAGE, prop_oneof![1u64..5, 1u64..2 * PAGE], any::<bool>()), 1..20),
        ) {
            let mut seen = Seen::default();
            let mut plain = HashSet::new();
            for (ring, first, count, imported) in runs {
                let incarnation = if imported { Incarnation::default() } else { LIFE };
                let run = Run { ring, first, count };
                let absent = (first..first + count).filter(|&n| !plain.contains(&(incarnation, ring, n))).count() as u64;
                prop_assert_eq!(seen.missing(&[(incarnation, run)]), absent);
                let new = (first..first + count).filter(|&n| plain.insert((incarnation, ring, n))).count() as u64;
                prop_assert_eq!(seen.insert(&[(incarnation, run)]), new);
                prop_assert_eq!(seen.missing(&[(incarnation, run)]), 0);
                let last = plain.iter().filter(|(life, one, _)| (*life, *one) == (LIFE, ring)).map(|&(.., number)| number).max();
                prop_assert_eq!(seen.last(LIFE, ring), last);
            }
        }
    }
}
