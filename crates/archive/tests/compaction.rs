//! From segments to Parquet files under bad luck: kills, full disks, damage, searches and backups meanwhile.

use std::{
    collections::HashSet,
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tampu_archive::{Archive, Grouping, Keep, LocalArchive, News, Options, Stop, query::Query};
use tampu_types::{Incarnation, LogRecord, Time};

mod support;
use support::*;

/// Not a test: a process that takes records and compacts them until it is killed. It tells the packets that are acknowledged.
#[test]
fn victim() {
    let Ok(dir) = std::env::var("TAMPU_TEST_COMPACTION") else { return };
    let archive = eager_at(Path::new(&dir));
    // As after a lost acknowledgement, the last packets are sent again.
    let next = archive.offsets().first().map_or(0, |offset| offset.next);
    let mut packet = next.saturating_sub(3);
    let mut out = std::io::stdout().lock();
    loop {
        send(&archive, packet..packet + 1);
        packet += 1;
        flush(&archive);
        // The test may have stopped reading, because it kills this process soon.
        let _ = writeln!(out, ">{packet}");
    }
}

#[test]
fn killed_at_any_moment_it_has_each_acknowledged_record_once() {
    let seed = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(u64::from(std::process::id()));
    println!("TAMPU_SEED={seed}");
    let mut random = seed;
    let mut next_random = move || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random >> 33
    };
    let dir = support::dir();
    let mut acknowledged = 0;
    let mut in_files = 0;
    for kill in 0..25 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "victim", "--nocapture"])
            .env("TAMPU_TEST_COMPACTION", dir.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut told = lines.map_while(Result::ok).filter_map(|line| line.split('>').nth(1)?.parse::<u64>().ok());
        for _ in 0..1 + next_random() % 40 {
            acknowledged = told.next().expect("it tells what is acknowledged");
        }
        for _ in 0..next_random() % 2_000_000 {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = told.last().unwrap_or(acknowledged);

        let archive = open(dir.path());
        let health = archive.health();
        // The only fault is the report of the interrupted write.
        assert!(health.faults.iter().all(|fault| fault.what.contains("interrupted")), "seed {seed}, kill {kill}: {health:?}");
        let found = numbers(&archive);
        assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>(), "seed {seed}, kill {kill}");
        assert!(found.len() as u64 >= acknowledged * 10, "seed {seed}, kill {kill}: {} of {acknowledged}0", found.len());
        assert_eq!((health.records, archive.offsets()[0].next * 10), (found.len() as u64, found.len() as u64));
        let checked = check(&archive);
        assert_eq!((checked.faults.clone(), checked.records, checked.ids), (vec![], found.len() as u64, found.len() as u64));
        in_files = health.in_files;
    }
    assert!(in_files > 0, "seed {seed}: the kills came before any compaction");
}

#[test]
fn a_search_meanwhile_sees_each_record_in_one_place() {
    let dir = support::dir();
    let archive = Arc::new(eager_at(dir.path()));
    let (acknowledged, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for packet in 0..300 {
                send(&*archive, packet..packet + 1);
                flush(&*archive);
                acknowledged.store(packet + 1, Ordering::SeqCst);
            }
            ended.store(true, Ordering::SeqCst);
        });
        let mut looks = 0;
        while !ended.load(Ordering::SeqCst) {
            let least = acknowledged.load(Ordering::SeqCst) * 10;
            let found = numbers(&*archive);
            assert!(found.len() as u64 >= least, "{} of {least}", found.len());
            assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>());
            let least = acknowledged.load(Ordering::SeqCst) * 10;
            let counts = archive.count(&Query::default(), &Grouping::default(), &Stop::default()).unwrap();
            assert!(counts.complete && counts.total >= least, "{counts:?} of {least}");
            looks += 1;
        }
        assert!(looks > 0);
    });
    compact(&*archive);
    assert_eq!(archive.health().in_files, 3000);
    assert_eq!(check(&*archive).faults, []);
}

#[test]
fn many_small_files_of_a_day_become_one() {
    let dir = support::dir();
    let archive = eager_at(dir.path());
    for packet in 0..12 {
        send(&archive, packet..packet + 1);
        compact(&archive);
    }
    let expected: Vec<_> = numbers(&archive);
    // Compaction continues by itself until only a few files remain.
    let begun = std::time::Instant::now();
    while archive.health().files > 5 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", archive.health());
        std::thread::yield_now();
    }
    assert_eq!(numbers(&archive), expected);
    assert_eq!(check(&archive).faults, []);
    drop(archive);
    // The joined files are removed, and their ids are still known.
    let archive = eager_at(dir.path());
    assert_eq!(files(dir.path(), "parquet").len(), archive.health().files);
    assert_eq!(append(&archive, life(1), 7, 0, &[record(life(1), 0, 5)]).unwrap().duplicates, 1);
}

