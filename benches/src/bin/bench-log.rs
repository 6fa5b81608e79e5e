//! `bench-log`: log records end to end beside NATS and rsyslog. See the README of this directory.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, Subcommand};
use serde_json::json;
use tampu_benches::{
    cell::Cell as PeerCell,
    disk,
    log_line::{
        plan::{self, Cell, EXTREMES, RECORD, SIZES, Times, What},
        report,
        row::Row,
    },
    perf_log::{self, Ask},
    role::Speed,
    system::Role,
    table::{count, parse_size},
};

/// Measures log records end to end beside NATS and rsyslog: into the write-ahead segment, and live only.
#[derive(Debug, Parser)]
#[command(name = "bench-log")]
struct Options {
    #[command(subcommand)]
    role: Option<Hidden>,
    /// Time for which each cell writes.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Seconds of writing into the segment with one client, for the promise about half a minute
    #[arg(long, default_value_t = 30.0)]
    long_seconds: f64,
    /// Instead: half a minute as fast as it goes, then ten minutes at 200 000 records a second (30 GB on the disk).
    #[arg(long)]
    sustained: bool,
    /// Seconds of the sustained load
    #[arg(long, default_value_t = 600.0)]
    sustained_seconds: f64,
    /// A moment of everything: 0 and 1 client, the shortest and the longest records.
    #[arg(long)]
    short: bool,
    /// Only rows whose name holds one of these (`stored`, `nats-100`, `rsyslog`), or of these parts (`clients`,
    /// `sizes`, `immediate`, `stopped`, `acknowledged`, `sustained`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2,5,10")]
    clients: Vec<usize>,
    /// Bytes of records where these are compared.
    #[arg(long, value_delimiter = ',', value_parser = parse_size)]
    sizes: Vec<usize>,
    /// Directory for segments: the disk that is measured
    #[arg(long)]
    data: Option<PathBuf>,
    /// The program to measure; the one beside this one if not given.
    #[arg(long)]
    tampu: Option<PathBuf>,
    /// One JSON object a cell on standard output instead of tables.
    #[arg(long)]
    json: bool,
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
            eprintln!("bench-log: {why}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    let cells: Vec<Cell> = options.cells().into_iter().filter(|cell| cell.is_meant_by(&options.only)).collect();
    if cells.is_empty() {
        return Err(format!("no row is called like {}", options.only.join(" or ")));
    }
    let made = disk::data_dir().map_err(|e| format!("a directory for segments: {e}; --data names another"))?;
    let data = options.data.as_deref().unwrap_or(made.path());
    let disk = disk::measure(data, Duration::from_secs(2)).map_err(|e| format!("{}: {e}", data.display()))?;
    eprintln!(
        "disk at {} ({}): {:.0} MB/s with fdatasync every 50 ms (median {:.0} ms, longest {:.0} ms): at most {} records/s of {RECORD} B",
        data.display(),
        disk::kind(data),
        disk.mb_per_s,
        disk.sync_p50_ms,
        disk.sync_max_ms,
        count(disk.mb_per_s * 1e6 / RECORD as f64),
    );
    if options.json {
        println!(
            "{}",
            json!({"disk_mb_per_s": disk.mb_per_s, "fdatasync_ms": {"p50": disk.sync_p50_ms, "max": disk.sync_max_ms}})
        );
    }
    let mut rows = Vec::new();
    for cell in &cells {
        match options.measure(cell, data) {
            Ok(row) => {
                eprintln!("{}  {:>7}/s  {}", cell.title(), count(row.records_per_s), row.bad());
                if options.json {
                    println!("{}", row.json());
                }
                rows.push(row);
            }
            Err(why) => {
                eprintln!("{}  failed: {why}", cell.title());
                if options.json {
                    println!(
                        "{}",
                        json!({"part": cell.part.name(), "system": cell.name, "clients": cell.clients, "failed": why})
                    );
                }
            }
        }
    }
    if !options.json {
        print!("{}", report::render(&rows, disk.mb_per_s));
    }
    Ok(())
}

impl Options {
    fn cells(&self) -> Vec<Cell> {
        let sizes: &[usize] = match (self.sizes.as_slice(), self.short) {
            ([], true) => &EXTREMES,
            ([], false) => &SIZES,
            (sizes, _) => sizes,
        };
        let times = if self.short {
            Times { seconds: self.seconds.min(0.5), long: self.long_seconds.min(1.0), sustained: self.sustained_seconds.min(2.0) }
        } else {
            Times { seconds: self.seconds, long: self.long_seconds, sustained: self.sustained_seconds }
        };
        let clients: &[usize] = if self.short { &[0, 1][..] } else { &self.clients };
        if self.sustained { plan::sustained(times) } else { plan::cells(clients, sizes, times) }
    }

    fn measure(&self, cell: &Cell, data: &Path) -> Result<Row, String> {
        match cell.what {
            What::Ours(ours) => {
                let tampu = self.tampu.clone().unwrap_or_else(perf_log::beside);
                let memory = ours.in_memory.then(disk::run_dir).transpose().map_err(|e| format!("a directory in memory: {e}"))?;
                let data = memory.as_ref().map_or(data, |dir| dir.path());
                let ask = Ask { data: ours.stored.then_some(data), ..ours.ask(cell) };
                Ok(Row::ours(cell, &perf_log::run(&tampu, ask)?))
            }
            What::Peer(system) => {
                let time = Duration::from_secs_f64(cell.seconds);
                let outcome = PeerCell { system, size: cell.size, readers: cell.clients, speed: Speed::Full, time }.run()?;
                Ok(Row::peer(cell, &outcome))
            }
        }
    }
}
