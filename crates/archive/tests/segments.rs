//! The built-in archive under bad luck: interrupted writes, damaged files, a second process, a full disk.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use tampu_archive::{
    Archive, ArchiveError, Keep, LocalArchive, News, Options, Stop,
    query::{Cursor, Query},
};
use tampu_types::{Domain, LogRecord, Time};

mod support;
use support::*;

fn segments(dir: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(segments_dir(dir)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "wal"));
    paths.sort();
    paths
}

fn numbers(archive: &dyn Archive) -> Vec<u64> {
    all(archive).iter().map(|record| record.id.unwrap().number).collect()
}

/// Three commits of two frames (streams) each in one segment, with where each commit begins.
fn three_commits(dir: &Path) -> (PathBuf, Vec<u64>) {
    let archive = open(dir);
    let mut begins = Vec::new();
    for commit in 0..3 {
        begins.push(segments(dir).first().map_or(0, |path| fs::metadata(path).unwrap().len()));
        // Nothing refuses the samples, and the worker cannot commit one alone: both are pending before the flush.
        let first = record(life(1), 0, 2 * commit);
        let second = record(life(1), 0, 2 * commit + 1);
        append(&archive, life(1), 0, commit, &[first]).unwrap();
        append(&archive, life(1), 1, commit, &[second]).unwrap();
        flush(&archive);
    }
    drop(archive);
    (segments(dir).remove(0), begins)
}

#[test]
fn a_tail_torn_at_any_byte_is_cut_and_all_before_it_served() {
    let dir = support::dir();
    let (path, begins) = three_commits(dir.path());
    let whole = fs::read(&path).unwrap();
    let expected: Vec<Vec<u64>> = (0..=6).map(|count| (0..count).collect()).collect();
    for torn in [true, false] {
        let mut last_seen = 0;
        // All bytes of both headers and of the last commit, and a part of the others.
        let last_commit = begins[2] as usize;
        for cut in (0..160).chain((160..last_commit).step_by(29)).chain(last_commit..=whole.len()) {
            let mut bytes = whole[..cut].to_vec();
            if !torn {
                // The file has its full length, but the bytes are zeros.
                bytes.resize(whole.len(), 0);
            }
            fs::create_dir_all(segments_dir(dir.path())).unwrap();
            fs::write(&path, &bytes).unwrap();
            let archive = open(dir.path());
            let served = numbers(&archive);
            assert!(expected.contains(&served), "{cut}: {served:?}");
            assert!(served.len() >= last_seen, "{cut}: {served:?}");
            last_seen = served.len();
            // Lost records are stored again, and served ones are duplicates.
            for number in 0..6 {
                let taken = append(&archive, life(1), (number % 2) as u32, number / 2, &[record(life(1), 0, number)]).unwrap();
                assert_eq!(taken.records == 0, number < served.len() as u64, "{cut}: {number}");
            }
            flush(&archive);
            assert_eq!(numbers(&archive), expected[6], "{cut}");
            drop(archive);
            assert_eq!(numbers(&open(dir.path())), expected[6], "{cut}");
            fs::read_dir(dir.path()).unwrap().for_each(|entry| {
                let path = entry.unwrap().path();
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
            });
        }
        assert_eq!(last_seen, 6);
    }
}

