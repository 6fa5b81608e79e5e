//! Kills processes that log, at random moments, and counts what is left: `cargo run -p tampu-ring --release --example
//! crash -- --kills 200`. `TAMPU_SEED=n` repeats the moments.

#[path = "../tests/support/crash.rs"]
mod crash;

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    crash::be_the_victim();
    let mut arguments = std::env::args().skip(1);
    let kills = match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => 200,
        (Some("--kills"), Some(Ok(kills))) => kills,
        _ => {
            eprintln!("usage: crash [--kills N]");
            return ExitCode::FAILURE;
        }
    };
    let seed = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(std::process::id().into());
    println!("seed {seed}; a third of the victims is drained by nobody, from outside, by itself");
    let program = std::env::current_exe().expect("this program has a path");
    let totals = crash::kill(kills, seed, &crash::memory(), || Command::new(&program));
    println!(
        "{} calls/s; {} records handed off again under their own name; {} calls refused, {} reported",
        totals.calls_a_second(),
        totals.again,
        totals.refused,
        totals.reported
    );
    println!(
        "kills={} produced={} recovered={} unread={} lost={} doubled={}",
        totals.kills, totals.produced, totals.recovered, totals.unread, totals.lost, totals.doubled
    );
    if totals.lost + totals.doubled == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
