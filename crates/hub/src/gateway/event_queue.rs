//! Events of a subscription that wait for credit, bounded in bytes.
//!
//! A full queue makes the subscription's own readers wait, so that the servers' caches keep what is not read. Where the
//! readers are shared with other sessions, nothing may wait: the oldest events are dropped, and reported in their place
//! with their numbers.

use std::{collections::VecDeque, time::Duration};

use parking_lot::{Condvar, Mutex};
use tampu_event::client::Event;
use tampu_types::{
    event::{Missed, Reason, view::Routing},
    gateway::{
        Kind,
        events::{EventItem, events},
        messages::{Big, Missing, Notice},
    },
};

use super::{
    handles::{Handle, Handles},
    limits::EVENT_QUEUE,
};

/// Bytes of events that share a frame.
const FRAME_BYTES: usize = 64 << 10;
/// Most ranges of dropped events in one place. Further ones extend the last of their attribute.
const RANGES: usize = 1000;
/// Time after which a waiting reader looks again whether the queue is closed.
const LOOK: Duration = Duration::from_secs(1);

/// An item of the queue.
enum Item {
    /// Events of one frame.
    Events(Vec<u8>),
    /// The body of another frame.
    Json(Kind, Vec<u8>),
    /// Events that were dropped here: handle, first number, number after the last.
    Dropped(Vec<(u32, u64, u64)>),
}

impl Item {
    fn len(&self) -> usize {
        match self {
            Item::Events(body) | Item::Json(_, body) => body.len(),
            Item::Dropped(_) => 0,
        }
    }
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    bytes: usize,
    handles: Handles,
    is_closed: bool,
}

/// The queue of a subscription, between its readers and its sender.
pub(super) struct EventQueue {
    waiting: Mutex<Waiting>,
    /// Notified when there is an item, and at the end.
    ready: Condvar,
    /// Notified when items were taken, and at the end.
    room: Condvar,
    frame_limit: usize,
    /// True if a full queue makes the readers wait.
    holds: bool,
}

impl EventQueue {
    pub fn new(frame_limit: usize, holds: bool) -> EventQueue {
        EventQueue { waiting: Mutex::default(), ready: Condvar::new(), room: Condvar::new(), frame_limit, holds }
    }

    /// Puts an event, and waits for room if the queue holds its readers. Returns true if earlier ones were dropped for it.
    pub fn put(&self, event: &Event<'_>) -> bool {
        let mut waiting = self.waiting.lock();
        if self.holds {
            while waiting.bytes >= EVENT_QUEUE && !waiting.is_closed {
                self.room.wait_for(&mut waiting, LOOK);
            }
        }
        if waiting.is_closed {
            return false;
        }
        waiting.put(event, self.frame_limit);
        let has_dropped = !self.holds && waiting.shorten();
        drop(waiting);
        self.ready.notify_one();
        has_dropped
    }

    /// Takes the next frames, and waits for them at most so long.
    pub fn take(&self, timeout: Duration, is_stopped: impl Fn() -> bool) -> Vec<(Kind, Vec<u8>)> {
        let mut waiting = self.waiting.lock();
        if waiting.items.is_empty() && !is_stopped() {
            self.ready.wait_for(&mut waiting, timeout);
        }
        let was_full = waiting.bytes >= EVENT_QUEUE;
        let mut frames = Vec::new();
        while let Some(item) = waiting.items.pop_front() {
            waiting.bytes -= item.len();
            match item {
                Item::Json(kind, body) => frames.push((kind, body)),
                Item::Dropped(ranges) => {
                    let gaps = ranges.into_iter().filter_map(|(handle, from, to)| gap(handle, from, to));
                    frames.extend(gaps.map(|body| (Kind::Notice, body)));
                }
                Item::Events(body) => {
                    frames.push((Kind::Events, body));
                    break;
                }
            }
        }
        if was_full {
            self.room.notify_all();
        }
        frames
    }

    /// Wakes the caller of [`EventQueue::take`].
    pub fn wake(&self) {
        drop(self.waiting.lock());
        self.ready.notify_all();
    }

    /// Ends the queue: waiting readers go on, and further events are ignored.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closed = true;
        waiting.items.clear();
        drop(waiting);
        self.room.notify_all();
    }
}

fn gap(attribute: u32, from: u64, to: u64) -> Option<Vec<u8>> {
    let missed = Some(Missing::Exactly(Big(from), Big(to)));
    serde_json::to_vec(&Notice { attribute, reason: Reason::Gap.name().to_owned(), missed }).ok()
}

impl Waiting {
    fn put(&mut self, event: &Event<'_>, frame_limit: usize) {
        let handle = match self.handles.of(event.source, event.attribute) {
            Handle::Known(handle) => handle,
            Handle::New(handle, intro) => {
                self.json(Kind::Attribute, &intro);
                handle
            }
        };
        let has_reading = event.reason.has_reading();
        if let (true, Missed::Exactly(from, to)) = (has_reading, event.missed) {
            self.notice(handle, Reason::Gap, Some(Missing::Exactly(Big(from), Big(to))));
        }
        if !has_reading {
            let missed = match event.missed {
                Missed::Exactly(from, to) => Some(Missing::Exactly(Big(from), Big(to))),
                Missed::Unknown => Some(unknown()),
                Missed::Nothing => None,
            };
            self.notice(handle, event.reason, missed);
            self.handles.forget_after(event.source, event.attribute, event.reason);
        } else if EventItem::len_of(event.bytes().len()) > frame_limit {
            if event.missed == Missed::Unknown {
                self.notice(handle, Reason::Gap, Some(unknown()));
            }
            self.notice(handle, Reason::Gap, Some(Missing::Exactly(Big(event.number), Big(event.number + 1))));
        } else {
            self.event(&EventItem {
                attribute: handle,
                reason: event.reason,
                unknown_before: event.missed == Missed::Unknown,
                sent: event.sent,
                received: event.received,
                event: event.bytes(),
            });
        }
    }

