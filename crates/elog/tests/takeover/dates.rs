//! Dates: shown and asked for in the local time of elogd's computer.

use std::{fs, path::Path};

use tampu_elog::{
    import::{ImportReport, ImportSource, import_elog},
    pages::{Site, SiteConfig},
    site_zone::{SourceZone, stored},
};
use tampu_logbook::store::{Entries, Store, sqlite::SqliteStore};

use crate::{desk::Desk, html::parse};

/// Entries near midnight in Zurich, on the 23rd of January and of July; and an old one without a zone.
const DAY: &str = "$@MID@$: 1\nDate: Tue, 23 Jan 2024 00:30:00 +0100\nSubject: a\nAttachment: \nEncoding: plain\n\
    ========================================\nt\n\
    $@MID@$: 2\nDate: Tue, 23 Jul 2024 23:30:00 +0200\nSubject: b\nAttachment: \nEncoding: plain\n\
    ========================================\nt\n\
    $@MID@$: 3\nDate: Thu Nov 08 23:37:57 2001\nSubject: c\nAttachment: \nEncoding: plain\n\
    ========================================\nt\n";

fn taken_over(dir: &Path, store: &dyn Store, zone: SourceZone) -> ImportReport {
    fs::create_dir_all(dir.join("logbooks/Runs/2024")).unwrap();
    fs::write(dir.join("elogd.cfg"), "[Runs]\nAttributes = Subject\n").unwrap();
    fs::write(dir.join("logbooks/Runs/2024/240123a.log"), DAY).unwrap();
    let source =
        ImportSource { config: Some(dir.join("elogd.cfg")), logbooks: dir.join("logbooks"), zone, ..ImportSource::default() };
    import_elog(store, &source, &mut |_, _| true).unwrap()
}

#[test]
fn an_import_brings_the_zone_of_elogd() {
    let mut desk = Desk::new("");
    let folder = tempfile::tempdir().unwrap();
    let report = taken_over(folder.path(), &*desk.store, SourceZone::chosen("Europe/Zurich").unwrap());
    assert!(report.zone.as_deref().is_some_and(|zone| zone.contains("in the zone Europe/Zurich")), "{report:?}");
    desk.site = Site::new(desk.store.clone(), SiteConfig::default());
    desk.caller = crate::desk::caller("zoe", &crate::desk::ALL, &["Runs"]);
    let ids = |path: &str| -> Vec<String> {
        let page = parse(&desk.get(path).text());
        page.all("table.list tr").iter().filter_map(|row| row.texts("td").first().cloned()).filter(|id| id.len() == 1).collect()
    };
    // The form of Find asks for days of Zurich.
    for (day, expected) in [
        ("ya=2024&ma=1&da=23&yb=2024&mb=1&db=23", vec!["1"]),
        ("ya=2024&ma=1&da=22&yb=2024&mb=1&db=22", vec![]),
        ("ya=2024&ma=7&da=23&yb=2024&mb=7&db=23", vec!["2"]),
        ("ya=2001&ma=11&da=8&yb=2001&mb=11&db=8", vec!["3"]),
    ] {
        assert_eq!(ids(&format!("/Runs/page?{day}")), expected, "{day}");
    }
    let page = desk.get("/Runs/page").text();
    assert!(page.contains("Tue Jan 23 00:30:00 2024") && page.contains("Thu Nov  8 23:37:57 2001"), "{page}");
}

#[test]
fn the_zone_of_this_computer_counts_if_the_dates_agree() {
    for (name, fits) in [("Europe/Zurich", true), ("Asia/Tokyo", false)] {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&dir.path().join("store")).unwrap();
        let report = taken_over(dir.path(), &store, SourceZone::assumed(name).unwrap());
        assert_eq!(stored(&store).unwrap().as_deref(), fits.then_some(name), "{report:?}");
        let line = report.zone.unwrap();
        assert_eq!(line.contains("the dates of 2 of 2 entries are not in this computer's zone Asia/Tokyo"), !fits, "{line}");
        // A zone that somebody chose replaces another one.
        taken_over(dir.path(), &store, SourceZone::chosen("-03:30").unwrap());
        assert_eq!(stored(&store).unwrap().as_deref(), Some("-03:30"));
        taken_over(dir.path(), &store, SourceZone::assumed(name).unwrap());
        assert_eq!(stored(&store).unwrap().as_deref(), Some("-03:30"));
    }
}

#[test]
fn a_preset_text_can_be_a_file_beside_the_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&dir.path().join("store")).unwrap();
    fs::create_dir_all(dir.path().join("logbooks/Runs")).unwrap();
    fs::write(dir.path().join("shift.txt"), "Crew:\r\nBeam:\n").unwrap();
    fs::write(
        dir.path().join("elogd.cfg"),
        "[Runs]\nAttributes = Kind\nOptions Kind = a{1}, b{2}\n{1} Preset Text = shift.txt\n{2} Preset text = missing.txt\n",
    )
    .unwrap();
    let source = ImportSource {
        config: Some(dir.path().join("elogd.cfg")),
        logbooks: dir.path().join("logbooks"),
        ..ImportSource::default()
    };
    import_elog(&store, &source, &mut |_, _| true).unwrap();
    let options = store.book("Runs").unwrap().elog;
    let values: Vec<&str> = options.iter().filter(|(name, _)| name.contains("reset")).map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["Crew:\\nBeam:", "missing.txt"]);
}
