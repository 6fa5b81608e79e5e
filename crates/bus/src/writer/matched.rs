//! A matched reader in its writer's view.

use tampu_types::Incarnation;

use crate::{qos::Hold, shared::Watch, wire::keys::ReaderInfo};

/// State of a matched reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderState {
    /// Keeps up; the writer waits for it within its limits.
    Live,
    /// Fetches history; the writer does not wait for it.
    CatchingUp,
    /// Fell too far behind. The writer does not wait for it, and it reads from the cache at its own pace.
    Lagging,
    /// Left or died.
    Gone,
}

impl ReaderState {
    /// Returns the word for it in reports.
    pub fn word(self) -> &'static str {
        match self {
            ReaderState::Live => "live",
            ReaderState::CatchingUp => "catching_up",
            ReaderState::Lagging => "lagging",
            ReaderState::Gone => "gone",
        }
    }
}

/// State and position of a writer's reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReaderStatus {
    /// Name of the reading process, in lower case.
    pub source: String,
    /// Incarnation of the reading process.
    pub incarnation: Incarnation,
    /// Number of the reader in that process.
    pub reader: u32,
    /// State of the reader.
    pub state: ReaderState,
    /// True if it requests lost samples again, and acknowledges.
    pub reliable: bool,
    /// Time that it may hold the writer. Losses of a reader with full hold are permanent, as a collector's.
    pub hold: Hold,
    /// First sample that it has not acknowledged.
    pub acked: u64,
    /// Samples that it can no longer get.
    pub lost: u64,
}

pub(super) struct Matched {
    pub card: ReaderInfo,
    /// First sample of its own part; earlier ones are history.
    pub start: u64,
    pub acked: u64,
    /// First sample that its application does not have in its memory, as far as it has said.
    pub received: u64,
    /// Position of `acked` in the stream of sealed bytes.
    pub acked_position: u64,
    /// True once it has answered. Until then it may not know of the stream.
    pub heard: bool,
    pub state: ReaderState,
    pub lost: u64,
    pub needs_copies: bool,
    pub linked: bool,
    /// Its progress in shared memory.
    pub watch: Option<Watch>,
    /// True if it follows the announcements.
    pub attached: bool,
    /// True if it gets what a multicast group brings to its host.
    pub grouped: bool,
}

impl Matched {
    /// Reports if the writer waits for it.
    pub fn holds(&self) -> bool {
        self.card.reliable && self.state == ReaderState::Live
    }

    /// Reports if it finds batches by the announcements in shared memory. One that has lost its mapping no longer does.
    pub fn follows(&self) -> bool {
        self.attached && self.watch.is_some() && !self.needs_copies
    }

    /// Reports if it has answered that it can map shared memory of its host.
    pub fn maps_memory(&self) -> bool {
        self.heard && !self.needs_copies
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
