//! Asking servers: which attributes there are, what they are now, by which criteria they are sent, and why nothing comes.
//!
//! These functions wait for answers; subscribing does not need them.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tampu_bus::{AskError, Participant, access::Denied};
use tampu_types::{
    Incarnation, Time, TopicName,
    event::{AttributeConfig, AttributeName, AttributePattern, Criteria, EventView, Quality, view::OwnedEvent},
    name::BadTopic,
};

use crate::topics;

/// The most attributes that are described in one part of an answer.
pub(crate) const PART: usize = 500;

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskFailed {
    /// The bus could not ask.
    #[error(transparent)]
    Bus(#[from] AskError),
    /// The service has no name.
    #[error(transparent)]
    Topic(#[from] BadTopic),
    /// A server said no.
    #[error("{0}")]
    Refused(String),
    /// What was asked cannot be written.
    #[error("the question: {0}")]
    Question(serde_json::Error),
}

/// What `event/list`, `event/conf` and `event/doctor` are asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Attributes that match; all, where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<AttributePattern>,
    /// What is set on all that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Change>,
}

/// What `event/get` is asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// These attributes.
    pub names: Vec<AttributeName>,
}

/// New settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// All criteria; as they were, where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Criteria>,
    /// How often it is polled, ms; only for attributes that their server polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled_ms: Option<u32>,
}

/// What one life of a server is asked by whoever subscribes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refresh {
    /// Comes back with the values.
    pub token: u64,
    /// Whose current values are to be written into their streams.
    pub attributes: Vec<u32>,
    /// Whether all declarations are to be written again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub names: bool,
}

/// Asks a life to write all its declarations again, because some were lost. They come through its stream.
pub(crate) fn for_names(participant: &Participant, incarnation: Incarnation) {
    let question = serde_json::to_vec(&Refresh { names: true, ..Refresh::default() });
    if let (Ok(service), Ok(question)) = (topics::refresh(incarnation), question) {
        // A life that has ended does not answer, and need not.
        let _ = participant.ask(&service, question.into(), Duration::from_secs(1));
    }
}

/// Part of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Part<T> {
    pub source: String,
    pub attributes: Vec<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<Denied>,
}

impl<T> Default for Part<T> {
    fn default() -> Part<T> {
        Part { source: String::new(), attributes: Vec::new(), error: None, denied: None }
    }
}

/// What one server says of its attributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T> {
    /// The server's name.
    pub source: String,
    /// Which life of it.
    pub incarnation: Incarnation,
    /// Its attributes that match.
    pub attributes: Vec<T>,
}

/// An attribute as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// What it is.
    #[serde(flatten)]
    pub config: AttributeConfig,
    /// Counts its configurations.
    pub epoch: u32,
    /// Events sent so far.
    pub number: u64,
    /// How good the last reading was; none where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// The other process that has an attribute of this name, for which this one is silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<String>,
}

/// What a server knows about why events of an attribute come or do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// The attribute.
    pub name: String,
    /// How often the server reads it by itself, ms.
    pub polled_ms: Option<u32>,
    /// Whether change events can come from its value: it is no number, or has thresholds.
    pub change_by_value: bool,
    /// The same for the archive.
    pub archive_by_value: bool,
    /// Its criteria.
    pub criteria: Criteria,
    /// Readings the server was given.
    pub pushes: u64,
    /// When the last was, ns UTC; 0 for never.
    pub pushed_at: Time,
    /// Readings that sent nothing, because no criterion held.
    pub held_back: u64,
    /// Events sent.
    pub number: u64,
    /// Whether the last reading was an error, and which.
    pub failing: Option<String>,
    /// The other process that has an attribute of this name.
    pub taken_by: Option<String>,
    /// Whether it is declared as one of several redundant sources.
    pub redundant: bool,
    /// Who reads the stream it is in.
    pub subscribers: Vec<Subscriber>,
    /// The state of the server's clock: `synchronised`, `free`, `unknown`.
    pub clock: String,
    /// The server's time when it said so, ns UTC.
    pub now: Time,
}

