//! Bodies that are JSON.
//!
//! Numbers of 64 bits are decimal texts ([`Big`]), because a browser reads a JSON number as a double of 53 bits. A
//! reader skips members that it does not know; OPEN, DECLARE and SERVE are read strictly, so that no part of a request is
//! ignored silently.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use serde_json::Value as Json;

use crate::{
    Incarnation, Time,
    event::{AttributeConfig, AttributePattern},
};

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// Feature of a client that answers services, and of a hub that passes questions on to it.
pub const SERVE: &str = "serve";

/// A number of 64 bits, written as decimal text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Big(pub u64);

impl Serialize for Big {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Big {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Big, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map(Big).map_err(|_| D::Error::custom(format!("'{}' is no number of 64 bits as text", text.escape_debug())))
    }
}

/// Body of HELLO.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// Versions of the protocol that the client speaks.
    pub versions: Vec<u32>,
    /// Features that it has.
    pub features: Vec<String>,
    /// Name and version of the client's library.
    pub client: String,
    /// Name under which the session publishes.
    pub source: String,
    /// Domain that the client expects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Credential, where the transport proves no user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Session to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Last counted frame that the client has received in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Big>,
    /// Longest body that the client takes, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
}

/// Body of WELCOME.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Welcome {
    /// Version that both use.
    pub version: u32,
    /// Features of the client that the hub has.
    pub features: Vec<String>,
    /// Release of the hub.
    pub hub: String,
    /// Domain of the hub.
    pub domain: String,
    /// Secret name of the session, 32 hexadecimal digits.
    pub session: String,
    /// True if the session goes on.
    pub resumed: bool,
    /// Last counted frame that the hub has received.
    pub received: Big,
    /// Incarnation of the session's publishers and services.
    pub incarnation: Option<Incarnation>,
    /// Principal of the session, for people.
    pub principal: String,
    /// Longest time between two frames of a side, in ms.
    pub beat_ms: u64,
    /// Time for which a session without a connection lives, in ms.
    pub resume_ms: u64,
    /// Bytes of frames that the hub sends ahead of the client's ACK.
    pub window: u64,
    /// Longest body that the hub takes, in bytes.
    pub frame: u32,
}

/// Reason for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// It ended in order.
    #[default]
    Done,
    /// The sides have no version in common.
    Version,
    /// A frame is not as the protocol has it.
    Protocol,
    /// The credential is missing or wrong.
    Unauthenticated,
    /// The access hook refused.
    Denied,
    /// A bound is reached.
    Limit,
    /// A member or a name is wrong.
    Bad,
    /// The bus could not do it.
    Failed,
    /// No process answered in time.
    Unanswered,
    /// The hub stops.
    Stopping,
    /// A code of a later release.
    #[serde(other)]
    Other,
}

/// Body of BYE and ENDED.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct End {
    /// Reason as a word.
    pub code: Code,
    /// Reason for people; empty if it ended in order.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Refusal of the access hook, as services send it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denied: Option<Json>,
}

impl End {
    /// Makes an end with a reason.
    pub fn because(code: Code, error: impl std::fmt::Display) -> End {
        End { code, error: error.to_string(), denied: None }
    }
}

/// Position in a stream: the next sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position(pub Incarnation, pub u32, pub Big);

/// Beginning of a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// Begins with new samples.
    #[default]
    Now,
    /// All that the writers still have.
    Held,
    /// The last samples of each stream.
    Last(u64),
    /// Positions of an earlier session, and all that the writers hold of other streams.
    Positions(Vec<Position>),
}

/// Body of OPEN.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Open {
    /// Patterns of topics.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// Names of the partitions; `None` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<Vec<String>>,
    /// Query that records of logs must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<Json>,
    /// Patterns of attributes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attributes: Vec<AttributePattern>,
    /// Kinds of events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kinds: Option<Vec<String>>,
    /// True if the current value comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<bool>,
    /// Filter of readings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Json>,
    /// Beginning of the subscription.
    pub from: From,
    /// Begins with the archive from this time on.
    #[serde(with = "crate::time::rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
    /// True if lost samples are fetched again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reliable: Option<bool>,
    /// First credit, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit: Option<u64>,
}

/// Receipts that a publisher wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Receipts {
    /// Sent when readers have acknowledged.
    #[default]
    Delivered,
    /// Sent when samples are on a disk as well.
    Kept,
    /// Sent about writing only.
    None,
}

/// Body of DECLARE.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Declare {
    /// Topic of the samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Names of the partition; `None` for everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partition: Option<Vec<String>>,
    /// Type id of the samples.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_id: Option<u32>,
    /// Version of the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u16>,
    /// Configuration of an attribute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribute: Option<Box<AttributeConfig>>,
    /// True if another process may own the attribute too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redundant: bool,
    /// True if its events travel before ordinary data.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub urgent: bool,
    /// True if its readers acknowledge each event.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub acknowledged: bool,
    /// Receipts to send.
    pub receipts: Receipts,
}

