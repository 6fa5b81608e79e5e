//! Reads the declarations of the attributes that a process wants to know, and of no others.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use tampu_bus::{Alarm, BusError, Event, History, Participant, Reader, ReaderQos, SourceChange, SourceState};
use tampu_types::{
    Incarnation, Partition, PartitionFilter, SourceName, TopicFilter,
    event::{AttributeName, AttributePattern},
};

use crate::topics;

/// Most families that a process reads one by one. With more it reads all declarations.
const FAMILIES: usize = 64;
/// Most readers at the same time, while newer ones learn what the older ones know.
const READERS: usize = 4;
/// The longest time for which a newer reader learns, ns.
const TAKEOVER: u64 = 3_000_000_000;
/// Pause between two looks for processes that no reader would tell the end of, ns.
const LOOK: u64 = 250_000_000;

/// Returns the partition of an attribute's declarations. It names its domain, its family there, and its family in any domain, so
/// that a pattern that fixes one of them can choose.
pub fn partition(name: &AttributeName) -> Partition {
    let (domain, family) = family(name);
    Partition::of([domain, format!("{domain}/{family}").as_str(), format!("*/{family}").as_str()])
}

/// Returns the domain and the family of an attribute, in lower case.
pub fn family(name: &AttributeName) -> (&str, &str) {
    let mut parts = name.folded().split('/');
    // A name has four parts.
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// Returns the family of an attribute, as `domain/family` in lower case.
pub fn family_name(name: &AttributeName) -> Box<str> {
    let (domain, family) = family(name);
    format!("{domain}/{family}").into()
}

/// A choice among the declarations: by domain and family, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Families(Option<BTreeSet<String>>);

impl Families {
    /// Only the declarations that have no partition of their own.
    pub fn none() -> Families {
        Families(Some(BTreeSet::new()))
    }

    pub fn all() -> Families {
        Families(None)
    }

    /// The declarations that may match one of these patterns.
    pub fn of_patterns<'a>(patterns: impl IntoIterator<Item = &'a AttributePattern>) -> Families {
        let mut names = BTreeSet::new();
        for pattern in patterns {
            let folded = pattern.as_str().to_lowercase();
            let mut parts = folded.split('/').map(|part| (!tampu_types::glob::has_wildcard(part)).then_some(part));
            match (parts.next().flatten(), parts.next().flatten()) {
                (Some(domain), Some(family)) => names.insert(format!("{domain}/{family}")),
                (Some(domain), None) => names.insert(domain.to_owned()),
                (None, Some(family)) => names.insert(format!("*/{family}")),
                (None, None) => return Families::all(),
            };
        }
        Families(Some(names)).bounded()
    }

    /// The declarations of this attribute's family.
    pub fn of_name(name: &AttributeName) -> Families {
        let (domain, family) = family(name);
        Families(Some(BTreeSet::from([format!("{domain}/{family}")])))
    }

    /// Adds the choice of others.
    pub fn add(&mut self, more: &Families) {
        *self = match (self.0.take(), &more.0) {
            (Some(names), Some(more)) => Families(Some(&names | more)).bounded(),
            _ => Families::all(),
        };
    }

    /// Leaves out the families of chosen domains, and those that are chosen in any domain; takes all of too many.
    fn bounded(self) -> Families {
        let Some(names) = self.0 else { return Families::all() };
        let is_covered = |name: &String| {
            let Some((domain, family)) = name.split_once('/') else { return false };
            domain != "*" && (names.contains(domain) || names.contains(&format!("*/{family}")))
        };
        let needed: BTreeSet<String> = names.iter().filter(|name| !is_covered(name)).cloned().collect();
        Families((needed.len() <= FAMILIES).then_some(needed))
    }

    fn filter(&self) -> PartitionFilter {
        self.0.as_ref().map_or(PartitionFilter::All, |names| PartitionFilter::any(names.iter().map(String::as_str)))
    }
}

/// A reader of the bus, and what it has said.
struct Read {
    reader: Reader,
    /// The time of its opening, monotonic ns.
    opened: u64,
    /// The processes of which it had a declaration and no end.
    met: HashMap<Incarnation, SourceName>,
    /// Processes whose end another reader has told. What this one still has of them is old, until it tells their end, too.
    stale: HashSet<Incarnation>,
}

