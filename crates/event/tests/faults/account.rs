//! An account of the events of a subscriber, number by number: events that came, events reported as missed, duplicates, wrong values, and reports about the source.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    time::Instant,
};

use serde::{Deserialize, Serialize};
use tampu_event::client::Event;
use tampu_types::{
    Incarnation,
    event::{Missed, Reason, ValueView},
};

use super::source;

/// Numbers, as ranges that do not touch, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers(Vec<Range<u64>>);

impl Numbers {
    /// Adds these; says how many of them were there already.
    pub fn add(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // Numbers in order, which are nearly all, only extend the last range.
        if let Some(last) = self.0.last_mut()
            && last.end == range.start
        {
            last.end = range.end;
            return 0;
        }
        let before = self.count();
        let (mut all, mut merged) = (std::mem::take(&mut self.0), Vec::<Range<u64>>::new());
        let added = range.end - range.start;
        all.push(range);
        all.sort_by_key(|range| range.start);
        for range in all {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.0 = merged;
        before + added - self.count()
    }

    /// Returns the number of numbers in the set.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|range| range.end - range.start).sum()
    }

    /// Returns how many numbers of this range are missing.
    pub fn missing_of(&self, range: Range<u64>) -> u64 {
        let here = |own: &Range<u64>| own.end.min(range.end).saturating_sub(own.start.max(range.start));
        range.end.saturating_sub(range.start) - self.0.iter().map(here).sum::<u64>()
    }
}

/// One life of a source.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Life {
    /// The numbers of the events that came.
    pub came: Numbers,
    /// The numbers it was told of as missed.
    pub told: Numbers,
    /// The first number that came. Earlier events do not concern a subscription without an earlier incarnation.
    pub begun_with: u64,
    /// An unknown number of events was reported as missing before its first one.
    pub unknown_before: bool,
    /// Its end was told.
    pub ended: bool,
}

impl Life {
    fn told_of(&mut self, missed: Missed) {
        match missed {
            Missed::Nothing => {}
            Missed::Exactly(from, to) => {
                self.told.add(from..to);
            }
            // Reported with the first value, which may still be missing.
            Missed::Unknown => self.unknown_before = true,
        }
    }

    /// The last number it knows of.
    pub fn last(&self) -> u64 {
        let end = |numbers: &Numbers| numbers.0.last().map_or(0, |range| range.end - 1);
        end(&self.came).max(end(&self.told))
    }
}

/// All that a subscriber was given.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Account {
    /// By the life that the values tell.
    pub lives: BTreeMap<u64, Life>,
    /// Events that came a second time.
    pub doubled: u64,
    /// Events whose value is not that of their number.
    pub wrong: u64,
    /// Notices other than updates, in order: the reason and the number.
    pub word: Vec<(String, u64)>,
    /// Times of the notices, for a test in the same process.
    #[serde(skip)]
    pub word_at: Vec<(Reason, Instant)>,
    #[serde(skip)]
    numbers: HashMap<Incarnation, u64>,
    /// Reports about incarnations whose number is not known yet.
    #[serde(skip)]
    unnumbered: HashMap<Incarnation, Vec<Missed>>,
}

impl Account {
    /// Takes an event.
    pub fn take(&mut self, event: &Event<'_>) {
        if event.reason != Reason::Update {
            self.word.push((event.reason.name().to_owned(), event.number));
            self.word_at.push((event.reason, Instant::now()));
        }
        let incarnation = event.source.incarnation;
        match self.numbers.get(&incarnation) {
            Some(life) => self.lives.entry(*life).or_default().told_of(event.missed),
            None => self.unnumbered.entry(incarnation).or_default().push(event.missed),
        }
        match event.reason {
            Reason::First | Reason::Update | Reason::Resumed if event.number > 0 => self.reading(event),
            Reason::SourceDied | Reason::SourceLeft => {
                if let Some(life) = self.numbers.get(&incarnation).and_then(|life| self.lives.get_mut(life)) {
                    life.ended = true;
                }
            }
            _ => {}
        }
    }

    fn reading(&mut self, event: &Event<'_>) {
        let read = match event.reading.and_then(|reading| reading.value) {
            Some(ValueView::Long(values)) => source::read(values.iter()),
            _ => None,
        };
        let Some((number, _)) = read.filter(|(_, number)| *number == event.number) else {
            self.wrong += 1;
            return;
        };
        self.numbers.insert(event.source.incarnation, number);
        let early = self.unnumbered.remove(&event.source.incarnation).unwrap_or_default();
        let life = self.lives.entry(number).or_insert_with(|| Life { begun_with: event.number, ..Life::default() });
        early.into_iter().for_each(|missed| life.told_of(missed));
        let again = life.came.add(event.number..event.number + 1);
        // After a silence the current value is repeated as resumed, which reports that nothing is missing.
        if event.reason == Reason::Update {
            self.doubled += again;
        }
    }

    /// The last number of a life that it knows of.
    pub fn last(&self, life: u64) -> u64 {
        self.lives.get(&life).map_or(0, Life::last)
    }

    /// Returns whether this reason was reported.
    pub fn was_told(&self, reason: Reason) -> bool {
        self.word.iter().any(|(word, _)| word == reason.name())
    }
}

