//! A transfer, as an account knows it.

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, Time};

use crate::{Name, file::FileLabel};

/// State or result of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The transfer is running.
    UnderWay,
    /// Every receiver got every byte.
    Complete,
    /// At least one receiver missed data, or there was no receiver.
    Incomplete,
    /// The sender left, or began another transfer of the flow without reporting the end of this one.
    BrokenOff,
}

impl Outcome {
    /// Returns its name in JSON and in the archive.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::UnderWay => "under_way",
            Outcome::Complete => "complete",
            Outcome::Incomplete => "incomplete",
            Outcome::BrokenOff => "broken_off",
        }
    }

    /// Returns the outcome of this name.
    pub fn from_name(name: &str) -> Option<Outcome> {
        [Outcome::UnderWay, Outcome::Complete, Outcome::Incomplete, Outcome::BrokenOff].into_iter().find(|one| one.name() == name)
    }
}

/// The result of a transfer for one of its receivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverOutcome {
    /// First 200 characters of the name of the receiver's source.
    pub source: String,
    /// Incarnation of the receiver.
    #[serde(default)]
    pub incarnation: String,
    /// Address of the connection.
    #[serde(default)]
    pub address: String,
    /// True if it got every byte.
    pub complete: bool,
    /// Bytes that it acknowledged.
    #[serde(default)]
    pub acknowledged: u64,
    /// Bytes that it lost.
    #[serde(default)]
    pub lost_bytes: u64,
    /// State of the connection at the end: `live`, `lagging`, `broken`, `cut` ...
    #[serde(default)]
    pub status: String,
}

/// One transfer of one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transfer {
    /// Stream of the flow.
    pub stream: Name,
    /// Flow within the stream.
    pub flow: Name,
    /// Number that the sender gave it, counted per flow.
    pub transfer: u64,
    /// Source name of the sender.
    pub source: String,
    /// Incarnation of the sender.
    pub incarnation: Incarnation,
    /// Host of the sender: the proved name, or the own name for a sender beside the account; else empty.
    #[serde(default)]
    pub host: String,
    /// First 500 characters of the parameter given to `start`. The label of a file is whole but for its text.
    pub parameter: String,
    /// Time (UTC) of the sender's report of the begin. If the account missed it: the end, less the duration.
    pub began: Time,
    /// Time (UTC) of the reported end; `None` while it is running.
    pub ended: Option<Time>,
    /// State or result.
    pub outcome: Outcome,
    /// Bytes sent, without headers.
    pub bytes: u64,
    /// Duration measured by the sender, seconds.
    pub seconds: f64,
    /// Bytes divided by seconds; 0 while the duration is unknown.
    pub bytes_per_s: f64,
    /// Number of receivers.
    pub receivers: u64,
    /// Bytes lost, summed over all receivers.
    pub lost_bytes: u64,
    /// Reasons, one for each receiver with missing data; at most 16 and a line with the number of further ones.
    pub why: Vec<String>,
    /// Results for the receivers; at most 32, first those with missing data.
    #[serde(default)]
    pub deliveries: Vec<ReceiverOutcome>,
}

impl Transfer {
    /// Returns its id, `INCARNATION.NUMBER.STREAM#FLOW`.
    pub fn id(&self) -> String {
        format!("{}.{}.{}#{}", self.incarnation, self.transfer, self.stream, self.flow)
    }

    /// Returns the label of the file, if it is one, and the sender's text.
    pub fn file_and_text(&self) -> (Option<FileLabel>, String) {
        match FileLabel::parse(self.parameter.as_bytes()) {
            Ok(Some(mut label)) => {
                let text = std::mem::take(&mut label.parameter);
                (Some(label), text)
            }
            Ok(None) | Err(_) => (None, self.parameter.clone()),
        }
    }

    /// Returns true while it is running.
    pub fn is_under_way(&self) -> bool {
        self.outcome == Outcome::UnderWay
    }
}
