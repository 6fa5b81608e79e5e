//! The question for a participant's state, and the report that answers it.
//!
//! The question goes to the key of refetches, which every participant answers anyway. A service of its own would cost
//! each process one more declaration.

use serde::{Deserialize, Serialize};
use tampu_types::Incarnation;

/// The whole question.
pub const QUESTION: [u8; 4] = [b'T', b'I', 1, 0];

/// Length of one part of the answer, in bytes. The parts together are one JSON document.
pub const PART_LENGTH: usize = 1_000_000;

/// State of a process: the streams that it writes, and its readers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ParticipantState {
    /// Release of its library.
    pub version: String,
    /// Number of the process on its host.
    pub pid: u32,
    /// Streams that it writes.
    pub writers: Vec<WriterReport>,
    /// Readers that it has.
    pub readers: Vec<ReaderReport>,
}

/// A stream as its writer sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WriterReport {
    /// Topic of the stream.
    pub topic: String,
    /// Names of its partition; none for everybody.
    pub partition: Vec<String>,
    /// Number of the stream in its process.
    pub stream: u32,
    /// Samples written since it was opened.
    pub samples: u64,
    /// Bytes sealed in batches since it was opened, without loans.
    pub bytes: u64,
    /// Bytes of memory that its cache takes.
    pub cache: u64,
    /// Bytes that it may be ahead of its readers; 0 in reports of other releases.
    pub credit: u64,
    /// Time in ns for which its writes have waited for readers.
    pub waited_ns: u64,
    /// Its readers at present.
    pub readers: Vec<FollowerReport>,
}

/// A reader as the writer of a stream sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FollowerReport {
    /// Name of the reading process, in lower case.
    pub source: String,
    /// Its incarnation; `None` only in reports of other releases.
    pub process: Option<Incarnation>,
    /// Number of the reader in that process.
    pub reader: u32,
    /// `live`, `catching_up` or `lagging`.
    pub state: String,
    /// True if it acknowledges and requests lost samples again.
    pub reliable: bool,
    /// Samples sent that it has not acknowledged.
    pub behind: u64,
    /// Samples that it can no longer get.
    pub lost: u64,
}

/// A reader as its own process sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReaderReport {
    /// Number of the reader in its process.
    pub reader: u32,
    /// Pattern of the topics.
    pub topics: String,
    /// Names of the partitions; `None` for all.
    pub partitions: Option<Vec<String>>,
    /// True if it acknowledges and requests lost samples again.
    pub reliable: bool,
    /// Streams that it reads at present.
    pub streams: usize,
    /// Bytes of batches that wait for the application.
    pub queued: u64,
    /// Requests for missing samples so far.
    pub refetches: u64,
    /// Samples reported as lost so far, as far as their number is known.
    pub lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_the_specification_leads_back() {
        let page = include_str!("../../../../spec/wire/control.md");
        let vector = page.split("```json vector=state\n").nth(1).unwrap().lines().next().unwrap();
        let state: ParticipantState = serde_json::from_str(vector).unwrap();
        assert_eq!(serde_json::to_string(&state).unwrap(), vector);
    }

    #[test]
    fn members_of_other_releases_are_no_errors() {
        let later = r#"{"version":"9.0.0","writers":[{"topic":"log/info","shoe_size":44}]}"#;
        let state: ParticipantState = serde_json::from_str(later).unwrap();
        assert_eq!((state.version.as_str(), state.writers[0].topic.as_str(), state.pid), ("9.0.0", "log/info", 0));
    }
}
