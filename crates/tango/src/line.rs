//! Lines of JSON from the Python process, one message each. The contract is `spec/wire/tango-bridge.md`.
//!
//! ```text
//! {"event": {...}}            sent without a request
//! {"id": 4, "serving": {...}} an answer repeats the id of its request
//! ```
//! Unknown members and words are ignored, so either side may be newer than the other.

use serde::Deserialize;
use tampu_types::event::{AttributeConfig, EventKind, Failure, Quality};

use super::value::LineValue;

/// The protocol's release that is spoken here.
pub const PROTOCOL: u32 = 1;

/// A line that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a line that cannot be read ({why}): {start}")]
pub struct BadLine {
    /// Error of the parser.
    pub why: String,
    /// The first 100 bytes of the line.
    pub start: String,
}

/// One line from the Python process.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The question's, where it is an answer.
    pub id: Option<u64>,
    /// Content of the line.
    pub message: Message,
}

/// Content of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// The process has started.
    Hello(Hello),
    /// An event of an attribute of Tango.
    Event(Box<TangoEvent>),
    /// An attribute's configuration, or the reason why it is unsupported.
    Config {
        /// The requested name of the attribute.
        attribute: String,
        /// The configuration, or the reason why it cannot be used here.
        config: Result<Box<AttributeConfig>, String>,
    },
    /// Attributes that match a pattern.
    Listed(Listed),
    /// The device server has started.
    Serving(Serving),
    /// Events or pushes were lost because a queue was full.
    Dropped(Dropped),
    /// A value cannot be carried.
    Unconvertible(Unconvertible),
    /// Something did not work.
    Error(FailureMessage),
    Counts,
    /// An answer without news, or something of a later release.
    Other,
}

/// Its first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// The protocol's release.
    pub protocol: u32,
    /// Version of PyTango.
    pub pytango: String,
    /// Version of Tango's C++ library.
    pub tango: String,
    /// The Tango database it knows of.
    pub database: Option<String>,
}

/// Cause of an event from Tango.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventCause {
    /// The value when the subscription began.
    First,
    Update,
    /// The first value after silence.
    Resumed,
    /// Tango missed events.
    Gap,
    /// An error instead of a value.
    Error,
}

/// An event of Tango.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TangoEvent {
    /// The requested name of the attribute.
    pub attribute: String,
    /// Kind of the event.
    pub kind: EventKind,
    /// Cause of the event.
    pub reason: EventCause,
    /// With [`Why::Error`]: the source is silent in Tango.
    #[serde(default)]
    pub lost: bool,
    /// Time of the reading, ns UTC.
    #[serde(default)]
    pub time_ns: Option<i64>,
    /// Quality of the reading.
    #[serde(default)]
    pub quality: Quality,
    #[serde(default)]
    pub value: Option<LineValue>,
    /// The value written last, for writable attributes.
    #[serde(default)]
    pub set_point: Option<LineValue>,
    /// Errors instead of a value, innermost first.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Counter of a data ready event.
    #[serde(default)]
    pub counter: i32,
    /// Of an interface event: the device's attributes.
    #[serde(default)]
    pub attributes: Vec<String>,
}

/// The answer to `list`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listed {
    /// The pattern of the request.
    pub pattern: String,
    /// The attributes that match.
    pub attributes: Vec<String>,
    /// Devices that did not answer.
    #[serde(default)]
    pub silent: Vec<String>,
}

/// The answer to `serve`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Serving {
    /// Address at which it listens; `None` with a database.
    pub address: Option<String>,
    /// The devices, as clients name them.
    pub devices: Vec<String>,
    /// The attributes that are served.
    pub attributes: Vec<String>,
}

/// Events or pushes that did not find room.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Dropped {
    /// Name of the attribute.
    pub attribute: String,
    /// `in`: from Tango; `out`: to Tango.
    pub direction: String,
    /// Number of lost events.
    pub count: u64,
}

