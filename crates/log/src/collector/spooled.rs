//! Packets from a spool: packets of streams that a node kept while no collector was there.
//!
//! The archive has offsets of the spool's own stream. A packet keeps its original header and is stored as if it had
//! come directly; its ids show whether the archive already has it. The collector remembers the samples that came from a
//! spool. Such a sample is not reported lost when the writer's own stream lacks it. For samples that are still in the
//! spool, the collector sends a request to the spool.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
    time::Duration,
};

use parking_lot::Mutex;
use tampu_bus::Participant;
use tampu_types::Incarnation;

use crate::spool::{
    answer::taken,
    ledger::{Lost, Ranges},
};

/// Longest wait for a spool's answer about its content.
const ANSWER: Duration = Duration::from_secs(1);
/// Streams that are remembered; beyond it those of processes that have gone are forgotten.
const STREAMS: usize = 4096;

/// Samples that arrived from a spool, and the losses of spools.
#[derive(Debug, Default)]
pub(super) struct Spooled {
    taken: Mutex<HashMap<(Incarnation, u32), Ranges>>,
    /// Losses by spool (its host) and source.
    lost: Mutex<HashMap<u32, BTreeMap<String, Lost>>>,
}

impl Spooled {
    /// Stores the arrival of a sample.
    pub(super) fn came(&self, participant: &Participant, incarnation: Incarnation, stream: u32, samples: Range<u64>) {
        let mut taken = self.taken.lock();
        if taken.len() >= STREAMS && !taken.contains_key(&(incarnation, stream)) {
            let here: HashSet<Incarnation> = participant.sources().iter().map(|source| source.incarnation).collect();
            taken.retain(|(life, _), _| here.contains(life));
        }
        taken.entry((incarnation, stream)).or_default().add(samples);
    }

    /// Returns the samples of a range that are in no spool and arrived from none.
    pub(super) fn missing(
        &self,
        participant: &Participant,
        incarnation: Incarnation,
        stream: u32,
        samples: Range<u64>,
    ) -> Vec<Range<u64>> {
        let mut known = {
            let taken = self.taken.lock();
            taken.get(&(incarnation, stream)).cloned().unwrap_or_default()
        };
        if known.missing(samples.clone()).is_empty() {
            return Vec::new();
        }
        for (from, to) in taken(participant, incarnation, stream, ANSWER) {
            known.add(from..to);
        }
        known.missing(samples)
    }

    /// Stores the total losses that a spool reports; returns the losses of all spools for each source.
    pub(super) fn tally(&self, boot: u32, tally: BTreeMap<String, Lost>) -> Vec<(String, u64)> {
        let mut lost = self.lost.lock();
        lost.insert(boot, tally);
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (source, lost) in lost.values().flatten() {
            let sum = sums.entry(source.clone()).or_default();
            *sum = sum.saturating_add(lost.records);
        }
        sums.into_iter().collect()
    }
}
