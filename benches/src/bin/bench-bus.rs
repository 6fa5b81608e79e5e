//! `bench-bus`: the bus beside its peers. See the README of this directory.

use std::{process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use serde_json::json;
use tampu_benches::{
    cell::{Cell, Outcome},
    goal::{self, Done},
    role::Speed,
    system::{Role, SYSTEMS, System},
    table::{Table, count, parse_size, size},
};

/// Measures the bus beside raw zenoh, libzmq and socket loops: messages a second at the slowest reader, and latency.
#[derive(Debug, Parser)]
#[command(name = "bench-bus")]
struct Options {
    #[command(subcommand)]
    role: Option<Hidden>,
    /// Time for which each cell writes.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only these systems, by name or part of it (`tampu`, `zenoh-router,raw`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of readers.
    #[arg(long, value_delimiter = ',', default_value = "1,2,5,10")]
    readers: Vec<usize>,
    /// Sizes of the payloads
    #[arg(long, value_delimiter = ',', default_value = "92,4K,1M", value_parser = parse_size)]
    sizes: Vec<usize>,
    /// Leave rates out.
    #[arg(long)]
    no_rates: bool,
    /// Leave latencies out.
    #[arg(long)]
    no_latency: bool,
    /// One JSON object a cell on standard output instead of tables.
    #[arg(long)]
    json: bool,
    /// Print the systems, and end.
    #[arg(long)]
    list: bool,
}

#[derive(Debug, Subcommand)]
enum Hidden {
    /// Plays a part in a cell.
    #[command(hide = true)]
    Role(Role),
}

fn main() -> ExitCode {
    let options = Options::parse();
    let ended = match &options.role {
        Some(Hidden::Role(role)) => role.play(),
        None => bench(&options),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench-bus: {why}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    if options.list {
        for system in SYSTEMS {
            println!("{:<18}  {}", system.name, system.about);
        }
        return Ok(());
    }
    let chosen: Vec<System> = SYSTEMS.iter().filter(|system| system.is_meant_by(&options.only)).copied().collect();
    if chosen.is_empty() {
        return Err(format!("no system is called like {}; --list shows them", options.only.join(" or ")));
    }
    let mut done = Vec::new();
    if !options.no_rates {
        for &size in &options.sizes {
            for &readers in &options.readers {
                let cells = chosen.iter().filter(|system| size >= system.from_size);
                options.run(cells.map(|system| (*system, size, readers, Speed::Full)), &mut done);
            }
        }
    }
    if !options.no_latency {
        for &readers in options.readers.iter().filter(|readers| [1, 10].contains(*readers)) {
            let cells = chosen.iter().filter(|system| system.latency);
            options.run(cells.map(|system| (*system, LATENCY_SIZE, readers, Speed::Paced)), &mut done);
        }
    }
    if !options.json {
        println!("{}", rates(&done, options));
        println!("{}", latencies(&done));
        if let Some(goals) = goal::table(&done) {
            println!("{}", goals.render());
        }
    }
    Ok(())
}

/// Payload size of single samples, which are small.
const LATENCY_SIZE: usize = 92;

impl Options {
    /// Runs related cells, and reports each result at once.
    fn run(&self, cells: impl Iterator<Item = (System, usize, usize, Speed)>, done: &mut Vec<Done>) {
        for (system, size_of, readers, speed) in cells {
            let time = Duration::from_secs_f64(self.seconds);
            let cell = Cell { system, size: size_of, readers, speed, time };
            let label = format!("{:<18} {:>6} to {readers:<2}", system.name, size(size_of));
            match cell.run() {
                Ok(outcome) => {
                    eprintln!("{label}  {}", in_short(&outcome));
                    if self.json {
                        println!("{}", line(&cell, &outcome));
                    }
                    done.push((cell, outcome));
                }
                Err(why) => {
                    eprintln!("{label}  failed: {why}");
                    if self.json {
                        println!("{}", json!({"system": system.name, "size": size_of, "readers": readers, "failed": why}));
                    }
                }
            }
        }
    }
}

fn in_short(outcome: &Outcome) -> String {
    let mut text = match outcome.latency {
        Some([p50, p99, max]) => format!("p50 {p50:.0} us, p99 {p99:.0} us, longest {max:.0} us"),
        None => format!("{:>7}/s", count(outcome.per_second)),
    };
    text.push_str(&bad(outcome));
    if let Some(note) = &outcome.note {
        text = format!("{text}  ({note})");
    }
    text
}

/// Returns the defects of the result, in words.
fn bad(outcome: &Outcome) -> String {
    let mut text = String::new();
    if outcome.lost > 0 {
        text = format!("{text}  LOST {} (told {})", outcome.lost, outcome.told);
    }
    if outcome.wrong > 0 {
        text = format!("{text}  WRONG {}", outcome.wrong);
    }
    text
}

fn line(cell: &Cell, outcome: &Outcome) -> serde_json::Value {
    json!({
        "system": cell.system.name,
        "size": cell.size,
        "readers": cell.readers,
        "paced": cell.speed == Speed::Paced,
        "seconds": cell.time.as_secs_f64(),
        "sent": outcome.sent,
        "messages_per_s": outcome.per_second,
        "lost": outcome.lost,
        "told": outcome.told,
        "wrong": outcome.wrong,
        "cpu_s": {"writer": outcome.cpu_writer, "server": outcome.cpu_server, "readers": outcome.cpu_readers},
        "latency_us": outcome.latency.map(|[p50, p99, max]| json!({"p50": p50, "p99": p99, "max": max})),
        "note": outcome.note,
    })
}

/// Returns Tampu's results without loss in the same cell.
fn ours<'a>(done: &'a [Done], like: &'a Cell) -> impl Iterator<Item = &'a Outcome> {
    let same =
        move |cell: &Cell| cell.system.ours && (cell.size, cell.readers, cell.speed) == (like.size, like.readers, like.speed);
    done.iter().filter(move |(cell, outcome)| same(cell) && outcome.lost + outcome.wrong == 0).map(|(_, outcome)| outcome)
}

fn rates(done: &[Done], options: &Options) -> String {
    let mut text = String::new();
    for &size_of in &options.sizes {
        let here: Vec<&Done> = done.iter().filter(|(cell, _)| cell.size == size_of && cell.speed == Speed::Full).collect();
        if here.is_empty() {
            continue;
        }
        let mut table = Table::new(&[
            &size(size_of),
            "readers",
            "messages/s",
            "MB/s",
            "ours/it",
            "cpu s: writer",
            "between",
            "readers",
            "us/message",
            "",
        ]);
        for (cell, outcome) in here {
            let best = ours(done, cell).map(|ours| ours.per_second).fold(f64::NAN, f64::max);
            let cpu = outcome.cpu_writer + outcome.cpu_server + outcome.cpu_readers;
            table.row(vec![
                cell.system.name.to_owned(),
                cell.readers.to_string(),
                count(outcome.per_second),
                count(outcome.per_second * cell.size as f64 / 1e6),
                if best.is_nan() { "-".to_owned() } else { format!("{:.2}", best / outcome.per_second) },
                format!("{:.2}", outcome.cpu_writer),
                if cell.system.server { format!("{:.2}", outcome.cpu_server) } else { "-".to_owned() },
                format!("{:.2}", outcome.cpu_readers),
                format!("{:.2}", cpu * 1e6 / outcome.sent.max(1) as f64),
                bad(outcome).trim().to_owned(),
            ]);
        }
        text.push_str(&table.render());
        text.push('\n');
    }
    text
}

fn latencies(done: &[Done]) -> String {
    let mut table = Table::new(&["one-way latency, us", "readers", "p50", "p99", "longest", "it/ours (p50)", ""]);
    for (cell, outcome) in done {
        let Some([p50, p99, max]) = outcome.latency else { continue };
        let best = ours(done, cell).filter_map(|ours| ours.latency).map(|[p50, ..]| p50).fold(f64::NAN, f64::min);
        table.row(vec![
            cell.system.name.to_owned(),
            cell.readers.to_string(),
            format!("{p50:.0}"),
            format!("{p99:.0}"),
            format!("{max:.0}"),
            if best.is_nan() { "-".to_owned() } else { format!("{:.2}", p50 / best) },
            bad(outcome).trim().to_owned(),
        ]);
    }
    table.render()
}
