//! What a reader gets: samples, and word of what is missing and of who came and went.

use std::sync::Arc;

use tampu_types::{ClockState, Incarnation, SourceName, Time};

use super::{lane::StreamInfo, loss::LossReason};
use crate::shared::{Overwritten, RingView};

/// What a reader gets, in order within each stream.
#[derive(Debug)]
pub enum Event<'a> {
    /// A sample.
    Sample(Sample<'a>),
    /// Samples that will not come.
    Gap(Gap),
    /// A writer came, fell silent, came back or is gone.
    Source(SourceChange),
}

/// One sample.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Where it comes from.
    pub stream: &'a Arc<StreamInfo>,
    /// Its number in its stream.
    pub sequence: u64,
    /// When the first sample of its batch was handed to the writer.
    pub acquired: Time,
    /// When its batch was sent.
    pub sent: Time,
    /// When its batch arrived, by this host's clock.
    pub received: Time,
    /// How far the writer's times can be trusted.
    pub clock: ClockState,
    /// TAI - UTC at the writer in seconds, 0 where unknown.
    pub tai_offset: i16,
    /// The bytes.
    pub payload: Payload<'a>,
}

/// A sample's bytes: received, or in the writer's memory.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    pub(super) place: Place<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Received(&'a [u8]),
    Lent { ring: Option<&'a RingView>, position: u64, offset: usize, length: usize },
}

impl<'a> Payload<'a> {
    /// The bytes, where they were received; `None` where they lie in the writer's memory ([`Payload::with`] reads both).
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.place {
            Place::Received(bytes) => Some(bytes),
            Place::Lent { .. } => None,
        }
    }

    /// Uses the bytes where they are. Fails if the writer took its memory back before `used` returned; whatever `used` saw or
    /// did is then to be thrown away.
    pub fn with<R>(&self, used: impl FnOnce(&[u8]) -> R) -> Result<R, Overwritten> {
        match self.place {
            Place::Received(bytes) => Ok(used(bytes)),
            Place::Lent { ring: Some(ring), position, offset, length } => ring.with(position, offset, length, used),
            Place::Lent { ring: None, .. } => Err(Overwritten),
        }
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Result<Vec<u8>, Overwritten> {
        self.with(<[u8]>::to_vec)
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        match self.place {
            Place::Received(bytes) => bytes.len(),
            Place::Lent { length, .. } => length,
        }
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl std::fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

/// Samples that will not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Of which stream.
    pub stream: Arc<StreamInfo>,
    /// The first that is missing.
    pub from: u64,
    /// The one after the last that is missing; `None`: the stream's end is not known.
    pub to: Option<u64>,
    /// Why.
    pub why: LossReason,
}

/// How a writing process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceState {
    /// It writes something this reader wants, for the first time in this life.
    Appeared,
    /// Nothing has been heard of it for longer than its heartbeats allow: it hangs, or the way to it is cut.
    Silent,
    /// It is heard again.
    Returned,
    /// It left in order.
    Left,
    /// It died.
    Died,
}

/// A change of a writing process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceChange {
    /// Its stable name.
    pub source: SourceName,
    /// Which life of it.
    pub incarnation: Incarnation,
    /// How it is now.
    pub state: SourceState,
}
