//! Times: nanoseconds of UTC since 1970, and the trust in the clock.
//!
//! One `i64` holds the years 1678 to 2262 and sorts. UTC was chosen over TAI because every log file, every operator and
//! every foreign record uses UTC. A batch's header carries the TAI offset and the clock's state, so TAI can be computed
//! where a leap second matters. During a leap second UTC repeats a second, as POSIX clocks do. Sequence numbers give
//! the order inside a stream, never times.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

pub mod rfc3339;

/// Nanoseconds of UTC since 1970-01-01T00:00:00, leap seconds not counted (POSIX).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

/// Trust in a clock; each batch carries it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum ClockState {
    /// Nothing is known about it.
    #[default]
    Unknown = 0,
    /// The clock follows a reference (NTP, PTP), by the kernel.
    Synchronised = 1,
    /// The clock runs free, by the kernel.
    Free = 2,
    /// The clock was stepped since the last batch.
    Stepped = 3,
}

impl ClockState {
    /// The state of this number; a number from a later release reads as unknown.
    pub const fn from_number(number: u8) -> ClockState {
        match number {
            1 => ClockState::Synchronised,
            2 => ClockState::Free,
            3 => ClockState::Stepped,
            _ => ClockState::Unknown,
        }
    }
}

/// Error of a text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time (write 2026-11-21T08:15:30.123, UTC, with up to nine decimals)")]
pub struct BadTime(pub String);

const NS_PER_SECOND: i64 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

impl Time {
    /// Makes a time of seconds and nanoseconds, as from `clock_gettime`; saturates at the ends of the range.
    pub const fn from_unix(seconds: i64, nanoseconds: u32) -> Time {
        Time(seconds.saturating_mul(NS_PER_SECOND).saturating_add(nanoseconds as i64))
    }

    /// Rounded to the nearest millisecond, half up: the precision of ACS's 23 characters.
    pub const fn rounded_to_ms(self) -> Time {
        let ms = self.0.saturating_add(500_000).div_euclid(1_000_000);
        match ms.checked_mul(1_000_000) {
            Some(ns) => Time(ns),
            // Below the first half millisecond of the range there is no millisecond.
            None => Time((ms + 1) * 1_000_000),
        }
    }

    /// `2026-11-21T08:15:30.123`: ACS's spelling, 23 characters, rounded to the millisecond.
    pub fn to_acs(self) -> String {
        let mut text = String::with_capacity(23);
        self.rounded_to_ms().write_to(&mut text, 3);
        text
    }

    /// `2026-11-21T08:15:30.123456789`: all nine decimals.
    pub fn to_ns_text(self) -> String {
        let mut text = String::with_capacity(29);
        self.write_to(&mut text, 9);
        text
    }

    /// `2026-11-21T08:15:30.123456789Z`: RFC 3339 with all nine decimals, UTC. Nothing is lost, and the text sorts.
    pub fn to_rfc3339(self) -> String {
        let mut text = String::with_capacity(30);
        self.write_to(&mut text, 9);
        text.push('Z');
        text
    }

    /// `2026-11-21T09:15:30.123456789+01:00`: RFC 3339 with all nine decimals, at this offset east of UTC in minutes.
    pub fn to_rfc3339_at(self, offset_minutes: i32) -> String {
        let mut text = String::with_capacity(35);
        Time(self.0.saturating_add(i64::from(offset_minutes) * 60 * NS_PER_SECOND)).write_to(&mut text, 9);
        text.push(if offset_minutes < 0 { '-' } else { '+' });
        let minutes = i64::from(offset_minutes.unsigned_abs());
        push_digits(&mut text, minutes / 60, 2);
        text.push(':');
        push_digits(&mut text, minutes % 60, 2);
        text
    }

    /// Reads RFC 3339: `YYYY-MM-DDThh:mm:ss[.fraction]` with `Z` or an offset, which is needed.
    pub fn from_rfc3339(text: &str) -> Result<Time, BadTime> {
        rfc3339(text).ok_or_else(|| BadTime(text.to_owned()))
    }

    /// Appends the time with this many decimals (cut, not rounded).
    pub fn write_to(self, out: &mut String, decimals: u32) {
        let seconds = self.0.div_euclid(NS_PER_SECOND);
        let fraction = self.0.rem_euclid(NS_PER_SECOND);
        let (year, month, day) = civil_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        push_digits(out, year, 4);
        for (separator, value) in [('-', month), ('-', day), ('T', of_day / 3600), (':', of_day / 60 % 60), (':', of_day % 60)] {
            out.push(separator);
            push_digits(out, value, 2);
        }
        if decimals > 0 {
            out.push('.');
            let shown = fraction / 10_i64.pow(9 - decimals);
            push_digits(out, shown, decimals as usize);
        }
    }
}

fn push_digits(out: &mut String, value: i64, width: usize) {
    let mut buffer = [b'0'; 9];
    let mut rest = value;
    for place in buffer[..width].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    buffer[..width].iter().for_each(|&digit| out.push(digit as char));
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_ns_text())
    }
}

impl FromStr for Time {
    type Err = BadTime;

