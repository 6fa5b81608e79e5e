//! The visits of users: a visit ends after [`BREAK`] without a page, and the next one begins with the next page.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tampu_types::Time;

/// The kind of the store's records, which are named by the login.
pub const KIND: &str = "visit";
/// The time without a page after which a visit has ended.
pub const BREAK: Duration = Duration::from_secs(3600);
/// The time in which a further page is not written down.
pub const NOTED: Duration = Duration::from_secs(60);

/// The last pages of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// The time of the last page, to the minute.
    #[serde(with = "tampu_types::time::rfc3339::stored")]
    pub last: Time,
    /// The time of the last page of the visit before.
    #[serde(default, with = "tampu_types::time::rfc3339::stored_option")]
    pub before: Option<Time>,
}

impl Visit {
    /// Returns true if a time is at least this much after the last page.
    pub fn is_past(&self, time: Duration, now: Time) -> bool {
        now.0.saturating_sub(self.last.0) >= i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
    }

    /// Returns the visit with a page at this time.
    pub fn with_page(self, now: Time) -> Visit {
        let before = if self.is_past(BREAK, now) { Some(self.last) } else { self.before };
        Visit { last: now, before }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_ends_after_a_break() {
        let at = |minutes: i64| Time::from_unix(minutes * 60, 0);
        let first = Visit { last: at(0), before: None };
        let same = first.with_page(at(30)).with_page(at(89));
        assert_eq!(same, Visit { last: at(89), before: None });
        let next = same.with_page(at(149));
        assert_eq!(next, Visit { last: at(149), before: Some(at(89)) });
        assert_eq!(next.with_page(at(150)).before, Some(at(89)));
    }
}
