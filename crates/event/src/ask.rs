//! Questions to servers: their attributes, current values, criteria, and facts about why events do not come.
//!
//! These functions wait for answers; subscribing does not need them.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tampu_bus::{
    Participant,
    service::{CallError, Part as AnswerPart, call_json},
};
use tampu_types::{
    Incarnation, Time,
    event::{AttributeConfig, AttributeName, AttributePattern, Criteria, EventView, Quality, view::OwnedEvent},
};

use crate::{filter::Filter, topics};

/// Most attributes that are described in one part of an answer.
pub(crate) const PART: usize = 500;

/// The question of `event/list`, `event/conf` and `event/doctor`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Question {
    /// Pattern of the attributes; `None` matches all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<AttributePattern>,
    /// Settings to apply to all attributes that match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<Change>,
}

/// The question of `event/get`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Get {
    /// Names of the attributes.
    pub names: Vec<AttributeName>,
}

/// Change of the settings of attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Change {
    /// New criteria; `None` leaves them unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub criteria: Option<Criteria>,
    /// Period of polls, ms; only for attributes that their server polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polled_ms: Option<u32>,
}

/// The question of a subscriber to one incarnation of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Refresh {
    /// Token that is returned with the values.
    pub token: u64,
    /// Numbers of the attributes whose current values the server writes into their streams.
    pub attributes: Vec<u32>,
    /// A process that reads the stream of its host. The server writes the values and the following events there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reader: Option<Incarnation>,
    /// Events of these attributes that the reader wants.
    #[serde(skip_serializing_if = "Wanted::is_default")]
    pub wanted: Wanted,
    /// True if the reader also wants the first events of these attributes, as far as the server still has them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_start: bool,
    /// Attributes that the reader wants no longer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<u32>,
    /// True if the server must write all its declarations again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub names: bool,
}

/// Events of an attribute that a reader on another host wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// Bits of the kinds of events.
    pub kinds: u32,
    /// Conditions on readings.
    #[serde(skip_serializing_if = "Filter::is_default")]
    pub filter: Filter,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { kinds: u32::MAX, filter: Filter::default() }
    }
}

impl Wanted {
    fn is_default(&self) -> bool {
        *self == Wanted::default()
    }
}

/// Asks an incarnation to write all its declarations again, because some were lost. They arrive through its stream.
pub(crate) fn for_names(participant: &Participant, incarnation: Incarnation) {
    refresh(participant, incarnation, &Refresh { names: true, ..Refresh::default() });
}

/// Asks an incarnation to write values or declarations again. They arrive through its streams, so the caller does not
/// wait for the answer. It repeats a lost question.
pub(crate) fn refresh(participant: &Participant, incarnation: Incarnation, question: &Refresh) {
    if let Ok(service) = topics::refresh(incarnation) {
        let _ = call_json(participant, service.as_str(), question, Duration::from_secs(1));
    }
}

/// Part of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Part<T> {
    pub source: String,
    pub attributes: Vec<T>,
}

impl<T> Default for Part<T> {
    fn default() -> Part<T> {
        Part { source: String::new(), attributes: Vec::new() }
    }
}

/// One server's part of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T> {
    /// Name of the server.
    pub source: String,
    /// Incarnation of the server.
    pub incarnation: Incarnation,
    /// Matching attributes of the server.
    pub attributes: Vec<T>,
}

/// Attribute in its server's description.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Described {
    /// Configuration of the attribute.
    #[serde(flatten)]
    pub config: AttributeConfig,
    /// Number of its configurations so far.
    pub epoch: u32,
    /// Number of events sent so far.
    pub number: u64,
    /// Quality of the last reading; `None` if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<Quality>,
    /// Other process with an attribute of this name, which makes this one silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<String>,
}

/// Facts of a server about one attribute, which explain present or missing events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// Name of the attribute.
    pub name: String,
    /// Period at which the server polls it, ms.
    pub polled_ms: Option<u32>,
    /// True if its value can cause change events: it is not a number, or it has thresholds.
    pub change_by_value: bool,
    /// True if its value can cause archive events.
    pub archive_by_value: bool,
    /// Criteria of its events.
    pub criteria: Criteria,
    /// Number of readings that the server was given.
    pub pushes: u64,
    /// Time of the last push, ns UTC; 0 if there was none.
    pub pushed_at: Time,
    /// Number of readings that sent nothing, because no criterion held.
    pub held_back: u64,
    /// Number of events sent.
    pub number: u64,
    /// Error of the last reading, if it failed.
    pub failing: Option<String>,
    /// Other process with an attribute of this name.
    pub taken_by: Option<String>,
    /// True if it is declared as one of several redundant sources.
    pub redundant: bool,
    /// Readers of its stream.
    pub subscribers: Vec<Subscriber>,
    /// The state of the server's clock: `synchronised`, `free`, `unknown`.
    pub clock: String,
    /// Server's time of this answer, ns UTC.
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

