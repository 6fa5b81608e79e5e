//! Who else has attributes: every server reads what the others declare, so that two sources of one name are noticed by those
//! who can do something about it.
//!
//! The rule is the same everywhere, and needs nobody to decide: of two processes with one source name the later life has the
//! attribute (it was started again); of two others, the one that began first.

use std::{collections::HashMap, hash::BuildHasher, time::Duration};

use tampu_bus::{BusError, Event, History, Participant, Reader, ReaderQos, SourceInfo, SourceState};
use tampu_types::{
    Incarnation, PartitionFilter, SourceName, TopicFilter,
    event::{AttributeName, Declaration, Presence},
};

use crate::{ask, topics};

/// Whether a process gives an attribute up to another that declares it too.
pub(crate) fn yields(source: &SourceName, incarnation: Incarnation, other: &SourceInfo) -> bool {
    let life = |incarnation: Incarnation| (incarnation.start, incarnation);
    if source.as_str().eq_ignore_ascii_case(other.source.as_str()) {
        life(incarnation) < life(other.incarnation)
    } else {
        life(incarnation) > life(other.incarnation)
    }
}

/// A name somebody else has. Names are kept as hashes: there may be many, and a collision only makes us ask once more.
struct Held {
    by: Incarnation,
    attribute: u32,
    redundant: bool,
}

pub(super) struct Rivals {
    reader: Reader,
    names: HashMap<u64, Vec<Held>>,
    sources: HashMap<Incarnation, SourceName>,
    hasher: std::hash::RandomState,
}

impl Rivals {
    pub fn watch(participant: &Participant) -> Result<Rivals, BusError> {
        let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
        let reader = participant.reader(&TopicFilter::new(topics::NAMES)?, &PartitionFilter::All, qos)?;
        let hasher = std::hash::RandomState::new();
        Ok(Rivals { reader, names: HashMap::new(), sources: HashMap::new(), hasher })
    }

    /// Takes what has come: calls `declared` with the names that other servers declare or withdraw, and `gone` with lives that ended.
    pub fn read(&mut self, us: &Participant, mut declared: impl FnMut(&AttributeName), mut gone: impl FnMut(Incarnation)) {
        let Rivals { reader, names, sources, hasher } = self;
        while let Some(event) = reader.next(Duration::ZERO) {
            match event {
                Event::Sample(sample) if sample.stream.incarnation != us.incarnation() => {
                    let (by, source) = (sample.stream.incarnation, sample.stream.source.clone());
                    // What cannot be read is of a later release, or hostile; subscribers count it.
                    let Ok(Ok(declaration)) = sample.payload.with(Declaration::parse) else { continue };
                    let (name, attribute) = (hasher.hash_one(declaration.config.name.folded()), declaration.attribute);
                    let held = names.entry(name).or_default();
                    held.retain(|held| (held.by, held.attribute) != (by, attribute));
                    if declaration.presence == Presence::Declared {
                        held.push(Held { by, attribute, redundant: declaration.redundant });
                    }
                    if held.is_empty() {
                        names.remove(&name);
                    }
                    sources.entry(by).or_insert(source);
                    declared(&declaration.config.name);
                }
                Event::Source(change) if matches!(change.state, SourceState::Died | SourceState::Left) => {
                    sources.remove(&change.incarnation);
                    names.retain(|_, held| {
                        held.retain(|held| held.by != change.incarnation);
                        !held.is_empty()
                    });
                    gone(change.incarnation);
                }
                Event::Gap(gap) if gap.stream.incarnation != us.incarnation() => ask::for_names(us, gap.stream.incarnation),
                _ => {}
            }
        }
    }

    /// Who has this name and keeps it against us; of several, the one that keeps it against the others.
    pub fn owner(&self, name: &AttributeName, redundant: bool, us: &Participant) -> Option<SourceInfo> {
        let held = self.names.get(&self.hasher.hash_one(name.folded()))?;
        let others = held.iter().filter(|held| !(held.redundant && redundant));
        let others =
            others.filter_map(|held| Some(SourceInfo { source: self.sources.get(&held.by)?.clone(), incarnation: held.by }));
        let before_us = others.filter(|other| yields(us.source(), us.incarnation(), other));
        before_us.reduce(|one, other| if yields(&one.source, one.incarnation, &other) { other } else { one })
    }
}
