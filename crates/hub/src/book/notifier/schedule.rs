//! The time of a mail: at once, with a digest, after quiet hours.

use tampu_elog::pages::Zone;
use tampu_logbook::notify::{Digest, NotifySettings, QuietHours};
use tampu_types::Time;

/// The minute of the day of daily mails without quiet hours.
const MORNING: i64 = 7 * 60;
const SECOND: i64 = 1_000_000_000;

/// Returns the local time of a user.
pub fn zone(settings: &NotifySettings, site: &Zone) -> Zone {
    let own = settings.quiet.as_ref().filter(|quiet| !quiet.zone.is_empty());
    own.and_then(|quiet| Zone::named(&quiet.zone).ok()).unwrap_or_else(|| site.clone())
}

/// Returns the time of the mail about an entry of this moment.
pub fn due(digest: Digest, quiet: Option<&QuietHours>, zone: &Zone, now: Time) -> Time {
    let end_of_quiet = quiet.and_then(QuietHours::minutes).map(|(_, to)| to);
    let at = match digest {
        Digest::Off => now,
        Digest::Hourly => {
            let [.., minute, second] = zone.fields(now, 0);
            Time(now.0.saturating_add((3600 - minute * 60 - second) * SECOND))
        }
        Digest::Daily => next(zone, now, end_of_quiet.unwrap_or(MORNING)),
    };
    let [_, _, _, hour, minute, _] = zone.fields(at, 0);
    match (quiet, end_of_quiet) {
        (Some(quiet), Some(end)) if quiet.contains(hour * 60 + minute) => next(zone, at, end),
        _ => at,
    }
}

/// Returns the first moment after another at which a local clock shows a minute of the day.
fn next(zone: &Zone, after: Time, minute: i64) -> Time {
    let clock = [minute / 60, minute % 60, 0];
    let on_day = |days: i64| {
        let [year, month, day, ..] = zone.fields(Time(after.0.saturating_add(days * 86_400 * SECOND)), 0);
        zone.moment([year, month, day], clock).filter(|at| at.0 > after.0)
    };
    on_day(0).or_else(|| on_day(1)).unwrap_or(Time(after.0.saturating_add(86_400 * SECOND)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_and_quiet_hours_delay_a_mail() {
        let zone = Zone::named("Europe/Zurich").unwrap();
        let quiet = QuietHours { from: "22:00".to_owned(), to: "06:30".to_owned(), zone: String::new() };
        let at = |text: &str| text.parse::<Time>().unwrap();
        // 10:20, 23:20, 05:59 and 21:30 in Zurich, one hour east of UTC.
        for (now, digest, has_quiet, expected) in [
            ("2026-11-24T09:20:05Z", Digest::Off, true, "2026-11-24T09:20:05Z"),
            ("2026-11-24T22:20:00Z", Digest::Off, true, "2026-11-25T05:30:00Z"),
            ("2026-11-24T04:59:00Z", Digest::Off, true, "2026-11-24T05:30:00Z"),
            ("2026-11-24T22:20:00Z", Digest::Off, false, "2026-11-24T22:20:00Z"),
            ("2026-11-24T09:20:05Z", Digest::Hourly, true, "2026-11-24T10:00:00Z"),
            ("2026-11-24T20:30:00Z", Digest::Hourly, true, "2026-11-25T05:30:00Z"),
            ("2026-11-24T09:20:05Z", Digest::Daily, true, "2026-11-25T05:30:00Z"),
            ("2026-11-24T09:20:05Z", Digest::Daily, false, "2026-11-25T06:00:00Z"),
            ("2026-11-24T05:00:00Z", Digest::Daily, false, "2026-11-24T06:00:00Z"),
        ] {
            let due = due(digest, has_quiet.then_some(&quiet), &zone, at(now));
            assert_eq!(due, at(expected), "{now} {digest:?} {has_quiet}");
        }
    }
}
