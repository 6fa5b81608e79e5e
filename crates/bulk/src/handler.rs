//! The callbacks of a receiver (ACS's cbStart, cbReceive, cbStop, cbReset).
//!
//! The worker that reads the flow's connection calls them one at a time. While a callback runs, the worker reads
//! nothing, and in the end the sender waits. So a slow callback slows the sender, and never loses data by itself.

use std::time::Duration;

use serde::Serialize;
use tampu_types::Incarnation;

use crate::{
    message::{Fault, Patience, Refusal, Transport},
    receiving::LostRange,
};

/// The process at the other end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Peer {
    /// Stable name of its source.
    pub source: String,
    /// Incarnation of the process.
    #[serde(serialize_with = "as_text")]
    pub incarnation: Incarnation,
    /// The address of its connection.
    pub address: String,
}

fn as_text<S: serde::Serializer>(incarnation: &Incarnation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(incarnation)
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.source.as_str() {
            // The peer's name is not known yet.
            "" => f.write_str(&self.address),
            source => write!(f, "{source} at {}", self.address),
        }
    }
}

/// Start of a transfer.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Number of the transfer in this incarnation of the sender's flow.
    pub transfer: u64,
    /// The sender of the transfer.
    pub sender: &'a Peer,
    /// The sender's parameter.
    pub parameter: &'a [u8],
    /// The sender's waiting times for callbacks that do not return, if it has sent them.
    pub patience: Option<Patience>,
}

/// Piece of a transfer's data.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Number of the transfer.
    pub transfer: u64,
    /// Bytes of the piece, in the receive buffer or in the sender's memory. They are valid until the callback returns.
    /// If the receiver is cut or skipped while it reads the sender's memory, the bytes may change. [`Handler::lost`]
    /// then reports this frame as overwritten.
    pub bytes: &'a [u8],
    /// The offset of the bytes in the transfer.
    pub offset: u64,
    /// True if a block of the sender ends here.
    pub end_of_block: bool,
    /// True if the next piece, or the end of the transfer, is at hand already. A handler may put off work until then.
    pub more: bool,
}

/// The end of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    /// The number of the transfer.
    pub transfer: u64,
    /// True if the sender stopped it and nothing is missing.
    pub complete: bool,
    /// True if the sender stopped it. If false, the sender is gone or has begun another transfer.
    pub stopped: bool,
    /// Number of delivered bytes.
    pub bytes: u64,
    /// End of the data. Bytes before it were received, were present before, or are lost.
    pub offset: u64,
    /// The missing ranges, in order; beyond [`crate::receiving::RANGES_KEPT`] ranges the last one covers the rest.
    pub lost: Vec<LostRange>,
    /// Number of missing bytes, as far as known.
    pub lost_bytes: u64,
    /// The faults, each kind once with its count.
    pub faults: Vec<Fault>,
    /// Duration from the start to the end.
    pub took: Duration,
}

/// Change of a sender's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// A sender has connected.
    Connected {
        /// The connected sender.
        sender: Peer,
        /// The transport of its data.
        transport: Transport,
        /// True if it continues a running transfer.
        resumed: bool,
    },
    /// A sender with the token was refused for this flow: another sender has the flow, or the transport is not
    /// accepted. It is reported once, although the sender retries all the time; the receiver's state counts the
    /// retries.
    Refused {
        /// The refused sender.
        sender: Peer,
        /// The reason for the rejection.
        why: Refusal,
        /// The reason in words.
        text: String,
    },
    /// The connection is closed. A running transfer stays open for a while.
    Disconnected {
        /// The lost sender.
        sender: Peer,
        /// The observation behind it.
        why: String,
    },
}

/// Failure of a callback.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CallbackError {
    /// Text of the failure, which the sender gets.
    pub text: String,
    /// True if the receiver wants no more data of this transfer. The stop is delivered all the same.
    pub give_up: bool,
}

impl CallbackError {
    /// Makes a failure after which further data is still wanted.
    pub fn failed(text: impl Into<String>) -> CallbackError {
        CallbackError { text: text.into(), give_up: false }
    }

    /// Makes a failure that refuses the rest of this transfer, for instance because the disk is full.
    pub fn give_up(text: impl Into<String>) -> CallbackError {
        CallbackError { text: text.into(), give_up: true }
    }
}

/// The callbacks of a flow. A panic counts as a failure.
pub trait Handler: Send {
    /// Called at the start of a transfer. Returns the number of its bytes that are present already (0 for most). The
    /// sender may leave them out, and [`Handler::data`] begins there.
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError>;

    /// Called with a frame of data.
    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError>;

    /// Called at the end. It always comes after a start, and after all data. The sender's `stop` returns after this
    /// callback.
    fn stop(&mut self, end: &End) -> Result<(), CallbackError>;

    /// Called when the sender has given the transfer up.
    fn reset(&mut self, end: &End) -> Result<(), CallbackError> {
        self.stop(end)
    }

    /// Called for data that is lost.
    fn lost(&mut self, lost: &LostRange) {
        let _ = lost;
    }

    /// Called for a fault, which the sender gets too.
    fn fault(&mut self, fault: &Fault) {
        let _ = fault;
    }

    /// Called when a sender connects or disconnects.
    fn connection(&mut self, change: &Connection) {
        let _ = change;
    }
}