/// Reader of a stream in its server's view.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscriber {
    /// Name of the reading process, in lower case.
    pub source: String,
    /// `live`, `catching up`, `lagging` or `gone`.
    pub state: String,
    /// Number of samples of the stream that it has not acknowledged.
    pub behind: u64,
    /// First of these samples; `None` from a server of an earlier release.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Number of samples that it can no longer get.
    pub lost: u64,
}

/// Returns the matching attributes of all servers.
pub fn list(
    participant: &Participant,
    pattern: Option<&AttributePattern>,
    timeout: Duration,
) -> Result<Vec<Answer<Described>>, CallError> {
    let question = Question { pattern: pattern.cloned(), set: None };
    described(participant, topics::LIST, &question, timeout)
}

/// Returns the criteria and periods of the matching attributes, after any change of them.
pub fn configure(
    participant: &Participant,
    pattern: &AttributePattern,
    set: Option<Change>,
    timeout: Duration,
) -> Result<Vec<Answer<Described>>, CallError> {
    described(participant, topics::CONF, &Question { pattern: Some(pattern.clone()), set }, timeout)
}

/// Returns the facts of all servers about the matching attributes.
pub fn doctor(participant: &Participant, pattern: &AttributePattern, timeout: Duration) -> Result<Vec<Answer<Facts>>, CallError> {
    described(participant, topics::DOCTOR, &Question { pattern: Some(pattern.clone()), set: None }, timeout)
}

/// Returns the current values of these attributes: name, incarnation of the server, event. Fails if servers refuse and none
/// answers with a value.
pub fn get(
    participant: &Participant,
    names: &[AttributeName],
    timeout: Duration,
) -> Result<Vec<(AttributeName, Incarnation, OwnedEvent)>, CallError> {
    let (mut found, mut first_refusal) = (Vec::new(), None);
    for part in answered(participant, topics::GET, &Get { names: names.to_vec() }, timeout)? {
        let AnswerPart { from, content } = part?;
        match content {
            Ok(content) => found.extend(got(&content).map(|(name, event)| (name, from, event))),
            // The values of the other servers are still worth having.
            Err(refused) => first_refusal = first_refusal.or_else(|| Some(named(participant, from, refused))),
        }
    }
    match first_refusal {
        Some(refused) if found.is_empty() => Err(refused),
        _ => Ok(found),
    }
}

/// Returns the parts of all answers until the last one. Servers without a match send none.
fn answered(
    participant: &Participant,
    service: &str,
    question: &impl Serialize,
    timeout: Duration,
) -> Result<impl Iterator<Item = Result<AnswerPart, CallError>>, CallError> {
    let parts = call_json(participant, service, question, timeout)?;
    Ok(parts.take_while(|part| !matches!(part, Err(CallError::Unanswered(_)))))
}

fn got(part: &[u8]) -> Option<(AttributeName, OwnedEvent)> {
    let (length, rest) = part.split_first_chunk::<2>()?;
    let (name, event) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let name = AttributeName::new(std::str::from_utf8(name).ok()?).ok()?;
    Some((name, EventView::parse(event).ok()?.to_event()))
}

fn described<T: DeserializeOwned>(
    participant: &Participant,
    service: &str,
    question: &Question,
    timeout: Duration,
) -> Result<Vec<Answer<T>>, CallError> {
    let mut servers: BTreeMap<Incarnation, Answer<T>> = BTreeMap::new();
    for part in answered(participant, service, question, timeout)? {
        let AnswerPart { from: incarnation, content } = part?;
        let content = content.map_err(|refused| named(participant, incarnation, refused))?;
        let Ok(part) = serde_json::from_slice::<Part<T>>(&content) else { continue };
        let answer =
            servers.entry(incarnation).or_insert_with(|| Answer { source: part.source, incarnation, attributes: Vec::new() });
        answer.attributes.extend(part.attributes);
    }
    Ok(servers.into_values().collect())
}

/// Names the server in its refusal.
fn named(participant: &Participant, incarnation: Incarnation, refused: CallError) -> CallError {
    let CallError::Refused { service, why } = refused else { return refused };
    let source = participant.sources().into_iter().find(|source| source.incarnation == incarnation);
    let source = source.map_or_else(|| incarnation.to_string(), |source| source.source.to_string());
    CallError::Refused { service, why: format!("{source}: {why}") }
}
