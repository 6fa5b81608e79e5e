//! Times as text: in the local zone for people, with `Z` and nine decimals for programs.
//!
//! The zone is chosen once, in `main`: the system's, or UTC with `--utc`. Before that, and so in tests, it is UTC. A
//! table names the zone in the title of its column instead of repeating it on every line.

use std::sync::OnceLock;

use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;
use serde_json::Value;
use tampu_types::Time;

use crate::failure::Failure;

static ZONE: OnceLock<TimeZone> = OnceLock::new();

/// Chooses the zone of this process.
pub fn choose(utc: bool) {
    // Only a second `main` would set it again.
    let _ = ZONE.set(if utc { TimeZone::UTC } else { TimeZone::system() });
}

/// The zone that times are read and shown in.
pub fn zone() -> TimeZone {
    ZONE.get().cloned().unwrap_or(TimeZone::UTC)
}

fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(time.0)).unwrap_or_default()
}

/// Returns the time whose UTC text equals the text of this time in the zone.
fn shifted(time: Time) -> Time {
    let offset = i64::from(zone().to_offset(timestamp(time)).seconds());
    Time(time.0.saturating_add(offset.saturating_mul(1_000_000_000)))
}

/// `2026-11-21T08:15:30.123` in the zone.
pub fn local(time: Time) -> String {
    shifted(time).to_acs()
}

/// `2026-11-21 08:15` in the zone.
pub fn minute(time: Time) -> String {
    shifted(time).to_acs().get(..16).unwrap_or_default().replace('T', " ")
}

/// `08:15:30.123` in the zone.
pub fn of_day(time: Time) -> String {
    shifted(time).to_acs().get(11..).unwrap_or_default().to_owned()
}

/// The zone's short name at this time: `UTC`, `CET`, `+03`.
pub fn zone_name(time: Time) -> String {
    zone().to_offset_info(timestamp(time)).abbreviation().to_owned()
}

/// `2026-11-21T08:15:30.123 CET`: a time that stands alone.
pub fn with_zone(time: Time) -> String {
    format!("{} {}", local(time), zone_name(time))
}

/// `2026-11-21 08:15 CET`: a minute that stands alone.
pub fn minute_with_zone(time: Time) -> String {
    format!("{} {}", minute(time), zone_name(time))
}

/// The names under which times stand in the answers of hubs and servers, as integers of nanoseconds.
const TIMES: &[&str] = &[
    "at",
    "asked",
    "began",
    "changed",
    "compacted",
    "created",
    "date",
    "earliest",
    "ended",
    "expires",
    "first_seen",
    "last_seen",
    "last_used",
    "latest",
    "made",
    "modified",
    "newest",
    "now",
    "oldest",
    "pushed_at",
    "received",
    "seen",
    "sent",
    "since",
    "taken",
    "time",
    "until",
    "updated",
    "used",
];

/// A smaller number is no time but a count or a duration: this is 1973.
const LEAST: i64 = 100_000_000_000_000_000;

/// Writes times as text wherever they stand in a value.
pub fn in_json(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_i64().filter(|ns| *ns >= LEAST && TIMES.contains(&name.as_str())) {
                    Some(ns) => *value = Time(ns).to_rfc3339().into(),
                    None => in_json(value),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(in_json),
        _ => {}
    }
}

/// Returns a value as one line of JSON, with its times as text. `what` names it in an error.
pub fn json_line(value: &impl Serialize, what: &str) -> Result<String, Failure> {
    let mut value = serde_json::to_value(value).map_err(|error| Failure::failed(format!("{what} as JSON"), error))?;
    in_json(&mut value);
    Ok(value.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_in_json_are_text_and_counts_stay_numbers() {
        let mut value = json!({"time": 1_795_248_930_123_000_000_i64, "number": 1_795_248_930_123_000_000_i64,
            "list": [{"received": 1_795_248_930_000_000_001_i64, "since": 3.5}], "date": 12});
        in_json(&mut value);
        let wanted = json!({"time": "2026-11-21T08:15:30.123000000Z", "number": 1_795_248_930_123_000_000_i64,
            "list": [{"received": "2026-11-21T08:15:30.000000001Z", "since": 3.5}], "date": 12});
        assert_eq!(value, wanted);
    }

    #[test]
    fn a_time_has_one_text_for_each_reader() {
        let time = Time(1_795_248_930_123_456_789);
        assert_eq!(local(time), "2026-11-21T08:15:30.123");
        assert_eq!(minute_with_zone(time), "2026-11-21 08:15 UTC");
        assert_eq!(of_day(time), "08:15:30.123");
    }
}
