//! What a subscriber is given: a reading or word of its source, with where it comes from and what is missing before it.

use std::sync::Arc;

use tampu_bus::SourceInfo;
use tampu_types::{
    ClockState, Time,
    event::{AttributeConfig, EventView, Kinds, Missed, Reason},
};

/// An attribute as its server declared it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttributeInfo {
    /// Its number in this life of its server.
    pub number: u32,
    /// Counts the configurations; events refer to it.
    pub epoch: u32,
    /// What it is.
    pub config: AttributeConfig,
}

/// An event, where it was received. [`Event::to_update`] makes a copy to keep.
#[derive(Debug)]
pub struct Event<'a> {
    /// Of which attribute, as its server declared it last.
    pub attribute: &'a Arc<AttributeInfo>,
    /// Why it comes.
    pub reason: Reason,
    /// What is missing before it; with [`Reason::Gap`], what will not come.
    pub missed: Missed,
    /// As what it was sent.
    pub kinds: Kinds,
    /// Counts the attribute's events in this life of its source.
    pub number: u64,
    /// Whose attribute it is, and in which life.
    pub source: &'a SourceInfo,
    /// When its batch was sent, by the source's clock.
    pub sent: Time,
    /// When it arrived, by this host's.
    pub received: Time,
    /// How far the source's clock can be trusted.
    pub clock: ClockState,
    /// The reading, where the reason has one.
    pub reading: Option<&'a EventView<'a>>,
    pub(super) bytes: &'a [u8],
}

/// The same, owned.
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

impl Event<'_> {
    /// The event as it was received; empty for word of the source.
    pub fn bytes(&self) -> &[u8] {
        if self.reading.is_some() { self.bytes } else { &[] }
    }

    /// A copy.
    pub fn to_update(&self) -> Update {
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
            bytes: self.bytes().into(),
        }
    }
}

impl Update {
    /// Bytes of the event as it was received; 0 for word of the source.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The reading, where the reason has one.
    pub fn reading(&self) -> Option<EventView<'_>> {
        // It was parsed before it was copied.
        EventView::parse(&self.bytes).ok()
    }

    /// Takes over the reading of an earlier one, with its number.
    pub(super) fn keep_reading_of(&mut self, before: &mut Update) {
        self.bytes = std::mem::take(&mut before.bytes);
        self.number = before.number;
    }
}
