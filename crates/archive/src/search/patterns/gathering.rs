//! Patterns as they are gathered: a bounded number of them, each with its newest record.

use std::{
    collections::{HashMap, HashSet},
    hash::BuildHasher,
};

use tampu_types::{Level, Time};

use super::{
    found::{Pattern, Patterns},
    mask::{Site, looked_at, put_mask},
};
use crate::ids::hash::Mixed;

/// Most patterns that one part of the work keeps, and most bytes of their texts. Beyond it the rarer half is dropped.
const MOST: usize = 4096;
const MOST_BYTES: usize = 16 << 20;
/// Most sources of a pattern that are told apart.
const MOST_SOURCES: usize = 1000;
/// Longest name of a file or a routine, in bytes.
const LONGEST_NAME: usize = 1000;

/// Intervals of the plots.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Intervals {
    pub(super) since: i64,
    /// Length of an interval, ns.
    pub(super) every: i64,
    pub(super) count: usize,
}

impl Intervals {
    /// Returns `count` intervals from the first to the last time.
    pub(super) fn of(since: Time, last: Time, count: usize) -> Intervals {
        let span = (i128::from(last.0) - i128::from(since.0)).max(0) + 1;
        let every = (span + count.max(1) as i128 - 1) / count.max(1) as i128;
        Intervals { since: since.0, every: i64::try_from(every).unwrap_or(i64::MAX), count }
    }

    /// Returns the interval of a time.
    fn at(&self, time: Time) -> usize {
        let nth = (i128::from(time.0) - i128::from(self.since)).max(0) / i128::from(self.every.max(1));
        (nth as usize).min(self.count.saturating_sub(1))
    }
}

/// Counts of a pattern's records.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) bins: Vec<u64>,
    sources: HashSet<u64, Mixed>,
    pub(super) latest: Option<Time>,
}

impl Tally {
    /// Counts a record. Returns true if it is the newest so far.
    pub(super) fn add(&mut self, time: Time, source: u64, intervals: &Intervals) -> bool {
        self.count += 1;
        if intervals.count > 0 {
            self.bins.resize(intervals.count, 0);
            self.bins[intervals.at(time)] += 1;
        }
        if self.sources.len() < MOST_SOURCES {
            self.sources.insert(source);
        }
        let is_newest = self.latest.is_none_or(|latest| time >= latest);
        if is_newest {
            self.latest = Some(time);
        }
        is_newest
    }

    /// Adds counts. Returns true if the newest record is one of them.
    fn join(&mut self, other: Tally) -> bool {
        self.count += other.count;
        self.bins.resize(self.bins.len().max(other.bins.len()), 0);
        self.bins.iter_mut().zip(other.bins).for_each(|(bin, more)| *bin += more);
        let room = MOST_SOURCES.saturating_sub(self.sources.len());
        self.sources.extend(other.sources.into_iter().take(room));
        let is_newest = other.latest >= self.latest;
        self.latest = self.latest.max(other.latest);
        is_newest
    }

    /// Returns its approximate memory.
    fn bytes(&self) -> usize {
        self.bins.len() * size_of::<u64>() + self.sources.len() * 2 * size_of::<u64>()
    }
}

/// Returns the number that stands for a source.
pub(super) fn source_number(source: &str) -> u64 {
    Mixed::default().hash_one(source)
}

/// A record as patterns see it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen<'a> {
    pub(super) level: Level,
    pub(super) file: &'a str,
    pub(super) line: u32,
    pub(super) routine: &'a str,
    pub(super) message: &'a str,
}

impl<'a> Seen<'a> {
    fn site(&self) -> Site<'a> {
        let (file, line) = if has_site(self.file, self.line) { (self.file, self.line) } else { ("", 0) };
        Site { level: self.level, file, line, routine: self.routine }
    }

    /// Writes the key of the record's pattern. A filter compares files and routines without case.
    fn put_key(&self, out: &mut String) {
        out.clear();
        let Site { level, file, line, routine } = self.site();
        out.push_str(level.name());
        for name in [clipped(file), clipped(routine)] {
            out.push('\0');
            out.extend(name.chars().flat_map(char::to_lowercase));
        }
        out.push('\0');
        if file.is_empty() {
            put_mask(self.message, out);
        } else {
            out.push_str(&line.to_string());
        }
    }
}

