//! Events on their way into the queue for Tango. Events without room there are counted by attribute, and Tango's
//! clients are notified before the attribute's next event.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use tampu_types::event::{Failure, Severity};

use super::request::{PUSHABLE, Push, RequestQueue};
use crate::{
    bridge_state::BridgeState,
    notice::{BridgeNotice, Direction},
};

/// Number of events of each attribute that found no room since the last that did. The number of served attributes bounds its size.
#[derive(Default)]
struct Unsent(HashMap<String, u64>);

/// Result of sending an event.
#[derive(Debug, PartialEq, Eq)]
struct SendResult {
    /// True if it found room.
    room: bool,
    /// Number of earlier events without room, which the clients learn with this one.
    settled: Option<u64>,
}

impl Unsent {
    /// Passes the event to `put`, after a notice of lost events; `put` returns whether there was room.
    fn send(&mut self, push: Push<'_>, mut put: impl FnMut(Push<'_>) -> bool) -> SendResult {
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
        SendResult { room, settled }
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
    pub requests: RequestQueue,
    pub shared: Arc<BridgeState>,
    unsent: Unsent,
}

impl Pushes {
    pub fn new(requests: RequestQueue, shared: Arc<BridgeState>) -> Pushes {
        Pushes { requests, shared, unsent: Unsent::default() }
    }

    pub fn send(&mut self, push: Push<'_>) {
        let (attribute, counts) = (push.attribute, &self.shared.counts);
        let requests = &self.requests;
        let sent = self.unsent.send(push, |push| requests.push(push));
        if sent.room {
            counts.to_tango.fetch_add(1, Ordering::Relaxed);
        } else {
            counts.lost(Direction::ToTango, 1);
        }
        if let Some(count) = sent.settled {
            self.shared.notify(BridgeNotice::Lost { direction: Direction::ToTango, attribute: attribute.to_owned(), count });
        }
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        // If the process has ended, no client missed the events.
        if self.requests.is_closed() {
            return;
        }
        for (attribute, count) in self.unsent.0.drain() {
            self.shared.notify(BridgeNotice::Lost { direction: Direction::ToTango, attribute, count });
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
        let mut unsent = Unsent::default();
        let mut heard: Vec<String> = Vec::new();
        let mut send = |attribute, room: usize| {
            let mut left = room;
            let sent = unsent.send(push(attribute), |push| {
                let message = push.failures.first().map_or("value", |failure| failure.description.as_str());
                let room = left > 0;
                left = left.saturating_sub(1);
                if room {
                    heard.push(format!("{} {message} {}", push.attribute, push.passing));
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
