//! A child made by `fork` has a life of its own. This is a file of its own because it forks.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use support::{NO_WAIT, payload, settings};
use tampu_ring::{Kind, RecoverError, RingStorage, Rings, recover};

fn log(rings: &Rings, site: u32, bytes: &[u8]) {
    let mut slot = rings.claim(bytes.len(), 4, NO_WAIT).unwrap();
    slot.put(bytes);
    slot.commit(site, 1);
}

#[test]
fn a_child_writes_into_rings_of_its_own_and_keeps_the_numbers_it_knows() {
    let directory = tempfile::tempdir().unwrap();
    let rings = Rings::open(settings(Some(directory.path().to_owned()))).unwrap();
    let RingStorage::Files { directory: ours, .. } = rings.storage() else { panic!("{:?}", rings.storage()) };
    let site = rings.define(Kind::Site, b"a site").unwrap();
    let mut drainer = rings.drainer().unwrap();
    log(&rings, site, b"before");
    drainer.find_rings().unwrap();

    // SAFETY: the child only logs, which is the case under test, and exits without running the parent's code.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let work = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assert!(drainer.rings()[0].next_entry().is_none(), "the parent's rings are not the child's to drain");
            log(&rings, site, b"in the child");
            std::thread::scope(|scope| {
                scope.spawn(|| log(&rings, site, b"in a thread of the child"));
            });
        }));
        // SAFETY: ends this process.
        unsafe { libc::_exit(i32::from(work.is_err())) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);

    log(&rings, site, b"after");
    let ring = &mut drainer.rings()[0];
    for expected in ["before", "after"] {
        assert_eq!(payload(&ring.next_entry().unwrap().unwrap()), expected.as_bytes());
    }
    assert!(ring.next_entry().is_none());
    assert_eq!(rings.stats().len(), 1);

    let lives: Vec<PathBuf> = fs::read_dir(directory.path()).unwrap().map(|life| life.unwrap().path()).collect();
    assert_eq!(lives.len(), 2);
    let theirs = lives.into_iter().find(|life| *life != ours).unwrap();
    assert!(matches!(recover(&ours), Err(RecoverError::Alive(_))), "the child's end did not unlock the parent");
    let mut recovery = recover(&theirs).unwrap();
    assert_eq!(recovery.source.incarnation.pid, child as u32);
    assert_eq!(recovery.definitions.get(site).unwrap().bytes, b"a site");
    let mut found: Vec<Vec<u8>> = Vec::new();
    for ring in &mut recovery.rings {
        while let Some(entry) = ring.next_entry() {
            found.push(payload(&entry.unwrap()));
        }
    }
    found.sort();
    assert_eq!(found, [&b"in a thread of the child"[..], b"in the child"]);
}

/// Set in a process that makes a child and is then killed: where it logs.
const PARENT: &str = "TAMPU_RING_TEST_PARENT";

/// Logs, makes a child that lives on, tells its number and waits to be killed.
fn be_the_parent(directory: &Path) -> ! {
    let rings = Rings::open(settings(Some(directory.join("rings")))).unwrap();
    let site = rings.define(Kind::Site, b"a site").unwrap();
    log(&rings, site, b"from the parent");
    // SAFETY: the child only waits, for a minute at most, so that no process is left after a failure.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { libc::alarm(60) };
        // The child writes this file when its fork is complete.
        fs::write(directory.join("child.new"), std::process::id().to_string()).unwrap();
        fs::rename(directory.join("child.new"), directory.join("child")).unwrap();
    }
    loop {
        std::thread::park();
    }
}

#[test]
fn a_dead_process_is_known_to_be_dead_although_its_child_lives() {
    if let Some(directory) = std::env::var_os(PARENT) {
        be_the_parent(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_dead_process_is_known_to_be_dead_although_its_child_lives"]);
    let mut parent = command.env(PARENT, directory.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let reported = directory.path().join("child");
    while !reported.exists() {
        std::thread::yield_now();
    }
    let child: i32 = fs::read_to_string(reported).unwrap().parse().unwrap();
    let life = fs::read_dir(directory.path().join("rings")).unwrap().next().unwrap().unwrap().path();
    assert!(matches!(recover(&life), Err(RecoverError::Alive(_))));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let recovery = recover(&life);
    // SAFETY: the child of the process that this test started, which still waits.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0, "the child lived");
    assert_eq!(payload(&recovery.unwrap().rings[0].next_entry().unwrap().unwrap()), b"from the parent");
}
