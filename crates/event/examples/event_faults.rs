//! Kills the source of events at random, stops it, stops and puts to sleep one of three subscribers, starts two sources of one
//! attribute, kills the node; and counts number by number what the subscribers were given:
//! `make event-faults KILLS=1000`. `TAMPU_SEED=n` repeats the moments.

#[path = "../tests/faults/mod.rs"]
mod faults;

use std::{
    process::{Command, ExitCode},
    time::Duration,
};

use faults::{killed, node_killed, part, rivals, seed, stopped};

fn main() -> ExitCode {
    part::be_a_part();
    let mut arguments = std::env::args().skip(1);
    let kills: u64 = match (arguments.next().as_deref(), arguments.next().map(|number| number.parse())) {
        (None, _) => 1000,
        (Some("--kills"), Some(Ok(kills))) => kills,
        _ => {
            eprintln!("usage: event_faults [--kills N]");
            return ExitCode::from(2);
        }
    };
    let seed = seed();
    println!("seed {seed}");
    let program = || Command::new(std::env::current_exe().expect("this program has a path"));
    let mut good = true;
    let mut tell = |text: String, whole: bool| {
        println!("{text}{}", if whole { "" } else { "  NOT WHOLE" });
        good &= whole;
    };
    let stop = stopped::source(program());
    tell(stop.to_string(), stop.totals.is_whole());
    for behind in [
        stopped::subscriber(program(), 20_000, Duration::from_secs(7)),
        stopped::sleeper(program(), Duration::from_secs(5), 0),
        stopped::sleeper(program(), Duration::from_secs(5), 2000),
    ] {
        tell(behind.to_string(), behind.behind.is_whole() && behind.others.iter().all(|totals| totals.is_whole()));
    }
    let told = rivals::second(program());
    tell(format!("a second source: {told}"), true);
    let (told, totals) = rivals::both_at_once(program());
    tell(format!("two sources at once: told={told} {totals}"), told == 1 && totals.is_whole());
    let (word, totals) = rivals::redundant(program());
    tell(format!("redundant sources, one killed: {totals} words: {}", word.join(", ")), totals.is_whole());
    let (word, bad) = rivals::redundant_hangs(program());
    tell(format!("redundant sources, one hangs: twice or wrong={bad} words: {}", word.join(", ")), bad == 0);
    let (told, totals) = rivals::same_name(program());
    tell(format!("one name twice: {told}; {totals}"), totals.is_whole());
    let node = node_killed::kill(kills.div_ceil(20), seed, program());
    tell(node.to_string(), node.totals.is_whole());
    let killed = killed::kill(kills, seed, program());
    tell(killed.to_string(), killed.totals.is_whole());
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
