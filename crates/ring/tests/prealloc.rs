//! Rings made ahead of threads: a first call takes one, and nobody else ever sees one that no thread has had.

mod support;

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use support::{NO_WAIT, log, payload, settings};
use tampu_ring::{PreallocStats, RingFile, Rings, recover};

/// Set in the process that is to be killed: where it logs.
const VICTIM: &str = "TAMPU_RING_TEST_STOCK";

fn life(directory: &Path) -> PathBuf {
    fs::read_dir(directory.join("rings")).unwrap().next().unwrap().unwrap().path()
}

/// The rings' files in a life: names and inodes of those with this ending.
fn files(life: &Path, ending: &str) -> Vec<(String, u64)> {
    let mut found: Vec<(String, u64)> = fs::read_dir(life)
        .unwrap()
        .flatten()
        .filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let number = name.strip_prefix("ring-")?.strip_suffix(ending)?;
            number.parse::<u32>().ok()?;
            Some((format!("ring-{number}"), file.metadata().ok()?.ino()))
        })
        .collect();
    found.sort();
    found
}

fn in_thread(rings: &Rings, bytes: &[u8]) {
    std::thread::scope(|scope| scope.spawn(|| assert!(log(rings, bytes, NO_WAIT))).join().unwrap());
}

#[test]
fn a_thread_s_first_call_takes_a_ring_that_is_ready() {
    let temporary = tempfile::tempdir().unwrap();
    let rings = Rings::open(tampu_ring::Settings { max_rings: 8, ..settings(Some(temporary.path().join("rings"))) }).unwrap();
    let drainer = rings.drainer().unwrap();
    assert!(!drainer.make_ahead(), "a process that logs nothing needs no rings");
    assert!(log(&rings, b"first", NO_WAIT));
    while drainer.make_ahead() {}
    let life = life(temporary.path());
    let ahead = files(&life, ".new");
    assert_eq!(rings.prealloc(), PreallocStats { ready: 2, aim: 2, taken: 0, missed: 1 });
    assert_eq!((ahead.len(), files(&life, "").len()), (2, 1));

    // Threads that exist at the same time: each needs a ring of its own.
    let gate = &std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        for number in 0..3u8 {
            let rings = &rings;
            scope.spawn(move || {
                assert!(log(rings, &[number], NO_WAIT));
                gate.wait();
            });
        }
    });
    assert_eq!(rings.prealloc(), PreallocStats { ready: 0, aim: 3, taken: 2, missed: 2 });
    let had = files(&life, "");
    assert!(ahead.iter().all(|ring| had.contains(ring)), "{ahead:?} have their names: {had:?}");
    assert_eq!(had.len(), 4);

    while drainer.make_ahead() {}
    assert_eq!(rings.prealloc().ready, 3, "one more than before, for the thread that found none");
    in_thread(&rings, b"again");
    assert_eq!(rings.prealloc().taken, 2, "a ring that was given back comes first");
}

#[test]
fn the_drainer_makes_rings_in_short_rounds() {
    const BYTES: usize = 8 << 20;
    let temporary = tempfile::tempdir().unwrap();
    let settings = tampu_ring::Settings { max_rings: 8, ring_bytes: BYTES, ..settings(Some(temporary.path().join("rings"))) };
    let rings = Rings::open(settings).unwrap();
    let drainer = rings.drainer().unwrap();
    assert!(log(&rings, b"first", NO_WAIT));
    let mut rounds = 0;
    while drainer.make_ahead() {
        rounds += 1;
    }
    // The ring of this thread and two rings ahead, each mapped twice in a row, in pieces of at most 128 KiB.
    assert!(rounds >= 3 * 2 * BYTES / (128 << 10), "{rounds} rounds");
    assert_eq!(rings.prealloc(), PreallocStats { ready: 2, aim: 2, taken: 0, missed: 1 });
}

