//! The local time of a site, as an import finds it. elogd shows and asks for dates in the local time of its computer.
//!
//! The import stores the name of the zone, and the pages use it unless the hub's configuration names another.

use serde_json::{Value, json};
use tampu_logbook::store::{Records, StoreError};
use tampu_types::Time;

use crate::pages::clock::Zone;

/// The kind and name of the record.
const KIND: &str = "elog";
const NAME: &str = "zone";

/// The zone of an import.
#[derive(Debug, Clone, Default)]
pub struct SourceZone {
    /// Its name for [`Zone::named`]; empty for UTC, which is not stored.
    name: String,
    zone: Zone,
    /// True if a person has named it. Otherwise the dates of the entries must agree with it.
    is_chosen: bool,
}

impl SourceZone {
    /// The zone that a person names.
    pub fn chosen(name: &str) -> Result<SourceZone, crate::pages::clock::NoZone> {
        Ok(SourceZone { name: Zone::lasting_name(name)?, zone: Zone::named(name)?, is_chosen: true })
    }

    /// The zone of this computer, which is elogd's if elogd ran here.
    pub fn of_this_host() -> SourceZone {
        SourceZone::assumed("local").unwrap_or_default()
    }

    /// A zone that counts if the dates of the entries agree.
    pub fn assumed(name: &str) -> Result<SourceZone, crate::pages::clock::NoZone> {
        Ok(SourceZone { is_chosen: false, ..SourceZone::chosen(name)? })
    }

    /// The zone of dates that name none.
    pub fn zone(&self) -> &Zone {
        &self.zone
    }
}

/// The number of dates whose own offset is that of a zone, and of the other ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DatesOfZone {
    same: u64,
    others: u64,
}

impl DatesOfZone {
    /// Counts a date with its own offset, in minutes.
    pub fn count(&mut self, zone: &SourceZone, date: Time, own: i16) {
        match zone.zone.minutes(date, own) == own {
            true => self.same += 1,
            false => self.others += 1,
        }
    }
}

/// Returns the name of the stored zone.
pub fn stored(store: &(impl Records + ?Sized)) -> Result<Option<String>, StoreError> {
    let record = store.record(KIND, NAME)?;
    Ok(record.and_then(|record| record.value["name"].as_str().map(str::to_owned)))
}

/// Returns the local time of a site: the configured one, else the one that an import has stored, else that of each entry.
pub fn of_site(store: &(impl Records + ?Sized), configured: Zone) -> Result<Zone, StoreError> {
    match configured {
        Zone::OfEntry => Ok(stored(store)?.and_then(|name| Zone::named(&name).ok()).unwrap_or_default()),
        configured => Ok(configured),
    }
}

/// Stores the zone of an import, if a person chose it, or if none is stored and most dates agree with it. Returns the line for
/// the report.
pub fn store(store: &(impl Records + ?Sized), zone: &SourceZone, dates: DatesOfZone) -> Result<Option<String>, StoreError> {
    let there = stored(store)?;
    if zone.name.is_empty() || there.as_ref() == Some(&zone.name) {
        return Ok(there.map(|name| said(&name)));
    }
    match there {
        Some(name) if !zone.is_chosen => return Ok(Some(said(&name))),
        None if !zone.is_chosen && dates.others > dates.same => {
            let DatesOfZone { same, others } = dates;
            return Ok(Some(format!(
                "the dates of {others} of {} entries are not in this computer's zone {}: pages show each entry in its own zone; \
                 --zone names that of elogd's computer",
                same + others,
                zone.name
            )));
        }
        _ => {}
    }
    let value: Value = json!({ "name": zone.name });
    let version = store.record(KIND, NAME)?.map_or(0, |record| record.version);
    match store.put_record(KIND, NAME, &value, Some(version)) {
        // Another import stored its zone at this moment.
        Ok(_) | Err(StoreError::RecordChanged { .. }) => Ok(stored(store)?.map(|name| said(&name))),
        Err(error) => Err(error),
    }
}

fn said(name: &str) -> String {
    format!("dates are shown and asked for in the zone {name}, unless [book] zone of the hub names another")
}

#[cfg(test)]
mod tests {
    use tampu_logbook::store::sqlite::SqliteStore;

    use super::*;

    #[test]
    fn the_zone_of_a_site_is_the_configured_one_or_that_of_the_import() {
        let directory = tempfile::tempdir().unwrap();
        let books = SqliteStore::open(directory.path()).unwrap();
        // The offset in August, in minutes; an entry has its own one of 7.
        let offset = |configured: Zone| of_site(&books, configured).unwrap().minutes(Time::from_unix(1_220_000_000, 0), 7);
        assert_eq!(offset(Zone::OfEntry), 7);
        store(&books, &SourceZone::chosen("Europe/Zurich").unwrap(), DatesOfZone::default()).unwrap();
        assert_eq!(offset(Zone::OfEntry), 120);
        assert_eq!(offset(Zone::named("UTC").unwrap()), 0);
    }
}
