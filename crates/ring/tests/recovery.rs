//! Recovery after a death; hostile files do no harm.

mod support;

use std::{
    fs,
    os::unix::fs::{FileExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use rustix::fs::{FlockOperation, fcntl_lock};
use support::{LONG, NO_WAIT, WARNING, log, payload, settings};
use tampu_ring::{
    BadRing, Busy, Damage, Drainer, EntryContent, Kind, RecoverError, RingStorage, Rings, Settings, has_no_drainer, recover,
};
use tempfile::TempDir;

/// Set in the process that is to be killed: where it logs.
const VICTIM: &str = "TAMPU_RING_TEST_VICTIM";

/// Records that the victim logs before it says that it is ready.
const LOGGED: u32 = 40;

/// Runs this test again in a process of its own, up to where it has logged and waits to be killed.
fn victim(directory: &Path, test: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(VICTIM, directory).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    while !directory.join("ready").exists() {
        std::thread::yield_now();
    }
    child
}

/// In the victim: logs, says so and waits.
fn log_and_wait(directory: &Path) -> ! {
    let directory = directory.to_owned();
    let rings = Rings::open(Settings { ring_bytes: 4096, ..settings(Some(directory.join("rings"))) }).unwrap();
    let site = rings.define(Kind::Site, b"Mount.cpp:52").unwrap();
    let voice = rings.define(Kind::Voice, b"mount").unwrap();
    let work = || {
        let mut taken = 0;
        while taken < LOGGED {
            let mut slot = rings.claim(4, WARNING, NO_WAIT).unwrap();
            slot.put_array(taken.to_ne_bytes());
            slot.commit(site, voice);
            taken += 1;
        }
        // No drainer runs, so the ring fills up. The last actions of this thread are two records without room.
        while let Ok(mut slot) = rings.claim(500, 2, NO_WAIT) {
            slot.put(&[0; 500]);
            slot.commit(site, voice);
        }
        rings.claim(500, 2, NO_WAIT).err().unwrap();
    };
    std::thread::scope(|scope| {
        std::thread::Builder::new().name("logs".to_owned()).spawn_scoped(scope, work).unwrap();
    });
    fs::write(directory.join("ready"), "").unwrap();
    while !directory.join("take back").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // From here on the process drains its own rings, and reports its first number.
    let mut drainer = rings.drainer_within(LONG).unwrap();
    let number = drainer.rings()[0].next_entry().unwrap().unwrap().number;
    fs::write(directory.join("number.new"), number.to_string()).unwrap();
    fs::rename(directory.join("number.new"), directory.join("number")).unwrap();
    loop {
        std::thread::park();
    }
}

fn life(directory: &Path) -> PathBuf {
    let mut lives = fs::read_dir(directory.join("rings")).unwrap().map(|life| life.unwrap().path());
    let life = lives.next().unwrap();
    assert!(lives.next().is_none());
    life
}

/// A directory with the rings of a process that was killed.
fn killed(test: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let mut child = victim(directory.path(), test);
    let life = life(directory.path());
    assert!(matches!(recover(&life), Err(RecoverError::Alive(_))), "it lives");
    child.kill().unwrap();
    child.wait().unwrap();
    (directory, life)
}

macro_rules! be_the_victim {
    () => {
        if let Some(directory) = std::env::var_os(VICTIM) {
            log_and_wait(Path::new(&directory));
        }
    };
}

#[test]
fn a_killed_process_has_lost_nothing_and_can_be_removed() {
    be_the_victim!();
    let (_directory, life) = killed("a_killed_process_has_lost_nothing_and_can_be_removed");
    let mut recovery = recover(&life).unwrap();
    assert!(matches!(recover(&life), Err(RecoverError::Alive(_))), "one at a time");
    assert!(recovery.damage.is_empty(), "{:?}", recovery.damage);
    assert_eq!((recovery.source.name.as_str(), recovery.definitions.len()), ("CONTROL/DV01", 2));
    let definition = recovery.definitions.get(1).unwrap();
    assert_eq!((definition.kind, &definition.bytes[..]), (Kind::Site, &b"Mount.cpp:52"[..]));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let ring = &mut recovery.rings[0];
    for number in 0..LOGGED {
        let entry = ring.next_entry().unwrap().unwrap();
        assert_eq!((entry.number, entry.thread.name()), (u64::from(number), "logs"));
        assert_eq!(payload(&entry), number.to_ne_bytes());
        let ago = now - recovery.conversion.utc(entry.ticks);
        assert!((0..3_600_000_000_000).contains(&ago), "{ago} ns ago");
    }
    let mark = ring.mark();
    ring.commit(&mark).unwrap();
    assert!(matches!(recovery.remove(), Err(RecoverError::Unread { ring: 0, .. })));

    // Another recovery continues after the first; losses come last.
    let mut recovery = recover(&life).unwrap();
    let ring = &mut recovery.rings[0];
    let (mut next, mut lost) = (u64::from(LOGGED), None);
    while let Some(entry) = ring.next_entry() {
        let entry = entry.unwrap();
        assert_eq!((entry.number, lost), (next, None));
        next += 1;
        if let EntryContent::Lost(found) = entry.what {
            lost = Some(found.counts[2]);
        }
    }
    assert_eq!(lost, Some(2));
    let mark = ring.mark();
    ring.commit(&mark).unwrap();
    assert!(recovery.remove().unwrap().is_empty());
    assert!(!life.exists());
    assert!(matches!(recover(&life), Err(RecoverError::Place(_))));
}

#[test]
fn hostile_files_are_told_with_their_names_and_do_not_spoil_the_others() {
    be_the_victim!();
    let (_directory, life) = killed("hostile_files_are_told_with_their_names_and_do_not_spoil_the_others");
    let ring = fs::read(life.join("ring-0")).unwrap();
    let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = ring.clone();
        change(&mut bytes);
        fs::write(life.join(name), bytes).unwrap();
    };
    // The number of a ring is part of its checksummed header, so each copy gets a number of its own.
    with("ring-1", &|bytes| bytes.truncate(5000));
    with("ring-2", &|bytes| bytes[0] ^= 1);
    with("ring-3", &|bytes| bytes[24] ^= 1);
    with("ring-4", &|bytes| bytes.truncate(7));
    with("ring-5", &|bytes| bytes.clear());
    with("ring-6", &|_| ());
    symlink("/dev/zero", life.join("ring-7")).unwrap();
    fs::create_dir(life.join("ring-8")).unwrap();
    fs::write(life.join("ring-9x"), "no ring").unwrap();
    fs::write(life.join("ring-00"), "no ring").unwrap();
    fs::OpenOptions::new().write(true).open(life.join("clock")).unwrap().set_len(100).unwrap();
    // Damage to a record in the middle: the ones before it are read.
    let file = fs::OpenOptions::new().write(true).open(life.join("ring-0")).unwrap();
    let header = u64::from(u32::from_ne_bytes(ring[16..20].try_into().unwrap()));
    file.write_all_at(&[0xff; 4], header + 40 + 5 * 32 + 12).unwrap();

    let mut recovery = recover(&life).unwrap();
    let reported: Vec<String> = recovery.damage.iter().map(ToString::to_string).collect();
    for (name, what) in [
        ("ring-1", "file of 5000"),
        ("ring-2", "byte 0"),
        ("ring-3", "byte 48"),
        ("ring-4", "7"),
        ("ring-5", "0"),
        ("ring-6", "byte 16"),
        ("ring-7", ""),
        ("ring-8", ""),
        ("clock", "byte 0"),
    ] {
        let about = |reported: &&String| reported.contains(&format!("/{name}:")) && reported.contains(what);
        assert_eq!(reported.iter().filter(about).count(), 1, "{name} {what}: {reported:#?}");
    }
    assert_eq!(reported.len(), 9, "{reported:#?}");
    assert_eq!(recovery.rings.len(), 1);
    let ring = &mut recovery.rings[0];
    for number in 0..5 {
        assert_eq!(ring.next_entry().unwrap().unwrap().number, number);
    }
    let Some(Err(Damage::Ring { path, why: BadRing::Record { offset, .. } })) = ring.next_entry() else { panic!("damaged") };
    assert_eq!((path, offset), (life.join("ring-0"), header + 40 + 5 * 32));
    assert!(ring.next_entry().is_none());
}

#[test]
fn a_living_process_is_drained_from_outside_by_one_at_a_time() {
    be_the_victim!();
    let directory = tempfile::tempdir().unwrap();
    let mut child = victim(directory.path(), "a_living_process_is_drained_from_outside_by_one_at_a_time");
    let life = life(directory.path());
    let mut drainer = Drainer::attach(&life).unwrap();
    assert!(matches!(Drainer::attach(&life), Err(Busy::Taken)));
    assert_eq!(drainer.source().unwrap().process, "test");
    let (rings, dictionary) = drainer.parts();
    for number in 0..LOGGED {
        let entry = rings[0].next_entry().unwrap().unwrap();
        assert_eq!((entry.number, payload(&entry)), (u64::from(number), number.to_ne_bytes().to_vec()));
    }
    assert_eq!(dictionary.get(2).unwrap().bytes, b"mount");
    let mark = rings[0].mark();
    rings[0].commit(&mark);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(matches!(recover(&life), Err(RecoverError::Busy(_))), "we still drain");
    drop(drainer);
    let mut recovery = recover(&life).unwrap();
    assert_eq!(recovery.rings[0].next_entry().unwrap().unwrap().number, u64::from(LOGGED));
}

#[test]
fn a_record_lock_shows_a_life_as_flock_does() {
    /// Set in the process that holds the lock: the file to lock.
    const LOCKED: &str = "TAMPU_RING_TEST_LOCKED";
    be_the_victim!();
    let test = "a_record_lock_shows_a_life_as_flock_does";
    if let Some(source) = std::env::var_os(LOCKED).map(PathBuf::from) {
        let file = fs::OpenOptions::new().write(true).open(&source).unwrap();
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
        fs::write(source.with_file_name("locked"), "").unwrap();
        loop {
            std::thread::park();
        }
    }
    // The process of the number in `source` is dead, as one of another pid namespace seems to be.
    let (_directory, life) = killed(test);
    let drainer = Drainer::attach(&life).unwrap();
    assert!(!drainer.lives());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(LOCKED, life.join("source")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut holder = command.spawn().unwrap();
    while !life.join("locked").exists() {
        std::thread::yield_now();
    }
    assert!(drainer.lives());
    drop(drainer);
    assert!(matches!(recover(&life), Err(RecoverError::Alive(_))));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(!recover(&life).unwrap().ended);
}

#[test]
fn a_process_says_that_it_does_not_drain_and_that_it_has_ended() {
    be_the_victim!();
    let (_directory, life) = killed("a_process_says_that_it_does_not_drain_and_that_it_has_ended");
    assert!(!has_no_drainer(&life));
    let text = fs::read_to_string(life.join("source")).unwrap();
    fs::write(life.join("source"), text.replace("\nend\n", "\ndrainer none\nend\n")).unwrap();
    assert!(has_no_drainer(&life));
    assert_eq!(Drainer::attach(&life).unwrap().source().unwrap().process, "test");
    fs::write(life.join("ended"), "").unwrap();
    assert!(recover(&life).unwrap().ended);
}

#[test]
fn a_process_takes_its_rings_back_from_whoever_drains_them() {
    be_the_victim!();
    let directory = tempfile::tempdir().unwrap();
    let mut child = victim(directory.path(), "a_process_takes_its_rings_back_from_whoever_drains_them");
    let life = life(directory.path());
    let mut drainer = Drainer::attach(&life).unwrap();
    for _ in 0..LOGGED / 2 {
        drainer.rings()[0].next_entry().unwrap().unwrap();
    }
    let mark = drainer.rings()[0].mark();
    // Read but not committed: the process gets it again.
    drainer.rings()[0].next_entry().unwrap().unwrap();
    assert!(drainer.lives() && drainer.is_there() && !drainer.is_wanted());
    fs::write(directory.path().join("take back"), "").unwrap();
    while !drainer.is_wanted() {
        drainer.sleep(LONG);
    }
    assert!(!directory.path().join("number").exists(), "it waits as long as we hold the lease");
    drainer.rings()[0].commit(&mark);
    drop(drainer);
    while !directory.path().join("number").exists() {
        std::thread::yield_now();
    }
    assert_eq!(fs::read_to_string(directory.path().join("number")).unwrap(), (LOGGED / 2).to_string());
    assert!(matches!(Drainer::attach(&life), Err(Busy::Taken)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(Drainer::attach(&life).is_ok_and(|drainer| !drainer.is_wanted() && !drainer.lives()));
}

#[test]
fn an_orderly_end_leaves_nothing_behind_unless_something_is_unread() {
    let directory = tempfile::tempdir().unwrap();
    let rings = Rings::open(settings(Some(directory.path().to_owned()))).unwrap();
    let RingStorage::Files { directory: life, .. } = rings.storage() else { panic!("{:?}", rings.storage()) };
    assert!(log(&rings, b"unread", NO_WAIT));
    drop(rings);
    let mut recovery = recover(&life).unwrap();
    assert_eq!(payload(&recovery.rings[0].next_entry().unwrap().unwrap()), b"unread");
    drop(recovery);

    let rings = Rings::open(settings(Some(directory.path().to_owned()))).unwrap();
    let RingStorage::Files { directory: life, .. } = rings.storage() else { panic!("{:?}", rings.storage()) };
    assert!(log(&rings, b"read", NO_WAIT));
    let mut drainer = rings.drainer().unwrap();
    let ring = &mut drainer.rings()[0];
    ring.next_entry().unwrap().unwrap();
    let mark = ring.mark();
    ring.commit(&mark);
    assert!(life.exists());
    drop((rings, drainer));
    assert!(!life.exists());
}

#[test]
fn without_a_usable_directory_the_rings_are_in_memory_and_say_so() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for unusable in [PathBuf::from("/proc/rings"), file.join("rings")] {
        let rings = Rings::open(settings(Some(unusable.clone()))).unwrap();
        let RingStorage::Memory { why } = rings.storage() else { panic!("{unusable:?}") };
        assert!(why.contains(unusable.to_str().unwrap()), "{why}");
        assert!(!rings.storage().is_crash_safe() && log(&rings, b"still works", LONG));
        let mut drainer = rings.drainer().unwrap();
        assert_eq!(payload(&drainer.rings()[0].next_entry().unwrap().unwrap()), b"still works");
        assert!(matches!(rings.drainer(), Err(Busy::Taken)));
    }
}
