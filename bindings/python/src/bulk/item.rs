//! Items of a receiver, in order.

use std::{path::PathBuf, sync::Arc};

use bytes::Bytes;
use serde::Serialize;
use tampu_bulk::{
    handler::{Connection, End, Peer},
    message::Fault,
    receiving::LostRange,
};

/// Part of a flow, in order.
pub enum Content {
    Start { transfer: u64, sender: Peer, parameter: Bytes },
    Data { bytes: Bytes, offset: u64, end_of_block: bool },
    Lost(LostRange),
    End { end: End, reset: bool },
    Fault(Fault),
    Connection(Connection),
    File(Received),
}

/// Item of the queue.
pub struct Item {
    pub flow: Arc<str>,
    pub content: Content,
    /// Number of the question, if a connection waits for the answer.
    pub question: Option<u64>,
}

/// File of a transfer.
#[derive(Debug, Serialize)]
pub struct Received {
    pub transfer: u64,
    pub sender: String,
    /// Name that the sender gave.
    pub name: String,
    /// Text that the sender gave.
    pub parameter: String,
    /// Path of the file, or of its kept part.
    pub path: Option<PathBuf>,
    pub complete: bool,
    /// Reason of an incomplete transfer.
    pub why: Option<String>,
    pub bytes: u64,
    /// Bytes that were here before.
    pub had: u64,
    pub seconds: f64,
    pub lost: Vec<LostRange>,
    pub faults: Vec<Fault>,
}