/// Body of SERVE.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Serve {
    /// Name of the service.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service: String,
    /// Name of the offer, for a service whose questions name one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of the client's receiver that gives passes, for `bulk/pass`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver: Option<u32>,
    /// Id of a publisher of an attribute, whose readings the client is asked for. Then there is no service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<u32>,
    /// Age of the last reading, in ms, up to which a question for the current value needs no new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh_ms: Option<u32>,
    /// Period at which a reading is asked for, in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_ms: Option<u32>,
    /// Time for an answer in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u32>,
}

/// Body of OPENED.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Opened {
    /// Incarnation of the publisher or the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
    /// Stream of the publisher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
    /// True if hosts prove themselves, for `bulk/pass`: senders need passes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub proved: bool,
}

/// Body of STREAM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamInfo {
    /// Process that writes it.
    pub incarnation: Incarnation,
    /// Number of the stream.
    pub stream: u32,
    /// Name of the source.
    pub source: String,
    /// Topic of the stream.
    pub topic: String,
    /// Names of the partition.
    pub partition: Vec<String>,
    /// Type id of the samples.
    #[serde(rename = "type")]
    pub type_id: u32,
    /// Version of the type.
    pub version: u16,
}

/// Body of GAP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapInfo {
    /// Process that wrote the samples.
    pub incarnation: Incarnation,
    /// Number of the stream.
    pub stream: u32,
    /// First missing sample.
    pub from: Big,
    /// Sample after the last missing one; `None` if it is unknown.
    pub to: Option<Big>,
    /// Reason, as people read it.
    pub why: String,
    /// True if DATA before it had the records from the archive.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filled: bool,
}

/// Body of LIFE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// Name of the source.
    pub source: String,
    /// Process that changed.
    pub incarnation: Incarnation,
    /// Its new state.
    pub state: String,
}

/// Body of ATTRIBUTE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttributeIntro {
    /// Handle in EVENTS and NOTICE.
    pub attribute: u32,
    /// Name of the source.
    pub source: String,
    /// Process that has the attribute.
    pub incarnation: Incarnation,
    /// Number of the attribute in its process.
    pub number: u32,
    /// Number of the configuration.
    pub epoch: u32,
    /// Configuration of the attribute.
    pub config: AttributeConfig,
}

/// Events that are missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Missing {
    /// Numbers of the attribute's events, the second not included.
    Exactly(Big, Big),
    /// The word `unknown`.
    Unknown(String),
}

/// Body of NOTICE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Handle of the attribute.
    pub attribute: u32,
    /// Reason, as people read it.
    pub reason: String,
    /// Events that are missing.
    pub missed: Option<Missing>,
}

/// Body of RECEIPT.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Receipt {
    /// All samples below this number are written to the bus.
    pub written: Big,
    /// All below this number are acknowledged by all reliable readers.
    pub delivered: Option<Big>,
    /// All below this number are on a disk.
    pub kept: Option<Big>,
    /// Those below this number that are not delivered were for readers that left before they confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<Big>,
    /// Number of readers.
    pub readers: u32,
    /// Readings that were refused, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<(Big, String)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_texts_and_the_beginning_has_four_forms() {
        let position = Position(Incarnation { boot: 1, pid: 2, start: 3 }, 4, Big(u64::MAX));
        let from = From::Positions(vec![position]);
        let json = r#"{"positions":[["00000001-00000002-0000000000000003",4,"18446744073709551615"]]}"#;
        assert_eq!(serde_json::to_string(&from).unwrap(), json);
        assert_eq!(serde_json::from_str::<From>(json).unwrap(), from);
        assert_eq!(serde_json::from_str::<From>("\"held\"").unwrap(), From::Held);
        assert_eq!(serde_json::from_str::<From>(r#"{"last":3}"#).unwrap(), From::Last(3));
        assert!(serde_json::from_str::<Big>("7").is_err(), "a number would lose digits in a browser");
    }

    #[test]
    fn requests_are_read_strictly_and_the_rest_is_not() {
        assert!(serde_json::from_str::<Open>(r#"{"topics":["log/*"],"topic":"x"}"#).is_err());
        assert!(serde_json::from_str::<Declare>(r#"{"topic":"x","kind":1}"#).is_err());
        let hello: Hello = serde_json::from_str(r#"{"versions":[1,2],"later":true}"#).unwrap();
        assert_eq!(hello.versions, [1, 2]);
        assert_eq!(serde_json::from_str::<End>(r#"{"code":"later"}"#).unwrap().code, Code::Other);
        let missed = Missing::Exactly(Big(3), Big(5));
        assert_eq!(serde_json::to_string(&missed).unwrap(), r#"["3","5"]"#);
    }
}