#[test]
fn a_ring_is_taken_before_all_of_its_memory_is_present() {
    let temporary = tempfile::tempdir().unwrap();
    let settings = tampu_ring::Settings { max_rings: 8, ring_bytes: 1 << 20, ..settings(Some(temporary.path().join("rings"))) };
    let rings = Rings::open(settings).unwrap();
    let mut drainer = rings.drainer().unwrap();
    assert!(log(&rings, b"first", NO_WAIT));
    while rings.prealloc().ready == 0 {
        assert!(drainer.make_ahead());
    }
    let gate = &std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let rings = &rings;
        scope.spawn(move || {
            assert!(log(rings, b"early", NO_WAIT));
            gate.wait();
            gate.wait();
        });
        gate.wait();
        assert_eq!(rings.prealloc().taken, 1);
        // The rest of its memory follows while the thread has it.
        while drainer.make_ahead() {}
        gate.wait();
    });
    drainer.find_rings().unwrap();
    assert_eq!(payload(&drainer.rings()[1].next_entry().unwrap().unwrap()), b"early");
    assert_eq!(rings.prealloc().ready, 2);
}

#[test]
fn no_more_are_made_than_threads_may_have() {
    let rings = Rings::open(settings(None)).unwrap();
    let drainer = rings.drainer().unwrap();
    let gate = &std::sync::Barrier::new(4);
    std::thread::scope(|scope| {
        for number in 0..4u8 {
            let rings = &rings;
            scope.spawn(move || {
                assert!(log(rings, &[number], NO_WAIT));
                gate.wait();
            });
        }
    });
    while drainer.make_ahead() {}
    assert_eq!((rings.prealloc().ready, rings.stats().len()), (0, 4));
}

#[test]
fn what_is_logged_in_such_a_ring_is_drained_like_any_other() {
    let rings = Rings::open(settings(None)).unwrap();
    let mut drainer = rings.drainer().unwrap();
    assert!(log(&rings, b"main", NO_WAIT));
    while drainer.make_ahead() {}
    let other = std::thread::scope(|scope| {
        let rings = &rings;
        scope.spawn(move || (0..200u8).filter(|number| log(rings, &[*number; 4], NO_WAIT)).count()).join().unwrap()
    });
    assert!(other > 50 && rings.prealloc().taken == 1);
    drainer.find_rings().unwrap();
    let ring = &mut drainer.rings()[1];
    for number in 0..other {
        assert_eq!(payload(&ring.next_entry().unwrap().unwrap()), [number as u8; 4]);
    }
}

#[test]
fn a_death_leaves_no_rings_that_no_thread_has_had() {
    if let Some(directory) = std::env::var_os(VICTIM) {
        let directory = PathBuf::from(directory);
        let rings = Rings::open(settings(Some(directory.join("rings")))).unwrap();
        let drainer = rings.drainer().unwrap();
        assert!(log(&rings, b"kept", NO_WAIT));
        while drainer.make_ahead() {}
        fs::write(directory.join("ready"), "").unwrap();
        loop {
            std::thread::park();
        }
    }
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_death_leaves_no_rings_that_no_thread_has_had", "--nocapture"]).env(VICTIM, temporary.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !temporary.path().join("ready").exists() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let life = life(temporary.path());
    let ahead = files(&life, ".new");
    assert_eq!(ahead.len(), 2, "they were complete");
    let bytes = fs::read(life.join(format!("{}.new", ahead[0].0))).unwrap();
    assert_eq!(RingFile::decode(&bytes, bytes.len() as u64).unwrap().number, 1);
    let mut found = recover(&life).unwrap();
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    assert_eq!(found.rings.iter().map(|ring| ring.number()).collect::<Vec<_>>(), [0]);
    assert_eq!(payload(&found.rings[0].next_entry().unwrap().unwrap()), b"kept");
    assert!(found.rings[0].next_entry().is_none());
    let mark = found.rings[0].mark();
    found.rings[0].commit(&mark).unwrap();
    assert!(found.remove().unwrap().is_empty());
    assert!(!life.exists(), "and what was made ahead is gone with the rest");
}
