//! A run-time directory without room: a file system of its own is mounted for it, seen by this test alone.

mod support;

use std::{fs, path::Path, process::Command};

use support::{NO_WAIT, log, payload, settings};
use tampu_ring::{Kind, RingStorage, Rings};

/// Set where the small file system is mounted: its place.
const SMALL: &str = "TAMPU_RING_TEST_SMALL";

fn fill(directory: &Path, leave: u64) {
    let file = fs::File::create(directory.join("filler")).unwrap();
    let room = rustix::fs::statvfs(directory).unwrap();
    let bytes = (room.f_bavail * room.f_frsize).saturating_sub(leave);
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, bytes).unwrap();
}

/// One record comes back, whether its ring is in a file or not.
fn logs(rings: &Rings, number: usize) {
    let site = rings.define(Kind::Site, b"site");
    assert!(site.is_ok(), "its room was reserved");
    assert!(log(rings, &number.to_ne_bytes(), NO_WAIT));
    let mut drainer = rings.drainer().unwrap();
    let found: Vec<_> = drainer.rings().iter_mut().filter_map(|ring| Some(payload(&ring.next_entry()?.unwrap()))).collect();
    assert!(found.contains(&number.to_ne_bytes().to_vec()), "{found:?}");
}

fn with_little_room(directory: &Path) {
    let rings = Rings::open(settings(Some(directory.join("rings")))).unwrap();
    assert!(rings.storage().is_crash_safe());
    fill(directory, 0);
    logs(&rings, 1);
    let RingStorage::Memory { why } = rings.storage() else { panic!("there was no room for a ring") };
    assert!(why.contains("ring-0") && why.contains("No space left"), "{why}");

    // The next life finds no room for its files.
    let rings = Rings::open(settings(Some(directory.join("other")))).unwrap();
    let RingStorage::Memory { why } = rings.storage() else { panic!("there was no room at all") };
    assert!(why.contains("No space left"), "{why}");
    logs(&rings, 2);
}

#[test]
#[ignore = "mounts a file system, which needs root: make test-all"]
fn without_room_the_rings_are_in_memory_and_say_so() {
    if let Some(directory) = std::env::var_os(SMALL) {
        return with_little_room(Path::new(&directory));
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    let script = r#"mount -t tmpfs -o size=1m tmpfs "$1" && chmod 700 "$1" && exec "$2" --ignored --exact "$3""#;
    command.args(["--mount", "--", "sh", "-c", script, "sh"]).arg(directory.path()).arg(std::env::current_exe().unwrap());
    command.arg("without_room_the_rings_are_in_memory_and_say_so").env(SMALL, directory.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
}
