//! Guesses the year and the zone of a time that lacks them, as in RFC 3164 and EPICS.
//!
//! The year is the one that brings the time closest to its receipt. The zone is UTC if that lies within five minutes of
//! the receipt. Otherwise it is the whole half hour from -12:00 to +14:00 that brings it there. If none does, the
//! message was delayed or its clock is wrong, and UTC is assumed. The record describes the guess
//! ([`Guess::description`]).

use crate::time::Time;

/// Largest distance in ns of a time from its receipt at which a zone is accepted.
const NEAR: i64 = 5 * MINUTE;
const MINUTE: i64 = 60 * 1_000_000_000;

/// A time, with the guessed year and zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guess {
    /// Time converted to UTC.
    pub time: Time,
    /// The year, as written there.
    pub year: i64,
    /// Minutes its zone is ahead of UTC.
    pub zone: i64,
}

impl Guess {
    /// `year 2026, zone +01:00`.
    pub fn description(&self) -> String {
        let (sign, minutes) = if self.zone < 0 { ('-', -self.zone) } else { ('+', self.zone) };
        format!("year {}, zone {sign}{:02}:{:02}", self.year, minutes / 60, minutes % 60)
    }
}

/// The time `Oct 11 22:14:15[.fraction]`, of this year if it is known; `None` where that is not a time.
pub fn time(year: Option<i64>, month: &str, day: &str, clock: &str, received: Time) -> Option<Guess> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    let day: u8 = (day.len() <= 2 && day.bytes().all(|byte| byte.is_ascii_digit())).then(|| day.parse().ok())??;
    if clock.len() < 8 || !clock.bytes().all(|byte| byte.is_ascii_digit() || byte == b':' || byte == b'.') {
        return None;
    }
    let in_year = |year: i64| -> Option<(i64, Time)> {
        let text = format!("{year:04}-{month:02}-{day:02}T{clock}");
        text.parse().ok().map(|time| (year, time))
    };
    let (year, local) = match year {
        Some(year) => in_year(year)?,
        None => {
            let now: i64 = received.to_acs().get(..4)?.parse().ok()?;
            let candidates = [now, now - 1, now + 1].into_iter().filter_map(in_year);
            candidates.min_by_key(|(_, time)| time.0.abs_diff(received.0))?
        }
    };
    let zones = std::iter::once(0).chain((-24..=28).map(|half_hours| half_hours * 30));
    let at = |zone: i64| Time(local.0.saturating_sub(zone * MINUTE));
    let zone = zones.into_iter().find(|zone| at(*zone).0.abs_diff(received.0) <= NEAR as u64).unwrap_or(0);
    Some(Guess { time: at(zone), year, zone })
}
