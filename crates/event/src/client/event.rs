//! Event of a subscription: a reading or a change of its source, with its origin and the number of missing events
//! before it.

use std::sync::Arc;

use tampu_bus::{LentBytes, SourceInfo};
use tampu_types::{
    ClockState, Time,
    event::{AttributeConfig, EventView, Kinds, Missed, Reason},
};

/// Attribute in its server's declaration.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeInfo {
    /// Number of the attribute at this incarnation of its server.
    pub number: u32,
    /// Number of the configuration; events refer to it.
    pub epoch: u32,
    /// The configuration of the attribute.
    pub config: AttributeConfig,
}

/// Times of the sample that carries an event.
#[derive(Clone, Copy)]
pub(super) struct SampleTimes {
    /// Time at which its batch was sent, by the source's clock.
    pub sent: Time,
    /// Time of arrival, by this host's clock.
    pub received: Time,
    /// State of the source's clock.
    pub clock: ClockState,
}

/// Event in the receive buffer. [`Event::to_update`] makes a copy to keep.
#[derive(Debug)]
pub struct Event<'a> {
    /// Attribute of the event, in its latest declaration.
    pub attribute: &'a Arc<AttributeInfo>,
    /// Reason of the delivery.
    pub reason: Reason,
    /// Events missing before this one; with [`Reason::Gap`], the events that are lost.
    pub missed: Missed,
    /// Kinds of the event.
    pub kinds: Kinds,
    /// Number of the event, counted from 1 for each attribute in each incarnation of its source.
    pub number: u64,
    /// The source of the attribute and its incarnation.
    pub source: &'a SourceInfo,
    /// Time at which its batch was sent, by the source's clock.
    pub sent: Time,
    /// Time of arrival, by this host's clock.
    pub received: Time,
    /// State of the source's clock.
    pub clock: ClockState,
    /// Reading of the event, if its reason has one.
    pub reading: Option<&'a EventView<'a>>,
    pub(super) bytes: &'a [u8],
    /// The memory of the event's server, if the reading lies there.
    pub(super) lent: Option<&'a LentBytes>,
}

/// Owned copy of an event.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the members are those of Event")]
pub struct Update {
    pub attribute: Arc<AttributeInfo>,
    pub reason: Reason,
    pub missed: Missed,
    pub kinds: Kinds,
    pub number: u64,
    pub source: SourceInfo,
    pub sent: Time,
    pub received: Time,
    pub clock: ClockState,
    bytes: Box<[u8]>,
}

/// Makes an event without a reading: it reports a change of the source or of the configuration.
pub(super) fn source_event<'a>(info: &'a Arc<AttributeInfo>, source: &'a SourceInfo, reason: Reason, now: Time) -> Event<'a> {
    Event {
        attribute: info,
        reason,
        missed: Missed::Nothing,
        kinds: Kinds::NONE,
        number: 0,
        source,
        sent: now,
        received: now,
        clock: ClockState::Unknown,
        reading: None,
        bytes: &[],
        lent: None,
    }
}

impl Event<'_> {
    /// Returns the event as it was received; empty for a change of the source.
    pub fn bytes(&self) -> &[u8] {
        if self.reading.is_some() { self.bytes } else { &[] }
    }

    /// Returns the memory of the event's server that the reading is in ([`super::SubscribeOptions::in_place`]); `None` for
    /// other events. The server waits with its reuse until the callback returns, up to its limit.
    pub fn lent(&self) -> Option<&LentBytes> {
        self.lent.filter(|_| self.reading.is_some())
    }

    /// Returns an owned copy.
    pub fn to_update(&self) -> Update {
        self.copied(self.bytes().into())
    }

    /// Returns an owned copy without the reading.
    pub fn to_report(&self) -> Update {
        self.copied(Box::default())
    }

    fn copied(&self, bytes: Box<[u8]>) -> Update {
        Update {
            attribute: self.attribute.clone(),
            reason: self.reason,
            missed: self.missed,
            kinds: self.kinds,
            number: self.number,
            source: self.source.clone(),
            sent: self.sent,
            received: self.received,
            clock: self.clock,
            bytes,
        }
    }
}

impl Update {
    /// Returns the length of the received event in bytes; 0 for a change of the source.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the reading, if the reason has one.
    pub fn reading(&self) -> Option<EventView<'_>> {
        // It was parsed before it was copied.
        EventView::parse(&self.bytes).ok()
    }

    #[cfg(test)]
    pub(super) fn set_bytes(&mut self, bytes: &[u8]) {
        self.bytes = bytes.into();
    }

    /// Takes over the reading of an earlier update, with its number.
    pub(super) fn keep_reading_of(&mut self, before: &mut Update) {
        self.bytes = std::mem::take(&mut before.bytes);
        self.number = before.number;
    }
}
