//! The question for transfers, and a page of the answer.

use serde::{Deserialize, Serialize};
use tampu_archive::Place;
use tampu_types::{Time, glob::matches_ignoring_case};

use super::transfer::{Outcome, Transfer};

/// Most transfers of one page.
pub const PAGE: u64 = 1000;

/// Question for the running and the kept transfers, the newest first. All conditions that are given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransferQuery {
    /// Start of the range: transfers that ran at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// End of the range: transfers that began before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Id of one transfer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Pattern of streams, without regard to case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<String>,
    /// Pattern of flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Pattern of the names of senders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Pattern of the names of receivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<String>,
    /// Pattern of the senders' hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Text that occurs in the parameter, without regard to case; of a file, in its name or the sender's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// State or result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Place after which to continue: the `cursor` of the page before. Running transfers are only on the first page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Place>,
    /// Most kept transfers of the page, 1 to [`PAGE`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A page of transfers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransferPage {
    /// Running transfers by their begin, then ended ones by their end, the newest first.
    pub transfers: Vec<Transfer>,
    /// Place to continue from; `None` if nothing follows.
    pub cursor: Option<Place>,
    /// False if the search ran out of time. It continues at the cursor.
    pub complete: bool,
    /// Running transfers that the page has no room for.
    pub left_out: u64,
    /// Parts of the archive that cannot be read.
    pub damaged: u64,
}

impl TransferQuery {
    /// Returns true if a transfer is as wanted.
    pub fn wants(&self, one: &Transfer) -> bool {
        let like = |pattern: &Option<String>, text: &str| pattern.as_ref().is_none_or(|it| matches_ignoring_case(it, text));
        self.since.is_none_or(|since| one.ended.is_none_or(|ended| ended >= since))
            && self.until.is_none_or(|until| one.began < until)
            && self.outcome.is_none_or(|outcome| outcome == one.outcome)
            && like(&self.stream, one.stream.as_str())
            && like(&self.flow, one.flow.as_str())
            && like(&self.source, &one.source)
            && like(&self.host, &one.host)
            && (self.receiver.is_none() || one.deliveries.iter().any(|delivery| like(&self.receiver, &delivery.source)))
            && self.parameter.as_ref().is_none_or(|text| occurs(text, one))
            && self.id.as_ref().is_none_or(|id| *id == one.id())
    }
}

/// Returns true if a text occurs in the parameter of a transfer, or in the name of its file.
fn occurs(text: &str, one: &Transfer) -> bool {
    let text = text.to_lowercase();
    let (file, own) = one.file_and_text();
    own.to_lowercase().contains(&text) || file.is_some_and(|label| label.file.as_str().to_lowercase().contains(&text))
}
