//! ELOG's dates: `Wed, 10 Sep 2008 00:20:50 +0200`, and the older `Thu Nov 08 18:37:57 2001`, which is the server's local time.

use tampu_types::Time;

use crate::pages::clock::Zone;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];

/// Reads a date: the time, and its zone in minutes east of UTC. `local` is the zone of a date without one.
pub fn parse(text: &str, local: &Zone) -> Option<(Time, i16)> {
    // Like ELOG, reads a text of more than 25 characters by columns.
    let (day, month, year, clock, zone) = if has_zone(text) {
        (
            text.get(5..7)?,
            text.get(8..11)?,
            text.get(12..16)?,
            text.get(17..25)?,
            Some(zone(text.get(26..31).unwrap_or_default())),
        )
    } else {
        let (month, day) = (text.get(4..7)?, text.get(8..10)?);
        (day, month, text.get(20..24)?, text.get(11..19)?, None)
    };
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))? + 1;
    let day: u32 = day.trim().parse().ok()?;
    let year: u32 = match year.trim().parse().ok()? {
        year @ 0..=89 => 2000 + year,
        year @ 90..=999 => 1900 + year,
        year => year,
    };
    let at: Time = format!("{year:04}-{month:02}-{day:02}T{clock}").parse().ok()?;
    match zone {
        Some(zone) => Some((Time(at.0.checked_sub(i64::from(zone) * 60_000_000_000)?), zone)),
        None => {
            let [year, month, day, clock @ ..] = Zone::OfEntry.fields(at, 0);
            let at = local.moment([year, month, day], clock)?;
            Some((at, local.minutes(at, 0)))
        }
    }
}

/// Returns true if a date names its zone.
pub fn has_zone(text: &str) -> bool {
    text.len() > 25
}

/// Parses `+0200` to minutes. An invalid offset, or one of more than a day, counts as UTC.
fn zone(text: &str) -> i16 {
    let number: i16 = text.trim().parse().unwrap_or(0);
    if (-2400..=2400).contains(&number) && number % 100 < 60 && number % 100 > -60 { number / 100 * 60 + number % 100 } else { 0 }
}

/// Writes a date as ELOG does.
pub fn write(time: Time, zone: i16) -> String {
    let local = shifted(time, zone);
    let text = local.to_ns_text();
    let weekday = DAYS[local.0.div_euclid(86_400_000_000_000).rem_euclid(7) as usize];
    let month = text.get(5..7).and_then(|month| month.parse::<usize>().ok()).and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    let (year, day, clock) = (&text[..4], &text[8..10], &text[11..19]);
    let sign = if zone < 0 { '-' } else { '+' };
    let zone = zone.unsigned_abs();
    format!("{weekday}, {day} {} {year} {clock} {sign}{:02}{:02}", month.unwrap_or(&"Jan"), zone / 60, zone % 60)
}

fn shifted(time: Time, zone: i16) -> Time {
    Time(time.0.saturating_add(i64::from(zone) * 60_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written() {
        for text in ["Wed, 10 Sep 2008 00:20:50 +0200", "Thu, 01 Jan 1970 00:00:00 +0000", "Sat, 29 Feb 2020 23:59:59 -0330"] {
            let (time, zone) = parse(text, &Zone::OfEntry).unwrap();
            assert_eq!(write(time, zone), text);
        }
        let (time, _) = parse("Wed, 10 Sep 2008 00:20:50 +0200", &Zone::OfEntry).unwrap();
        assert_eq!(time.to_acs(), "2008-09-09T22:20:50.000");
        assert_eq!(
            parse("Thu Nov 08 18:37:57 2001", &Zone::named("+01:00").unwrap()).unwrap().0.to_acs(),
            "2001-11-08T17:37:57.000"
        );
        let zurich = Zone::named("Europe/Zurich").unwrap();
        for (text, minutes) in [("Thu Nov 08 18:37:57 2001", 60), ("Wed Aug 08 18:37:57 2001", 120)] {
            assert_eq!(parse(text, &zurich).unwrap().1, minutes, "{text}");
        }
        for zone in ["+9900", "+2399", "-0160"] {
            assert_eq!(parse(&format!("Wed, 10 Sep 2008 00:20:50 {zone}"), &Zone::OfEntry).unwrap().1, 0, "{zone}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "soon",
            "Wed, 10 Sep 2008",
            "Wed, 32 Sep 2008 00:20:50 +0200",
            "Wed, 10 Xyz 2008 00:20:50 +0200",
            "é".repeat(20).as_str(),
        ] {
            assert_eq!(parse(text, &Zone::OfEntry), None, "{text}");
        }
    }
}
