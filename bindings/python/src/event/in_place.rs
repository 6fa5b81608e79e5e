//! Long values that Python reads in the memory of their server.
//!
//! ```text
//! stream worker:     put(event) -> waits ..................................-> next event, so the server may go on
//! thread of Python:                take -> `with event.view()` reads -> end of the block
//! ```
//! The worker waits until the program is done with an event, as it would in a callback of Rust. So the server keeps the
//! memory meanwhile, up to its limit. A program that exceeds the limit learns it by `View.valid`.

use std::sync::Arc;

use tampu_event::client::{DroppedEvents, Event, Update};

use crate::event::{
    holds::HeldValue,
    inbox::{Inbox, Queued},
};

/// An event on its way to Python.
pub struct Arrived {
    /// The event; without its reading if that is in its server's memory.
    pub update: Update,
    /// The reading in its server's memory.
    pub held: Option<Arc<HeldValue>>,
}

impl Queued for Arrived {
    fn size(&self) -> usize {
        self.update.size()
    }

    fn is_held(&self) -> bool {
        self.held.is_some()
    }

    fn dropped(&self, events: &mut DroppedEvents) {
        match self.held {
            Some(_) => events.note_report(&self.update),
            None => events.note(&self.update),
        }
    }

    fn report(&mut self, events: &mut DroppedEvents) {
        events.report(&mut self.update);
    }
}

impl Arrived {
    /// Returns a copy of an event.
    pub fn copy_of(event: &Event<'_>) -> Arrived {
        Arrived { update: event.to_update(), held: None }
    }
}

/// Puts an event into a queue that drops none: the worker waits for room, and until the program is done with a value in its
/// server's memory.
pub fn put(event: &Event<'_>, inbox: &Inbox<Arrived>) {
    let lent = event.lent().zip(event.reading);
    let Some((held, is_released)) = lent.and_then(|(bytes, reading)| HeldValue::of(bytes, reading, inbox.holds())) else {
        return inbox.put_waiting(Arrived::copy_of(event));
    };
    inbox.put_waiting(Arrived { update: event.to_report(), held: Some(held) });
    inbox.holds().wait_for(&is_released);
}
