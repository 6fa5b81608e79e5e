//! Kills a host's node and its collector at random while processes log, and counts what the archive has of them:
//! `cargo run -p tampu-log --release --example kill_test -- --kills 100`. `TAMPU_SEED=n` repeats the moments.

#[path = "../tests/support/kills.rs"]
mod kills;

use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    kills::be_a_part();
    let mut arguments = std::env::args().skip(1);
    let kills = match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => 100,
        (Some("--kills"), Some(Ok(kills))) => kills,
        _ => {
            eprintln!("usage: kill_test [--kills N]");
            return ExitCode::from(2);
        }
    };
    let seed = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(std::process::id().into());
    println!("seed {seed}");
    let program = Command::new(std::env::current_exe().expect("this program has a path"));
    let totals = kills::kill(kills, seed, &program);
    println!("{totals}");
    if totals.lost + totals.doubled + totals.dropped == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
