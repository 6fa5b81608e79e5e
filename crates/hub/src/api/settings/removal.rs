//! The data that a change of the retention would remove at once.

use std::time::Duration;

use tampu_archive::{
    Retention,
    upkeep::{Done, Limits, Upkeep},
};
use tampu_bus::{Participant, service::CallError};
use tampu_types::units::Size;

use crate::{http::problem::RemovedData, plural::counted};

/// Time limit for the answer of an archive.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the archives of the hub. Returns `None` if the archive of logs does not answer.
pub(super) fn of(participant: &Participant, retention: &Retention) -> Option<Vec<RemovedData>> {
    let asked = Upkeep::Removal(Limits::from(retention));
    let logs = told("log records", tampu_log::collector::ask::upkeep(participant, &asked, PATIENCE, &mut |_| true))?;
    let mut all = vec![logs];
    // A hub without a history of events, or without transfers, has nothing of them to remove.
    all.extend(told("events", tampu_event::history::ask::upkeep(participant, &asked, PATIENCE, &mut |_| true)));
    all.extend(told("bulk transfers", tampu_bulk::asking::upkeep(participant, &asked, PATIENCE, &mut |_| true)));
    Some(all)
}

fn told(what: &'static str, answer: Result<Done, CallError>) -> Option<RemovedData> {
    let Ok(Done::Removal(removal)) = answer else { return None };
    let is_any = removal.records > 0;
    Some(RemovedData {
        what,
        records: removal.records,
        files: removal.files,
        bytes: removal.bytes,
        earliest: is_any.then(|| removal.earliest.to_rfc3339()),
        latest: is_any.then(|| removal.latest.to_rfc3339()),
    })
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
