//! Links: they lose, delay, repeat and reorder messages, and drop them when full.

use std::collections::{BTreeMap, HashMap};

use super::{
    ids::{HostId, ProcessId},
    message::{Faults, Kind},
    random::Random,
};
use crate::engine::Class;

/// Links between hosts, and messages under way between processes.
#[derive(Default)]
pub struct Links {
    default: Faults,
    set: BTreeMap<(HostId, HostId), Faults>,
    pairs: HashMap<(ProcessId, ProcessId), Pair>,
}

/// Traffic from one process to another.
#[derive(Default)]
struct Pair {
    /// Bytes under way: of urgent messages, and of others. Each has a queue of its own.
    under_way: [usize; 2],
    /// Times at which the link has sent what it has: urgent messages, and everything.
    free_at: [u64; 2],
    last_due: [u64; 3],
}

/// Index of a message's queue: an urgent one does not wait for others.
fn queue(kind: Kind) -> usize {
    usize::from(!matches!(kind, Kind::Message(class) if class.is_urgent()))
}

/// Fate of a message: arrivals, or the reason of its loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(u64),
    /// It arrives at this time, after messages sent later.
    Late(u64),
    /// It arrives at both times.
    Twice(u64, u64),
    /// It is lost.
    Lost,
    /// The link was full.
    Full,
}

impl Fate {
    /// Returns the times of its arrivals: none, one or two.
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

    /// Decides the fate of a message, and counts its bytes as under way.
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
        let under_way = pair.under_way[queue(kind)];
        if counted && under_way > 0 && under_way.saturating_add(len) > faults.capacity {
            return Fate::Full;
        }
        if random.chance(faults.loss) {
            return Fate::Lost;
        }
        let (shortest, longest) = (faults.delay.0.as_nanos() as u64, faults.delay.1.as_nanos() as u64);
        let mut leaves = now;
        if let Some(takes) = (len as u64).saturating_mul(1_000_000_000).checked_div(faults.rate) {
            // An urgent message goes before those that wait, and they leave later by the time that it takes.
            for free_at in &mut pair.free_at[queue(kind)..] {
                *free_at = (*free_at).max(now) + takes;
            }
            leaves = pair.free_at[queue(kind)];
        }
        // Messages of one stream_state keep their order. A message that may be overtaken is sent outside of it.
        let last_due = &mut pair.last_due[stream_state(kind)];
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
            pair.under_way[queue(kind)] += len * fate.arrivals().count();
        }
        fate
    }

    /// Releases a message that has arrived or is lost.
    pub fn release(&mut self, pair: (ProcessId, ProcessId), class: Class, len: usize) {
        if let Some(pair) = self.pairs.get_mut(&pair) {
            let under_way = &mut pair.under_way[queue(Kind::Message(class))];
            *under_way = under_way.saturating_sub(len);
        }
    }
}

/// Returns the index of a kind's order. Control messages share the data's, as the engine's contract demands; urgent ones
/// may overtake both.
fn stream_state(kind: Kind) -> usize {
    match kind {
        Kind::Message(Class::Data | Class::Control) => 0,
        Kind::Message(Class::Urgent | Class::UrgentUndeclared) => 1,
        Kind::Question | Kind::Answer => 2,
    }
}