#[test]
fn times_far_away_are_kept_and_found() {
    let dir = support::dir();
    let archive = eager_at(dir.path());
    let times = [i64::MIN, -1, 0, 1, 4_102_444_800_000_000_000, i64::MAX];
    for (number, &time) in times.iter().enumerate() {
        let mut record = record(life(1), 0, number as u64);
        record.time = Time(time);
        append(&archive, life(1), 0, number as u64, &[record]).unwrap();
    }
    compact(&archive);
    assert_eq!(all(&archive).iter().map(|record| record.time.0).collect::<Vec<_>>(), times);
    let query = Query { since: Some(Time(0)), until: Some(Time(i64::MAX)), newest_first: true, ..Query::default() };
    assert_eq!(search(&archive, &query).iter().map(|record| record.time.0).collect::<Vec<_>>(), [times[4], 1, 0]);
    assert_eq!(check(&archive).faults, []);
    let directories: HashSet<_> = files(dir.path(), "parquet").iter().map(|file| file.parent().unwrap().to_owned()).collect();
    let parquet = dir.path().join("parquet");
    assert_eq!(directories, HashSet::from([parquet.join("1970-01-01"), parquet.join("far")]));
}

/// A sender without a clock, or one who means harm, sends records of thousands of days.
#[test]
fn records_of_thousands_of_days_are_two_files_of_a_compaction() {
    let dir = support::dir();
    let archive = LocalArchive::open(dir.path(), Options { compact: true, share: 1.0, ..options() }).unwrap();
    let times: Vec<i64> = (0..2000).map(|day| day * 86_400 * SECOND).collect();
    let records: Vec<LogRecord> =
        (0..).zip(&times).map(|(number, &time)| LogRecord { time: Time(time), ..record(life(1), 0, number) }).collect();
    append(&archive, life(1), 0, 0, &records).unwrap();
    compact(&archive);
    assert_eq!(archive.health().files, 2);
    assert!(archive.news().contains(&News::Far { records: 1997 }));
    // They are found by their own time, and stay together when files are joined.
    assert_eq!(all(&archive).iter().map(|record| record.time.0).collect::<Vec<_>>(), times);
    let query = Query { since: Some(Time(times[1000])), until: Some(Time(times[1003])), ..Query::default() };
    assert_eq!(search(&archive, &query).iter().map(|record| record.time.0).collect::<Vec<_>>(), times[1000..1003]);
    for number in 0..8_u64 {
        let far = LogRecord { time: Time(times[1500] + number as i64), ..record(life(2), 0, number) };
        append(&archive, life(2), 0, number, &[far]).unwrap();
        compact(&archive);
    }
    let begun = std::time::Instant::now();
    while archive.health().files > 5 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", archive.health());
        std::thread::yield_now();
    }
    assert_eq!(all(&archive).len(), 2008);
    assert_eq!(check(&archive).faults, []);
    let far = dir.path().join("parquet/far");
    drop(archive);
    let outside: Vec<_> = files(dir.path(), "parquet").into_iter().filter(|file| !file.starts_with(&far)).collect();
    assert_eq!(outside.len(), 1, "{outside:?}");
}

/// Records from far away are removed by the day on which they were received, like all others.
#[test]
fn far_records_of_different_days_of_reception_are_not_joined() {
    let dir = support::dir();
    let archive = LocalArchive::open(dir.path(), Options { compact: true, share: 1.0, ..options() }).unwrap();
    let day = 86_400 * SECOND;
    for number in 0..12_u64 {
        let received = if number % 2 == 0 { day } else { 40 * day };
        let far = LogRecord { time: Time(20_000 * day), received: Some(Time(received)), ..record(life(1), 0, number) };
        append(&archive, life(1), 0, number, &[far]).unwrap();
        compact(&archive);
    }
    let begun = std::time::Instant::now();
    while archive.health().files > 8 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", archive.health());
        std::thread::yield_now();
    }
    drop(archive);
    let keep = Keep { age: Some(Duration::from_secs(10 * 86_400)), ..Keep::default() };
    let archive = LocalArchive::open(dir.path(), Options { keep, ..eager() }).unwrap();
    let begun = std::time::Instant::now();
    while archive.health().records > 6 {
        assert!(begun.elapsed() < PATIENCE, "{:?}", archive.health());
        std::thread::yield_now();
    }
    assert_eq!(numbers(&archive), [1, 3, 5, 7, 9, 11]);
}

