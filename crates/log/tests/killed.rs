//! Node and collector are killed at random while processes log: nothing is lost, nothing is there twice. `make kill-test` does it a
//! hundred times, as does `KILLS=100` here.

#[path = "support/kills.rs"]
mod kills;

use std::process::Command;

/// Not a test: what the processes do that this program starts.
#[test]
fn child_process() {
    kills::be_a_part();
}

#[test]
#[ignore = "takes half a minute: make test-all"]
fn killed_ten_times_nothing_is_lost_and_nothing_twice() {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "child_process", "--nocapture"]);
    let seed = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(std::process::id().into());
    println!("seed {seed}");
    let kills = std::env::var("KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(10);
    let totals = kills::kill(kills, seed, &program);
    println!("{totals}");
    assert_eq!((totals.lost, totals.doubled, totals.dropped), (0, 0, 0), "seed {seed}: {totals}");
    assert!(totals.produced > 1000);
}