#[test]
fn damage_anywhere_is_named_and_the_rest_served() {
    let dir = support::dir();
    let (path, begins) = three_commits(dir.path());
    let whole = fs::read(&path).unwrap();
    let header = 48;
    for at in (header..begins[2] as usize).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        fs::write(&path, &bytes).unwrap();
        let archive = open(dir.path());
        let served = numbers(&archive);
        let faults = archive.health().faults;
        if served.len() == 6 {
            // Up to seven bytes of padding between two frames are never read.
            assert_eq!(faults, [], "{at}");
            continue;
        }
        assert_eq!(served.len(), 5, "{at}: {served:?}");
        assert_eq!(faults.len(), 1, "{at}");
        assert_eq!(faults[0].file, path);
        assert!((faults[0].from..faults[0].to).contains(&(at as u64)), "{at}: {faults:?}");
        // Damage does not reset the offsets of acknowledged samples.
        assert_eq!(archive.offsets().iter().map(|offset| offset.next).sum::<u64>(), 6);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// An archive with damaged segments and side files opens, serves only records that were written, and goes on.
    #[test]
    fn hostile_files_neither_crash_nor_invent(
        changes in proptest::collection::vec((any::<bool>(), any::<usize>(), 0usize..40, proptest::collection::vec(any::<u8>(), 0..40)), 1..6),
    ) {
        let dir = support::dir();
        let written = LocalArchive::open(dir.path(), Options { roll: 1, ..options() }).unwrap();
        for number in 0..3 {
            append(&written, life(1), 0, number, &[record(life(1), 0, number)]).unwrap();
            flush(&written);
        }
        let expected = all(&written);
        drop(written);
        let first = segments(dir.path()).remove(0);
        for (in_side, at, removed, put) in changes {
            let path = if in_side { first.with_extension("idx") } else { first.clone() };
            let mut bytes = fs::read(&path).unwrap();
            let at = at % (bytes.len() + 1);
            bytes.splice(at..(at + removed).min(bytes.len()), put);
            fs::write(&path, bytes).unwrap();
        }
        let archive = open(dir.path());
        prop_assert!(all(&archive).iter().all(|record| expected.contains(record)));
        append(&archive, life(2), 0, 0, &[record(life(2), 0, 7)]).unwrap();
        flush(&archive);
        prop_assert!(ids(&archive).iter().any(|id| id.incarnation == life(2)));
    }
}

