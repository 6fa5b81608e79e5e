//! Times as users type them: `10m` ago, `08:15`, `yesterday`, `2026-11-21T08:15:30.5`, `2026-11-21T08:15:30+01:00`.
//!
//! A time without a zone is in the zone of the command line: the system's, or UTC with `--utc`. A bare duration means a
//! time that long ago, as in `--since 10m`.

use std::str::FromStr;

use jiff::{
    Timestamp,
    civil::DateTime,
    tz::{Offset, TimeZone},
};
use tampu_types::{Time, units::parse_duration};

use crate::time_text;

/// A point in time, which may be relative to the present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeExpression {
    /// A number of ns before the present.
    Ago(i64),
    /// A number of days from today's date, then ns of the day.
    OfDay { days: i32, ns: i64 },
    /// A date and time of day in the zone of the command line.
    Civil(DateTime),
    /// An instant: a text with its zone.
    At(Time),
}

/// A text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a time: write 10m, 2h30m or 1d (ago), 08:15 (today), today, yesterday, now, 2026-11-21T08:15:30.123, or the same with Z or +01:00"
)]
pub struct BadTimeExpression(pub String);

impl TimeExpression {
    /// The instant, seen from `now`.
    pub fn resolve(self, now: Time) -> Time {
        self.resolve_in(now, &time_text::zone())
    }

    fn resolve_in(self, now: Time, zone: &TimeZone) -> Time {
        match self {
            TimeExpression::Ago(ns) => Time(now.0.saturating_sub(ns)),
            TimeExpression::At(time) => time,
            TimeExpression::Civil(civil) => instant(civil, zone),
            TimeExpression::OfDay { days, ns } => {
                let today = Timestamp::from_nanosecond(i128::from(now.0)).unwrap_or_default().to_zoned(zone.clone()).date();
                let day = today.saturating_add(jiff::Span::new().days(days));
                instant(day.to_datetime(jiff::civil::Time::midnight()).saturating_add(jiff::Span::new().nanoseconds(ns)), zone)
            }
        }
    }
}

/// The instant of a civil time. A time that a change of clocks skips or repeats is the one of the earlier offset.
fn instant(civil: DateTime, zone: &TimeZone) -> Time {
    let ns = zone.to_ambiguous_timestamp(civil).compatible().map_or(0, Timestamp::as_nanosecond);
    Time(i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN } else { i64::MAX }))
}

impl FromStr for TimeExpression {
    type Err = BadTimeExpression;

    fn from_str(text: &str) -> Result<TimeExpression, BadTimeExpression> {
        let word = text.trim().to_ascii_lowercase();
        match word.as_str() {
            "now" => return Ok(TimeExpression::Ago(0)),
            "today" => return Ok(TimeExpression::OfDay { days: 0, ns: 0 }),
            "yesterday" => return Ok(TimeExpression::OfDay { days: -1, ns: 0 }),
            _ => {}
        }
        let ago = word.strip_suffix("ago").unwrap_or(&word).trim().trim_start_matches('-');
        if let Ok(duration) = parse_duration(ago) {
            return Ok(TimeExpression::Ago(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)));
        }
        if let Some(ns) = time_of_day(&word) {
            return Ok(TimeExpression::OfDay { days: 0, ns });
        }
        dated(text.trim()).ok_or_else(|| BadTimeExpression(text.to_owned()))
    }
}

/// A text that begins with a date: in the zone of the command line, unless it ends with `Z` or an offset.
fn dated(text: &str) -> Option<TimeExpression> {
    if let Some(utc) = text.strip_suffix(['Z', 'z']) {
        return utc.parse().ok().map(TimeExpression::At);
    }
    let date = text.get(..10)?;
    let rest = &text[10..];
    if let Some(at) = rest.rfind(['+', '-']) {
        let offset = parse_offset(&rest[at..])?;
        let time: Time = format!("{date}{}", &rest[..at]).parse().ok()?;
        return Some(TimeExpression::At(Time(time.0.checked_sub(i64::from(offset.seconds()) * 1_000_000_000)?)));
    }
    // Read as UTC first: that parser knows the spellings of the log's formats, including a leap second.
    let as_utc: Time = text.parse().ok()?;
    let civil = Offset::UTC.to_datetime(Timestamp::from_nanosecond(i128::from(as_utc.0)).ok()?);
    Some(TimeExpression::Civil(civil))
}

/// Reads the offset of a zone: `+01:00`, `-0330`, `+1`, `UTC`.
pub fn parse_offset(text: &str) -> Option<Offset> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("z") {
        return Some(Offset::UTC);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| text.parse::<i32>().ok().filter(|_| text.len() <= 2 && text.bytes().all(|c| c.is_ascii_digit()));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 18 && minutes < 60).then(|| Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok())?
}

/// Returns the time of the system's clock.
pub fn now() -> Time {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}

fn time_of_day(text: &str) -> Option<i64> {
    let on_day_zero = (text.contains(':') && !text.contains(['t', '-'])).then(|| format!("1970-01-01T{text}"))?;
    on_day_zero.parse().ok().map(|time: Time| time.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Time {
        let now: Time = "2026-11-21T10:00:00".parse().unwrap();
        text.parse::<TimeExpression>().unwrap().resolve(now)
    }

    #[test]
    fn times_as_people_type_them() {
        for (text, meant) in [
            ("10m", "2026-11-21T09:50:00"),
            ("2h30m", "2026-11-21T07:30:00"),
            ("1d ago", "2026-11-20T10:00:00"),
            ("-90s", "2026-11-21T09:58:30"),
            ("now", "2026-11-21T10:00:00"),
            ("today", "2026-11-21T00:00:00"),
            ("yesterday", "2026-11-20T00:00:00"),
            ("08:15", "2026-11-21T08:15:00"),
            ("08:15:30.25", "2026-11-21T08:15:30.250"),
            ("2005-02-01", "2005-02-01T00:00:00"),
            ("2005-02-01T15:33:09.592Z", "2005-02-01T15:33:09.592"),
            ("2005-02-01T15:33:09.592+01:00", "2005-02-01T14:33:09.592"),
            ("2005-02-01 15:33:09-0330", "2005-02-01T19:03:09"),
        ] {
            assert_eq!(at(text), meant.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_quoted() {
        for text in ["", "soon", "10", "10 parsecs", "25:00", "2005-02-30", "2005-02-01T10:00+99:00"] {
            let problem = text.parse::<TimeExpression>().unwrap_err();
            assert!(problem.to_string().contains(&format!("'{text}'")), "{problem}");
        }
    }

    #[test]
    fn a_time_without_a_zone_is_local() {
        let zone = TimeZone::fixed(Offset::from_seconds(3 * 3600).unwrap());
        let now: Time = "2026-11-21T22:30:00".parse().unwrap();
        for (text, meant) in [
            ("08:15", "2026-11-22T05:15:00"),
            ("today", "2026-11-21T21:00:00"),
            ("yesterday", "2026-11-20T21:00:00"),
            ("2026-01-02T03:04:05.6", "2026-01-02T00:04:05.6"),
            ("2026-01-02", "2026-01-01T21:00:00"),
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05"),
        ] {
            let at = text.parse::<TimeExpression>().unwrap().resolve_in(now, &zone);
            assert_eq!(at, meant.parse().unwrap(), "{text}");
        }
    }
}
