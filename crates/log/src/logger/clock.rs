//! The time of a record.

use std::time::{SystemTime, UNIX_EPOCH};

use tampu_types::Time;

/// Returns the present time, UTC.
pub(crate) fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}
