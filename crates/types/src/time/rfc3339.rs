//! Times in JSON: RFC 3339 text with nine decimals, in UTC, as `2026-11-21T08:15:30.123456789Z`. For `#[serde(with =
//! "tampu_types::time::rfc3339")]`.
//!
//! Decision: text, not a number of nanoseconds. A browser and `jq` read a JSON number as a double, which rounds a
//! present time to 256 ns.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

use super::Time;

/// Writes a time.
pub fn serialize<S: Serializer>(time: &Time, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&time.to_rfc3339())
}

/// Reads a time; an offset other than `Z` is converted to UTC.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
    deserializer::read(from, false)
}

/// Times that may be missing, written as null.
pub mod option {
    use super::{Deserializer, Serializer, Time, deserializer};

    /// Writes a time, or null.
    pub fn serialize<S: Serializer>(time: &Option<Time>, to: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => to.serialize_some(&time.to_rfc3339()),
            None => to.serialize_none(),
        }
    }

    /// Reads a time, or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
        deserializer::read_option(from, false)
    }
}

/// Times in the JSON of a store. They are written as text; a number of nanoseconds is read as well, from older stores.
pub mod stored {
    use super::{Deserializer, Time, deserializer};

    pub use super::serialize;

    /// Reads a time from text or from nanoseconds since 1970.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Time, D::Error> {
        deserializer::read(from, true)
    }
}

/// Optional times in the JSON of a store.
pub mod stored_option {
    use super::{Deserializer, Time, deserializer};

    pub use super::option::serialize;

    /// Reads a time from text or from nanoseconds since 1970, or null.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Time>, D::Error> {
        deserializer::read_option(from, true)
    }
}

mod deserializer {
    use super::{Deserialize, Deserializer, Error, Time};

    /// A time as JSON may have it.
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a time has to be RFC 3339 text, as \"2026-11-21T08:15:30.123456789Z\"")]
    enum Written {
        Text(String),
        Nanoseconds(i64),
    }

    fn time<E: Error>(written: Written, takes_number: bool) -> Result<Time, E> {
        match written {
            Written::Text(text) => Time::from_rfc3339(&text).map_err(|_| format!("invalid time '{}'", text.escape_debug())),
            Written::Nanoseconds(ns) if takes_number => Ok(Time(ns)),
            Written::Nanoseconds(ns) => Err(format!("invalid time {ns}")),
        }
        .map_err(|why| E::custom(format!("{why}: write RFC 3339, as \"2026-11-21T08:15:30.123456789Z\"")))
    }

    pub(super) fn read<'de, D: Deserializer<'de>>(from: D, takes_number: bool) -> Result<Time, D::Error> {
        time(Written::deserialize(from)?, takes_number)
    }

    pub(super) fn read_option<'de, D: Deserializer<'de>>(from: D, takes_number: bool) -> Result<Option<Time>, D::Error> {
        Option::<Written>::deserialize(from)?.map(|written| time(written, takes_number)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Times {
        #[serde(with = "super")]
        at: Time,
        #[serde(default, with = "super::option")]
        end: Option<Time>,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Stored {
        #[serde(with = "super::stored")]
        at: Time,
        #[serde(default, with = "super::stored_option")]
        end: Option<Time>,
    }

    #[test]
    fn all_nanoseconds_survive() {
        let times = Times { at: Time(1_795_385_734_848_854_513), end: Some(Time(-1)) };
        let text = serde_json::to_string(&times).unwrap();
        assert_eq!(text, r#"{"at":"2026-11-22T22:15:34.848854513Z","end":"1969-12-31T23:59:59.999999999Z"}"#);
        assert_eq!(serde_json::from_str::<Times>(&text).unwrap(), times);
        let read: Times = serde_json::from_str(r#"{"at":"2026-11-22T23:15:34.5+01:00","end":null}"#).unwrap();
        assert_eq!(read, Times { at: Time(1_795_385_734_500_000_000), end: None });
    }

    #[test]
    fn numbers_are_read_from_stores_only() {
        let old = r#"{"at":1795385734848854513,"end":7}"#;
        let error = serde_json::from_str::<Times>(old).unwrap_err().to_string();
        assert!(error.contains("invalid time 1795385734848854513: write RFC 3339"), "{error}");
        let read: Stored = serde_json::from_str(old).unwrap();
        assert_eq!(read, Stored { at: Time(1_795_385_734_848_854_513), end: Some(Time(7)) });
        assert!(serde_json::to_string(&read).unwrap().contains("848854513Z"));
        for bad in [r#"{"at":"yesterday"}"#, r#"{"at":"2026-11-22 22:15:34"}"#, r#"{"at":[]}"#] {
            let error = serde_json::from_str::<Stored>(bad).unwrap_err().to_string();
            assert!(error.contains("RFC 3339"), "{error}");
        }
    }
}
