//! The data that a change of the retention would remove at once.

use tampu_archive::{Removal, Retention};
use tampu_types::units::Size;

use crate::{
    api::bus_place::OnBus,
    http::problem::RemovedData,
    plural::counted,
    removal::{HubRemoval, ask},
};

/// Asks the archives of this hub. Returns `None` if they do not answer.
pub(super) fn of(bus: &OnBus, retention: &Retention) -> Option<Vec<RemovedData>> {
    let HubRemoval { logs, events, transfers } = ask(&bus.participant, &bus.hub, retention).ok()?;
    // A hub without a history of events, or without transfers, has nothing of them to remove.
    let all = [("log records", Some(logs)), ("events", events), ("bulk transfers", transfers)];
    Some(all.into_iter().filter_map(|(what, removal)| Some(told(what, removal?))).collect())
}

fn told(what: &'static str, removal: Removal) -> RemovedData {
    let is_any = removal.records > 0;
    RemovedData {
        what,
        records: removal.records,
        files: removal.files,
        bytes: removal.bytes,
        earliest: is_any.then(|| removal.earliest.to_rfc3339()),
        latest: is_any.then(|| removal.latest.to_rfc3339()),
    }
}

/// Says it in words.
pub(super) fn words(removes: &[RemovedData]) -> String {
    let any: Vec<String> = removes.iter().filter(|data| data.records > 0).map(sentence).collect();
    match any.as_slice() {
        [] => "at this moment nothing is beyond the new limits".to_owned(),
        any => format!("at this moment: {}", any.join("; ")),
    }
}

fn sentence(data: &RemovedData) -> String {
    let day = |time: &Option<String>| time.as_deref().and_then(|time| time.get(..10)).unwrap_or_default().to_owned();
    let RemovedData { what, records, files, bytes, earliest, latest } = data;
    let span = format!("{} to {}", day(earliest), day(latest));
    format!("{records} {what} of {span}, in {} of {}", counted(*files, "file"), Size(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_name_what_goes() {
        let none = RemovedData { what: "events", records: 0, files: 0, bytes: 0, earliest: None, latest: None };
        assert_eq!(words(std::slice::from_ref(&none)), "at this moment nothing is beyond the new limits");
        let time = |text: &str| Some(format!("{text}T01:02:03.000000000Z"));
        let (earliest, latest) = (time("2026-01-02"), time("2026-02-03"));
        let logs = RemovedData { what: "log records", records: 1200, files: 2, bytes: 31_000_000, earliest, latest };
        assert_eq!(words(&[logs, none]), "at this moment: 1200 log records of 2026-01-02 to 2026-02-03, in 2 files of 31.0 MB");
    }
}
