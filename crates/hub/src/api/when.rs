//! Times in requests.

use std::{str::FromStr, time::Duration};

use tampu_types::{Time, units::parse_duration};

use super::call::Call;
use crate::http::{problem::Problem, route::Parameter};

pub(super) const SINCE: Parameter =
    ("since", "string", "from this time on: RFC 3339 with an offset, ns since 1970, a duration ago (10m), or now");
pub(super) const UNTIL: Parameter = ("until", "string", "before this time, written as 'since'");

/// A time of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// An instant in time.
    At(Time),
    /// A duration before the present.
    Ago(Duration),
}

/// Error of a text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a time; write 2026-11-21T08:15:30Z or another offset, ns since 1970, 10m (ago), or now")]
pub(super) struct BadWhen;

impl FromStr for When {
    type Err = BadWhen;

    fn from_str(text: &str) -> Result<When, BadWhen> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("now") {
            return Ok(When::Ago(Duration::ZERO));
        }
        if let Ok(ns) = text.parse() {
            return Ok(When::At(Time(ns)));
        }
        parse_duration(text).map(When::Ago).or_else(|_| Time::from_rfc3339(text).map(When::At)).map_err(|_| BadWhen)
    }
}

impl When {
    /// Returns the instant, seen from `now`.
    pub(super) fn resolve(self, now: Time) -> Time {
        match self {
            When::At(time) => time,
            When::Ago(duration) => Time(now.0.saturating_sub(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))),
        }
    }
}

impl Call<'_> {
    /// Returns the time of a parameter, as meant now.
    pub(super) fn time(&self, name: &str, now: Time) -> Result<Option<Time>, Problem> {
        Ok(self.parsed::<When>(name)?.map(|when| when.resolve(now)))
    }

    /// Returns the range of [`SINCE`] and [`UNTIL`].
    pub(super) fn range(&self) -> Result<(Option<Time>, Option<Time>), Problem> {
        let now = crate::clock::now();
        match (self.time("since", now)?, self.time("until", now)?) {
            (Some(since), Some(until)) if since >= until => {
                Err(Problem::bad("query until", "the end is not after the beginning: nothing can lie between them"))
            }
            range => Ok(range),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_durations_are_read() {
        let now: Time = "2026-11-21T10:00:00".parse().unwrap();
        for (text, meant) in [
            ("now", "2026-11-21T10:00:00"),
            ("10m", "2026-11-21T09:50:00"),
            ("2005-02-01T15:33:09.123456789Z", "2005-02-01T15:33:09.123456789"),
            ("2005-02-01T15:33:09+01:00", "2005-02-01T14:33:09"),
            ("1000000001", "1970-01-01T00:00:01.000000001"),
        ] {
            assert_eq!(text.parse::<When>().unwrap().resolve(now), meant.parse().unwrap(), "{text}");
        }
        for text in ["", "soon", "2005-02-01T15:33:09", "10 parsecs"] {
            assert_eq!(text.parse::<When>(), Err(BadWhen), "{text}");
        }
    }
}
