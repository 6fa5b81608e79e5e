//! Dates as other logbooks write them.

use tampu_types::Time;

/// Reads a date: RFC 3339, also with a blank for the `T`, without a zone (UTC), or with `+0200`. Returns it with its
/// zone in minutes east of UTC.
pub fn parse(text: &str) -> Option<(Time, i16)> {
    let text = text.trim();
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.trim_start_matches(['T', ' ']);
    if rest.is_empty() {
        return Some((date.parse().ok()?, 0));
    }
    let at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(at);
    let minutes = match zone {
        "" | "Z" | "z" => 0,
        zone => {
            let digits: String = zone[1..].chars().filter(char::is_ascii_digit).collect();
            if !zone[1..].chars().all(|c| c.is_ascii_digit() || c == ':') || !matches!(digits.len(), 2 | 4) {
                return None;
            }
            let hours: i16 = digits[..2].parse().ok()?;
            let minutes: i16 = if digits.len() == 4 { digits[2..].parse().ok()? } else { 0 };
            let east = hours * 60 + minutes;
            if zone.starts_with('-') { -east } else { east }
        }
    };
    let local: Time = format!("{date}T{}", clock.trim()).parse().ok()?;
    let utc = local.0.checked_sub(i64::from(minutes) * 60_000_000_000)?;
    crate::entry::check_zone(minutes).ok()?;
    Some((Time(utc), minutes))
}

/// Returns a moment given in milliseconds since 1970.
pub fn of_milliseconds(milliseconds: i64) -> Option<(Time, i16)> {
    milliseconds.checked_mul(1_000_000).map(|ns| (Time(ns), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_other_programs_are_read() {
        let at = |text: &str| parse(text).map(|(time, zone)| (time.to_acs(), zone));
        for (text, utc, zone) in [
            ("2026-01-19T14:26:13.865Z", "2026-01-19T14:26:13.865", 0),
            ("2023-09-28T03:45:03+02:00", "2023-09-28T01:45:03.000", 120),
            ("2022-05-30T12:25:36+0200", "2022-05-30T10:25:36.000", 120),
            ("2022-05-29 16:17:38", "2022-05-29T16:17:38.000", 0),
            ("2024-12-04T12:17:43.310832", "2024-12-04T12:17:43.311", 0),
            ("2024-12-04T12:17:43-03:30", "2024-12-04T15:47:43.000", -210),
            ("2024-12-04", "2024-12-04T00:00:00.000", 0),
        ] {
            assert_eq!(at(text), Some((utc.to_owned(), zone)), "{text}");
        }
        for text in [
            "",
            "soon",
            "2024-13-01",
            "2024-12-04T25:00:00Z",
            "2024-12-04T12:00:00+9x:00",
            "2024-12-04T12:00:00+99:00",
            "äääääääää",
        ] {
            assert_eq!(at(text), None, "{text}");
        }
    }
}
