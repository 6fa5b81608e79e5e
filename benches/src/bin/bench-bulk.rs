//! `bench-bulk`: bulk data beside its peers. See the README of this directory.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use serde_json::json;
use tampu_benches::{
    bulk::{
        alma,
        carrier::{CARRIERS, Carrier},
        figures, gigabit, goal, linear, memory,
        row::{Row, measure},
        sample::Sample,
        verdict::Verdict,
    },
    perf_log::beside,
    system::Role,
    table::{Table, count, parse_size, size},
};

/// Measures bulk data beside a raw loop, iperf3, libzmq and a question for each block: payload bytes a second at the
/// slowest receiver.
#[derive(Debug, Parser)]
#[command(name = "bench-bulk")]
struct Options {
    #[command(subcommand)]
    role: Option<Hidden>,
    /// Seconds that each sample sends; 1, and 600 with --alma
    #[arg(long, value_parser = a_time)]
    seconds: Option<f64>,
    /// Number of samples that make a point.
    #[arg(long, default_value_t = 5)]
    samples: usize,
    /// Only these, by name or part of it (`tcp`, `shm,raw`, `gigabit`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Numbers of receivers.
    #[arg(long, value_delimiter = ',', default_value = "1,2,5,10")]
    receivers: Vec<usize>,
    /// Sizes of blocks.
    #[arg(long, value_delimiter = ',', default_value = "4K,64K,1M,16M,64M", value_parser = parse_size)]
    sizes: Vec<usize>,
    /// ALMA's load instead: 64 MB/s for --seconds, and four senders with bursts of 180 MB at 70 MB/s.
    #[arg(long)]
    alma: bool,
    /// Draw the figures into this directory.
    #[arg(long)]
    figures: Option<PathBuf>,
    /// One JSON object a row on standard output instead of tables.
    #[arg(long)]
    json: bool,
    /// Print the measurements, and end.
    #[arg(long)]
    list: bool,
    /// The program to measure; the one beside this one if not said.
    #[arg(long)]
    tampu: Option<PathBuf>,
}

/// Seconds that a sample sends by default.
const SECONDS: f64 = 1.0;
/// Name in `--only` of the part between network namespaces.
const GIGABIT: &str = "gigabit";

fn a_time(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 1e6);
    seconds.ok_or_else(|| "not a number of seconds above 0".to_owned())
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
            eprintln!("bench-bulk: {why}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    if options.list {
        CARRIERS.iter().for_each(|carrier| println!("{:<14}  {}", carrier.name, carrier.about));
        println!("{GIGABIT:<14}  tcp with and without hand-shake over a wire of 1 Gbit/s between network namespaces");
        return Ok(());
    }
    if options.alma {
        return options.alma();
    }
    let gigabit = options.only.is_empty() || options.only.iter().any(|pattern| GIGABIT.contains(pattern.as_str()));
    let chosen: Vec<Carrier> = CARRIERS.iter().filter(|carrier| carrier.is_meant_by(&options.only)).copied().collect();
    if chosen.is_empty() && !gigabit {
        return Err(format!("nothing matches {}; --list shows all names", options.only.join(" or ")));
    }
    let memory = memory::bandwidth();
    eprintln!("memory, read by all processors: {:.1} GB/s", memory / 1e9);
    let mut rows = Vec::new();
    for &size_of in &options.sizes {
        for &receivers in &options.receivers {
            for carrier in chosen.iter().filter(|carrier| receivers <= carrier.receivers) {
                options.row(*carrier, size_of, receivers, &mut rows);
            }
        }
    }
    let mut verdicts = goal::verdicts(&rows, memory);
    if !options.json && !rows.is_empty() {
        println!("{}", table(&rows));
        if options.sizes.len() > 2 {
            println!("{}", lines(&rows).render());
        }
    }
    if gigabit {
        options.gigabit(&mut verdicts);
    }
    options.judge(&verdicts);
    if let Some(directory) = &options.figures {
        let written = figures::write(&rows, directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        eprintln!("{}: {}", directory.display(), if written.is_empty() { "no figures".to_owned() } else { written.join(", ") });
    }
    Ok(())
}

impl Options {
    fn tampu(&self) -> PathBuf {
        self.tampu.clone().unwrap_or_else(beside)
    }

    fn alma(&self) -> Result<(), String> {
        let seconds = self.seconds.unwrap_or(alma::SECONDS);
        let loads = alma::measure(&self.tampu(), seconds, |load| {
            if self.json {
                println!("{}", load.line());
            }
        })?;
        if !self.json {
            println!("{}", alma::table(&loads).render());
        }
        self.judge(&loads.iter().flat_map(alma::Load::verdicts).collect::<Vec<_>>());
        Ok(())
    }

