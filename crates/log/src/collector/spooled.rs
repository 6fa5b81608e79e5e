//! What comes by way of a spool: packets of streams that a node has kept while no collector was there.
//!
//! The archive has offsets of the spool's own stream; the packet's header is the one it came with, so it is stored as if it had
//! come by itself, and its ids tell whether it has. Which samples have come this way is remembered: when the writer's own stream
//! turns out to lack them, they are not lost. Those that are still in the spool then, the spool is asked for.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tampu_bus::Participant;
use tampu_types::Incarnation;

use crate::spool::{self, Lost, Ranges};

/// How long a spool may take to say what it holds.
const ANSWER: Duration = Duration::from_secs(1);
/// Streams that are remembered; beyond it those of processes that have gone are forgotten.
const STREAMS: usize = 4096;

/// Samples that came by way of a spool, and what spools have lost.
#[derive(Debug, Default)]
pub(super) struct Spooled {
    taken: Mutex<HashMap<(Incarnation, u32), Ranges>>,
    /// By spool (its host) and source.
    lost: Mutex<HashMap<u32, BTreeMap<String, Lost>>>,
}

impl Spooled {
    /// This sample has come.
    pub(super) fn came(&self, participant: &Participant, incarnation: Incarnation, stream: u32, samples: Range<u64>) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.len() >= STREAMS && !taken.contains_key(&(incarnation, stream)) {
            let here: HashSet<Incarnation> = participant.sources().iter().map(|source| source.incarnation).collect();
            taken.retain(|(life, _), _| here.contains(life));
        }
        taken.entry((incarnation, stream)).or_default().add(samples);
    }

    /// What of these samples is in no spool, and has come from none.
    pub(super) fn missing(
        &self,
        participant: &Participant,
        incarnation: Incarnation,
        stream: u32,
        samples: Range<u64>,
    ) -> Vec<Range<u64>> {
        let mut known = {
            let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            taken.get(&(incarnation, stream)).cloned().unwrap_or_default()
        };
        if known.missing(samples.clone()).is_empty() {
            return Vec::new();
        }
        for (from, to) in spool::taken(participant, incarnation, stream, ANSWER) {
            known.add(from..to);
        }
        known.missing(samples)
    }

    /// A spool tells what it has lost, ever; returns for each source what is lost by all spools.
    pub(super) fn tally(&self, boot: u32, tally: BTreeMap<String, Lost>) -> Vec<(String, u64)> {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.insert(boot, tally);
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        for (source, lost) in lost.values().flatten() {
            *sums.entry(source.clone()).or_default() += lost.records;
        }
        sums.into_iter().collect()
    }
}
