//! Times as people type them: `10m` ago, `08:15`, `yesterday`, `2026-11-21T08:15:30.5`.
//!
//! Everything is UTC, as the records are. A bare duration means that long ago, so `--since 10m` reads as it is spoken.

use std::{str::FromStr, time::Duration};

use tampu_types::{Time, time::BadTime};

/// A point in time that may be said relative to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeExpression {
    /// That many ns before now.
    Ago(i64),
    /// That many ns after the midnight that began today, UTC; negative for earlier days.
    FromMidnight(i64),
    /// A date and a time.
    At(Time),
}

/// Why a text is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no time: write 10m, 2h30m, 1d (ago), 08:15 (today, UTC), today, yesterday, now, or 2026-11-21T08:15:30.123 (UTC)"
)]
pub struct BadTimeExpression(pub String);

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no duration: write numbers with units, as 250ms, 30s, 10m, 2h30m, 1d, 1w")]
pub struct BadDuration(pub String);

const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;

impl TimeExpression {
    /// The time meant at this moment.
    pub fn resolve(self, now: Time) -> Time {
        match self {
            TimeExpression::Ago(ns) => Time(now.0.saturating_sub(ns)),
            TimeExpression::FromMidnight(ns) => Time((now.0.div_euclid(DAY) * DAY).saturating_add(ns)),
            TimeExpression::At(time) => time,
        }
    }
}

impl FromStr for TimeExpression {
    type Err = BadTimeExpression;

    fn from_str(text: &str) -> Result<TimeExpression, BadTimeExpression> {
        let word = text.trim().to_ascii_lowercase();
        match word.as_str() {
            "now" => return Ok(TimeExpression::Ago(0)),
            "today" => return Ok(TimeExpression::FromMidnight(0)),
            "yesterday" => return Ok(TimeExpression::FromMidnight(-DAY)),
            _ => {}
        }
        let ago = word.strip_suffix("ago").unwrap_or(&word).trim().trim_start_matches('-');
        if let Ok(duration) = parse_duration(ago) {
            return Ok(TimeExpression::Ago(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)));
        }
        if let Some(ns) = time_of_day(&word) {
            return Ok(TimeExpression::FromMidnight(ns));
        }
        let at: Result<Time, BadTime> = text.parse();
        at.map(TimeExpression::At).map_err(|_| BadTimeExpression(text.to_owned()))
    }
}

/// UTC now.
pub fn now() -> Time {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}

fn time_of_day(text: &str) -> Option<i64> {
    let on_day_zero = (text.contains(':') && !text.contains(['t', '-'])).then(|| format!("1970-01-01T{text}"))?;
    on_day_zero.parse().ok().map(|time: Time| time.0)
}

/// Reads `90s`, `2h30m`, `250ms`; a unit is needed.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = || BadDuration(text.to_owned());
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let number: f64 = rest[..digits].parse().map_err(|_| bad())?;
        let after = &rest[digits..];
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let seconds = match &after[..letters] {
            "ns" => 1e-9,
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            "w" => 604_800.0,
            _ => return Err(bad()),
        };
        total += Duration::try_from_secs_f64(number * seconds).map_err(|_| bad())?;
        rest = after[letters..].trim_start();
    }
    Ok(total)
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
        ] {
            assert_eq!(at(text), meant.parse().unwrap(), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_quoted() {
        for text in ["", "soon", "10", "10 parsecs", "25:00", "2005-02-30"] {
            let problem = text.parse::<TimeExpression>().unwrap_err();
            assert!(problem.to_string().contains(&format!("'{text}'")), "{problem}");
        }
    }
}
