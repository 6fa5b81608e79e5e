//! One reader as its writer sees it.

use tampu_types::Incarnation;

use crate::{qos::Hold, shared::Watch, wire::keys::ReaderCard};

/// How a matched reader is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderState {
    /// Keeps up; the writer waits for it within its bounds.
    Live,
    /// Fetches history; the writer does not wait for it.
    CatchingUp,
    /// Fell behind further than the writer waits; it is served from the cache at its own pace.
    Lagging,
    /// Left or died.
    Gone,
}

/// What a writer knows of one of its readers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderStatus {
    /// The reading process's name, in lower case.
    pub source: String,
    /// The reading process's life.
    pub incarnation: Incarnation,
    /// Which of that participant's readers.
    pub reader: u32,
    /// How it is doing.
    pub state: ReaderState,
    /// Whether it heals its losses, and says how far it is.
    pub reliable: bool,
    /// How long it may hold the writer; one that may in full is one whose losses nobody can make good, as a collector.
    pub hold: Hold,
    /// The first sample it has not acknowledged.
    pub acked: u64,
    /// How many samples it can no longer get.
    pub lost: u64,
}

pub(super) struct Matched {
    pub card: ReaderCard,
    /// The first sample that is its by right.
    pub start: u64,
    pub acked: u64,
    /// Where `acked` lies in the stream of sealed bytes.
    pub acked_position: u64,
    /// Whether it has answered at all: until then it may not know of the stream.
    pub heard: bool,
    pub state: ReaderState,
    pub lost: u64,
    pub needs_copies: bool,
    pub linked: bool,
    /// Where its progress can be seen without being told.
    pub watch: Option<Watch>,
    /// Whether it takes batches from the board.
    pub attached: bool,
}

impl Matched {
    /// Whether the writer waits for it.
    pub fn holds(&self) -> bool {
        self.card.reliable && self.state == ReaderState::Live
    }

    pub fn is(&self, incarnation: Incarnation, reader: u32) -> bool {
        self.card.incarnation == incarnation && self.card.reader == reader
    }

    pub fn status(&self) -> ReaderStatus {
        ReaderStatus {
            source: self.card.source.clone(),
            incarnation: self.card.incarnation,
            reader: self.card.reader,
            state: self.state,
            reliable: self.card.reliable,
            hold: self.card.hold,
            acked: self.acked,
            lost: self.lost,
        }
    }
}
