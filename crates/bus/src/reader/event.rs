//! Events of a reader: samples, gaps, and changes of writing processes.

use std::sync::{
    Arc,
    atomic::{Ordering, fence},
};

use tampu_shm::{Overwritten, RingView};
use tampu_types::{BatchHeader, ClockState, Domain, Incarnation, SourceName, Time};

use super::{loss::LossReason, stream_state::StreamInfo};
use crate::wire::batch::{FLAG_SOON, Piece, sample_at};

/// An event of a reader, in order within each stream.
#[derive(Debug)]
pub enum Event<'a> {
    /// A sample of a stream.
    Sample(Sample<'a>),
    /// Samples that are lost.
    Gap(Gap),
    /// A writer appeared, fell silent, returned or is gone.
    Source(SourceChange),
}

/// Event of a reader that takes whole batches: it passes them on, or handles their samples together.
#[derive(Debug)]
pub enum BatchEvent<'a> {
    /// A batch as its writer sent it.
    Batch(WholeBatch<'a>),
    /// A sample of a batch that is not whole: parts of it came before, or it is lent.
    Sample(Sample<'a>),
    /// Samples that are lost.
    Gap(Gap),
    /// A writer appeared, fell silent, returned or is gone.
    Source(SourceChange),
}

/// A batch as its writer sent it, without loans.
#[derive(Debug)]
pub struct WholeBatch<'a> {
    /// Stream of the batch.
    pub stream: &'a Arc<StreamInfo>,
    /// Number of its first sample.
    pub first: u64,
    /// Number after its last sample.
    pub next: u64,
    /// Arrival, by this host's clock.
    pub received: Time,
    /// Header of the batch, with the flags of its writer.
    pub header: &'a BatchHeader,
    /// Header and body.
    pub bytes: &'a [u8],
    pub(super) body: &'a [u8],
}

impl<'a> WholeBatch<'a> {
    /// Returns the samples in order, from [`WholeBatch::first`] on.
    pub fn samples(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (body, mut at) = (self.body, 0);
        (0..self.header.count).map_while(move |_| match sample_at(body, at) {
            Ok((Piece::Bytes(bytes), next)) => {
                at = next;
                Some(bytes)
            }
            // The reader has looked at all of them before.
            Ok((Piece::Loaned(_), _)) | Err(_) => None,
        })
    }

    /// Returns true if a caller at the writer waits until the batch is committed.
    pub fn soon(&self) -> bool {
        self.header.flags & FLAG_SOON != 0
    }
}

/// One sample of a reader.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Stream of the sample.
    pub stream: &'a Arc<StreamInfo>,
    /// Number of the sample in its stream.
    pub sequence: u64,
    /// Time at which the writer got the first sample of its batch.
    pub acquired: Time,
    /// Time at which its batch was sent.
    pub sent: Time,
    /// Arrival of its batch, by this host's clock.
    pub received: Time,
    /// State of the writer's clock.
    pub clock: ClockState,
    /// TAI - UTC at the writer in seconds, 0 if unknown.
    pub tai_offset: i16,
    /// True if a caller at the writer waits until the sample is committed.
    pub soon: bool,
    /// Octets of the sample.
    pub payload: Payload<'a>,
}

impl Sample<'_> {
    /// Returns the header of a batch of this sample alone, without flags, which are for readers on the bus.
    pub fn header(&self, domain: &Domain) -> BatchHeader {
        let stream = self.stream;
        BatchHeader {
            domain: domain.clone(),
            source: stream.source.clone(),
            incarnation: stream.incarnation,
            stream: stream.stream,
            first: self.sequence,
            count: 1,
            type_id: stream.type_tag.id,
            type_version: stream.type_tag.version,
            acquired: self.acquired,
            sent: self.sent,
            clock: self.clock,
            tai_offset: self.tai_offset,
            flags: 0,
        }
    }
}