#[test]
fn damage_that_comes_while_it_runs_is_met_and_named() {
    let dir = support::dir();
    let (path, begins) = three_commits(dir.path());
    let archive = open(dir.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[begins[1] as usize + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(numbers(&archive), [0, 1, 3, 4, 5]);
    assert_eq!(numbers(&archive), [0, 1, 3, 4, 5]);
    let faults = archive.health().faults;
    assert_eq!(faults.len(), 1);
    assert!(faults[0].what.contains("checksum"), "{faults:?}");
}

#[test]
fn full_segments_are_known_from_their_side_files_and_without_them() {
    let dir = support::dir();
    let options = Options { roll: 1, ..options() };
    let archive = LocalArchive::open(dir.path(), options.clone()).unwrap();
    for number in 0..4 {
        append(&archive, life(1), 0, number, &[record(life(1), 0, number)]).unwrap();
        flush(&archive);
    }
    drop(archive);
    let paths = segments(dir.path());
    assert_eq!(paths.len(), 4);
    let side = |path: &PathBuf| path.with_extension("idx");
    assert_eq!(paths.iter().filter(|path| side(path).exists()).count(), 3);
    // One side file is damaged and one is missing: both are written again.
    fs::write(side(&paths[0]), b"TAMPUIDX and no more").unwrap();
    fs::remove_file(side(&paths[1])).unwrap();
    for _ in 0..2 {
        let archive = LocalArchive::open(dir.path(), options.clone()).unwrap();
        assert_eq!(numbers(&archive), [0, 1, 2, 3]);
        for number in 0..4 {
            assert_eq!(append(&archive, life(1), 1, number, &[record(life(1), 0, number)]).unwrap().duplicates, 1);
        }
        assert!(side(&paths[0]).exists() && side(&paths[1]).exists());
    }
}

#[test]
fn what_is_no_segment_of_ours_is_set_aside_by_name() {
    let dir = support::dir();
    let elsewhere = support::dir();
    let other = Options { domain: Domain::new("elsewhere").unwrap(), ..options() };
    let archive = LocalArchive::open(elsewhere.path(), other).unwrap();
    append(&archive, life(1), 0, 0, &[record(life(1), 0, 0)]).unwrap();
    flush(&archive);
    drop(archive);
    let Err(error) = LocalArchive::open(elsewhere.path(), options()) else { panic!("opened as another domain's") };
    assert!(error.to_string().contains("it belongs to domain 'elsewhere'"), "{error}");
    let place = segments_dir(dir.path());
    fs::create_dir(&place).unwrap();
    fs::copy(segments(elsewhere.path()).remove(0), place.join("segment-00000001.wal")).unwrap();
    fs::write(place.join("segment-00000002.wal"), b"somebody else's file of that name").unwrap();
    let mut later = fs::read(place.join("segment-00000001.wal")).unwrap();
    later[8] = 9;
    fs::write(place.join("segment-00000003.wal"), &later).unwrap();
    fs::write(place.join("segment-00000004.wal"), b"").unwrap();

    let archive = open(dir.path());
    assert_eq!(all(&archive), []);
    let whats: Vec<_> = archive.health().faults.into_iter().map(|fault| fault.what).collect();
    assert!(whats[0].contains("'elsewhere'"), "{whats:?}");
    assert!(whats[1].contains("set-aside"), "{whats:?}");
    assert!(whats[2].contains("version 9"), "{whats:?}");
    assert!(dir.path().join("set-aside/segment-00000002.wal").exists());
    append(&archive, life(1), 0, 0, &[record(life(1), 0, 0)]).unwrap();
    flush(&archive);
    drop(archive);
    assert!(place.join("segment-00000001.wal").exists());
    assert_eq!(numbers(&open(dir.path())), [0]);
    assert_eq!(fs::read(place.join("segment-00000003.wal")).unwrap(), later);
}

#[test]
fn a_second_process_is_told_who_has_the_archive() {
    let dir = support::dir();
    let archive = open(dir.path());
    let Err(error) = LocalArchive::open(dir.path(), options()) else { panic!("opened twice") };
    assert!(matches!(error, ArchiveError::InUse { .. }));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(archive);
    open(dir.path());
}

#[test]
fn segments_of_earlier_releases_are_read() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/log-segment");
    let mut versions = 0;
    for entry in fs::read_dir(&testdata).unwrap() {
        let old = entry.unwrap().path();
        let dir = support::dir();
        fs::create_dir(segments_dir(dir.path())).unwrap();
        for name in ["segment-00000001.wal", "segment-00000001.idx", "segment-00000002.wal"] {
            fs::copy(old.join(name), segments_dir(dir.path()).join(name)).unwrap();
        }
        let archive = open(dir.path());
        assert_eq!(archive.health().faults, []);
        let found: Vec<String> = all(&archive).iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let expected = fs::read_to_string(old.join("records.jsonl")).unwrap();
        assert_eq!(found.join("\n"), expected.trim_end(), "{}", old.display());
        versions += 1;
    }
    assert!(versions >= 1);
}

/// A tmpfs of a few MB, unmounted at the end.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new(size: &str) -> SmallDisk {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tampu-test"]).arg(dir.path()).status().unwrap();
        assert!(mounted.success(), "this test mounts a small tmpfs and needs to be root for it");
        SmallDisk(dir)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged_and_goes_on_when_there_is_room() {
    let disk = SmallDisk::new("4m");
    let filler = disk.path().join("filler");
    fs::write(&filler, vec![1; 2 << 20]).unwrap();
    let small = Options {
        pending: 256 << 10,
        roll: 700 << 10,
        wait: Duration::from_millis(20),
        retry: Duration::from_millis(5),
        ..options()
    };
    let archive = LocalArchive::open(disk.path(), small.clone()).unwrap();
    let mut taken = 0;
    let refused = loop {
        let records: Vec<_> = (0..100).map(|number| record(life(1), 0, taken * 100 + number)).collect();
        match append(&archive, life(1), 0, taken, &records) {
            Ok(appended) => assert_eq!(appended.records, 100),
            Err(error) => break error,
        }
        taken += 1;
    };
    assert!(matches!(refused, ArchiveError::Full { .. }), "{refused}");
    let text = refused.to_string();
    assert!(
        text.contains("is full (") && text.contains("free some space there") && text.contains("continues by itself"),
        "{text}"
    );
    assert_eq!(archive.health().stuck.as_deref().map(|why| why.contains("is full")), Some(true));
    assert!(!archive.flush(Duration::from_millis(1)));

    // All acknowledged records are served, also after another start on the full disk.
    let acknowledged: u64 = archive.offsets().iter().map(|offset| offset.next).sum();
    assert!(acknowledged < taken);
    assert_eq!(numbers(&archive), (0..acknowledged * 100).collect::<Vec<_>>());
    let copy = support::dir();
    fs::create_dir(segments_dir(copy.path())).unwrap();
    for path in segments(disk.path()) {
        fs::copy(&path, segments_dir(copy.path()).join(path.file_name().unwrap())).unwrap();
    }
    assert_eq!(numbers(&open(copy.path())), (0..acknowledged * 100).collect::<Vec<_>>());

    // With free space the pending records are written, and the refused ones can be sent again.
    fs::remove_file(&filler).unwrap();
    wait_until("written once there is room", || archive.flush(Duration::from_secs(1)));
    assert_eq!(archive.health().stuck, None);
    assert_eq!(numbers(&archive), (0..taken * 100).collect::<Vec<_>>());
    append(&archive, life(1), 0, taken, &[record(life(1), 0, taken * 100)]).unwrap();
    flush(&archive);
    drop(archive);
    assert_eq!(numbers(&LocalArchive::open(disk.path(), small).unwrap()), (0..=taken * 100).collect::<Vec<_>>());
}

#[test]
fn an_archive_that_filled_its_disk_removes_its_oldest_records_if_it_has_limits() {
    // A twentieth of this disk is the reserve: 400 KiB.
    let disk = SmallDisk::new("8m");
    let keep = Keep { bytes: Some(1 << 40), ..Keep::default() };
    let limited = Options {
        compact: true,
        share: 1.0,
        roll: 300 << 10,
        min_free: 1 << 40,
        wait: Duration::from_millis(20),
        retry: Duration::from_millis(5),
        keep,
        ..options()
    };
    let archive = LocalArchive::open(disk.path(), limited.clone()).unwrap();
    let mut sent = 0;
    let mut send = |archive: &LocalArchive, packets: u64| {
        for _ in 0..packets {
            let records: Vec<_> = (0..100)
                .map(|number| {
                    let number = sent * 100 + number;
                    // Each record is received a second after the one before; its text is of little use to a compressor.
                    let received = Some(Time(number as i64 * SECOND));
                    LogRecord { received, message: noise(number), ..record(life(1), 0, number) }
                })
                .collect();
            append(archive, life(1), 0, sent, &records).unwrap();
            flush(archive);
            sent += 1;
        }
        archive.compact(&Stop::after(Duration::from_secs(120)), &mut |_| {}).unwrap();
    };
    send(&archive, 20);
    let before = archive.health().records;
    assert_eq!(before, 2000);
    drop(archive);
    // Something else takes what is left, and a little of the reserve.
    let free = || {
        let disk = rustix::fs::statvfs(disk.path()).unwrap();
        disk.f_bavail * disk.f_frsize
    };
    fs::write(disk.path().join("filler"), vec![1; (free() - (350 << 10)) as usize]).unwrap();
    let archive = LocalArchive::open(disk.path(), limited.clone()).unwrap();
    let mut news = Vec::new();
    wait_until("the oldest records are removed", || {
        news.extend(archive.news());
        news.iter().any(|news| matches!(news, News::RemovedForRoom { .. }))
    });
    assert!(free() >= 400 << 10 && archive.health().records < before, "{} bytes are free", free());
    // Records are taken again, and the newest ones are still there.
    send(&archive, 1);
    assert_eq!(*numbers(&archive).last().unwrap(), 2099);
    drop(archive);
    // Without limits nothing is removed: the archive waits.
    fs::write(disk.path().join("filler-2"), vec![1; (free() - (300 << 10)) as usize]).unwrap();
    let archive = LocalArchive::open(disk.path(), Options { keep: Keep::default(), ..limited }).unwrap();
    let kept = archive.health().records;
    append(&archive, life(2), 0, 0, &[record(life(2), 0, 0)]).unwrap();
    wait_until("it waits for room", || archive.stuck().is_some());
    assert_eq!((archive.health().records, archive.news()), (kept, vec![]));
}

/// A text of 1000 characters that does not repeat.
fn noise(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + (state >> 33) as u8 % 90)
    };
    (0..1000).map(|_| letter()).collect()
}

