//! Kills processes that log, with a real node, collector and archive at work, and counts what the archive has of them:
//! `cargo run -p tampu-log --release --example crash_test -- --kills 200`. `TAMPU_SEED=n` repeats the moments.

#[path = "../tests/support/victims.rs"]
mod victims;

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    victims::be_the_victim();
    let mut arguments = std::env::args().skip(1);
    let kills = match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => 200,
        (Some("--kills"), Some(Ok(kills))) => kills,
        _ => {
            eprintln!("usage: crash_test [--kills N]");
            return ExitCode::from(2);
        }
    };
    let seed = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(std::process::id().into());
    println!("seed {seed}");
    let program = Command::new(std::env::current_exe().expect("this program has a path"));
    let totals = victims::kill(kills, seed, &program);
    println!("{:.0} calls/s while watched", totals.produced as f64 / (totals.ns as f64 / 1e9));
    println!("{totals}");
    if totals.lost + totals.doubled == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
