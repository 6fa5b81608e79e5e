//! What both ends tell while data is under way: what is lost, wrong or missing, and how long is waited.

use std::time::Duration;

use super::{Cursor, RANGES_LIMIT, put_text};
use crate::frame::BadFrame;

/// Why data does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// A number of a later release, or nobody knows.
    Unknown = 0,
    /// Frames are missing in what came.
    Missing = 1,
    /// The receiver was too slow, and its sender's or distributor's policy skips.
    Slow = 2,
    /// The connection was away for longer than the sender keeps.
    Away = 3,
    /// The sender died or left.
    SenderGone = 4,
    /// It was changed on its way, again and again.
    Corrupt = 5,
    /// The receiver's callback gave the transfer up.
    GivenUp = 6,
    /// The memory was used again before it was read.
    Overwritten = 7,
}

impl Cause {
    fn from_number(number: u8) -> Cause {
        use Cause::*;
        let all = [Missing, Slow, Away, SenderGone, Corrupt, GivenUp, Overwritten];
        all.into_iter().find(|cause| *cause as u8 == number).unwrap_or(Unknown)
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cause::Unknown => "nobody knows why",
            Cause::Missing => "frames are missing",
            Cause::Slow => "the receiver was too slow",
            Cause::Away => "the connection was away for too long",
            Cause::SenderGone => "the sender is gone",
            Cause::Corrupt => "it was changed on its way",
            Cause::GivenUp => "the receiver's callback gave up",
            Cause::Overwritten => "the memory was used again before it was read",
        })
    }
}

/// How long a sender waits for a receiver that gets on with nothing: what a Ping carries. A distributor must not take as long, or it is
/// cut itself for somebody behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// While data is under way.
    pub wait: Duration,
    /// At a start and at a stop.
    pub ack_wait: Duration,
}

impl Patience {
    /// What is left of it behind a distributor: a stop, which may wait for room first, takes three quarters of it at most.
    pub fn behind(self) -> Patience {
        Patience { wait: (self.wait / 2).min(self.ack_wait / 4), ack_wait: self.ack_wait / 2 }
    }

    /// The shorter of both.
    pub fn min(self, other: Patience) -> Patience {
        Patience { wait: self.wait.min(other.wait), ack_wait: self.ack_wait.min(other.ack_wait) }
    }
}

/// Data that will not come: frames from the header's sequence on, bytes from its offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The first frame that comes again.
    pub next_sequence: u64,
    /// The first byte that comes again.
    pub next_offset: u64,
    /// Why.
    pub cause: Cause,
}

/// What can go wrong at a receiver (facts: ACS's errors).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum FaultKind {
    /// A number of a later release.
    Unknown = 0,
    /// A Start inside a transfer, data or a stop outside of one.
    WrongOrder = 1,
    /// Frames are missing.
    MissingFrames = 2,
    /// A payload was changed on its way.
    Corrupt = 3,
    /// A frame is longer than agreed on.
    FrameTooLong = 4,
    /// The callback failed or panicked.
    CallbackFailed = 5,
    /// A call of the callback took longer than its limit.
    CallbackSlow = 6,
    /// On average the callback took longer than its limit.
    CallbackSlowOnAverage = 7,
    /// The callback wants no more of this transfer.
    GaveUp = 8,
    /// Nothing came in time.
    Timeout = 9,
    /// What came is no frame.
    Garbled = 10,
}

impl FaultKind {
    fn from_number(number: u8) -> FaultKind {
        use FaultKind::*;
        let all = [
            WrongOrder,
            MissingFrames,
            Corrupt,
            FrameTooLong,
            CallbackFailed,
            CallbackSlow,
            CallbackSlowOnAverage,
            GaveUp,
            Timeout,
            Garbled,
        ];
        all.into_iter().find(|kind| *kind as u8 == number).unwrap_or(Unknown)
    }
}

impl std::fmt::Display for FaultKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FaultKind::Unknown => "a fault of a later release",
            FaultKind::WrongOrder => "wrong order",
            FaultKind::MissingFrames => "missing frames",
            FaultKind::Corrupt => "a corrupt payload",
            FaultKind::FrameTooLong => "a frame that is too long",
            FaultKind::CallbackFailed => "the callback failed",
            FaultKind::CallbackSlow => "the callback was slow",
            FaultKind::CallbackSlowOnAverage => "the callback was slow on average",
            FaultKind::GaveUp => "the callback gave the transfer up",
            FaultKind::Timeout => "a timeout",
            FaultKind::Garbled => "what came is no frame",
        })
    }
}

/// Something that went wrong at a receiver, told to both ends.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, thiserror::Error)]
#[error("{kind}: {text}")]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// How often in this transfer so far.
    pub count: u32,
    /// In words.
    pub text: String,
}

/// Frames a receiver has not got: ranges of sequences, the first and the one after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nack {
    /// In order, not touching.
    pub missing: Vec<(u64, u64)>,
}

impl Lost {
    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(17);
        out.extend_from_slice(&self.next_sequence.to_le_bytes());
        out.extend_from_slice(&self.next_offset.to_le_bytes());
        out.push(self.cause as u8);
        out
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Lost, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(Lost {
            next_sequence: at.u64("next sequence")?,
            next_offset: at.u64("next offset")?,
            cause: Cause::from_number(at.u8("cause")?),
        })
    }
}

impl Patience {
    /// Writes it, in whole milliseconds.
    pub fn encode(&self) -> Vec<u8> {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX).to_le_bytes();
        [milliseconds(self.wait), milliseconds(self.ack_wait)].concat()
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Patience, BadFrame> {
        let mut at = Cursor { rest: bytes };
        let (wait, ack_wait) = (at.u32("wait")?, at.u32("ack_wait")?);
        Ok(Patience { wait: Duration::from_millis(wait.into()), ack_wait: Duration::from_millis(ack_wait.into()) })
    }
}

impl Fault {
    /// Writes it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.kind as u8];
        out.extend_from_slice(&self.count.to_le_bytes());
        put_text(&mut out, &self.text);
        out
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Fault, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(Fault { kind: FaultKind::from_number(at.u8("kind")?), count: at.u32("count")?, text: at.text("text")? })
    }
}

impl Nack {
    /// Writes it; ranges beyond [`RANGES_LIMIT`] are left for the next.
    pub fn encode(&self) -> Vec<u8> {
        let count = self.missing.len().min(RANGES_LIMIT);
        let mut out = (count as u16).to_le_bytes().to_vec();
        for (from, to) in &self.missing[..count] {
            out.extend_from_slice(&from.to_le_bytes());
            out.extend_from_slice(&to.to_le_bytes());
        }
        out
    }

    /// Reads one.
    pub fn decode(bytes: &[u8]) -> Result<Nack, BadFrame> {
        let mut at = Cursor { rest: bytes };
        let count = usize::from(at.u16("count")?);
        if count > RANGES_LIMIT {
            return Err(BadFrame::Senseless("count"));
        }
        let mut missing: Vec<(u64, u64)> = Vec::new();
        for _ in 0..count {
            let (from, to) = (at.u64("range")?, at.u64("range")?);
            if from >= to || missing.last().is_some_and(|last| last.1 >= from) {
                return Err(BadFrame::Senseless("range"));
            }
            missing.push((from, to));
        }
        Ok(Nack { missing })
    }
}
