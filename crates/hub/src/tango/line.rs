//! What the Python side says: a line of JSON each, read into what it means. The contract is `spec/wire/tango-bridge.md`.
//!
//! ```text
//! {"event": {...}}            without being asked
//! {"id": 4, "serving": {...}} an answer repeats the id of its question
//! ```
//! Members and words of a later release are passed over, so that either side can be newer than the other.

use serde::Deserialize;
use tampu_types::event::{AttributeConfig, EventKind, Failure, Quality};

use super::value::LineValue;

/// The protocol's release that is spoken here.
pub const PROTOCOL: u32 = 1;

/// Why a line says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a line that cannot be read ({why}): {start}")]
pub struct BadLine {
    /// What is wrong.
    pub why: String,
    /// How it begins.
    pub start: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The question's, where it is an answer.
    pub id: Option<u64>,
    /// What it says.
    pub said: Said,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// It is there.
    Hello(Hello),
    /// An event of an attribute of Tango.
    Event(Box<TangoEvent>),
    /// An attribute's configuration, or why it is none that is known here.
    Config {
        /// The attribute, as it was asked for.
        attribute: String,
        /// What it is.
        config: Result<Box<AttributeConfig>, String>,
    },
    /// Attributes that match a pattern.
    Listed(Listed),
    /// It is a device server.
    Serving(Serving),
    /// What came did not find room.
    Dropped(Dropped),
    /// A value cannot be carried.
    Unconvertible(Unconvertible),
    /// Something did not work.
    Error(Told),
    /// Counters.
    Counts,
    /// An answer without news, or something of a later release.
    Else,
}

/// Its first line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Hello {
    /// The protocol's release.
    pub protocol: u32,
    /// PyTango's.
    pub pytango: String,
    /// Tango's.
    pub tango: String,
    /// The Tango database it knows of.
    pub database: Option<String>,
}

/// Why an event came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The value when the subscription began.
    First,
    /// Something new.
    Update,
    /// The first value after silence.
    Resumed,
    /// Tango missed events.
    Gap,
    /// There is no value.
    Error,
}

/// An event of Tango.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TangoEvent {
    /// The attribute, as it was asked for.
    pub attribute: String,
    /// As what it came.
    pub kind: EventKind,
    /// Why.
    pub reason: Why,
    /// With [`Why::Error`]: Tango does not hear the source.
    #[serde(default)]
    pub lost: bool,
    /// When the reading was taken, ns UTC.
    #[serde(default)]
    pub time_ns: Option<i64>,
    /// How good it is.
    #[serde(default)]
    pub quality: Quality,
    /// The reading.
    #[serde(default)]
    pub value: Option<LineValue>,
    /// What was written last.
    #[serde(default)]
    pub set_point: Option<LineValue>,
    /// Why there is none, innermost first.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Of a data ready event.
    #[serde(default)]
    pub counter: i32,
    /// Of an interface event: the device's attributes.
    #[serde(default)]
    pub attributes: Vec<String>,
}

/// The answer to `list`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Listed {
    /// What was asked for.
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
    /// Where it listens; none with a database.
    pub address: Option<String>,
    /// The devices, as clients name them.
    pub devices: Vec<String>,
    /// The attributes that are served.
    pub attributes: Vec<String>,
}

/// Events or pushes that did not find room.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Dropped {
    /// Of which attribute.
    pub attribute: String,
    /// `in`: from Tango; `out`: to Tango.
    pub direction: String,
    /// How many.
    pub count: u64,
}

/// A value that cannot be carried.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Unconvertible {
    /// Of which attribute.
    pub attribute: String,
    /// `in`, `out`, or `written`.
    pub direction: String,
    /// How often up to now; told for powers of two.
    pub count: u64,
    /// Why.
    pub failure: Failure,
}

/// Something did not work.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Told {
    /// What.
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
    error: Option<Told>,
    counts: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Configured {
    attribute: String,
    // Read by itself: a type that is not known here spoils one attribute and not the line.
    config: serde_json::Value,
}

impl Line {
    /// Reads a line.
    pub fn parse(line: &[u8]) -> Result<Line, BadLine> {
        let members: Members = serde_json::from_slice(line).map_err(|error| BadLine {
            why: error.to_string(),
            start: String::from_utf8_lossy(&line[..line.len().min(100)]).trim_end().to_owned(),
        })?;
        let said = match members {
            Members { event: Some(event), .. } => Said::Event(event),
            Members { hello: Some(hello), .. } => Said::Hello(hello),
            Members { config: Some(Configured { attribute, config }), .. } => {
                Said::Config { attribute, config: serde_json::from_value(config).map_err(|error| error.to_string()) }
            }
            Members { listed: Some(listed), .. } => Said::Listed(listed),
            Members { serving: Some(serving), .. } => Said::Serving(serving),
            Members { dropped: Some(dropped), .. } => Said::Dropped(dropped),
            Members { unconvertible: Some(unconvertible), .. } => Said::Unconvertible(unconvertible),
            Members { error: Some(told), .. } => Said::Error(told),
            Members { counts: Some(_), .. } => Said::Counts,
            _ => Said::Else,
        };
        Ok(Line { id: members.id, said })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Said {
        Line::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}")).said
    }

    /// The lines from Python in the specification: each is understood, and as what its first member says.
    #[test]
    fn the_lines_of_the_specification_are_read() {
        let page = include_str!("../../../../spec/wire/tango-bridge.md");
        let (mut read, mut understood) = (0, 0);
        for line in page.lines().filter(|line| line.starts_with("{\"")) {
            read += 1;
            understood += usize::from(!matches!(said(line), Said::Else));
        }
        assert!(read > 25 && understood >= 12, "{understood} of {read}");
        let Said::Event(event) = said(page.lines().find(|line| line.contains("API_EventTimeout")).unwrap()) else { panic!() };
        assert!(event.lost && event.reason == Why::Error && event.failures[0].reason == "API_EventTimeout");
        let Said::Config { config: Ok(config), .. } = said(page.lines().find(|line| line.starts_with("{\"config\"")).unwrap())
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
        assert!(matches!(said(strange), Said::Config { config: Err(why), .. } if why.contains("DevPipe")));
    }
}
