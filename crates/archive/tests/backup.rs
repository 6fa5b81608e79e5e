//! Targets of a backup: an empty directory or an earlier backup of the same archive, and nothing else.

use std::{collections::BTreeMap, fs, path::Path};

use tampu_archive::{Archive, ArchiveError, BackedUp, Options, Stop};

mod support;
use support::*;

fn backup(archive: &dyn Archive, target: &Path) -> Result<BackedUp, ArchiveError> {
    archive.backup(target, &Stop::default(), &mut |_| {})
}

/// An archive with these records of one life.
fn archive(dir: &Path, number: u32, records: u64) -> tampu_archive::LocalArchive {
    let archive = tampu_archive::LocalArchive::open(dir, Options { compact: true, share: 1.0, ..options() }).unwrap();
    let all: Vec<_> = (0..records).map(|record_number| record(life(number), 0, record_number)).collect();
    append(&archive, life(number), 0, 0, &all).unwrap();
    archive.compact(&Stop::default(), &mut |_| {}).unwrap();
    archive
}

/// Every file below a directory with its content.
fn content(dir: &Path) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(content(&entry));
        } else {
            let bytes = fs::read(&entry).unwrap();
            found.insert(entry, bytes);
        }
    }
    found
}

#[test]
fn the_backup_of_another_archive_is_left_as_it_is() {
    let (one, other, target) = (dir(), dir(), dir());
    let target = target.path().join("backup");
    backup(&archive(one.path(), 1, 30), &target).unwrap();
    let before = content(&target);
    let refused = backup(&archive(other.path(), 2, 10), &target).unwrap_err();
    assert!(matches!(&refused, ArchiveError::NotOurs { why, .. } if why == "it belongs to another archive"), "{refused}");
    assert_eq!(content(&target), before);
    assert_eq!(all(&open(&target)).len(), 30);
}

#[test]
fn a_directory_with_other_files_is_left_as_it_is() {
    let (one, target) = (dir(), dir());
    let archive = archive(one.path(), 1, 30);
    for file in ["notes.txt", "segments/segment-00000001.wal", "manifest.jsonl"] {
        let target = target.path().join(file.replace('/', "-"));
        let path = target.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "somebody's").unwrap();
        let refused = backup(&archive, &target).unwrap_err();
        assert!(matches!(refused, ArchiveError::NotOurs { .. }), "{refused}");
        assert_eq!(content(&target).into_iter().collect::<Vec<_>>(), [(path, b"somebody's".to_vec())]);
    }
}

#[test]
fn an_interrupted_backup_goes_on_and_a_restored_one_is_still_the_archives() {
    let (one, target) = (dir(), dir());
    let (target, archive) = (target.path().join("backup"), archive(one.path(), 1, 30));
    let stop = Stop::default();
    let stopped = archive.backup(&target, &stop, &mut |_| stop.stop()).unwrap_err();
    assert!(matches!(stopped, ArchiveError::Stopped(_)), "{stopped}");
    assert_eq!(backup(&archive, &target).unwrap().records, 30);
    drop(archive);
    // The copy takes the archive's place, and is backed up into what was the archive.
    let restored = open(&target);
    assert_eq!(backup(&restored, one.path()).unwrap().records, 30);
}

/// Takes the id out of a manifest, as releases wrote it that gave archives none.
fn without_id(dir: &Path) {
    let path = dir.join("manifest.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut head: serde_json::Value = serde_json::from_str(&first[9..]).unwrap();
    head.as_object_mut().unwrap().remove("archive").expect("an id");
    let json = head.to_string();
    fs::write(&path, format!("{:08x} {json}\n{rest}", crc32c::crc32c(json.as_bytes()))).unwrap();
}

#[test]
fn a_backup_without_an_archive_id_goes_on_if_it_shares_a_file() {
    let (one, other) = (dir(), dir());
    // One record in a Parquet file, or in a segment that is still open.
    let compacted = archive(one.path(), 1, 30);
    let open_segment = tampu_archive::LocalArchive::open(other.path(), options()).unwrap();
    append(&open_segment, life(2), 0, 0, &[record(life(2), 0, 0)]).unwrap();
    flush(&open_segment);
    for (number, archive, records) in [(1, &compacted, 31), (2, &open_segment, 2)] {
        let place = dir();
        let target = place.path().join("backup");
        backup(archive, &target).unwrap();
        without_id(&target);
        append(archive, life(number), 0, 1, &[record(life(number), 0, records - 1)]).unwrap();
        flush(archive);
        assert_eq!(backup(archive, &target).unwrap().records, records);
        // The backup has the archive's id from then on.
        assert!(fs::read_to_string(target.join("manifest.jsonl")).unwrap().contains("\"archive\":"));
        assert_eq!(all(&open(&target)).len() as u64, records);
    }
}

#[test]
fn a_backup_without_an_archive_id_that_shares_no_file_is_left_as_it_is() {
    let (one, other, place) = (dir(), dir(), dir());
    let (one, other) = (archive(one.path(), 1, 30), archive(other.path(), 2, 10));
    let target = place.path().join("backup");
    backup(&other, &target).unwrap();
    without_id(&target);
    let before = content(&target);
    // Its file has the same name, and other records.
    let refused = backup(&one, &target).unwrap_err();
    assert!(refused.to_string().contains("it belongs to another archive: its "), "{refused}");
    assert_eq!(content(&target), before);
    // An archive that has no file of that name.
    let fresh = dir();
    let fresh = tampu_archive::LocalArchive::open(fresh.path(), options()).unwrap();
    let refused = backup(&fresh, &target).unwrap_err();
    assert!(refused.to_string().contains("shares no file with this archive; name an empty directory"), "{refused}");
    assert_eq!(content(&target), before);
}

#[test]
fn a_manifest_that_a_killed_backup_was_writing_is_no_foreign_file() {
    let (one, target) = (dir(), dir());
    let archive = archive(one.path(), 1, 30);
    fs::write(target.path().join("manifest.jsonl.new"), "half a li").unwrap();
    assert_eq!(backup(&archive, target.path()).unwrap().records, 30);
    assert!(!target.path().join("manifest.jsonl.new").exists());
}