#[test]
fn an_archive_closed_on_a_full_disk_opens_clean() {
    let disk = SmallDisk::new("1m");
    let small = Options { pending: 128 << 10, wait: Duration::ZERO, retry: Duration::from_millis(5), ..options() };
    let archive = LocalArchive::open(disk.path(), small.clone()).unwrap();
    let mut taken = 0;
    loop {
        let records: Vec<_> = (0..50).map(|number| record(life(1), 0, taken * 50 + number)).collect();
        match append(&archive, life(1), 0, taken, &records) {
            Ok(_) => taken += 1,
            Err(_) if archive.health().stuck.is_some() => break,
            Err(_) => std::thread::yield_now(),
        }
    }
    let acknowledged: u64 = archive.offsets().iter().map(|offset| offset.next).sum();
    drop(archive);
    let archive = LocalArchive::open(disk.path(), small).unwrap();
    assert_eq!(archive.health().faults, []);
    assert_eq!(archive.offsets().iter().map(|offset| offset.next).sum::<u64>(), acknowledged);
    assert_eq!(numbers(&archive), (0..acknowledged * 50).collect::<Vec<_>>());
}

/// A search sees one state although the archive grows meanwhile, and the writer never waits for it.
#[test]
fn a_search_that_never_ends_does_not_hold_up_the_writer() {
    let dir = support::dir();
    let archive = open(dir.path());
    for number in 0..10 {
        append(&archive, life(1), 0, number, &[record(life(1), 0, number)]).unwrap();
    }
    flush(&archive);
    let mut seen = 0;
    let query = Query { after: Some(Cursor::of(&record(life(1), 0, 0))), ..Query::default() };
    let stop = tampu_archive::Stop::default();
    archive
        .search(&query, &stop, &mut |_| {
            seen += 1;
            append(&archive, life(2), 0, seen, &[record(life(2), 0, seen)]).unwrap();
            flush(&archive);
            true
        })
        .unwrap();
    assert_eq!(seen, 9);
    assert_eq!(all(&archive).len(), 19);
}

#[test]
fn a_lone_arrival_is_committed_without_waiting_for_others() {
    let dir = support::dir();
    // Far longer than the test waits: only an arrival soon after a commit may wait for this.
    let archive = LocalArchive::open(dir.path(), Options { linger: Duration::from_secs(600), ..options() }).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    archive.on_commit(Box::new(move |ticket| {
        let _ = tell.send(ticket);
    }));
    let alone = append(&archive, life(1), 0, 0, &[record(life(1), 0, 0)]).unwrap();
    assert_eq!(told.recv_timeout(Duration::from_secs(60)).unwrap(), alone.ticket);
    // Those that follow closely share one commit.
    append(&archive, life(1), 0, 1, &[record(life(1), 0, 1)]).unwrap();
    append(&archive, life(1), 0, 2, &[record(life(1), 0, 2)]).unwrap();
    flush(&archive);
    assert_eq!(archive.health().commits, 2);
}