/// Totals of a scene.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Events published after the subscription began.
    pub produced: u64,
    /// Of these, those that came.
    pub received: u64,
    /// Those that did not, and were told by their numbers.
    pub told: u64,
    /// Those that did not, of a life whose end was told, with an unknown number reported as missing at the beginning of the next.
    pub told_by_end: u64,
    /// Those of which nothing was said.
    pub missing: u64,
    /// Events that came twice.
    pub doubled: u64,
    /// Events with a wrong value.
    pub wrong: u64,
}

impl Totals {
    /// Holds an account against what each life has published.
    pub fn of(account: &Account, published: &BTreeMap<u64, u64>) -> Totals {
        let mut totals = Totals { doubled: account.doubled, wrong: account.wrong, ..Totals::default() };
        let first_seen = account.lives.keys().next().copied().unwrap_or(u64::MAX);
        for (&number, &published) in published.iter().filter(|(number, _)| **number >= first_seen) {
            let nothing = Life::default();
            let life = account.lives.get(&number).unwrap_or(&nothing);
            // The push during the kill may have been the last.
            let last = published.max(life.last());
            // In the first life, reported losses count too: the subscription may be older than that life.
            let begun = life.told.0.first().map_or(life.begun_with, |told| told.start.min(life.begun_with)).max(1);
            let from = if number == first_seen && !life.unknown_before { begun } else { 1 };
            totals.produced += (last + 1).saturating_sub(from);
            totals.received += life.came.count();
            let mut known = life.came.clone();
            for range in &life.told.0 {
                known.add(range.clone());
            }
            totals.told += known.count() - life.came.count();
            // Two ranges are unknown. One is before the first event that came, if that was reported. The other is after the last
            // event, if the end was reported and the next life begins with an unknown loss.
            let next_is_told = account.lives.range(number + 1..).next().is_some_and(|(_, next)| next.unknown_before);
            let head = if life.unknown_before { from..life.begun_with.max(from) } else { from..from };
            let gone = !account.lives.contains_key(&number) || life.ended;
            let tail = if gone && next_is_told { life.last().max(from - 1) + 1..last + 1 } else { last..last };
            let unknown = known.missing_of(head) + known.missing_of(tail.start..tail.end.max(tail.start));
            totals.told_by_end += unknown;
            let missing = known.missing_of(from..last + 1) - unknown;
            totals.missing += missing;
            if missing > 0 {
                eprintln!(
                    "{missing} events of life {number} are missing: it published {published}, the next is told {next_is_told}: {life:?}"
                );
            }
        }
        totals
    }

    /// Returns whether no event is missing without a report, came twice or is wrong.
    pub fn is_whole(&self) -> bool {
        self.missing + self.doubled + self.wrong == 0 && self.produced == self.received + self.told + self.told_by_end
    }
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals { produced, received, told, told_by_end, missing, doubled, wrong } = self;
        write!(
            f,
            "produced={produced} received={received} told={} ({told} by number, {told_by_end} by the end of a life) missing={missing} doubled={doubled} wrong={wrong}",
            told + told_by_end
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(came: Range<u64>, told: Range<u64>, unknown_before: bool, ended: bool) -> Life {
        let mut life = Life { begun_with: came.start, unknown_before, ended, ..Life::default() };
        life.came.add(came);
        life.told.add(told);
        life
    }

    fn account(lives: impl IntoIterator<Item = Life>) -> Account {
        Account { lives: (1..).zip(lives).collect(), ..Account::default() }
    }

    #[test]
    fn what_nobody_told_is_missing() {
        let published = BTreeMap::from([(1, 20), (2, 10)]);
        // Subscribed at 5; 8 and 9 reported; nothing after 15, and the end reported; the next life from 3 on.
        let mut first = life(5..8, 8..10, false, true);
        first.came.add(10..16);
        let good = Totals::of(&account([first.clone(), life(3..11, 0..0, true, true)]), &published);
        assert_eq!((good.produced, good.received, good.told, good.told_by_end), (26, 17, 2, 7));
        assert!(good.is_whole(), "{good}");
        // The next life does not report a loss.
        let silent = Totals::of(&account([first.clone(), life(3..11, 0..0, false, true)]), &published);
        assert_eq!((silent.missing, silent.is_whole()), (5 + 2, false));
        // The first life is younger than the subscription, which got a report of the numbers before its first event.
        let younger = Totals::of(&account([life(5..21, 1..5, false, true)]), &BTreeMap::from([(1, 20)]));
        assert_eq!((younger.produced, younger.received, younger.told, younger.is_whole()), (20, 16, 4, true));
        // A gap without a report.
        let mut hole = life(3..5, 0..0, true, true);
        hole.came.add(6..11);
        assert_eq!(Totals::of(&account([first, hole]), &published).missing, 1);
    }

    #[test]
    fn what_comes_twice_is_noticed() {
        let mut numbers = Numbers::default();
        assert_eq!([numbers.add(1..5), numbers.add(5..6), numbers.add(8..9), numbers.add(4..9)], [0, 0, 0, 3]);
        assert_eq!((numbers.count(), numbers.missing_of(0..12)), (8, 4));
    }
}
