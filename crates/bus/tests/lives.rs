//! A node and a process that stays keep nothing of thousands of others, however these end.

use std::{path::Path, process::Command};

#[path = "support/lives.rs"]
mod lives;

use lives::{After, Part, measure, take_part};

/// Set in the processes of the measurement: the part and the run-time directory.
const PART: &str = "TAMPU_LIVES_TEST_PART";
const DIRECTORY: &str = "TAMPU_LIVES_TEST_DIRECTORY";

/// Not a test: what a process of the measurement does.
#[test]
fn be_a_part() {
    if let (Ok(part), Some(directory)) = (std::env::var(PART), std::env::var_os(DIRECTORY)) {
        take_part(Part::of(&part).unwrap(), Path::new(&directory)).unwrap();
    }
}

fn after_lives(lives: u64, kill: bool) -> Vec<After> {
    let directory = tempfile::tempdir().unwrap();
    let start = |part: Part| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "be_a_part", "--nocapture"]).env(PART, part.word()).env(DIRECTORY, directory.path());
        command
    };
    let mut all = Vec::new();
    measure(directory.path(), (lives, 2), kill, start, |after| {
        println!("{after:?}");
        all.push(after);
    })
    .unwrap();
    all
}

/// The first half fills what the allocator keeps for later; the node's goes on to fill for some thousand lives, at about 1 KiB a
/// life. Keys that stay took 5 KiB a life at the node, and 2.5 KiB at the other process.
fn check(after: &[After], lives: u64) {
    let [_, middle, end] = after else { panic!("{after:?}") };
    let grown = |of: fn(&After) -> u64| of(end).saturating_sub(of(middle));
    let (node, observer) = (grown(|after| after.node.kib), grown(|after| after.observer.kib));
    assert!(node < 5 * lives / 2 && observer < lives / 2, "{after:?}");
    let others = |after: &After| (after.node.files, after.observer.files, after.entries);
    assert_eq!(others(end), others(middle), "{after:?}");
}

#[test]
#[ignore = "two thousand processes take minutes: make test-all"]
fn killed_processes_leave_nothing_behind() {
    check(&after_lives(2000, true), 1000);
}

#[test]
#[ignore = "two thousand processes take minutes: make test-all"]
fn processes_that_left_leave_nothing_behind() {
    check(&after_lives(2000, false), 1000);
}
