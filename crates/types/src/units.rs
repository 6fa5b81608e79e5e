//! Sizes and durations as text: `64MiB`, `100MB`, `250ms`, `5m`, `1h30m`.
//!
//! One spelling holds for command lines, configuration and output. Units of sizes are read without regard to case. `k`,
//! `m` and `g` alone are powers of 1024, as in well-known tools (`dd`, `truncate`). A duration needs a unit: a bare
//! number is refused, because half of its readers would take it for milliseconds.

use std::{fmt, fmt::Write, time::Duration};

/// A text that is not a size in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a size: write bytes, or a whole number with kB, MB, GB, KiB, MiB or GiB, such as 64MiB")]
pub struct BadSize(pub String);

/// A text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a duration: write numbers with units, such as 250ms, 30s, 10m, 2h30m, 1d or 1w")]
pub struct BadDuration(pub String);

/// Reads a size in bytes, such as `4096`, `100MB`, `64 MiB` or `2g`. Zero and sizes beyond 64 bits are refused.
pub fn parse_size(text: &str) -> Result<u64, BadSize> {
    let bad = || BadSize(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = trimmed[..digits].parse().map_err(|_| bad())?;
    let unit = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        _ => return Err(bad()),
    };
    number.checked_mul(unit).filter(|size| *size > 0).ok_or_else(bad)
}

/// Writes a size so that [`parse_size`] returns the same, in the largest unit that divides it: `64MiB`, `2GiB`, `1000`.
pub fn size_text(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(bits, _)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    unit.map_or_else(|| bytes.to_string(), |(bits, name)| format!("{}{name}", bytes >> bits))
}

/// A size in bytes for people, with at most one decimal: `999 bytes`, `12.3 kB`, `4.0 GB`. Units are powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        let text = match bytes {
            1 => "1 byte".to_owned(),
            0..10_000 => format!("{bytes} bytes"),
            10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
            10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
            _ => format!("{:.1} GB", bytes as f64 / 1e9),
        };
        f.pad(&text)
    }
}

/// Units of durations, the largest first, in nanoseconds. A duration is written with the first seven; weeks are only
/// read.
const UNITS: [(&str, u128); 10] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
    ("w", 604_800_000_000_000),
    ("min", 60_000_000_000),
    ("sec", 1_000_000_000),
];

const WRITTEN: usize = 7;

/// Reads a duration: numbers with units, such as `90s`, `2h30m`, `1.5h` or `250ms`.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = || BadDuration(text.to_owned());
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let after = &rest[digits..];
        let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        let &(_, unit) = UNITS.iter().find(|(name, _)| *name == &after[..letters]).ok_or_else(bad)?;
        total = total.checked_add(part(&rest[..digits], unit).ok_or_else(bad)?).ok_or_else(bad)?;
        rest = after[letters..].trim_start();
    }
    Ok(total)
}

/// Converts a number of units; whole numbers are exact.
fn part(number: &str, unit: u128) -> Option<Duration> {
    let nanoseconds = match number.parse::<u64>() {
        Ok(whole) => u128::from(whole).checked_mul(unit)?,
        Err(_) => {
            let value: f64 = number.parse().ok()?;
            return Duration::try_from_secs_f64(value * unit as f64 / 1e9).ok();
        }
    };
    let seconds = u64::try_from(nanoseconds / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanoseconds % 1_000_000_000) as u32))
}

/// Writes a duration so that [`parse_duration`] returns the same: `1h30m`, `250ms`, `0s`.
pub fn duration_text(duration: Duration) -> String {
    let mut rest = duration.as_nanos();
    let mut text = String::new();
    for (name, unit) in &UNITS[..WRITTEN] {
        if rest >= *unit {
            // Writing to a String does not fail.
            let _ = write!(text, "{}{name}", rest / unit);
            rest %= unit;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sizes_as_people_write_them() {
        for (text, size) in [("1", 1), ("64MiB", 64 << 20), ("100 MB", 100_000_000), ("2g", 2 << 30), ("10MB", 10_000_000)] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "0", "MB", "1.5MB", "3 parsecs", "99999999999999999999", "99999999999GiB"] {
            assert!(parse_size(text).is_err_and(|why| why.to_string().contains(&format!("'{text}'"))), "{text}");
        }
    }

    #[test]
    fn the_text_leads_back_to_the_size() {
        for (size, text) in [(64 << 20, "64MiB"), (2 << 30, "2GiB"), (1000, "1000"), (3 << 9, "1536"), (1536 << 20, "1536MiB")] {
            assert_eq!((size_text(size).as_str(), parse_size(text)), (text, Ok(size)));
        }
    }

    #[test]
    fn sizes_for_people() {
        for (bytes, text) in
            [(0, "0 bytes"), (1, "1 byte"), (9_999, "9999 bytes"), (12_345, "12.3 kB"), (123_456_789, "123.5 MB")]
        {
            assert_eq!(Size(bytes).to_string(), text);
        }
        assert_eq!(format!("{:>9}", Size(12_345)), "  12.3 kB");
    }

    #[test]
    fn durations_as_people_write_them() {
        let seconds = Duration::from_secs;
        for (text, duration, written) in [
            ("5m", seconds(300), "5m"),
            ("1h30m", seconds(5400), "1h30m"),
            ("1.5h", seconds(5400), "1h30m"),
            (" 90s ", seconds(90), "1m30s"),
            ("250ms", Duration::from_millis(250), "250ms"),
            ("1d 2us", Duration::new(86_400, 2000), "1d2us"),
            ("2w", seconds(14 * 86_400), "14d"),
            ("3min 1sec", seconds(181), "3m1s"),
            ("0s", Duration::ZERO, "0s"),
        ] {
            assert_eq!(parse_duration(text), Ok(duration), "{text}");
            assert_eq!(duration_text(duration), written);
        }
        for text in ["", "soon", "10", "10 parsecs", "m", "1..5s", "-3s", "99999999999999999999d"] {
            assert_eq!(parse_duration(text), Err(BadDuration(text.to_owned())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_text_leads_back_to_the_duration(seconds in any::<u64>(), nanoseconds in 0..1_000_000_000_u32) {
            let duration = Duration::new(seconds, nanoseconds);
            prop_assert_eq!(parse_duration(&duration_text(duration)), Ok(duration));
        }
    }
}
