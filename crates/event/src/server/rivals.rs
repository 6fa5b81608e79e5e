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

use crate::topics;

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

    /// Takes what has come: calls `declared` with every other server's declaration, and `gone` with lives that ended.
    pub fn read(
        &mut self,
        us: &Participant,
        mut declared: impl FnMut(&Declaration, &SourceInfo),
        mut gone: impl FnMut(Incarnation),
    ) {
        let Rivals { reader, names, sources, hasher } = self;
        while let Some(event) = reader.next(Duration::ZERO) {
            match event {
                Event::Sample(sample) if sample.stream.incarnation != us.incarnation() => {
                    let by = SourceInfo { source: sample.stream.source.clone(), incarnation: sample.stream.incarnation };
                    // What cannot be read is of a later release, or hostile; subscribers count it.
                    let Ok(Ok(declaration)) = sample.payload.with(Declaration::parse) else { continue };
                    let held = names.entry(hasher.hash_one(declaration.config.name.folded())).or_default();
                    held.retain(|held| (held.by, held.attribute) != (by.incarnation, declaration.attribute));
                    if declaration.presence == Presence::Declared {
                        let (attribute, redundant) = (declaration.attribute, declaration.redundant);
                        held.push(Held { by: by.incarnation, attribute, redundant });
                    }
                    sources.entry(by.incarnation).or_insert_with(|| by.source.clone());
                    declared(&declaration, &by);
                }
                Event::Source(change) if matches!(change.state, SourceState::Died | SourceState::Left) => {
                    sources.remove(&change.incarnation);
                    names.retain(|_, held| {
                        held.retain(|held| held.by != change.incarnation);
                        !held.is_empty()
                    });
                    gone(change.incarnation);
                }
                _ => {}
            }
        }
    }

    /// Who has this name already, and keeps it against us.
    pub fn owner_before(&self, name: &AttributeName, redundant: bool, us: &Participant) -> Option<String> {
        let held = self.names.get(&self.hasher.hash_one(name.folded()))?;
        let owner = |held: &Held| {
            let other = SourceInfo { source: self.sources.get(&held.by)?.clone(), incarnation: held.by };
            let ours = held.redundant && redundant || !yields(us.source(), us.incarnation(), &other);
            (!ours).then(|| other.source.to_string())
        };
        held.iter().find_map(owner)
    }
}