/// Returns whether a record names its place in the program.
pub(super) fn has_site(file: &str, line: u32) -> bool {
    !file.is_empty() && line > 0
}

fn clipped(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_NAME)]
}

struct Gathered {
    tally: Tally,
    level: Level,
    file: Box<str>,
    line: u32,
    routine: Box<str>,
    message: Box<str>,
    /// The condition of its records, unless it would be too long.
    condition: Option<String>,
}

impl Gathered {
    fn of(seen: &Seen<'_>) -> Gathered {
        let site = seen.site();
        let is_whole = [site.file, site.routine].iter().all(|name| name.len() <= LONGEST_NAME);
        Gathered {
            tally: Tally::default(),
            level: seen.level,
            file: clipped(site.file).into(),
            line: site.line,
            routine: clipped(site.routine).into(),
            message: looked_at(seen.message).into(),
            condition: site.condition(seen.message).filter(|_| is_whole),
        }
    }

    /// Returns its approximate memory, with its key.
    fn bytes(&self, key: &str) -> usize {
        let texts = key.len() + self.file.len() + self.routine.len() + self.message.len();
        texts + self.condition.as_ref().map_or(0, String::len) + self.tally.bytes() + size_of::<Gathered>()
    }
}

/// The patterns of a part of the archive.
#[derive(Default)]
pub(super) struct Gathering {
    pub(super) intervals: Intervals,
    patterns: HashMap<Box<str>, Gathered, Mixed>,
    bytes: usize,
    key: String,
    total: u64,
    /// Records of patterns that were dropped.
    dropped: u64,
    pub(super) is_incomplete: bool,
}

impl Gathering {
    pub(super) fn new(intervals: Intervals) -> Gathering {
        Gathering { intervals, ..Gathering::default() }
    }

    /// Counts a record.
    pub(super) fn add(&mut self, seen: &Seen<'_>, time: Time, source: u64) {
        let intervals = self.intervals;
        self.count(seen, 1, |tally| tally.add(time, source, &intervals));
    }

    /// Adds the counts of records of one pattern; `newest` is the newest of them.
    pub(super) fn add_tally(&mut self, newest: &Seen<'_>, tally: Tally) {
        self.count(newest, tally.count, |own| own.join(tally));
    }

    /// Counts records of one pattern by a function that returns true if this one is the newest so far.
    fn count(&mut self, seen: &Seen<'_>, records: u64, add: impl FnOnce(&mut Tally) -> bool) {
        self.total += records;
        let mut key = std::mem::take(&mut self.key);
        seen.put_key(&mut key);
        if let Some(gathered) = self.patterns.get_mut(key.as_str()) {
            let before = gathered.bytes(&key);
            if add(&mut gathered.tally) {
                gathered.message = looked_at(seen.message).into();
            }
            self.bytes = (self.bytes + gathered.bytes(&key)).saturating_sub(before);
        } else {
            let mut gathered = Gathered::of(seen);
            add(&mut gathered.tally);
            self.insert(key.as_str().into(), gathered);
        }
        self.key = key;
        self.shed();
    }

    fn insert(&mut self, key: Box<str>, gathered: Gathered) {
        self.bytes += gathered.bytes(&key);
        self.patterns.insert(key, gathered);
    }

    /// Adds the patterns of another part.
    pub(super) fn join(&mut self, other: Gathering) {
        self.total += other.total;
        self.dropped += other.dropped;
        self.is_incomplete |= other.is_incomplete;
        for (key, more) in other.patterns {
            match self.patterns.get_mut(&key) {
                Some(gathered) => {
                    let before = gathered.bytes(&key);
                    if gathered.tally.join(more.tally) {
                        gathered.message = more.message;
                    }
                    self.bytes = (self.bytes + gathered.bytes(&key)).saturating_sub(before);
                }
                None => self.insert(key, more),
            }
            self.shed();
        }
    }

