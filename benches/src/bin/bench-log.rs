//! `bench-log`: log records end to end beside NATS. See the README of this directory.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use clap::{Parser, Subcommand};
use serde_json::json;
use tampu_benches::{
    cell::Cell,
    disk,
    perf_log::{self, Ask},
    role::Speed,
    system::{LOG_PEERS, Role},
    table::{Table, count},
};

/// A record's bytes, as in the paper that began this.
const RECORD: usize = 250;

/// Measures log records end to end beside NATS: into the write-ahead segment, and live only.
#[derive(Debug, Parser)]
#[command(name = "bench-log")]
struct Options {
    #[command(subcommand)]
    role: Option<Hidden>,
    /// How long each cell writes.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// How long records are written into the segment with one client, where the promise is about half a minute.
    #[arg(long, default_value_t = 30.0)]
    long_seconds: f64,
    /// Only rows whose name holds one of these (`stored`, `live`, `nats-100`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of clients.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2,5,10")]
    clients: Vec<usize>,
    /// Where segments go: the disk that is measured.
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

/// One line of the table.
#[derive(Debug, Clone)]
struct Row {
    name: &'static str,
    clients: usize,
    seconds: f64,
    records_per_s: f64,
    lost: u64,
    wrong: u64,
    cpu: Vec<(String, f64)>,
    /// Processor time of what stands between writer and clients, a record.
    between_us: Option<f64>,
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
    let made = disk::data_dir().map_err(|e| format!("a directory for segments: {e}; --data names another"))?;
    let data = options.data.as_deref().unwrap_or(made.path());
    let disk = disk::measure(data, Duration::from_secs(2)).map_err(|e| format!("{}: {e}", data.display()))?;
    eprintln!(
        "disk at {}: {:.0} MB/s with fdatasync every 50 ms (median {:.0} ms, longest {:.0} ms): at most {} records/s of {RECORD} B",
        data.display(),
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
    for &clients in &options.clients {
        let long = if clients == 1 { options.long_seconds } else { options.seconds };
        options.run("tampu-stored", clients, &mut rows, || options.ours("tampu-stored", clients, long, Some(data)));
        options.run("tampu-live", clients, &mut rows, || options.ours("tampu-live", clients, options.seconds, None));
        for peer in LOG_PEERS {
            options.run(peer.name, clients, &mut rows, || options.peer(peer.name, clients));
        }
    }
    if !options.json {
        println!("{}", table(&rows));
        if let Some(goals) = goals(&rows, disk.mb_per_s) {
            println!("{goals}");
        }
    }
    Ok(())
}

impl Options {
    /// Runs one cell if it is wanted, and tells of it.
    fn run(&self, name: &str, clients: usize, rows: &mut Vec<Row>, measure: impl FnOnce() -> Result<Row, String>) {
        if !self.only.is_empty() && !self.only.iter().any(|pattern| name.contains(pattern.as_str())) {
            return;
        }
        match measure() {
            Ok(row) => {
                eprintln!("{name:<14} {clients:>2} clients  {:>7}/s  {}", count(row.records_per_s), bad(&row));
                if self.json {
                    println!("{}", line(&row));
                }
                rows.push(row);
            }
            Err(why) => {
                eprintln!("{name:<14} {clients:>2} clients  failed: {why}");
                if self.json {
                    println!("{}", json!({"system": name, "clients": clients, "failed": why}));
                }
            }
        }
    }

    fn ours(&self, name: &'static str, clients: usize, seconds: f64, data: Option<&Path>) -> Result<Row, String> {
        let tampu = self.tampu.clone().unwrap_or_else(perf_log::beside);
        let said = perf_log::run(&tampu, Ask { data, clients, seconds })?;
        Ok(Row {
            name,
            clients,
            seconds,
            records_per_s: said.per_second(),
            lost: said.lost(),
            wrong: said.wrong(),
            between_us: said.between_us(),
            cpu: said.cpu(),
        })
    }

