//! What a receiver does with what comes: the callbacks (ACS's cbStart, cbReceive, cbStop, cbReset).
//!
//! They are called one after another, by the worker that reads the flow's connection: while one of them runs nothing more is
//! read, and in the end the sender waits. So a slow callback is felt where the data comes from, and never loses any by itself.

use std::time::Duration;

use serde::Serialize;
use tampu_types::Incarnation;

use crate::{
    message::{Fault, Patience, Refusal, Transport},
    receiving::LostRange,
};

/// Who is at the other end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Peer {
    /// Its stable name.
    pub source: String,
    /// This life of it.
    #[serde(serialize_with = "as_text")]
    pub incarnation: Incarnation,
    /// Where its connection comes from, or goes to.
    pub address: String,
}

fn as_text<S: serde::Serializer>(incarnation: &Incarnation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(incarnation)
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.source.as_str() {
            // Not heard of yet.
            "" => f.write_str(&self.address),
            source => write!(f, "{source} at {}", self.address),
        }
    }
}

/// A transfer begins.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Its number in this life of the sender's flow.
    pub transfer: u64,
    /// Who sends it.
    pub sender: &'a Peer,
    /// What the sender says about it.
    pub parameter: &'a [u8],
    /// How long it waits for callbacks that do not return, if it has said so.
    pub patience: Option<Patience>,
}

/// A piece of data.
#[derive(Debug, Clone, Copy)]
pub struct Data<'a> {
    /// Of which transfer.
    pub transfer: u64,
    /// The bytes: where they were received, or in the sender's memory. They are gone when the callback returns. A receiver that is cut
    /// or skipped while it looks at the sender's memory may see them change; [`Handler::lost`] then tells this frame as overwritten.
    pub bytes: &'a [u8],
    /// Where they lie in the transfer.
    pub offset: u64,
    /// Whether a block of the sender's ends here.
    pub end_of_block: bool,
}

/// How a transfer ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    /// Which transfer.
    pub transfer: u64,
    /// Whether the sender stopped it and nothing is missing.
    pub complete: bool,
    /// Whether the sender stopped it. If not, it is gone, or began something else.
    pub stopped: bool,
    /// Bytes handed over.
    pub bytes: u64,
    /// Where the data ended: what is before lies in the transfer's bytes, was here already or is lost.
    pub offset: u64,
    /// What is missing, in order; beyond [`crate::receiving::RANGES_KEPT`] ranges the last one covers the rest.
    pub lost: Vec<LostRange>,
    /// Bytes that are missing, as far as known.
    pub lost_bytes: u64,
    /// What went wrong, each kind once with its count.
    pub faults: Vec<Fault>,
    /// From its start to here.
    pub took: Duration,
}

/// Word of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Connection {
    /// A sender has connected.
    Connected {
        /// Who.
        sender: Peer,
        /// How its data comes.
        transport: Transport,
        /// Whether it goes on with a transfer that was under way.
        resumed: bool,
    },
    /// A sender that knows the token was sent away from this flow: another one has it, or it comes by a way that is not taken. It is
    /// told once, though it tries again all the time; the receiver's state counts that.
    Refused {
        /// Who.
        sender: Peer,
        /// Why.
        why: Refusal,
        /// In words.
        text: String,
    },
    /// Its connection is gone. A transfer under way is held open for a while.
    Disconnected {
        /// Who.
        sender: Peer,
        /// What was seen.
        why: String,
    },
}

/// A callback that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CallbackError {
    /// In words; the sender is told.
    pub text: String,
    /// Whether it wants no more data of this transfer. The stop is delivered all the same.
    pub give_up: bool,
}

impl CallbackError {
    /// Something failed; what follows is still wanted.
    pub fn failed(text: impl Into<String>) -> CallbackError {
        CallbackError { text: text.into(), give_up: false }
    }

    /// What follows of this transfer is of no use: the disk is full.
    pub fn give_up(text: impl Into<String>) -> CallbackError {
        CallbackError { text: text.into(), give_up: true }
    }
}

/// What a receiver does with what comes on a flow. A panic counts as a failure.
pub trait Handler: Send {
    /// A transfer begins. The answer is how many bytes of it are here already (0 for most): the sender may leave them out, and
    /// [`Handler::data`] begins there.
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError>;

    /// A frame of its data.
    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError>;

    /// It has ended. Always comes after a start, and after all data; the sender's `stop` returns when this has.
    fn stop(&mut self, end: &End) -> Result<(), CallbackError>;

    /// The sender has given it up.
    fn reset(&mut self, end: &End) -> Result<(), CallbackError> {
        self.stop(end)
    }

    /// Data that will not come.
    fn lost(&mut self, lost: &LostRange) {
        let _ = lost;
    }

    /// Something is wrong; the sender is told too.
    fn fault(&mut self, fault: &Fault) {
        let _ = fault;
    }

    /// A sender came or went.
    fn connection(&mut self, change: &Connection) {
        let _ = change;
    }
}