/// Bytes of a sample: received, or in the writer's memory.
#[derive(Clone, Copy)]
pub struct Payload<'a> {
    pub(super) place: Place<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Received(&'a [u8]),
    Lent { ring: Option<&'a Arc<RingView>>, position: u64, offset: usize, length: usize },
}

impl<'a> Payload<'a> {
    /// Returns the received bytes; `None` if they lie in the writer's memory ([`Payload::with`] reads both).
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.place {
            Place::Received(bytes) => Some(bytes),
            Place::Lent { .. } => None,
        }
    }

    /// Passes the bytes in place to `used`. It fails if the writer reclaimed its memory before `used` returned; the
    /// result of `used` must then be discarded.
    pub fn with<R>(&self, used: impl FnOnce(&[u8]) -> R) -> Result<R, Overwritten> {
        match self.place {
            Place::Received(bytes) => Ok(used(bytes)),
            Place::Lent { ring: Some(ring), position, offset, length } => ring.with(position, offset, length, used),
            Place::Lent { ring: None, .. } => Err(Overwritten),
        }
    }

    /// Returns a copy of the bytes.
    pub fn to_vec(&self) -> Result<Vec<u8>, Overwritten> {
        self.with(<[u8]>::to_vec)
    }

    /// Returns the memory of its writer in which the bytes lie; `None` if they were received.
    pub fn lent(&self) -> Option<LentBytes> {
        match self.place {
            Place::Lent { ring: Some(ring), position, offset, length } => {
                Some(LentBytes { ring: ring.clone(), position, offset, length })
            }
            _ => None,
        }
    }

    /// Returns its length in bytes.
    pub fn len(&self) -> usize {
        match self.place {
            Place::Received(bytes) => bytes.len(),
            Place::Lent { length, .. } => length,
        }
    }

    /// Reports if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl std::fmt::Debug for Payload<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Payload({} bytes)", self.len())
    }
}

/// Bytes of a sample in the memory of their writer. They stay mapped as long as this value. The writer may reuse them once
/// the reader has gone on to the next sample, or when it no longer waits for the reader.
#[derive(Clone)]
pub struct LentBytes {
    ring: Arc<RingView>,
    position: u64,
    offset: usize,
    length: usize,
}

impl LentBytes {
    /// Passes the bytes in place to `used`, as [`Payload::with`] does.
    pub fn with<R>(&self, used: impl FnOnce(&[u8]) -> R) -> Result<R, Overwritten> {
        self.ring.with(self.position, self.offset, self.length, used)
    }

    /// Returns whether the writer has not reused the memory: all that was read of it before this call is whole.
    pub fn is_whole(&self) -> bool {
        fence(Ordering::SeqCst);
        self.ring.is_valid(self.position)
    }

    /// Returns the address of the bytes, for code outside Rust, and their number. What was read there counts only if
    /// [`LentBytes::is_whole`] is true afterwards.
    pub fn place(&self) -> Option<(*const u8, usize)> {
        Some((self.ring.address(self.offset, self.length)?, self.length))
    }
}

impl std::fmt::Debug for LentBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LentBytes({} bytes)", self.length)
    }
}

/// Samples that are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// Stream of the samples.
    pub stream: Arc<StreamInfo>,
    /// First missing sample.
    pub from: u64,
    /// Sample after the last missing one; `None` if the stream's end is unknown.
    pub to: Option<u64>,
    /// Reason of the loss.
    pub why: LossReason,
}

/// State of a writing process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SourceState {
    /// It writes a stream of this reader, for the first time in this incarnation.
    Appeared,
    /// It has been silent for longer than its heartbeats allow: it is hung, or the connection is cut.
    Silent,
    /// It is active again.
    Returned,
    /// It left in order.
    Left,
    /// The process died.
    Died,
}

/// A change of a writing process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceChange {
    /// Stable name of the source.
    pub source: SourceName,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
    /// New state of the process.
    pub state: SourceState,
}
