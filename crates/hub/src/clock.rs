//! The system time of this computer.

use std::time::{SystemTime, UNIX_EPOCH};

use tampu_types::Time;

/// Returns the time of this computer's clock.
pub fn now() -> Time {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix(since_1970.as_secs() as i64, since_1970.subsec_nanos())
}