/// Reader of declarations whose choice can grow. A reader of the bus has one choice for its life, so a wider one takes over. The
/// narrower one stays until the wider one knows the same processes, or for [`TAKEOVER`]. The processes that the wider one does not
/// know by then are hung, cut off, or without attributes: they are looked for on the bus, so that their end is told, too.
pub struct NamesReader {
    participant: Participant,
    wanted: Families,
    /// The choice of the last reader.
    opened: Families,
    readers: Vec<Read>,
    /// The next declaration of each stream: several readers have the same.
    next: HashMap<(Incarnation, u32), u64>,
    /// Processes that a dropped reader knew and the last one does not.
    orphans: HashMap<Incarnation, SourceName>,
    /// The time of the last look for the orphans, monotonic ns.
    looked: u64,
    /// Processes that were told to be silent.
    silent: HashSet<Incarnation>,
}

impl NamesReader {
    /// Opens it for these families.
    pub fn open(participant: &Participant, families: Families) -> Result<NamesReader, BusError> {
        let mut reader = NamesReader {
            participant: participant.clone(),
            opened: families.clone(),
            wanted: families,
            readers: Vec::new(),
            next: HashMap::new(),
            orphans: HashMap::new(),
            looked: 0,
            silent: HashSet::new(),
        };
        reader.open_one()?;
        Ok(reader)
    }

    fn open_one(&mut self) -> Result<(), BusError> {
        let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
        let reader = self.participant.reader(&TopicFilter::new(topics::NAMES)?, &self.wanted.filter(), qos)?;
        self.opened = self.wanted.clone();
        let opened = self.participant.clock().monotonic();
        self.readers.push(Read { reader, opened, met: HashMap::new(), stale: HashSet::new() });
        if self.readers.len() > READERS {
            let oldest = self.readers.remove(0);
            self.orphans.extend(oldest.met);
        }
        Ok(())
    }

    /// Wants more families from now on.
    pub fn want(&mut self, more: &Families) {
        self.wanted.add(more);
    }

    /// Opens a wider reader if more is wanted. Returns its alarm: it is the one that [`NamesReader::read`] waits at. If the
    /// engine refuses, the next call tries again.
    pub fn widen(&mut self) -> Option<Alarm> {
        if self.wanted == self.opened {
            return None;
        }
        self.open_one().ok()?;
        Some(self.alarm())
    }

    /// Returns the alarm of the reader that [`NamesReader::read`] waits at.
    pub fn alarm(&self) -> Alarm {
        self.readers[self.readers.len() - 1].reader.alarm()
    }

