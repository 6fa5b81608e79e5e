//! Processes that log are killed: every record whose call had returned is in the archive, once. The victims are this program.

#[path = "support/victims.rs"]
mod victims;

use std::process::Command;

/// Not a test: what a victim does until it is killed.
#[test]
fn victim() {
    victims::be_the_victim();
}

#[test]
fn what_was_logged_before_a_kill_is_kept_once() {
    let seed = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(std::process::id().into());
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "victim", "--nocapture"]);
    let totals = victims::kill(6, seed, &program);
    println!("seed {seed}: {totals}");
    assert!(totals.produced > 0 && totals.unread > 0, "seed {seed}: {totals}");
    assert_eq!((totals.lost, totals.doubled), (0, 0), "seed {seed}: {totals}");
}
