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

/// Lives of one step.
const LIVES: u64 = 1000;
/// Steps at most. What the allocator keeps for later grows by 1.0, 0.8 and 0.5 MiB in the second to fourth step, now and then by
/// twice as much in one of them.
const STEPS: u64 = 6;

/// Lets a thousand processes live at a time, until a thousand of them leave little: fails when none do.
///
/// Keys that stay took 5 KiB a life at the node in every step, and 2.5 KiB at the other process.
fn check(kill: bool) {
    let directory = tempfile::tempdir().unwrap();
    let start = |part: Part| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "be_a_part", "--nocapture"]).env(PART, part.word()).env(DIRECTORY, directory.path());
        command
    };
    let mut all: Vec<After> = Vec::new();
    measure(directory.path(), (LIVES * STEPS, STEPS), kill, start, |after| {
        println!("{after:?}");
        all.push(after);
        !leaves_little(&all)
    })
    .unwrap();
    assert!(leaves_little(&all), "{all:?}");
    let others = |after: &After| (after.node.files, after.observer.files, after.entries);
    let [.., last, end] = &all[..] else { unreachable!() };
    assert_eq!(others(end), others(last), "{all:?}");
}

/// Returns true if the last of these steps left little. The first never counts: it fills what the allocator keeps.
fn leaves_little(all: &[After]) -> bool {
    let [_, .., last, end] = all else { return false };
    let grown = |of: fn(&After) -> u64| of(end).saturating_sub(of(last));
    grown(|after| after.node.kib) < 5 * LIVES / 2 && grown(|after| after.observer.kib) < LIVES / 2
}

#[test]
#[ignore = "thousands of processes take minutes: make test-all"]
fn killed_processes_leave_nothing_behind() {
    check(true);
}

#[test]
#[ignore = "thousands of processes take minutes: make test-all"]
fn processes_that_left_leave_nothing_behind() {
    check(false);
}
