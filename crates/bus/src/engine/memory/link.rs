//! What a link does to a message: lose, delay, repeat, reorder, drop when full.

use std::collections::{BTreeMap, HashMap};

use super::{Faults, Kind, random::Random, state::ProcessId};
use crate::engine::Class;

/// A host of the network.
pub type HostId = u32;

/// Links between hosts, and what is under way between processes.
#[derive(Default)]
pub struct Links {
    default: Faults,
    set: BTreeMap<(HostId, HostId), Faults>,
    pairs: HashMap<(ProcessId, ProcessId), Pair>,
}

/// Traffic from one process to another.
#[derive(Default)]
struct Pair {
    under_way: usize,
    free_at: u64,
    last_due: [u64; 3],
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives then.
    Arrives(u64),
    /// It arrives then, after messages sent later.
    Late(u64),
    /// It arrives at both times.
    Twice(u64, u64),
    /// It is lost.
    Lost,
    /// There was no room.
    Full,
}

impl Fate {
    /// When it arrives, not at all, once or twice.
    pub fn arrivals(self) -> impl Iterator<Item = u64> {
        let (first, second) = match self {
            Fate::Arrives(due) | Fate::Late(due) => (Some(due), None),
            Fate::Twice(first, second) => (Some(first), Some(second)),
            Fate::Lost | Fate::Full => (None, None),
        };
        first.into_iter().chain(second)
    }
}

impl Links {
    pub fn set_default(&mut self, faults: Faults) {
        self.default = faults;
    }

    pub fn set(&mut self, hosts: (HostId, HostId), faults: Faults) {
        self.set.insert(hosts, faults);
    }

    /// Decides what becomes of a message, and counts its bytes as under way.
    pub fn send(
        &mut self,
        random: &mut Random,
        now: u64,
        hosts: (HostId, HostId),
        pair: (ProcessId, ProcessId),
        kind: Kind,
        len: usize,
    ) -> Fate {
        let faults = self.set.get(&hosts).unwrap_or(&self.default);
        let pair = self.pairs.entry(pair).or_default();
        let counted = matches!(kind, Kind::Message(_));
        if counted && pair.under_way > 0 && pair.under_way.saturating_add(len) > faults.capacity {
            return Fate::Full;
        }
        if random.chance(faults.loss) {
            return Fate::Lost;
        }
        let (shortest, longest) = (faults.delay.0.as_nanos() as u64, faults.delay.1.as_nanos() as u64);
        let mut leaves = now;
        if let Some(takes) = (len as u64).saturating_mul(1_000_000_000).checked_div(faults.rate) {
            pair.free_at = pair.free_at.max(now) + takes;
            leaves = pair.free_at;
        }
        // Messages of one lane keep their order; a message that is to be overtaken leaves it.
        let last_due = &mut pair.last_due[lane(kind)];
        let due = (leaves + random.between(shortest, longest)).max(*last_due);
        let held_back = faults.reorder_by.as_nanos() as u64;
        let fate = if random.chance(faults.reorder) {
            Fate::Late(due + random.between(held_back / 2, held_back))
        } else {
            *last_due = due;
            if random.chance(faults.duplicate) {
                Fate::Twice(due, due + random.between(0, held_back))
            } else {
                Fate::Arrives(due)
            }
        };
        if counted {
            pair.under_way += len * fate.arrivals().count();
        }
        fate
    }

    /// A message has arrived, or will not any more.
    pub fn release(&mut self, pair: (ProcessId, ProcessId), len: usize) {
        if let Some(pair) = self.pairs.get_mut(&pair) {
            pair.under_way = pair.under_way.saturating_sub(len);
        }
    }
}

/// Control messages share the data's lane, as the engine's contract says; urgent ones may overtake both.
fn lane(kind: Kind) -> usize {
    match kind {
        Kind::Message(Class::Data | Class::Control) => 0,
        Kind::Message(Class::Urgent) => 1,
        Kind::Question | Kind::Answer => 2,
    }
}