    fn peer(&self, name: &str, clients: usize) -> Result<Row, String> {
        let system = *LOG_PEERS.iter().find(|peer| peer.name == name).ok_or("unknown peer")?;
        let time = Duration::from_secs_f64(self.seconds);
        let outcome = Cell { system, size: RECORD, readers: clients, speed: Speed::Full, time }.run()?;
        let cpu = [("writer", outcome.cpu_writer), ("server", outcome.cpu_server), ("clients", outcome.cpu_readers)];
        Ok(Row {
            name: system.name,
            clients,
            seconds: self.seconds,
            records_per_s: outcome.per_second,
            lost: outcome.lost,
            wrong: outcome.wrong,
            between_us: Some(outcome.cpu_server * 1e6 / outcome.sent.max(1) as f64),
            cpu: cpu.map(|(name, seconds)| (name.to_owned(), seconds)).to_vec(),
        })
    }
}

fn bad(row: &Row) -> String {
    let lost = (row.lost > 0).then(|| format!("LOST {}", row.lost));
    let wrong = (row.wrong > 0).then(|| format!("WRONG {}", row.wrong));
    lost.into_iter().chain(wrong).collect::<Vec<_>>().join(" ")
}

fn line(row: &Row) -> serde_json::Value {
    let cpu: serde_json::Map<String, serde_json::Value> = row.cpu.iter().map(|(name, s)| (name.clone(), json!(s))).collect();
    json!({
        "system": row.name,
        "clients": row.clients,
        "seconds": row.seconds,
        "records_per_s": row.records_per_s,
        "lost": row.lost,
        "wrong": row.wrong,
        "cpu_s": cpu,
        "between_us_per_record": row.between_us,
    })
}

fn table(rows: &[Row]) -> String {
    let mut table = Table::new(&["250 B records", "clients", "records/s", "MB/s", "between us/record", "cpu s", ""]);
    for row in rows {
        let cpu: Vec<String> = row.cpu.iter().map(|(name, seconds)| format!("{name} {seconds:.2}")).collect();
        table.row(vec![
            row.name.to_owned(),
            row.clients.to_string(),
            count(row.records_per_s),
            count(row.records_per_s * RECORD as f64 / 1e6),
            row.between_us.map_or("-".to_owned(), |us| format!("{us:.3}")),
            cpu.join(", "),
            bad(row),
        ]);
    }
    table.render()
}

/// What we want, beside what came.
fn goals(rows: &[Row], disk_mb_per_s: f64) -> Option<String> {
    let find = |name: &str, clients: usize| rows.iter().find(|row| row.name == name && row.clients == clients);
    let mut table = Table::new(&["goal", "clients", "wanted", "measured", ""]);
    let mut any = false;
    let mut add = |goal: &str, clients: usize, wanted: String, measured: String, reached: bool| {
        any = true;
        let verdict = if reached { "reached" } else { "MISSED" };
        table.row(vec![goal.to_owned(), clients.to_string(), wanted, measured, verdict.to_owned()]);
    };
    if let Some(row) = find("tampu-stored", 1) {
        // On a slower disk than the promise is made for, the disk is the promise.
        const DISK: f64 = 300.0;
        let wanted = 1e6 * (disk_mb_per_s / DISK).min(1.0);
        let measured = format!("{}/s for {:.0} s {}", count(row.records_per_s), row.seconds, bad(row));
        add(
            "stored",
            1,
            format!(">= {}/s", count(wanted)),
            measured.trim().to_owned(),
            row.records_per_s >= wanted && row.lost == 0,
        );
    }
    for row in rows.iter().filter(|row| row.name == "tampu-live") {
        if let Some(nats) = find("nats-100", row.clients) {
            let measured = format!("{}/s {}", count(row.records_per_s), bad(row));
            let reached = row.records_per_s >= nats.records_per_s && row.lost == 0;
            add(
                "live",
                row.clients,
                format!(">= nats-100: {}/s", count(nats.records_per_s)),
                measured.trim().to_owned(),
                reached,
            );
        }
    }
    let us = |clients| find("tampu-stored", clients).and_then(|row| row.between_us);
    if let (Some(none), Some(ten)) = (us(0), us(10)) {
        let ratio = ten / none;
        let measured = format!("{ratio:.2} x ({none:.3}, {ten:.3} us)");
        add("collector's cpu a record", 10, "<= 1.1 x that with none".to_owned(), measured, ratio <= 1.1);
    }
    any.then(|| table.render())
}
