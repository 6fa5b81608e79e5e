//! Samples of a life that has begun and that nobody is bound to yet.
//!
//! A reader is matched to a server's next life by itself, and may hand over what that publishes first before the worker that reads
//! declarations has said what is bound to it. Those samples wait here, for a short time and within a bound, and are given to each
//! attribute when it is bound; so a restart misses nothing that was published after it was found.

use std::collections::{HashMap, VecDeque};

use tampu_bus::Sample;
use tampu_types::{Incarnation, Time, event::view::Routing};

use super::route::Way;

/// How long a life counts as new, ns: declarations come within milliseconds, on a busy host within a second.
const NEW: i64 = 2_000_000_000;
/// What waits of one life, bytes; beyond it the oldest go, and are told as missing.
const MOST: usize = 4 << 20;

/// What one new life has sent.
struct Life {
    /// Until when it is new, by this host's clock.
    until: Time,
    samples: VecDeque<(u32, Vec<u8>, Way)>,
    bytes: usize,
}

impl Life {
    fn let_go(&mut self) {
        if !self.samples.is_empty() {
            self.samples = VecDeque::new();
            self.bytes = 0;
        }
    }
}

/// What waits.
#[derive(Default)]
pub(super) struct Early {
    lives: HashMap<Incarnation, Life>,
}

impl Early {
    /// Keeps a sample of an attribute that nobody is bound to, if its life is new.
    pub fn hold(&mut self, sample: &Sample<'_>, way: Way) {
        let life = self.lives.entry(sample.stream.incarnation).or_insert_with(|| Life {
            until: Time(way.received.0.saturating_add(NEW)),
            samples: VecDeque::new(),
            bytes: 0,
        });
        if way.received > life.until {
            life.let_go();
            return;
        }
        let length = sample.payload.len();
        if length > MOST {
            return;
        }
        let Ok(bytes) = sample.payload.to_vec() else { return };
        let Some(routing) = Routing::of(&bytes) else { return };
        life.bytes += length;
        life.samples.push_back((routing.attribute, bytes, way));
        while life.bytes > MOST {
            let Some((_, oldest, _)) = life.samples.pop_front() else { break };
            life.bytes -= oldest.len();
        }
    }

    /// Gives an attribute that was bound what waited for it. It stays until [`Early::given`], for others that are bound with it.
    pub fn give(&self, incarnation: Incarnation, attribute: u32, now: Time, mut take: impl FnMut(&[u8], Way)) {
        let Some(life) = self.lives.get(&incarnation).filter(|life| now <= life.until) else { return };
        life.samples.iter().filter(|held| held.0 == attribute).for_each(|(_, bytes, way)| take(bytes, *way));
    }

    /// Everybody who was to be bound to an attribute is: who is bound to it later asks for its current value.
    pub fn given(&mut self, incarnation: Incarnation, attribute: u32) {
        let Some(life) = self.lives.get_mut(&incarnation) else { return };
        life.samples.retain(|held| held.0 != attribute);
        life.bytes = life.samples.iter().map(|held| held.1.len()).sum();
    }

    /// Lets go of what is no longer new.
    pub fn tidy(&mut self, now: Time) {
        self.lives.values_mut().filter(|life| now > life.until).for_each(Life::let_go);
    }

    /// Whether anything waits.
    pub fn is_empty(&self) -> bool {
        self.lives.values().all(|life| life.samples.is_empty())
    }

    /// A life has ended.
    pub fn forget(&mut self, incarnation: Incarnation) {
        self.lives.remove(&incarnation);
    }
}
