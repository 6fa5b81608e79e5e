//! Attributes of other servers. Every server reads the declarations of its families, so that the servers themselves notice
//! two sources of one name. [`outranked_by`] decides which of them owns it.

use std::{
    collections::{HashMap, HashSet},
    hash::BuildHasher,
    time::Duration,
};

use tampu_bus::{BusError, Event, Participant, SourceInfo, SourceState};
use tampu_types::{
    Incarnation, SourceName,
    event::{AttributeName, Declaration, Presence},
};

use crate::{
    ask,
    names_reader::{Families, NamesReader},
    precedence::outranked_by,
};

/// Other owner of a name. Names are stored as hashes: there may be many, and a collision only costs one more question.
struct OtherOwner {
    by: Incarnation,
    attribute: u32,
    redundant: bool,
}

pub(super) struct OtherDeclarations {
    reader: NamesReader,
    names: HashMap<u64, Vec<OtherOwner>>,
    sources: HashMap<Incarnation, SourceName>,
    /// Incarnations that are hung or cannot be reached.
    silent: HashSet<Incarnation>,
    hasher: std::hash::RandomState,
}

impl OtherDeclarations {
    pub fn watch(participant: &Participant) -> Result<OtherDeclarations, BusError> {
        let reader = NamesReader::open(participant, Families::none())?;
        let hasher = std::hash::RandomState::new();
        Ok(OtherDeclarations { reader, names: HashMap::new(), sources: HashMap::new(), silent: HashSet::new(), hasher })
    }

    /// Reads the declarations of this attribute's family from now on.
    pub fn want(&mut self, name: &AttributeName) {
        self.reader.want(&Families::of_name(name));
        self.reader.widen();
    }

    /// Reads the declarations that arrived. Calls `declared` with names that other servers declare or withdraw, and
    /// `gone` with incarnations that ended. Returns whether another life of this source fell silent
    /// or is heard again, which may concern every name.
    pub fn read(
        &mut self,
        us: &Participant,
        mut declared: impl FnMut(&AttributeName),
        mut gone: impl FnMut(Incarnation),
    ) -> bool {
        let OtherDeclarations { reader, names, sources, silent, hasher } = self;
        let mut has_changed = false;
        reader.widen();
        reader.read(Duration::ZERO, usize::MAX, |event| {
            match event {
                Event::Sample(sample) if sample.stream.incarnation != us.incarnation() => {
                    let (by, source) = (sample.stream.incarnation, sample.stream.source.clone());
                    // A declaration that cannot be decoded is of a later release or hostile; subscribers count it.
                    let Ok(Ok(declaration)) = sample.payload.with(Declaration::parse) else { return };
                    let (name, attribute) = (hasher.hash_one(declaration.config.name.folded()), declaration.attribute);
                    let owners = names.entry(name).or_default();
                    owners.retain(|owners| (owners.by, owners.attribute) != (by, attribute));
                    if declaration.presence == Presence::Declared {
                        owners.push(OtherOwner { by, attribute, redundant: declaration.redundant });
                    }
                    if owners.is_empty() {
                        names.remove(&name);
                    }
                    sources.entry(by).or_insert(source);
                    declared(&declaration.config.name);
                }
                Event::Source(change) if matches!(change.state, SourceState::Died | SourceState::Left) => {
                    sources.remove(&change.incarnation);
                    silent.remove(&change.incarnation);
                    names.retain(|_, owners| {
                        owners.retain(|owners| owners.by != change.incarnation);
                        !owners.is_empty()
                    });
                    gone(change.incarnation);
                }
                Event::Source(change) => {
                    let news = match change.state {
                        SourceState::Silent => silent.insert(change.incarnation),
                        _ => silent.remove(&change.incarnation),
                    };
                    has_changed |= news && change.source.as_str().eq_ignore_ascii_case(us.source().as_str());
                }
                Event::Gap(gap) if gap.stream.incarnation != us.incarnation() => ask::for_names(us, gap.stream.incarnation),
                _ => {}
            }
        });
        has_changed
    }

    /// Returns the other source that owns this name before this process; of several, the one that outranks the others.
    pub fn owner(&self, name: &AttributeName, redundant: bool, us: &Participant) -> Option<SourceInfo> {
        let owners = self.names.get(&self.hasher.hash_one(name.folded()))?;
        let others = owners.iter().filter(|owners| !(owners.redundant && redundant));
        let others = others
            .filter_map(|owners| Some(SourceInfo { source: self.sources.get(&owners.by)?.clone(), incarnation: owners.by }));
        let outranked = |one: &SourceInfo, other: &SourceInfo| {
            outranked_by(&one.source, one.incarnation, other, |life| self.silent.contains(&life))
        };
        let us = SourceInfo { source: us.source().clone(), incarnation: us.incarnation() };
        let before_us = others.filter(|other| outranked(&us, other));
        before_us.reduce(|one, other| if outranked(&one, &other) { other } else { one })
    }
}
