//! Local times: the site's zone, its formats, and times made of the fields of a form.

use jiff::{
    Timestamp, Zoned,
    civil::DateTime,
    fmt::strtime::{BrokenDownTime, Config, PosixCustom},
    tz::{Offset, TimeZone},
};
use tampu_types::Time;

/// ELOG's default format of a date and time: `Wed Sep 10 00:20:50 2008`.
pub const TIME_FORMAT: &str = "%c";
/// ELOG's default format of a day: `09/10/08`.
pub const DATE_FORMAT: &str = "%x";

/// The local time of a site.
#[derive(Debug, Clone, Default)]
pub enum Zone {
    /// Each entry's own zone; UTC for the dates in a request.
    #[default]
    OfEntry,
    /// A named zone, with its summer times.
    Named(TimeZone),
}

/// The error for an unknown zone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown time zone '{0}': use a name of /usr/share/zoneinfo such as Europe/Zurich, an offset such as +01:00, local, or UTC"
)]
pub struct NoZone(pub String);

impl Zone {
    /// The zone of this name, or of an offset such as `+01:00`; `local` is the computer's.
    pub fn named(name: &str) -> Result<Zone, NoZone> {
        if let Some(offset) = offset(name) {
            return Ok(Zone::Named(TimeZone::fixed(offset)));
        }
        let zone = if name == "local" { TimeZone::try_system() } else { TimeZone::get(name) };
        zone.map(Zone::Named).map_err(|_| NoZone(name.to_owned()))
    }

    /// Returns the name of this zone on any computer: for `local` the name of this computer's zone, if that has one.
    pub fn lasting_name(name: &str) -> Result<String, NoZone> {
        match Zone::named(name)? {
            Zone::Named(zone) => Ok(zone.iana_name().unwrap_or(name).to_owned()),
            Zone::OfEntry => Ok(name.to_owned()),
        }
    }

    /// Minutes east of UTC at a moment; `own` is the zone of the entry it belongs to.
    pub fn minutes(&self, at: Time, own: i16) -> i16 {
        match self {
            Zone::OfEntry => own,
            Zone::Named(zone) => (zone.to_offset(stamp(at)).seconds() / 60) as i16,
        }
    }

    /// Writes a time in a format of strftime; an invalid format is written as it is.
    pub fn write(&self, at: Time, own: i16, format: &str) -> String {
        let zone = match self {
            Zone::OfEntry => TimeZone::fixed(Offset::from_seconds(i32::from(own) * 60).unwrap_or(Offset::UTC)),
            Zone::Named(zone) => zone.clone(),
        };
        let config = Config::new().custom(PosixCustom::new()).lenient(true);
        let (local, mut out) = (BrokenDownTime::from(&stamp(at).to_zoned(zone)), String::new());
        match local.format_with_config(&config, format, &mut out) {
            Ok(()) => out,
            Err(_) => at.to_acs(),
        }
    }

    /// Returns the time of a local date and clock. A time that a change of the clock skips is later by that change.
    /// Returns `None` for an invalid day.
    pub fn moment(&self, date: [i64; 3], clock: [i64; 3]) -> Option<Time> {
        let [year, month, day] = date;
        let [hour, minute, second] = clock.map(|part| i8::try_from(part).ok());
        let (year, month, day) = (i16::try_from(year).ok()?, i8::try_from(month).ok()?, i8::try_from(day).ok()?);
        let local = DateTime::new(year, month, day, hour?, minute?, second?, 0).ok()?;
        let zone = match self {
            Zone::OfEntry => TimeZone::UTC,
            Zone::Named(zone) => zone.clone(),
        };
        let at: Zoned = zone.to_ambiguous_zoned(local).compatible().ok()?;
        i64::try_from(at.timestamp().as_nanosecond()).ok().map(Time)
    }

    /// Year, month, day, hour, minute and second of a moment.
    pub fn fields(&self, at: Time, own: i16) -> [i64; 6] {
        let local = Time(at.0.saturating_add(i64::from(self.minutes(at, own)) * 60_000_000_000));
        let text = local.to_ns_text();
        let part = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        [part(0, 4), part(5, 7), part(8, 10), part(11, 13), part(14, 16), part(17, 19)]
    }
}

/// Reads an offset from UTC: `+01:00` or `-0330`.
fn offset(text: &str) -> Option<Offset> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_once(':').or_else(|| digits.split_at_checked(2))?;
    let number = |text: &str| text.parse::<i32>().ok().filter(|_| (1..=2).contains(&text.len()));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 18 && minutes < 60).then(|| Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok())?
}

fn stamp(at: Time) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at.0)).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// The days of a month.
pub fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_know_summer() {
        let zurich = Zone::named("Europe/Zurich").unwrap();
        let (winter, summer) = ([2026, 1, 10], [2026, 7, 10]);
        for (date, hour, expected) in [(winter, 11, "2026-01-10T11:30:05.000"), (summer, 10, "2026-07-10T10:30:05.000")] {
            let at = zurich.moment(date, [12, 30, 5]).unwrap();
            assert_eq!(at.to_acs(), expected);
            assert_eq!(i64::from(zurich.minutes(at, 0)) / 60, 12 - hour);
            assert_eq!(zurich.fields(at, 0), [date[0], date[1], date[2], 12, 30, 5]);
        }
        // The hour that the clock leaves out.
        assert_eq!(zurich.moment([2026, 3, 29], [2, 30, 0]).unwrap().to_acs(), "2026-03-29T01:30:00.000");
        assert_eq!(zurich.moment([2026, 2, 30], [0, 0, 0]), None);
        let india = Zone::named("+05:30").unwrap();
        assert_eq!(india.moment([2026, 1, 1], [5, 30, 0]).unwrap().to_acs(), "2026-01-01T00:00:00.000");
        assert_eq!((india.minutes(Time(0), 0), Zone::named("-0330").unwrap().minutes(Time(0), 0)), (330, -210));
        assert!(["+", "+25:00", "+1:99", "+01:00x", "1"].iter().all(|text| Zone::named(text).is_err()));
        assert!(Zone::named("Europe/Nowhere").is_err() && Zone::named("../../etc/passwd").is_err());
    }

    #[test]
    fn formats_are_those_of_strftime() {
        let at: Time = "2008-09-09T22:20:50".parse().unwrap();
        for (format, expected) in [
            (TIME_FORMAT, "Wed Sep 10 00:20:50 2008"),
            (DATE_FORMAT, "09/10/08"),
            ("%d.%m.%Y %H:%M", "10.09.2008 00:20"),
            ("%A, %B %e, %I %p %z", "Wednesday, September 10, 12 AM +0200"),
            ("100% %", "100% %"),
        ] {
            assert_eq!(Zone::OfEntry.write(at, 120, format), expected, "{format}");
        }
        assert_eq!(Zone::OfEntry.fields(at, 120), [2008, 9, 10, 0, 20, 50]);
        assert_eq!((days_of(2024, 2), days_of(1900, 2), days_of(2026, 11)), (29, 28, 30));
        let _ = Zone::OfEntry.write(Time(i64::MAX), i16::MAX, "%c");
    }
}
