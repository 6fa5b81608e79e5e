//! Damaged, foreign and rewritten files of an archive.

use std::{fs, path::Path};

use tampu_archive::{Archive, Grouping, Stop, query::Query};
use tampu_types::Level;

mod support;
use support::*;

fn change(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x40;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damage_in_a_parquet_file_is_named_and_the_rest_is_served() {
    let dir = support::dir();
    let damaged = in_parquet(dir.path()).pop().unwrap();
    // The damage is in the first page of the times, so no row of that group can be put in order.
    change(&damaged, 60);
    let archive = open(dir.path());
    let found = all(&archive);
    assert_eq!(found.len(), 1000);
    assert!(found.iter().all(|record| record.id.unwrap().incarnation == life(1)));
    let faults = archive.health().faults;
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].file == damaged && faults[0].what.contains("damaged"), "{faults:?}");
    let counts =
        archive.count(&Query::default(), &Grouping { every_s: Some(60), ..Grouping::default() }, &Stop::default()).unwrap();
    assert_eq!((counts.total, counts.complete), (1000, false));
    let checked = check(&archive);
    assert!(checked.faults.iter().any(|fault| fault.file == damaged && fault.what.contains("checksum")), "{checked:?}");
}

#[test]
fn a_parquet_file_that_cannot_be_read_is_set_aside() {
    let dir = support::dir();
    let damaged = in_parquet(dir.path()).pop().unwrap();
    let length = fs::metadata(&damaged).unwrap().len() as usize;
    // The file's last bytes name its format.
    change(&damaged, length - 1);
    let archive = eager_at(dir.path());
    assert_eq!(all(&archive).len(), 1000);
    let begun = std::time::Instant::now();
    while !files(dir.path(), "parquet").iter().any(|file| file.starts_with(dir.path().join("set-aside"))) {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
    drop(archive);
    assert!(!damaged.exists());
    let archive = open(dir.path());
    assert_eq!(all(&archive).len(), 1000);
    let faults = archive.health().faults;
    assert!(faults.len() == 1 && faults[0].what.contains("set aside earlier"), "{faults:?}");
    // Its ids are still known: acknowledged records are not stored again.
    assert_eq!(append(&archive, life(2), 1, 0, &[record(life(2), 0, 5)]).unwrap().duplicates, 1);
}

#[test]
fn of_a_damaged_segment_what_is_good_goes_to_parquet_and_it_is_set_aside() {
    let dir = support::dir();
    let archive = open(dir.path());
    for packet in 0..3 {
        send(&archive, packet..packet + 1);
        flush(&archive);
    }
    drop(archive);
    let segment = files(dir.path(), "wal").remove(0);
    let bytes = fs::read(&segment).unwrap();
    let second = bytes.windows(4).enumerate().filter(|(_, four)| four == b"TPFR").nth(1).unwrap().0;
    change(&segment, second + 200);
    let archive = eager_at(dir.path());
    compact(&archive);
    let expected: Vec<u64> = (0..10).chain(20..30).collect();
    assert_eq!(numbers(&archive), expected);
    let aside = dir.path().join("set-aside").join(segment.file_name().unwrap());
    assert!(aside.exists() && !segment.exists());
    let faults = archive.health().faults;
    assert!(faults.len() == 1 && faults[0].file == aside && faults[0].what.contains("checksum"), "{faults:?}");
    assert_eq!((archive.health().records, archive.health().in_files), (20, 20));
}

#[test]
fn without_its_manifest_or_ids_an_archive_finds_its_records_again() {
    for damage in ["manifest torn", "manifest damaged", "manifest gone", "ids damaged", "ids gone"] {
        let dir = support::dir();
        in_parquet(dir.path());
        let manifest = dir.path().join("manifest.jsonl");
        match damage {
            "manifest torn" => {
                let mut bytes = fs::read(&manifest).unwrap();
                bytes.extend_from_slice(b"0badc0de {\"number\": 77");
                fs::write(&manifest, bytes).unwrap();
            }
            "manifest damaged" => {
                let second = fs::read(&manifest).unwrap().iter().position(|&byte| byte == b'\n').unwrap() + 20;
                change(&manifest, second);
            }
            "manifest gone" => fs::remove_file(&manifest).unwrap(),
            "ids damaged" => change(&files(dir.path(), "ids")[0], 40),
            _ => fs::remove_file(&files(dir.path(), "ids")[0]).unwrap(),
        }
        for look in 0..2 {
            let archive = open(dir.path());
            let health = archive.health();
            assert_eq!((all(&archive).len(), health.records), (2000, 2000), "{damage} {look}: {health:?}");
            let told = health.faults.len();
            assert_eq!(
                told,
                usize::from(look == 0 && damage != "manifest torn" && damage != "manifest gone"),
                "{damage} {look}: {health:?}"
            );
            for (life, number) in [(life(1), 5), (life(2), 999)] {
                let again = append(&archive, life, 9, look, &[record(life, 0, number)]).unwrap();
                assert_eq!(again.duplicates, 1, "{damage} {look}");
            }
            assert_eq!(check(&archive).faults, [], "{damage} {look}");
        }
    }
}

/// Files rewritten by pyarrow and DuckDB with their defaults are `testdata/log-archive/v1-*`, read by the test of earlier releases.
#[test]
fn a_file_that_cannot_be_understood_is_named_with_its_column() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    for (name, column) in
        [("gzip", "column 'time': its compression gzip"), ("delta-byte-array", "column 'message': its encoding DELTA_BYTE_ARRAY")]
    {
        let dir = support::dir();
        copy_all(&testdata.join("log-archive/v1"), dir.path());
        let victim = dir.path().join("parquet/1970-01-01/00000001.parquet");
        fs::copy(testdata.join(format!("log-archive-unread/{name}.parquet")), &victim).unwrap();
        let archive = open(dir.path());
        let faults = archive.health().faults;
        assert!(faults.iter().any(|fault| fault.what.contains(column)), "{faults:?}");
        assert_eq!(all(&archive).len(), 60, "the other files are served");
    }
}

#[test]
fn a_file_rewritten_while_the_archive_is_open_or_closed_is_read() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/log-archive");
    let dir = support::dir();
    copy_all(&testdata.join("v1"), dir.path());
    let archive = open(dir.path());
    let before = all(&archive);
    drop(archive);
    // Of another length, and with a row less than the manifest says.
    for kind in ["v1-pyarrow", "v1-duckdb"] {
        let file = "parquet/1970-01-01/00000002.parquet";
        fs::copy(testdata.join(kind).join(file), dir.path().join(file)).unwrap();
        let archive = open(dir.path());
        assert_eq!(archive.health().faults, []);
        assert_eq!(all(&archive), before, "{kind}");
        let warnings = Query { min_level: Some(Level::Warning), words: vec!["antenna".into()], ..Query::default() };
        let expected: Vec<_> = before.iter().filter(|record| record.level >= Level::Warning).cloned().collect();
        assert_eq!(search(&archive, &warnings), expected);
    }
}
