//! Notices of the history for its owner's log.

use std::fmt;

/// Problem of the history, displayed as one line for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryNotice {
    /// The archive rejected events.
    NotWritten {
        /// Number of events.
        events: u64,
        /// Number of samples of which no gap could be remembered either.
        unrecorded: u64,
        /// Error of the archive.
        why: String,
    },
    /// The queue was full. The history records a gap for these events.
    Dropped {
        /// Number of events.
        events: u64,
    },
    /// The access rules refused events. They are not kept.
    Refused {
        /// Number of events.
        events: u64,
        /// One of the refusals, with the source of its event.
        why: String,
    },
}

/// Callback for the notices.
pub(super) type ReportNotice = Box<dyn Fn(&HistoryNotice) + Send>;

impl fmt::Display for HistoryNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryNotice::NotWritten { events, why, .. } => write!(f, "{events} events could not be kept: {why}"),
            HistoryNotice::Refused { events, why } => write!(f, "{events} events are not kept, {why}"),
            HistoryNotice::Dropped { events } => {
                write!(f, "{events} events could not be kept; the history has a gap for each attribute")
            }
        }
    }
}
