//! The lengths and sizes of measurements, as options.

use tampu_types::units::{parse_duration, parse_size};

/// The longest measurement, s: sums of times need no check for overflows.
const LONGEST: f64 = 1e7;

/// Reads a duration as seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let seconds = parse_duration(text).map_err(|error| error.to_string())?.as_secs_f64();
    if seconds > 0.0 && seconds <= LONGEST { Ok(seconds) } else { Err(format!("'{text}' is not above 0 and up to {LONGEST} s")) }
}

/// Reads a size that fits into memory.
pub fn bytes(text: &str) -> Result<usize, String> {
    parse_size(text)
        .map_err(|error| error.to_string())
        .and_then(|size| usize::try_from(size).map_err(|_| format!("'{text}' is too large")))
}
