//! Events on their way into the queue for Tango. What finds no room there is counted by attribute, and Tango's clients are told
//! before the attribute's next event.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use tampu_types::event::{Failure, Severity};

use super::{
    ask::{Asks, Push},
    outward::PUSHABLE,
};
use crate::tango::{Direction, News, Shared};

/// How many events of each attribute found no room since the last that did. Bounded by the attributes that are served.
#[derive(Default)]
struct Debts(HashMap<String, u64>);

/// What became of an event.
#[derive(Debug, PartialEq, Eq)]
struct Sent {
    /// It found room.
    room: bool,
    /// So many before it had found none, and the clients are told now.
    settled: Option<u64>,
}

impl Debts {
    /// Gives it to `put`, after word of what is owed; `put` says whether there was room.
    fn send(&mut self, push: Push<'_>, mut put: impl FnMut(Push<'_>) -> bool) -> Sent {
        let name = push.attribute;
        let owed = self.0.get(name).copied();
        let told = owed.is_none_or(|count| {
            let failures = [failure(format!("{count} events found no room on the way to the bridge"))];
            put(missed(&push, &failures))
        });
        let settled = owed.filter(|_| told);
        if settled.is_some() {
            self.0.remove(name);
        }
        let room = told && put(push);
        if !room {
            *self.0.entry(name.to_owned()).or_default() += 1;
        }
        Sent { room, settled }
    }
}

/// Word of events that were missed.
pub(super) fn failure(what: String) -> Failure {
    Failure { origin: "tampu".to_owned(), severity: Severity::Warning, ..Failure::new("API_MissedEvents", what) }
}

fn missed<'a>(push: &Push<'a>, failures: &'a [Failure]) -> Push<'a> {
    Push {
        attribute: push.attribute,
        kinds: &PUSHABLE,
        time_ns: push.time_ns,
        quality: push.quality,
        value: None,
        failures,
        counter: None,
        passing: true,
    }
}

/// The way into one device server's queue.
pub(super) struct Pushes {
    pub asks: Asks,
    pub shared: Arc<Shared>,
    debts: Debts,
}

impl Pushes {
    pub fn new(asks: Asks, shared: Arc<Shared>) -> Pushes {
        Pushes { asks, shared, debts: Debts::default() }
    }

    pub fn send(&mut self, push: Push<'_>) {
        let (attribute, counts) = (push.attribute, &self.shared.counts);
        let asks = &self.asks;
        let sent = self.debts.send(push, |push| asks.push(push));
        if sent.room {
            counts.to_tango.fetch_add(1, Ordering::Relaxed);
        } else {
            counts.lost(Direction::ToTango, 1);
        }
        if let Some(count) = sent.settled {
            self.shared.tell(News::Lost { direction: Direction::ToTango, attribute: attribute.to_owned(), count });
        }
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        // Where the process has ended there is nobody whom it was kept from.
        if self.asks.is_closed() {
            return;
        }
        for (attribute, count) in self.debts.0.drain() {
            self.shared.tell(News::Lost { direction: Direction::ToTango, attribute, count });
        }
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::event::Quality;

    use super::*;

    fn push(attribute: &str) -> Push<'_> {
        Push {
            attribute,
            kinds: &PUSHABLE,
            time_ns: 1,
            quality: Quality::Valid,
            value: None,
            failures: &[],
            counter: None,
            passing: false,
        }
    }

    #[test]
    fn what_found_no_room_is_told_before_the_next_event_of_its_attribute() {
        let mut debts = Debts::default();
        let mut heard: Vec<String> = Vec::new();
        let mut send = |attribute, room: usize| {
            let mut left = room;
            let sent = debts.send(push(attribute), |push| {
                let said = push.failures.first().map_or("value", |failure| failure.description.as_str());
                let room = left > 0;
                left = left.saturating_sub(1);
                if room {
                    heard.push(format!("{} {said} {}", push.attribute, push.passing));
                }
                room
            });
            (sent.room, sent.settled)
        };
        assert_eq!(send("a", 9), (true, None));
        assert_eq!(send("a", 0), (false, None));
        assert_eq!(send("a", 0), (false, None));
        assert_eq!(send("b", 9), (true, None), "the debt is another's");
        assert_eq!(send("a", 1), (false, Some(2)), "room for the word alone");
        assert_eq!(send("a", 9), (true, Some(1)));
        assert_eq!(send("a", 9), (true, None));
        let missed = |count| format!("a {count} events found no room on the way to the bridge true");
        let value = |attribute| format!("{attribute} value false");
        assert_eq!(heard, [value("a"), value("b"), missed(2), missed(1), value("a"), value("a")]);
    }
}
