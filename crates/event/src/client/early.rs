//! Samples of a new incarnation that arrive before its attributes are bound.
//!
//! The bus matches a reader to the next incarnation of a server by itself. So the first samples may arrive before the
//! worker of the directory has bound the attributes. They are kept here, for a short time and up to a limit, and
//! replayed when an attribute is bound. So a restart of a server loses no sample that it published after its reader was
//! matched.

use std::collections::{HashMap, VecDeque};

use tampu_bus::Sample;
use tampu_types::{Incarnation, Time, event::view::Routing};

use super::event::SampleTimes;

/// Age up to which an incarnation counts as new, ns. Declarations come within milliseconds, on a busy host within seconds.
const NEW: i64 = 5_000_000_000;
/// Bytes kept of one incarnation: 5 s at 20 000 small events a second. Beyond it, which a server at full speed reaches within
/// 100 ms, the oldest samples are dropped and reported as missing.
const MOST: usize = 16 << 20;

/// Samples of one new incarnation.
struct NewLife {
    /// Until when it is new, by this host's clock.
    until: Time,
    samples: VecDeque<(u32, Vec<u8>, SampleTimes)>,
    bytes: usize,
}

impl NewLife {
    fn discard(&mut self) {
        if !self.samples.is_empty() {
            self.samples = VecDeque::new();
            self.bytes = 0;
        }
    }
}

/// Samples that arrived before their attribute was bound.
#[derive(Default)]
pub(super) struct EarlySamples {
    by_incarnation: HashMap<Incarnation, NewLife>,
}

impl EarlySamples {
    /// Keeps a sample of an unbound attribute if its incarnation is new.
    pub fn keep(&mut self, sample: &Sample<'_>, times: SampleTimes) {
        let life = self.by_incarnation.entry(sample.stream.incarnation).or_insert_with(|| NewLife {
            until: Time(times.received.0.saturating_add(NEW)),
            samples: VecDeque::new(),
            bytes: 0,
        });
        if times.received > life.until {
            life.discard();
            return;
        }
        let length = sample.payload.len();
        if length > MOST {
            return;
        }
        let Ok(bytes) = sample.payload.to_vec() else { return };
        let Some(routing) = Routing::of(&bytes) else { return };
        life.bytes += length;
        life.samples.push_back((routing.attribute, bytes, times));
        while life.bytes > MOST {
            let Some((_, oldest, _)) = life.samples.pop_front() else { break };
            life.bytes -= oldest.len();
        }
    }

    /// Replays the samples of an attribute that was bound. They stay until [`EarlySamples::discard`], for other
    /// subscriptions bound with it.
    pub fn replay(&self, incarnation: Incarnation, attribute: u32, now: Time, mut take: impl FnMut(&[u8], SampleTimes)) {
        let Some(life) = self.by_incarnation.get(&incarnation).filter(|life| now <= life.until) else { return };
        life.samples.iter().filter(|kept| kept.0 == attribute).for_each(|(_, bytes, times)| take(bytes, *times));
    }

    /// Drops the samples of an attribute whose subscriptions are all bound. A later subscription requests the current
    /// value.
    pub fn discard(&mut self, incarnation: Incarnation, attribute: u32) {
        let Some(life) = self.by_incarnation.get_mut(&incarnation) else { return };
        life.samples.retain(|kept| kept.0 != attribute);
        life.bytes = life.samples.iter().map(|kept| kept.1.len()).sum();
    }

    /// Drops the samples of incarnations that are no longer new.
    pub fn expire(&mut self, now: Time) {
        self.by_incarnation.values_mut().filter(|life| now > life.until).for_each(NewLife::discard);
    }

    /// Returns whether no sample is kept.
    pub fn is_empty(&self) -> bool {
        self.by_incarnation.values().all(|life| life.samples.is_empty())
    }

    /// Drops everything of an incarnation that ended.
    pub fn forget(&mut self, incarnation: Incarnation) {
        self.by_incarnation.remove(&incarnation);
    }
}