    fn json(&mut self, kind: Kind, body: &impl serde::Serialize) {
        if let Ok(body) = serde_json::to_vec(body) {
            self.bytes += body.len();
            self.items.push_back(Item::Json(kind, body));
        }
    }

    fn notice(&mut self, attribute: u32, reason: Reason, missed: Option<Missing>) {
        self.json(Kind::Notice, &Notice { attribute, reason: reason.name().to_owned(), missed });
    }

    fn event(&mut self, item: &EventItem<'_>) {
        let length = EventItem::len_of(item.event.len());
        self.bytes += length;
        if let Some(Item::Events(body)) = self.items.back_mut()
            && body.len() + length <= FRAME_BYTES
        {
            return item.put(body);
        }
        let mut body = Vec::with_capacity(length);
        item.put(&mut body);
        self.items.push_back(Item::Events(body));
    }

    /// Drops the oldest events while there are too many bytes. Returns whether it has.
    fn shorten(&mut self) -> bool {
        let mut has_dropped = false;
        while self.bytes > EVENT_QUEUE && self.items.len() > 1 {
            let Some(at) = self.items.iter().position(|item| matches!(item, Item::Events(_))) else { break };
            // The newest event stays.
            if at + 1 == self.items.len() {
                break;
            }
            let Some(Item::Events(body)) = self.items.remove(at) else { break };
            self.bytes -= body.len();
            has_dropped = true;
            let before = at.checked_sub(1);
            let before = before.filter(|&before| matches!(self.items.get(before), Some(Item::Dropped(_))));
            let place = before.unwrap_or_else(|| {
                self.items.insert(at, Item::Dropped(Vec::new()));
                at
            });
            let Some(Item::Dropped(ranges)) = self.items.get_mut(place) else { break };
            for item in events(&body).flatten() {
                let Some(routing) = Routing::of(item.event) else { continue };
                note_dropped(ranges, item.attribute, routing.number);
            }
        }
        has_dropped
    }
}

fn unknown() -> Missing {
    Missing::Unknown("unknown".to_owned())
}

/// Adds a number to the ranges of its attribute.
fn note_dropped(ranges: &mut Vec<(u32, u64, u64)>, handle: u32, number: u64) {
    let is_full = ranges.len() >= RANGES;
    match ranges.iter_mut().rev().find(|(other, ..)| *other == handle) {
        // The current value of an attribute may have the number of the event before it.
        Some((_, _, to)) if number < *to => {}
        Some((_, _, to)) if number == *to || is_full => *to = number + 1,
        _ => ranges.push((handle, number, number + 1)),
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::{
        Time,
        event::{EventSample, Value},
    };

    use super::*;

    fn put(waiting: &mut Waiting, attribute: u32, number: u64, elements: usize) {
        let value = vec![0u8; elements];
        let mut event = Vec::new();
        EventSample { number, ..EventSample::of(attribute, Value::spectrum(&value)) }.encode(&mut event).unwrap();
        let item = EventItem {
            attribute,
            reason: Reason::Update,
            unknown_before: false,
            sent: Time(0),
            received: Time(0),
            event: &event,
        };
        waiting.event(&item);
    }

    fn missed(frame: &(Kind, Vec<u8>)) -> (u32, u64, u64) {
        assert_eq!(frame.0, Kind::Notice);
        let notice: Notice = serde_json::from_slice(&frame.1).unwrap();
        let Some(Missing::Exactly(from, to)) = notice.missed else { panic!("{notice:?}") };
        (notice.attribute, from.0, to.0)
    }

    #[test]
    fn a_full_queue_drops_the_oldest_events_and_reports_exactly_those_in_their_place() {
        let queue = EventQueue::new(1 << 20, false);
        let mut waiting = queue.waiting.lock();
        waiting.json(Kind::Attribute, &"1");
        for number in [1, 2, 4, 5, 6] {
            put(&mut waiting, 1, number, EVENT_QUEUE / 4);
            waiting.shorten();
        }
        waiting.notice(1, Reason::Gap, Some(unknown()));
        put(&mut waiting, 2, 1, EVENT_QUEUE);
        waiting.shorten();
        assert!(waiting.bytes <= EVENT_QUEUE + EVENT_QUEUE / 4);
        drop(waiting);
        let frames = queue.take(Duration::ZERO, || false);
        assert_eq!(frames[0].0, Kind::Attribute, "the attribute is known before its gap");
        let gaps: Vec<_> = frames[1..3].iter().map(missed).collect();
        assert_eq!(gaps, [(1, 1, 3), (1, 4, 7)], "3 was not in the queue and is not reported");
        assert_eq!((frames[3].0, frames[4].0), (Kind::Notice, Kind::Events));
        assert_eq!(frames.len(), 5);
    }

    #[test]
    fn many_ranges_become_one() {
        let mut ranges = Vec::new();
        (0..2 * RANGES as u64).for_each(|number| note_dropped(&mut ranges, 1, 2 * number));
        assert_eq!(ranges.len(), RANGES);
        assert_eq!(ranges.last().unwrap().2, 4 * RANGES as u64 - 1);
    }

    #[test]
    fn small_events_share_a_frame() {
        let mut waiting = Waiting::default();
        for number in 1..=100 {
            put(&mut waiting, 1, number, 8);
        }
        assert_eq!(waiting.items.len(), 1);
        let Some(Item::Events(body)) = waiting.items.pop_front() else { panic!() };
        assert_eq!(events(&body).map(Result::unwrap).count(), 100);
    }
}