    /// Reads `YYYY-MM-DDTHH:MM:SS[.fraction][Z]`; a blank may replace the T, and the time of day is optional.
    fn from_str(text: &str) -> Result<Time, BadTime> {
        parse(text).ok_or_else(|| BadTime(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Time> {
    let text = text.trim().strip_suffix('Z').unwrap_or(text.trim());
    let (date, of_day) = match text.split_once(['T', ' ']) {
        Some((date, of_day)) => (date, of_day),
        None => (text, "00:00:00"),
    };
    let mut parts = date.splitn(3, '-');
    let year = number(parts.next()?, 4)?;
    let month = number(parts.next()?, 2)?;
    let day = number(parts.next()?, 2)?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    let (clock, fraction) = of_day.split_once('.').unwrap_or((of_day, ""));
    let mut parts = clock.splitn(3, ':');
    let hour = number(parts.next()?, 2)?;
    let minute = number(parts.next()?, 2)?;
    let second = parts.next().map_or(Some(0), |second| number(second, 2))?;
    // A leap second is written :60 and, as in POSIX, takes the number of the second that follows.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second;
    // Wider than the result: the first second of the range begins before it.
    let ns = i128::from(seconds) * i128::from(NS_PER_SECOND) + i128::from(nanoseconds(fraction)?);
    ns.try_into().ok().map(Time)
}

fn rfc3339(text: &str) -> Option<Time> {
    let (local, offset_minutes) = match text.strip_suffix(['Z', 'z']) {
        Some(local) => (local, 0),
        None => {
            let at = text.len().checked_sub(6).filter(|at| text.is_char_boundary(*at))?;
            let (local, offset) = text.split_at(at);
            let sign = if offset.starts_with('-') { -1 } else { 1 };
            let (hours, minutes) = offset.strip_prefix(['+', '-'])?.split_once(':')?;
            let below = |text: &str, limit: i64| number(text, 2).filter(|number| *number < limit);
            (local, sign * (below(hours, 24)? * 60 + below(minutes, 60)?))
        }
    };
    // `FromStr` accepts more texts than RFC 3339 does.
    let strict = local.len() >= 19 && local.as_bytes()[10].eq_ignore_ascii_case(&b'T') && !local.contains(' ');
    let time: Time = strict.then(|| local.to_ascii_uppercase().parse().ok())??;
    Some(Time(time.0.saturating_sub(offset_minutes * 60 * NS_PER_SECOND)))
}

fn number(text: &str, width: usize) -> Option<i64> {
    (text.len() == width && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

fn nanoseconds(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let kept = &fraction[..fraction.len().min(9)];
    let value: i64 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    Some(value * 10_i64.pow(9 - kept.len() as u32))
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_instants() {
        assert_eq!("1970-01-01T00:00:00".parse(), Ok(Time(0)));
        assert_eq!("2005-02-01T15:33:09.592".parse(), Ok(Time(1_107_271_989_592_000_000)));
        assert_eq!(Time(1_107_271_989_592_000_000).to_acs(), "2005-02-01T15:33:09.592");
        assert_eq!("2016-12-31T23:59:60".parse::<Time>(), "2017-01-01T00:00:00".parse());
        for end in [Time(i64::MIN), Time(i64::MAX)] {
            assert_eq!(end.to_ns_text().parse(), Ok(end));
            assert_eq!(end.to_acs().parse(), Ok(end.rounded_to_ms()));
        }
        assert_eq!(Time(1_499_999).to_acs(), "1970-01-01T00:00:00.001");
        assert_eq!(Time(1_500_000).to_acs(), "1970-01-01T00:00:00.002");
    }

    #[test]
    fn offsets_from_utc() {
        let time: Time = "2026-11-21T08:15:30.5".parse().unwrap();
        assert_eq!(time.to_rfc3339(), "2026-11-21T08:15:30.500000000Z");
        assert_eq!(time.to_rfc3339_at(90), "2026-11-21T09:45:30.500000000+01:30");
        assert_eq!(time.to_rfc3339_at(-300), "2026-11-21T03:15:30.500000000-05:00");
        for text in ["2026-11-21T08:15:30.5Z", "2026-11-21T09:45:30.5+01:30", "2026-11-21t03:15:30.5-05:00"] {
            assert_eq!(Time::from_rfc3339(text), Ok(time), "{text}");
        }
        for text in ["2026-11-21T08:15:30.5", "2026-11-21 08:15:30Z", "2026-11-21Z", "2026-11-21T08:15:30+25:00"] {
            assert_eq!(Time::from_rfc3339(text), Err(BadTime(text.to_owned())));
        }
    }

    #[test]
    fn what_is_no_time_is_named() {
        for text in ["", "now", "2005-02-30T00:00:00", "2005-13-01", "2005-02-01T25:00:00", "2005-02-01T1:00:00", "9999-01-01"] {
            assert_eq!(text.parse::<Time>(), Err(BadTime(text.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn text_leads_back_to_the_time(ns in any::<i64>()) {
            prop_assert_eq!(Time(ns).to_ns_text().parse(), Ok(Time(ns)));
        }
    }
}
