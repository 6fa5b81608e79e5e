//! The messages of both ends during a transfer: losses, faults, missing frames, waiting times.

use std::time::Duration;

use super::{Cursor, RANGES_LIMIT, put_text};
use crate::frame::BadFrame;

/// The cause of missing data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Cause {
    /// Unknown cause, or a number of a later release.
    Unknown = 0,
    /// Frames are missing among the received ones.
    Missing = 1,
    /// The receiver was too slow, and its sender's or distributor's policy skips.
    Slow = 2,
    /// The connection was broken for longer than the sender keeps data.
    Away = 3,
    /// The sender died or left.
    SenderGone = 4,
    /// The payload was damaged on its way, repeatedly.
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
            Cause::Unknown => "unknown cause",
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

/// Waiting times of a sender for a receiver without progress, which a Ping carries. A distributor must be faster, or
/// its sender cuts it because of a receiver behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Waiting time during a transfer.
    pub wait: Duration,
    /// Waiting time at a start and at a stop.
    pub ack_wait: Duration,
}

impl Patience {
    /// Returns the waiting times for receivers behind a distributor. A stop, which may wait for room first, takes at
    /// most three quarters of its time.
    pub fn behind(self) -> Patience {
        Patience { wait: (self.wait / 2).min(self.ack_wait / 4), ack_wait: self.ack_wait / 2 }
    }

    /// Returns the shorter times of both.
    pub fn min(self, other: Patience) -> Patience {
        Patience { wait: self.wait.min(other.wait), ack_wait: self.ack_wait.min(other.ack_wait) }
    }
}

/// Lost data: frames from the header's sequence on, bytes from its offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Sequence of the first frame after the loss.
    pub next_sequence: u64,
    /// Offset of the first byte after the loss.
    pub next_offset: u64,
    /// The cause of the loss.
    pub cause: Cause,
}

/// The faults at a receiver, after ACS's errors.
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
    /// A payload was damaged on its way.
    Corrupt = 3,
    /// A frame is longer than agreed on.
    FrameTooLong = 4,
    /// The callback failed or panicked.
    CallbackFailed = 5,
    /// A call of the callback took longer than its limit.
    CallbackSlow = 6,
    /// On average the callback took longer than its limit.
    CallbackSlowOnAverage = 7,
    /// The callback wants no more data of this transfer.
    GaveUp = 8,
    /// No frame arrived in time.
    Timeout = 9,
    /// The bytes are not a frame.
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
            FaultKind::Garbled => "an invalid frame",
        })
    }
}

/// Fault at a receiver, reported to both ends.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, thiserror::Error)]
#[error("{kind}: {text}")]
pub struct Fault {
    /// The kind of the fault.
    pub kind: FaultKind,
    /// The number of such faults in this transfer so far.
    pub count: u32,
    /// The fault in words.
    pub text: String,
}

/// Frames that a receiver misses: ranges of sequences, the first and the one after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nack {
    /// Missing ranges, in order and not adjacent.
    pub missing: Vec<(u64, u64)>,
}

impl Lost {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(17);
        out.extend_from_slice(&self.next_sequence.to_le_bytes());
        out.extend_from_slice(&self.next_offset.to_le_bytes());
        out.push(self.cause as u8);
        out
    }

    /// Decodes a Lost.
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
    /// Encodes the times in whole milliseconds.
    pub fn encode(&self) -> Vec<u8> {
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX).to_le_bytes();
        [milliseconds(self.wait), milliseconds(self.ack_wait)].concat()
    }

    /// Decodes a Patience.
    pub fn decode(bytes: &[u8]) -> Result<Patience, BadFrame> {
        let mut at = Cursor { rest: bytes };
        let (wait, ack_wait) = (at.u32("wait")?, at.u32("ack_wait")?);
        Ok(Patience { wait: Duration::from_millis(wait.into()), ack_wait: Duration::from_millis(ack_wait.into()) })
    }
}

impl Fault {
    /// Encodes the message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.kind as u8];
        out.extend_from_slice(&self.count.to_le_bytes());
        put_text(&mut out, &self.text);
        out
    }

    /// Decodes a Fault.
    pub fn decode(bytes: &[u8]) -> Result<Fault, BadFrame> {
        let mut at = Cursor { rest: bytes };
        Ok(Fault { kind: FaultKind::from_number(at.u8("kind")?), count: at.u32("count")?, text: at.text("text")? })
    }
}

impl Nack {
    /// Encodes the message. Ranges beyond [`RANGES_LIMIT`] are left for the next one.
    pub fn encode(&self) -> Vec<u8> {
        let count = self.missing.len().min(RANGES_LIMIT);
        let mut out = (count as u16).to_le_bytes().to_vec();
        for (from, to) in &self.missing[..count] {
            out.extend_from_slice(&from.to_le_bytes());
            out.extend_from_slice(&to.to_le_bytes());
        }
        out
    }

    /// Decodes a Nack.
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
