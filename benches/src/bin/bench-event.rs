//! `bench-event`: attribute events beside real Tango and raw carriers. See the README of this directory.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::{Parser, Subcommand};
use serde_json::json;
use tampu_benches::{
    cell::Cell as RawCell,
    event::{
        ours,
        plan::{self, Cell, Part, Who},
        report,
        row::{Figures, Row},
        tango::Tango,
    },
    perf_log,
    role::Speed,
    system::Role,
    table::count,
};

/// Measures attribute events beside Tango in C++ and Python, libzmq and zenoh: the paper's table, single events, many
/// attributes.
#[derive(Debug, Parser)]
#[command(name = "bench-event")]
struct Options {
    #[command(subcommand)]
    role: Option<Hidden>,
    /// Time for which each cell pushes.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// Only these parts (`table`, `small`, `latency`, `many`) or these systems, by name or part of it (`tampu`,
    /// `zenoh-router`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// None of these, likewise.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_value = "1,2,5,10")]
    clients: Vec<usize>,
    /// DevLong of a value.
    #[arg(long, value_delimiter = ',', default_value = "1,1024,262144")]
    elements: Vec<usize>,
    /// A moment of everything, with one and two clients.
    #[arg(long)]
    smoke: bool,
    /// Look for the highest rate at which Tango loses nothing, and compare with that.
    #[arg(long)]
    lossless: bool,
    /// The program to measure; the one beside this one if not given.
    #[arg(long)]
    tampu: Option<PathBuf>,
    /// The Python that has PyTango.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// One JSON object a cell on standard output instead of tables.
    #[arg(long)]
    json: bool,
    /// Print the systems that are measured, and end.
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
            eprintln!("bench-event: {why}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    if options.list {
        for player in plan::players() {
            println!("{:<18}  {}", player.name, player.about);
        }
        return Ok(());
    }
    let (clients, seconds) =
        if options.smoke { (&[1, 2][..], options.seconds.min(0.3)) } else { (&options.clients[..], options.seconds) };
    let excluded = |cell: &Cell| !options.without.is_empty() && cell.is_meant_by(&options.without);
    let cells = plan::cells(clients, &options.elements, seconds).into_iter();
    // Parts and systems are two kinds of patterns: a cell must match one of each given kind.
    let (parts, systems): (Vec<String>, Vec<String>) = options.only.iter().cloned().partition(|word| Part::is_name(word));
    let cells: Vec<Cell> =
        cells.filter(|cell| cell.is_meant_by(&parts) && cell.is_meant_by(&systems) && !excluded(cell)).collect();
    if cells.is_empty() {
        return Err(format!("nothing matches {}; --list shows all names", options.only.join(" or ")));
    }
    let mut rows = Vec::new();
    for cell in cells {
        match options.measure(&cell) {
            Ok(figures) => {
                let row = Row { cell, figures };
                eprintln!("{}  {}", cell.title(), in_short(&row));
                if options.json {
                    println!("{}", row.json());
                }
                rows.push(row);
            }
            Err(why) => {
                eprintln!("{}  NOT MEASURED: {why}", cell.title());
                if options.json {
                    let Cell { part, player, elements, clients, .. } = cell;
                    println!(
                        "{}",
                        json!({"part": part.name(), "system": player.name, "elements": elements, "clients": clients, "failed": why})
                    );
                }
            }
        }
    }
    if !options.json {
        print!("{}", report::render(&rows));
    }
    Ok(())
}

fn in_short(row: &Row) -> String {
    let text = match row.figures.latency_us {
        Some([p50, p99, longest]) => format!("p50 {p50:.0} us, p99 {p99:.0} us, longest {longest:.0} us"),
        None => format!("{:>7}/s", count(row.figures.events_per_s)),
    };
    format!("{text}  {}", row.bad()).trim_end().to_owned()
}

impl Options {
    fn measure(&self, cell: &Cell) -> Result<Figures, String> {
        match cell.player.who {
            Who::Ours(delivery) => {
                let tampu = self.tampu.clone().unwrap_or_else(perf_log::beside);
                ours::run(&tampu, delivery, cell)
            }
            Who::Tango(peer) => Tango { python: self.python.clone(), lossless: self.lossless }.run(peer, cell),
            Who::Raw(system) => {
                let speed = if cell.part == Part::Latency { Speed::Paced } else { Speed::Full };
                let time = Duration::from_secs_f64(cell.seconds);
                let outcome = RawCell { system, size: cell.raw_bytes(), readers: cell.clients, speed, time }.run()?;
                let server = system.server.then_some(outcome.cpu_server);
                Ok(Figures {
                    pushed: outcome.sent as f64,
                    events_per_s: outcome.per_second,
                    lost: outcome.lost as f64,
                    wrong: outcome.wrong as f64,
                    seconds: if outcome.per_second > 0.0 { outcome.sent as f64 / outcome.per_second } else { cell.seconds },
                    cpu_s: [Some(outcome.cpu_writer), server, Some(outcome.cpu_readers)],
                    latency_us: outcome.latency,
                    ..Figures::default()
                })
            }
        }
    }
}
