//! The archive of events: what every release wrote is read, and what is read is what was written.

use std::{fs, path::Path};

use tampu_archive::{
    Stop,
    upkeep::{Done, Upkeep},
};

#[path = "support/kept.rs"]
mod kept;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn archives_of_every_release_are_read() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/event-archive");
    let mut versions = 0;
    for version in fs::read_dir(testdata).unwrap().map(|entry| entry.unwrap().path()) {
        let dir = tempfile::tempdir().unwrap();
        copy(&version, dir.path());
        let archive = kept::open(dir.path());
        let expected: Vec<String> =
            fs::read_to_string(version.join("events.jsonl")).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(kept::lines(&archive), expected, "{}", version.display());
        assert!(archive.health().faults.is_empty(), "{:?}", archive.health());
        match archive.upkeep(&Upkeep::Check, &Stop::default(), &|_| true).unwrap() {
            Done::Check(checked) => assert!(checked.complete && checked.faults.is_empty(), "{checked:?}"),
            other => panic!("{other:?}"),
        }
        versions += 1;
    }
    assert!(versions > 0);
}

#[test]
fn events_come_once_and_are_the_same_in_parquet() {
    let dir = tempfile::tempdir().unwrap();
    let archive = kept::open(dir.path());
    assert_eq!(kept::add(&archive, &kept::events(1)), 12);
    assert_eq!(kept::add(&archive, &kept::events(7)), 6, "half of them are there");
    let before = kept::lines(&archive);
    archive.upkeep(&Upkeep::Compact, &Stop::default(), &|_| true).unwrap();
    assert_eq!(archive.health().in_files, 18);
    assert_eq!(kept::lines(&archive), before);
    assert_eq!(kept::add(&archive, &kept::events(1)), 0);
}
