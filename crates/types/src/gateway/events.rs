//! The body of EVENTS: events of attributes, each at a multiple of 8.
//!
//! ```text
//!  0  u32  length of the event
//!  4  u32  handle of the attribute
//!  8  u8   reason: 0 first, 1 update, 2 resumed
//!  9  u8   1: an unknown number of events may be missing before it
//! 10  u8[6] 0
//! 16  i64  sent
//! 24  i64  received by the hub
//! 32       the event, zeros up to a multiple of 8
//! ```
//! An event begins at a multiple of 8, so that its elements are aligned.

use super::frame::BadFrame;
use crate::{Time, event::Reason};

/// Length of what stands before an event.
pub const EVENT_HEADER_LEN: usize = 32;

/// One event in the body of EVENTS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventItem<'a> {
    /// Handle of the attribute, from its ATTRIBUTE frame.
    pub attribute: u32,
    /// Reason of the delivery: first, update or resumed.
    pub reason: Reason,
    /// True if events may be missing before this one and their number is unknown.
    pub unknown_before: bool,
    /// Time at which its batch was sent.
    pub sent: Time,
    /// Time at which the hub received it.
    pub received: Time,
    /// The event as on the bus.
    pub event: &'a [u8],
}

impl EventItem<'_> {
    /// Appends the item to a body, whose length is a multiple of 8.
    pub fn put(&self, body: &mut Vec<u8>) {
        let reason = match self.reason {
            Reason::First => 0,
            Reason::Resumed => 2,
            _ => 1,
        };
        body.reserve(EVENT_HEADER_LEN + self.event.len() + 7);
        body.extend_from_slice(&(self.event.len() as u32).to_le_bytes());
        body.extend_from_slice(&self.attribute.to_le_bytes());
        body.extend_from_slice(&[reason, u8::from(self.unknown_before), 0, 0, 0, 0, 0, 0]);
        body.extend_from_slice(&self.sent.0.to_le_bytes());
        body.extend_from_slice(&self.received.0.to_le_bytes());
        body.extend_from_slice(self.event);
        body.resize(body.len().next_multiple_of(8), 0);
    }

    /// Returns the length of an item with an event of this length.
    pub fn len_of(event: usize) -> usize {
        EVENT_HEADER_LEN + event.next_multiple_of(8)
    }
}

/// Items of a body.
pub fn events(body: &[u8]) -> impl Iterator<Item = Result<EventItem<'_>, BadFrame>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let item = first(&mut rest);
        if item.is_none() {
            rest = &[];
        }
        Some(item.ok_or(BadFrame::Body("events")))
    })
}

fn first<'a>(rest: &mut &'a [u8]) -> Option<EventItem<'a>> {
    let (head, after) = rest.split_first_chunk::<EVENT_HEADER_LEN>()?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let time = |at: usize| Time(i64::from(word(at)) | i64::from(word(at + 4)) << 32);
    let reason = match head[8] {
        0 => Reason::First,
        1 => Reason::Update,
        2 => Reason::Resumed,
        _ => return None,
    };
    let length = word(0) as usize;
    let event = after.get(..length)?;
    *rest = after.get(length.next_multiple_of(8)..)?;
    Some(EventItem { attribute: word(4), reason, unknown_before: head[9] != 0, sent: time(16), received: time(24), event })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn events_lead_back(all in proptest::collection::vec((any::<u32>(), 0..3, any::<bool>(), any::<i64>(), any::<i64>(), proptest::collection::vec(any::<u8>(), 0..30)), 0..6)) {
            let reasons = [Reason::First, Reason::Update, Reason::Resumed];
            let items: Vec<EventItem<'_>> = all.iter().map(|(attribute, reason, unknown_before, sent, received, event)| EventItem {
                attribute: *attribute,
                reason: reasons[*reason as usize],
                unknown_before: *unknown_before,
                sent: Time(*sent),
                received: Time(*received),
                event,
            }).collect();
            let mut body = Vec::new();
            for item in &items {
                let before = body.len();
                item.put(&mut body);
                prop_assert_eq!(body.len() - before, EventItem::len_of(item.event.len()));
            }
            let read: Vec<EventItem<'_>> = events(&body).map(Result::unwrap).collect();
            prop_assert_eq!(read, items);
        }

        #[test]
        fn hostile_bodies_are_errors(body in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(events(&body).count() <= body.len() / EVENT_HEADER_LEN + 1);
        }
    }
}