impl Default for Facts {
    fn default() -> Facts {
        Facts {
            name: String::new(),
            polled_ms: None,
            change_by_value: false,
            archive_by_value: false,
            criteria: Criteria::default(),
            pushes: 0,
            pushed_at: Time(0),
            held_back: 0,
            number: 0,
            failing: None,
            taken_by: None,
            redundant: false,
            subscribers: Vec::new(),
            clock: String::new(),
            now: Time(0),
        }
    }
}

/// A reader of a stream, as its server sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscriber {
    /// The reading process, in lower case.
    pub source: String,
    /// `live`, `catching up`, `lagging` or `gone`.
    pub state: String,
    /// Samples of the stream it has not acknowledged.
    pub behind: u64,
    /// The first of them; none where the server is of an earlier release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Samples it can no longer get.
    pub lost: u64,
}

/// The attributes that match, of all servers.
pub fn list(
    participant: &Participant,
    pattern: Option<&AttributePattern>,
    timeout: Duration,
) -> Result<Vec<Answer<Described>>, AskFailed> {
    let question = Question { pattern: pattern.cloned(), set: None };
    described(participant, topics::LIST, &question, timeout)
}

/// Criteria and periods of the attributes that match, after setting them if there is something to set.
pub fn configure(
    participant: &Participant,
    pattern: &AttributePattern,
    set: Option<Change>,
    timeout: Duration,
) -> Result<Vec<Answer<Described>>, AskFailed> {
    described(participant, topics::CONF, &Question { pattern: Some(pattern.clone()), set }, timeout)
}

/// What servers know about why events come or do not.
pub fn doctor(participant: &Participant, pattern: &AttributePattern, timeout: Duration) -> Result<Vec<Answer<Facts>>, AskFailed> {
    described(participant, topics::DOCTOR, &Question { pattern: Some(pattern.clone()), set: None }, timeout)
}

/// The current values of these attributes: name, life of the server, event.
pub fn get(
    participant: &Participant,
    names: &[AttributeName],
    timeout: Duration,
) -> Result<Vec<(AttributeName, Incarnation, OwnedEvent)>, AskFailed> {
    let question = serde_json::to_vec(&Get { names: names.to_vec() }).map_err(AskFailed::Question)?;
    let mut found = Vec::new();
    for part in participant.ask(&TopicName::new(topics::GET)?, Bytes::from(question), timeout)? {
        let part = match part {
            Ok(part) => part,
            Err(AskError::Unanswered(_)) => break,
            Err(error) => return Err(error.into()),
        };
        found.extend(got(&part));
    }
    Ok(found)
}

fn got(part: &[u8]) -> Option<(AttributeName, Incarnation, OwnedEvent)> {
    let (incarnation, rest) = part.split_first_chunk::<16>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (name, event) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let name = AttributeName::new(std::str::from_utf8(name).ok()?).ok()?;
    Some((name, Incarnation::from_bytes(*incarnation), EventView::parse(event).ok()?.to_event()))
}

fn described<T: DeserializeOwned>(
    participant: &Participant,
    service: &str,
    question: &Question,
    timeout: Duration,
) -> Result<Vec<Answer<T>>, AskFailed> {
    let question = serde_json::to_vec(question).map_err(AskFailed::Question)?;
    let mut servers: BTreeMap<Incarnation, Answer<T>> = BTreeMap::new();
    for part in participant.ask(&TopicName::new(service)?, Bytes::from(question), timeout)? {
        let part = match part {
            Ok(part) => part,
            // Servers without a match do not answer.
            Err(AskError::Unanswered(_)) => break,
            Err(error) => return Err(error.into()),
        };
        let Some((incarnation, json)) = part.split_first_chunk::<16>() else { continue };
        let Ok(part) = serde_json::from_slice::<Part<T>>(json) else { continue };
        if let Some(error) = part.error {
            return Err(AskFailed::Refused(format!("{}: {error}", part.source)));
        }
        let incarnation = Incarnation::from_bytes(*incarnation);
        let answer =
            servers.entry(incarnation).or_insert_with(|| Answer { source: part.source, incarnation, attributes: Vec::new() });
        answer.attributes.extend(part.attributes);
    }
    Ok(servers.into_values().collect())
}
