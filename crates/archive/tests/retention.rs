//! Removal of data whose retention has ended.

use std::time::Duration;

use tampu_archive::{Archive, Keep, LocalArchive, News, Options, Removal, Retention};
use tampu_types::{RecordId, Time};

mod support;
use support::*;

#[test]
fn what_has_been_kept_long_enough_is_removed_and_told() {
    let dir = support::dir();
    let old = eager_at(dir.path());
    // All records of these tests are received at second 5 of 1970, so they are old.
    send(&old, 0..10);
    compact(&old);
    drop(old);
    let keep = Keep { age: Some(Duration::from_secs(86_400)), ..Keep::default() };
    let archive = LocalArchive::open(dir.path(), Options { keep, ..eager() }).unwrap();
    // There is no newer record: the clock alone removes nothing.
    compact(&archive);
    assert_eq!((archive.health().records, archive.news()), (100, vec![]));
    let mut late = record(life(2), 0, 0);
    late.received = Some(Time(3 * 86_400 * SECOND));
    append(&archive, life(2), 0, 0, &[late]).unwrap();
    compact(&archive);
    let begun = std::time::Instant::now();
    let mut news = Vec::new();
    while news.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", archive.health());
        news = archive.news();
        std::thread::yield_now();
    }
    assert!(matches!(news[..], [News::Removed { files: 1, records: 100, earliest: Time(0), .. }]), "{news:?}");
    let left = ids(&archive);
    assert_eq!(left, [RecordId { incarnation: life(2), ring: 0, number: 0 }]);
    assert_eq!(archive.health().records, 1);
    // Removed records are not stored again.
    assert_eq!(append(&archive, life(1), 3, 0, &[record(life(1), 0, 5)]).unwrap().duplicates, 1);
    assert_eq!(check(&archive).faults, []);
    drop(archive);
    assert_eq!(files(dir.path(), "parquet").len(), 1);
}

#[test]
fn a_retention_that_changes_while_the_archive_is_open_holds_at_once() {
    let dir = support::dir();
    let archive = eager_at(dir.path());
    // Old and late records are in files of their own: a file is removed as a whole.
    send(&archive, 0..10);
    compact(&archive);
    let mut late = record(life(2), 0, 0);
    late.received = Some(Time(3 * 86_400 * SECOND));
    append(&archive, life(2), 0, 0, &[late]).unwrap();
    compact(&archive);
    assert_eq!((archive.health().records, archive.news()), (101, vec![]));
    let keep = Keep { age: Some(Duration::from_secs(86_400)), ..Keep::default() };
    let retention = Retention { keep, min_free: 0 };
    // What it removes is told before.
    assert_eq!(archive.removal(&Retention::default()), Removal::default());
    let removal = archive.removal(&retention);
    assert_eq!((removal.files, removal.records, removal.earliest, removal.latest), (1, 100, Time(0), Time(99 * SECOND)));
    let of_all = archive.removal(&Retention { keep: Keep { bytes: Some(1), ..Keep::default() }, min_free: 0 });
    assert_eq!((of_all.files, of_all.records), (2, 101));
    let for_room = Retention { keep: Keep { bytes: Some(u64::MAX), ..Keep::default() }, min_free: u64::MAX };
    assert!(archive.removal(&for_room).records <= 101);
    archive.set_retention(retention);
    let begun = std::time::Instant::now();
    while archive.health().records > 1 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", archive.health());
        std::thread::yield_now();
    }
    assert_eq!(ids(&archive), [RecordId { incarnation: life(2), ring: 0, number: 0 }]);
    assert_eq!(check(&archive).faults, []);
}