    /// Measures between network namespaces. If the host allows none, this is reported and does not fail the other
    /// parts.
    fn gigabit(&self, verdicts: &mut Vec<Verdict>) {
        match gigabit::measure(&self.tampu(), self.samples, self.seconds.unwrap_or(SECONDS)) {
            Ok(pairs) => {
                verdicts.extend(pairs.iter().filter_map(gigabit::Pair::verdict));
                if self.json {
                    pairs.iter().for_each(|pair| println!("{}", pair.line()));
                } else {
                    println!("{}", gigabit::table(&pairs).render());
                }
            }
            Err(why) => eprintln!("1 Gbit/s between namespaces: NOT MEASURED: {why}"),
        }
    }

    fn judge(&self, verdicts: &[Verdict]) {
        if self.json {
            verdicts.iter().for_each(|verdict| println!("{}", verdict.line()));
        } else if !verdicts.is_empty() {
            println!("{}", goal::table(verdicts).render());
        }
    }

    fn row(&self, carrier: Carrier, size_of: usize, receivers: usize, rows: &mut Vec<Row>) {
        let label = format!("{:<14} {:>6} to {receivers:<2}", carrier.name, size(size_of));
        let (tampu, seconds) = (self.tampu(), self.seconds.unwrap_or(SECONDS));
        let mut samples = Vec::new();
        for _ in 0..self.samples.max(1) {
            match measure(&tampu, carrier, size_of, receivers, seconds) {
                Ok(sample) => samples.push(sample),
                Err(why) => {
                    eprintln!("{label}  failed: {why}");
                    if self.json {
                        println!("{}", json!({"carrier": carrier.name, "size": size_of, "receivers": receivers, "failed": why}));
                    }
                    return;
                }
            }
        }
        let row = Row { carrier, size: size_of, receivers, samples };
        let (rate, error) = row.rate();
        let bad = if row.is_clean() { "" } else { "  LOST OR WRONG" };
        eprintln!("{label}  {:>7}B/s +- {:.1} %{bad}", count(rate), 100.0 * error / rate);
        if self.json {
            println!("{}", line(&row));
        }
        rows.push(row);
    }
}

fn line(row: &Row) -> serde_json::Value {
    let (rate, error) = row.rate();
    json!({
        "carrier": row.carrier.name,
        "ours": row.carrier.is_ours(),
        "size": row.size,
        "receivers": row.receivers,
        "bytes_per_s": rate,
        "error": error,
        "lost": row.of(|sample| sample.lost),
        "wrong": row.of(|sample| sample.wrong),
        "cpu_s": sides(row, |sample| sample.cpu),
        "rss_mb": sides(row, |sample| sample.rss_mb),
        "samples": row.samples,
    })
}

fn sides(row: &Row, of: fn(&Sample) -> [f64; 3]) -> serde_json::Value {
    let side = |side: usize| row.of(|sample| of(sample)[side]);
    json!({"sender": side(0), "between": side(1), "receivers": side(2)})
}

fn table(rows: &[Row]) -> String {
    let headings = [
        "blocks",
        "size",
        "receivers",
        "MB/s",
        "+-",
        "of raw",
        "cpu %: sender",
        "between",
        "receivers",
        "MB: sender",
        "between",
        "receivers",
        "",
    ];
    let mut table = Table::new(&headings);
    for row in rows {
        let reference = if row.carrier.name.ends_with("-relay") { "raw-relay" } else { "raw-blocks" };
        let raw = |other: &&Row| other.carrier.name == reference && (other.size, other.receivers) == (row.size, row.receivers);
        let of_raw = rows.iter().find(raw).map_or("-".to_owned(), |raw| format!("{:.2}", row.rate().0 / raw.rate().0));
        let (rate, error) = row.rate();
        let load = |side: usize| count(100.0 * row.of(|sample| sample.cpu[side] / sample.seconds));
        let memory = |side: usize| count(row.of(|sample| sample.rss_mb[side]));
        table.row(vec![
            row.carrier.name.to_owned(),
            size(row.size),
            row.receivers.to_string(),
            count(rate / 1e6),
            count(error / 1e6),
            of_raw,
            load(0),
            load(1),
            load(2),
            memory(0),
            memory(1),
            memory(2),
            if row.is_clean() { String::new() } else { "LOST OR WRONG".to_owned() },
        ]);
    }
    table.render()
}

/// Returns a table of the linear fits: the cost of a block before its first byte, the cost of each byte, and the
/// deviation.
fn lines(rows: &[Row]) -> Table {
    let mut table = Table::new(&["time of a block, one receiver", "us", "ns/KB", "farthest from the line %", "at"]);
    for carrier in CARRIERS {
        if let Some(line) = linear::of(rows, carrier.name) {
            table.row(vec![
                carrier.name.to_owned(),
                format!("{:.1}", 1e6 * line.base),
                format!("{:.1}", 1024e9 * line.slope),
                format!("{:.1}", 100.0 * line.deviation),
                size(line.at as usize),
            ]);
        }
    }
    table
}