    /// Calls back for each event that has come, each declaration once. Waits for the first one, and ends after `most` for each
    /// reader.
    pub fn read(&mut self, mut wait: Duration, most: usize, mut act: impl FnMut(Event<'_>)) {
        let last = self.readers.len() - 1;
        if last > 0 {
            // The older ones have nothing that the last one does not get, but for states of processes.
            wait = wait.min(Duration::from_millis(10));
        }
        let mut ended = Vec::new();
        for (nth, read) in self.readers.iter_mut().enumerate() {
            let mut wait = if nth == last { wait } else { Duration::ZERO };
            for _ in 0..most {
                let Some(event) = read.reader.next(wait) else { break };
                wait = Duration::ZERO;
                let is_new = match &event {
                    Event::Sample(sample) => {
                        let (incarnation, source) = (sample.stream.incarnation, &sample.stream.source);
                        if read.stale.contains(&incarnation) {
                            continue;
                        }
                        read.met.entry(incarnation).or_insert_with(|| source.clone());
                        if nth == last {
                            self.orphans.remove(&incarnation);
                            // The reader that told the silence may be gone before it can tell the return.
                            if self.silent.remove(&incarnation) {
                                let state = SourceState::Returned;
                                act(Event::Source(SourceChange { source: source.clone(), incarnation, state }));
                            }
                        }
                        let next = self.next.entry((incarnation, sample.stream.stream)).or_default();
                        let is_new = sample.sequence >= *next;
                        *next = (*next).max(sample.sequence + 1);
                        is_new
                    }
                    Event::Gap(gap) => {
                        let next = self.next.get(&(gap.stream.incarnation, gap.stream.stream));
                        gap.to.is_none_or(|to| next.is_none_or(|next| *next < to))
                    }
                    Event::Source(change) => {
                        let incarnation = change.incarnation;
                        let was_told = read.stale.remove(&incarnation);
                        match change.state {
                            SourceState::Died | SourceState::Left => {
                                read.met.remove(&incarnation);
                                ended.push((nth, incarnation));
                                !was_told
                            }
                            SourceState::Silent => {
                                self.silent.insert(incarnation);
                                true
                            }
                            _ => {
                                self.silent.remove(&incarnation);
                                true
                            }
                        }
                    }
                };
                if is_new {
                    act(event);
                }
            }
        }
        for (teller, incarnation) in ended {
            let others = self.readers.iter_mut().enumerate().filter(|(nth, _)| *nth != teller);
            for (_, other) in others.filter(|(_, other)| other.met.contains_key(&incarnation)) {
                other.stale.insert(incarnation);
                other.met.remove(&incarnation);
            }
            self.forget(incarnation);
        }
        self.retire();
        self.look_for_orphans(&mut act);
    }

    fn forget(&mut self, gone: Incarnation) {
        self.next.retain(|(incarnation, _), _| *incarnation != gone);
        self.orphans.remove(&gone);
        self.silent.remove(&gone);
    }

    /// Drops the readers that the last one has taken over from.
    fn retire(&mut self) {
        let now = self.participant.clock().monotonic();
        let Some(newest) = self.readers.pop() else { return };
        let is_late = now.saturating_sub(newest.opened) > TAKEOVER;
        let orphans = &mut self.orphans;
        self.readers.retain_mut(|read| {
            read.met.retain(|incarnation, _| !newest.met.contains_key(incarnation));
            if is_late {
                orphans.extend(read.met.drain());
            }
            !read.met.is_empty()
        });
        self.readers.push(newest);
    }

    /// Tells the end of processes that no reader would tell.
    fn look_for_orphans(&mut self, act: &mut impl FnMut(Event<'_>)) {
        let now = self.participant.clock().monotonic();
        if self.orphans.is_empty() || now.saturating_sub(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        let participant = &self.participant;
        let gone: Vec<_> = self.orphans.extract_if(|incarnation, _| !participant.is_present(*incarnation)).collect();
        for (incarnation, source) in gone {
            self.forget(incarnation);
            act(Event::Source(SourceChange { source, incarnation, state: SourceState::Died }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families(patterns: &[&str]) -> Families {
        let patterns: Vec<_> = patterns.iter().map(|text| AttributePattern::new(*text).unwrap()).collect();
        Families::of_patterns(&patterns)
    }

    #[test]
    fn a_choice_has_the_declarations_of_every_name_that_matches() {
        let names = ["SR/Vacuum/C01-1/Pressure", "sr/psu/1/current", "lab/vacuum/1/pressure", "lab/a/1/x"];
        let patterns =
            ["*", "sr/*", "*/vacuum/*", "sr/vacuum/*/pressure", "sr/vac*/*", "SR/Vacuum/C01-1/Pressure", "s?/psu/1/current"];
        for pattern in patterns {
            let (choice, pattern) = (families(&[pattern]).filter(), AttributePattern::new(pattern).unwrap());
            for name in names.map(|name| AttributeName::new(name).unwrap()) {
                assert!(!pattern.matches(&name) || choice.matches(&partition(&name)), "{pattern} {name}");
            }
        }
        let vacuum = families(&["sr/vacuum/*", "*/vacuum/1/*"]);
        assert!(!vacuum.filter().matches(&partition(&AttributeName::new("sr/psu/1/current").unwrap())));
        assert!(families(&["sr/psu/1/x"]).filter().matches(&Partition::everybody()), "of a server with many families");
    }

    #[test]
    fn a_choice_has_no_families_that_are_chosen_anyway() {
        let mut choice = families(&["sr/*", "*/psu/*"]);
        let before = choice.clone();
        choice.add(&families(&["sr/vacuum/1/x", "lab/psu/*"]));
        assert_eq!(choice, before);
        assert_eq!(families(&["sr/vacuum/1/x", "sr/*"]), families(&["sr/*"]));
    }

    #[test]
    fn a_choice_of_many_families_is_all() {
        let many: Vec<String> = (0..=FAMILIES).map(|n| format!("sr/f{n}/*")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(families(&many), Families::all());
        let mut some = families(&many[1..]);
        assert_ne!(some, Families::all());
        some.add(&families(&many[..1]));
        assert_eq!(some, Families::all());
        some.add(&families(&many[..1]));
        assert_eq!(some, Families::all(), "all stays all");
    }
}
