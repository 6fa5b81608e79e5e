//! The observatory's shift log: a logbook with the entries of a night, created if missing.

use tampu_logbook::{
    book::{AttributeDef, AttributeKind, Book, EntryAttribute},
    entry::{Content, EntryRef, NewEntry},
    store::{Entries, Result, StoreError},
};
use tampu_types::Time;

/// The logbook's name.
pub const NAME: &str = "Shift log";

/// Minutes before now, author, type, system, subject, text, link, and the earlier entry that it answers.
type Line = (i64, &'static str, &'static str, &'static str, &'static str, &'static str, &'static str, Option<usize>);

const NIGHT: [Line; 7] = [
    (
        310,
        "Zoe",
        "Routine",
        "Weather",
        "Night begins",
        "Clear sky, wind 4 m/s from the north-west. **All antennas** in service but `DV03`.",
        "",
        None,
    ),
    (
        290,
        "Zoe",
        "Problem",
        "Antennas",
        "DV03: drive cabinet does not answer",
        "The drive of `CONTROL/DV03` does not answer since sunset.\n\n1. Power is there.\n2. The *bus coupler* blinks red.",
        "",
        None,
    ),
    (
        255,
        "Max",
        "Problem Fixed",
        "Antennas",
        "DV03: coupler replaced",
        "The coupler was replaced with the spare of store 2; pointing is as it was.",
        "",
        Some(1),
    ),
    (
        180,
        "Max",
        "Routine",
        "Correlator",
        "Calibration",
        "Bandpass and phase calibrators observed.\n\n| source | flux, Jy |\n|-|-|\n| 3C 273 | 9.8 |\n| 3C 279 | 12.1 |",
        "run:80123",
        None,
    ),
    (
        95,
        "Max",
        "Problem",
        "Correlator",
        "Dumps late",
        "Two dumps came 0.4 s late; see the log of the correlator at that time.",
        "run:80124",
        None,
    ),
    (80, "Zoe", "Information", "Correlator", "Not seen again", "Not seen in the next 40 dumps. Left as it is.", "", Some(4)),
    (
        20,
        "Zoe",
        "Routine",
        "Weather",
        "Wind rises",
        "Wind 11 m/s, gusts of 16 m/s. Stow at 18 m/s.",
        "event:obs/weather/1/wind",
        None,
    ),
];

/// Makes the logbook with its entries, if it is not there. Where it is.
pub fn begin(store: &dyn Entries, now: Time) -> Result<()> {
    match store.book(NAME) {
        Err(StoreError::NoBook(_)) => {}
        found => return found.map(drop),
    }
    let attributes = vec![
        AttributeDef { required: true, ..AttributeDef::new("Author", AttributeKind::Text) },
        AttributeDef::with_options("Type", AttributeKind::Options, &["Routine", "Problem", "Problem Fixed", "Information"]),
        AttributeDef::with_options("System", AttributeKind::Options, &["Antennas", "Correlator", "Weather"]),
        AttributeDef::new("Subject", AttributeKind::Text),
    ];
    let comment = "Entries of the simulated observatory's operators".to_owned();
    store.put_book(&Book { comment, ..Book::new(NAME, attributes) })?;
    let mut posted: Vec<EntryRef> = Vec::new();
    for (minutes, author, kind, system, subject, text, link, answers) in NIGHT {
        let said = [("Author", author), ("Type", kind), ("System", system), ("Subject", subject)];
        let content = Content {
            attributes: said.map(|(name, value)| EntryAttribute::new(name, value)).to_vec(),
            text: text.to_owned(),
            links: link.parse().into_iter().collect(),
            ..Content::default()
        };
        let parent = answers.and_then(|at| posted.get(at)).map(|at: &EntryRef| at.id);
        let date = Some(Time(now.0 - minutes * 60 * 1_000_000_000));
        let new = NewEntry { book: NAME.to_owned(), parent, content, date, zone: 0 };
        posted.push(store.post(new, vec![], &author.to_lowercase())?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tampu_logbook::store::{pages::thread_entries, sqlite::SqliteStore};

    use super::*;

    #[test]
    fn the_night_is_written_down_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        let now = crate::time_expression::now();
        begin(&store, now).unwrap();
        begin(&store, now).unwrap();
        assert_eq!(store.books().unwrap()[0].entries, NIGHT.len() as u64);
        assert_eq!(thread_entries(&store, &EntryRef::new(NAME, 2), false).count(), 2);
    }
}