/// A value that cannot be carried.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Unconvertible {
    /// Of which attribute.
    pub attribute: String,
    /// `in`, `out`, or `written`.
    pub direction: String,
    /// Number of such values since the start. It is reported for powers of two only.
    pub count: u64,
    /// Error of the conversion.
    pub failure: Failure,
}

/// Something did not work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FailureMessage {
    pub failure: Failure,
    /// With which attribute.
    #[serde(default)]
    pub attribute: Option<String>,
}

/// The members a line can have.
#[derive(Deserialize)]
struct Members {
    id: Option<u64>,
    hello: Option<Hello>,
    event: Option<Box<TangoEvent>>,
    config: Option<Configured>,
    listed: Option<Listed>,
    serving: Option<Serving>,
    dropped: Option<Dropped>,
    unconvertible: Option<Unconvertible>,
    error: Option<FailureMessage>,
    counts: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Configured {
    attribute: String,
    // Parsed separately: an unknown type affects one attribute and not the line.
    config: serde_json::Value,
}

impl Line {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Result<Line, BadLine> {
        let members: Members = serde_json::from_slice(line).map_err(|error| BadLine {
            why: error.to_string(),
            start: String::from_utf8_lossy(&line[..line.len().min(100)]).trim_end().to_owned(),
        })?;
        let message = match members {
            Members { event: Some(event), .. } => Message::Event(event),
            Members { hello: Some(hello), .. } => Message::Hello(hello),
            Members { config: Some(Configured { attribute, config }), .. } => {
                Message::Config { attribute, config: serde_json::from_value(config).map_err(|error| error.to_string()) }
            }
            Members { listed: Some(listed), .. } => Message::Listed(listed),
            Members { serving: Some(serving), .. } => Message::Serving(serving),
            Members { dropped: Some(dropped), .. } => Message::Dropped(dropped),
            Members { unconvertible: Some(unconvertible), .. } => Message::Unconvertible(unconvertible),
            Members { error: Some(told), .. } => Message::Error(told),
            Members { counts: Some(_), .. } => Message::Counts,
            _ => Message::Other,
        };
        Ok(Line { id: members.id, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Line::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}")).message
    }

    /// Tests that each line from Python in the specification is understood, as its first member requires.
    #[test]
    fn the_lines_of_the_specification_are_read() {
        let page = include_str!("../../../spec/wire/tango-bridge.md");
        let (mut read, mut understood) = (0, 0);
        for line in page.lines().filter(|line| line.starts_with("{\"")) {
            read += 1;
            understood += usize::from(!matches!(message(line), Message::Other));
        }
        assert!(read > 25 && understood >= 12, "{understood} of {read}");
        let Message::Event(event) = message(page.lines().find(|line| line.contains("API_EventTimeout")).unwrap()) else {
            panic!()
        };
        assert!(event.lost && event.reason == EventCause::Error && event.failures[0].reason == "API_EventTimeout");
        let Message::Config { config: Ok(config), .. } =
            message(page.lines().find(|line| line.starts_with("{\"config\"")).unwrap())
        else {
            panic!("a configuration")
        };
        assert_eq!((config.unit.as_str(), config.limits.alarm_high), ("mbar", Some(90.0)));
        assert_eq!(config.criteria.change.rel.map(|band| band.high()), Some(1.0));
    }

    #[test]
    fn what_is_no_line_says_how_it_begins() {
        for bad in ["", "no json", "[1]", "{\"event\":1}", "{\"event\":{}}", "{\"id\":-1}", "{\"listed\":{}}", "\"x"] {
            let error = Line::parse(bad.as_bytes()).unwrap_err();
            assert_eq!(error.start, bad, "{error}");
        }
        let long = Line::parse(&[b'x'; 10_000]).unwrap_err();
        assert_eq!(long.start.len(), 100);
        assert!(Line::parse(b"\xff\xfe").is_err());
        let strange = r#"{"config":{"attribute":"a","config":{"name":"a/b/c/d","data_type":"DevPipe","format":"scalar"}}}"#;
        assert!(matches!(message(strange), Message::Config { config: Err(why), .. } if why.contains("DevPipe")));
    }
}
