//! Attribute of a server: its name, its options, its stream and its state.

use std::sync::Arc;

use parking_lot::Mutex;
use tampu_bus::{SourceInfo, WriteError, Writer, Written};
use tampu_types::{
    Incarnation,
    event::{AttributeConfig, AttributeName, Failure},
};

use super::{attribute_state::AttributeState, options::AttributeOptions};

/// Length in bytes from which encoded events are put into lent memory. From about here on, the copies into the batch
/// and through the announced ring cost more than a look at the writer's memory.
const LEND_FROM: usize = 2048;

pub(super) struct EventWriter {
    pub writer: Arc<Writer>,
    pub own: bool,
}

impl EventWriter {
    /// Writes an event. Long ones go through lent memory, so a reader that can map it needs no copy through a socket.
    pub fn write(&self, event: &[u8]) -> Result<Written, WriteError> {
        if event.len() >= LEND_FROM
            && let Ok(mut loan) = self.writer.loan(event.len())
        {
            loan.copy_from_slice(event);
            return loan.publish();
        }
        self.writer.write(event)
    }
}

pub(super) struct PublishedAttribute {
    pub index: u32,
    pub name: AttributeName,
    pub options: AttributeOptions,
    pub out: EventWriter,
    pub state: Mutex<AttributeState>,
    /// The other source that owns the name by the rule of precedence.
    other_owner: Mutex<Option<SourceInfo>>,
}

impl PublishedAttribute {
    pub fn new(index: u32, config: AttributeConfig, options: AttributeOptions, out: EventWriter) -> PublishedAttribute {
        let name = config.name.clone();
        PublishedAttribute {
            index,
            name,
            options,
            out,
            state: Mutex::new(AttributeState::new(config)),
            other_owner: Mutex::default(),
        }
    }

    pub fn taken_by(&self) -> Option<String> {
        self.other_owner.lock().as_ref().map(|other_owner| other_owner.source.to_string())
    }

    /// Sets the other source that owns the name, if any.
    pub fn set_other_owner(&self, by: Option<SourceInfo>) {
        *self.other_owner.lock() = by;
    }

    /// Returns whether this incarnation is the recorded owner of the name.
    pub fn is_taken_by(&self, incarnation: Incarnation) -> bool {
        self.other_owner.lock().as_ref().is_some_and(|other_owner| other_owner.incarnation == incarnation)
    }

    /// Writes the current value into its stream, as an answer to `token`.
    pub fn refresh(&self, token: u64) {
        let state = self.state.lock();
        // The asker repeats its question if this is lost. Written under the lock, so that it stands at its place in the
        // order.
        if let Err(why) = self.out.write(&state.refreshed(self.index, token)) {
            let why = Failure::new("Tampu_NotSent", why.to_string());
            let _ = self.out.write(&state.without_value(self.index, token, &[why]));
        }
    }
}