#[test]
fn a_search_ends_in_time_also_within_parquet_files() {
    let dir = support::dir();
    in_parquet(dir.path());
    let archive = open(dir.path());
    let stopped = Stop::after(Duration::ZERO);
    let scanned = archive.search(&Query::default(), &stopped, &mut |_| true).unwrap();
    assert_eq!((scanned.found, scanned.complete), (0, false));
    assert!(!archive.count(&Query::default(), &Grouping::default(), &stopped).unwrap().complete);
    let stop = Stop::default();
    let mut found = 0;
    let scanned = archive
        .search(&Query::default(), &stop, &mut |_| {
            found += 1;
            stop.stop();
            true
        })
        .unwrap();
    assert_eq!((found, scanned.complete), (1, false));
    assert!(!archive.check(&stop, &mut |_| {}).unwrap().complete);
}

#[test]
fn a_backup_made_under_load_opens_as_the_archive_it_was() {
    let (dir, copies) = (support::dir(), support::dir());
    let archive = Arc::new(eager_at(dir.path()));
    let (acknowledged, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    let target = copies.path().join("a/b");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut packet = 0;
            while packet < 400 && !ended.load(Ordering::SeqCst) {
                send(&*archive, packet..packet + 1);
                flush(&*archive);
                packet += 1;
                acknowledged.store(packet * 10, Ordering::SeqCst);
            }
        });
        while acknowledged.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..4 {
            let before = acknowledged.load(Ordering::SeqCst);
            let made =
                archive.backup(&target, &Stop::default(), &mut |doing| assert!(doing.done <= doing.total + 1_000_000)).unwrap();
            let copy = open(&target);
            assert_eq!(copy.health().faults, []);
            let found = numbers(&copy);
            assert_eq!((found.len() as u64, copy.offsets()[0].next * 10), (made.records, made.records));
            assert_eq!(found, (0..made.records).collect::<Vec<_>>());
            assert!(made.records >= before, "{} of {before}", made.records);
            assert_eq!(check(&copy).faults, []);
        }
        ended.store(true, Ordering::SeqCst);
    });
    // An open archive is refused as a backup target.
    let open_copy = open(&target);
    let refused = archive.backup(&target, &Stop::default(), &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("in use"), "{refused}");
    drop(open_copy);
    // Records removed from the archive are also removed from its backup.
    compact(&*archive);
    archive.backup(&target, &Stop::default(), &mut |_| {}).unwrap();
    let again = archive.backup(&target, &Stop::default(), &mut |_| {}).unwrap();
    assert!(again.kept > 0 && again.copied + again.linked == 0, "what is there is not copied again: {again:?}");
    assert_eq!(files(&target, "wal"), Vec::<PathBuf>::new());
    assert_eq!(numbers(&open(&target)), numbers(&*archive));
}

#[test]
fn imported_ids_are_known_after_compaction() {
    let dir = support::dir();
    let archive = eager_at(dir.path());
    let records: Vec<_> = (0..50).map(|number| record(Incarnation::default(), number as u32 * 77, u64::MAX - number)).collect();
    append(&archive, life(1), 0, 0, &records).unwrap();
    compact(&archive);
    drop(archive);
    let archive = eager_at(dir.path());
    let again = append(&archive, life(2), 0, 0, &records).unwrap();
    assert_eq!((again.records, again.duplicates), (0, 50));
    assert_eq!(check(&archive).ids, 50);
}

#[test]
fn archives_of_earlier_releases_are_read() {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/log-archive");
    let mut versions = 0;
    for entry in fs::read_dir(&testdata).unwrap() {
        let old = entry.unwrap().path();
        let dir = support::dir();
        copy_all(&old, dir.path());
        let archive = open(dir.path());
        assert_eq!(archive.health().faults, []);
        assert!(archive.health().files > 0);
        let found: Vec<String> = all(&archive).iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let expected = fs::read_to_string(old.join("records.jsonl")).unwrap();
        assert_eq!(found.join("\n"), expected.trim_end(), "{}", old.display());
        assert_eq!(check(&archive).faults, []);
        // The archive continues: known records are duplicates, new records are stored.
        assert_eq!(append(&archive, life(1), 7, 0, &[record(life(1), 0, 5), record(life(1), 0, 80)]).unwrap().duplicates, 1);
        versions += 1;
    }
    assert!(versions >= 1);
}