    /// Drops the rarer half of too many patterns, and counts their records.
    fn shed(&mut self) {
        if self.patterns.len() <= MOST && self.bytes <= MOST_BYTES {
            return;
        }
        let mut counts: Vec<u64> = self.patterns.values().map(|gathered| gathered.tally.count).collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let (most, least) = (counts.len() / 2, counts[counts.len() / 2]);
        let mut kept = counts.iter().take_while(|count| **count > least).count();
        self.patterns.retain(|key, gathered| {
            let count = gathered.tally.count;
            let keeps = count > least || count == least && kept < most;
            if keeps {
                kept += usize::from(count == least);
            } else {
                self.dropped += count;
                self.bytes = self.bytes.saturating_sub(gathered.bytes(key));
            }
            keeps
        });
    }

    /// Returns the most frequent patterns.
    pub(super) fn finish(self, limit: usize) -> Patterns {
        let known = self.patterns.len() as u64;
        let mut all: Vec<(Box<str>, Gathered)> = self.patterns.into_iter().collect();
        all.sort_unstable_by(|(a_key, a), (b_key, b)| b.tally.count.cmp(&a.tally.count).then_with(|| a_key.cmp(b_key)));
        all.truncate(limit);
        let patterns: Vec<Pattern> = all
            .into_iter()
            .map(|(_, gathered)| Pattern {
                level: gathered.level,
                file: gathered.file.into(),
                line: gathered.line,
                routine: gathered.routine.into(),
                message: gathered.message.into(),
                count: gathered.tally.count,
                sources: gathered.tally.sources.len() as u64,
                latest: gathered.tally.latest.unwrap_or_default(),
                bins: gathered.tally.bins,
                condition: gathered.condition,
            })
            .collect();
        let Intervals { since, every, .. } = self.intervals;
        Patterns {
            total: self.total,
            known,
            others: self.total - patterns.iter().map(|pattern| pattern.count).sum::<u64>(),
            since: Time(since),
            every_ns: every.unsigned_abs(),
            patterns,
            exact: self.dropped == 0,
            complete: !self.is_incomplete,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(message: &str) -> Seen<'_> {
        Seen { level: Level::Info, file: "", line: 0, routine: "", message }
    }

    #[test]
    fn too_many_patterns_leave_the_frequent_ones_and_are_told() {
        let mut gathering = Gathering::new(Intervals::of(Time(0), Time(99), 10));
        let words: Vec<String> = (0..3 * MOST).map(|n| format!("text {}", letters(n))).collect();
        for (nth, word) in words.iter().enumerate() {
            gathering.add(&seen(word), Time(0), 1);
            if nth % 2 == 0 {
                gathering.add(&seen("frequent"), Time(nth as i64 % 100), nth as u64);
            }
            assert!(gathering.patterns.len() <= MOST);
        }
        let found = gathering.finish(5);
        assert_eq!((found.exact, found.complete), (false, true));
        assert_eq!(found.total, words.len() as u64 + words.len().div_ceil(2) as u64);
        let first = &found.patterns[0];
        assert_eq!((first.message.as_str(), first.count), ("frequent", words.len().div_ceil(2) as u64));
        assert_eq!(first.sources, MOST_SOURCES as u64);
        assert_eq!(first.bins.iter().sum::<u64>(), first.count);
        assert_eq!(found.others, found.total - found.patterns.iter().map(|one| one.count).sum::<u64>());
    }

    #[test]
    fn long_texts_are_bounded_by_their_bytes() {
        let mut gathering = Gathering::new(Intervals::default());
        for n in 0..MOST {
            let long = letters(n) + &"\u{10ffff}".repeat(5000);
            gathering.add(&seen(&long), Time(n as i64), 0);
            assert!(gathering.bytes <= MOST_BYTES, "{}", gathering.bytes);
        }
        assert!(!gathering.finish(1).exact);
    }

    /// Returns a number in letters.
    fn letters(mut number: usize) -> String {
        let mut text = String::new();
        loop {
            text.push((b'a' + (number % 26) as u8) as char);
            number /= 26;
            if number == 0 {
                return text;
            }
        }
    }

    #[test]
    fn intervals_cover_all_times() {
        let intervals = Intervals::of(Time(100), Time(199), 40);
        assert_eq!((intervals.at(Time(100)), intervals.at(Time(199)), intervals.at(Time(i64::MAX))), (0, 33, 39));
        let whole = Intervals::of(Time(i64::MIN), Time(i64::MAX), 4);
        assert_eq!((whole.at(Time(i64::MIN)), whole.at(Time(0)), whole.at(Time(i64::MAX))), (0, 2, 3));
    }
}
