//! `bench-call`: what a log call costs, beside ACS's published figures and beside other loggers. See the README of this directory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use tampu_benches::{
    call::{
        cost,
        goal::{self, Measured},
        hub::Hub,
        network,
        paper::{self, Row, Sink},
        peer::{Known, PEERS, ours, spdlog},
        program::{self, Limits},
        role::{self, Role, Stage},
        summary::Summary,
        tsc::Scale,
    },
    disk, perf_log,
    table::{Table, count},
};

/// Measures what a log call costs: ACS's published table, the same with a far collector, and other loggers.
#[derive(Debug, Parser)]
#[command(name = "bench-call")]
struct Options {
    #[command(subcommand)]
    part: Option<Hidden>,
    /// Calls of a row or a round, all threads together.
    #[arg(long, default_value_t = 10_000)]
    calls: u64,
    /// Rounds in which each logger makes them.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Records that each logger takes without a pause.
    #[arg(long, default_value_t = 1_000_000)]
    records: u64,
    /// How long a row goes on waiting for an acknowledgement of every call, in seconds.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Numbers of threads.
    #[arg(long, value_delimiter = ',', default_value = "1,10")]
    threads: Vec<usize>,
    /// Only the published table (`table`) or loggers whose name holds one of these (`tampu`, `floor`, `spdlog`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Also with a collector in a network namespace, 1 ms away; says so where that cannot be had.
    #[arg(long)]
    network: bool,
    /// Where the collector's segments and the text go: the disk that is measured.
    #[arg(long)]
    data: Option<PathBuf>,
    /// The program to measure; the one beside this one if not given.
    #[arg(long)]
    tampu: Option<PathBuf>,
    /// The program that measures spdlog; the one beside this one if not given.
    #[arg(long)]
    spdlog: Option<PathBuf>,
    /// One JSON object a line of the tables on standard output instead of tables.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Hidden {
    /// Does something for the bench.
    #[command(hide = true, subcommand)]
    Role(Role),
}

fn main() -> ExitCode {
    let options = Options::parse();
    let ended = match &options.part {
        Some(Hidden::Role(role)) => role.play(),
        None => bench(&options),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench-call: {why}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    let made = disk::data_dir().map_err(|e| format!("a directory for segments: {e}; --data names another"))?;
    let data = options.data.as_deref().unwrap_or(made.path());
    let reading = Scale::measure().reading_ns();
    eprintln!("looking at the time-stamp counter costs {reading:.1} ns; every timed call below has that in it");
    if options.json {
        println!("{}", json!({"reading_ns": reading}));
    }
    let scene = Scene::new(options, data)?;
    let lines = if options.wants("table") { scene.paper() } else { Vec::new() };
    let measured = scene.loggers();
    let far = if options.network { scene.network() } else { None };
    if !options.json {
        print(&lines, &measured, far.as_ref());
    }
    Ok(())
}

fn print(lines: &[Line], measured: &[Measured], far: Option<&network::Account>) {
    if !lines.is_empty() {
        println!("{}", paper_table(lines));
    }
    if let Some(far) = far {
        println!("{}", network_table(far));
    }
    if !measured.is_empty() {
        println!("{}", logger_table(measured));
    }
    let verdicts = goal::judge(measured, far);
    if !verdicts.is_empty() {
        println!("{}", goal::table(&verdicts).render());
    }
}

impl Options {
    /// Whether a part is to be run.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| name.contains(pattern.as_str()))
    }

    fn tell(&self, line: &Value) {
        if self.json {
            println!("{line}");
        }
    }
}

/// A line of the published table and what came of it.
struct Line {
    row: Row,
    account: program::Account,
    /// Records of which nothing was found afterwards, where that can be known.
    lost: u64,
}

/// What the measured programs log to.
struct Scene<'a> {
    options: &'a Options,
    tampu: PathBuf,
    data: &'a Path,
    dir: tempfile::TempDir,
    /// With a collector.
    full: Hub,
    /// Without.
    bare: Hub,
}

impl<'a> Scene<'a> {
    fn new(options: &'a Options, data: &'a Path) -> Result<Scene<'a>, String> {
        let tampu = options.tampu.clone().unwrap_or_else(perf_log::beside);
        let dir = tempfile::Builder::new().prefix("tampu-bench-").tempdir_in(data);
        let dir = dir.map_err(|e| format!("{}: {e}", data.display()))?;
        let full = Hub::start(&tampu, data, &[], &[])?;
        let bare = Hub::start(&tampu, data, &[], &["--roles", "node"])?;
        Ok(Scene { options, tampu, data, dir, full, bare })
    }

    /// Where a program runs that logs to this run-time directory.
    fn stage(&self, run: PathBuf) -> Stage {
        Stage { run, dir: self.dir.path().to_owned() }
    }

    /// A run-time directory where nothing runs.
    fn nobody(&self) -> PathBuf {
        self.dir.path().join("nobody")
    }

    fn paper(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        let rows = paper::rows();
        let wanted = rows.iter().filter(|row| self.options.threads.contains(&row.threads));
        for (number, row) in wanted.enumerate() {
            match self.row(row, number) {
                Ok(line) => {
                    eprintln!(
                        "{:>2} {}: {:.2} us a call {}",
                        row.number,
                        row.name(),
                        line.account.times.average_ns() / 1e3,
                        line.bad()
                    );
                    self.options.tell(&line.json());
                    lines.push(line);
                }
                Err(why) => {
                    eprintln!("{:>2} {}: failed: {why}", row.number, row.name());
                    self.options.tell(&json!({"row": row.number, "what": row.name(), "failed": why}));
                }
            }
        }
        lines
    }

    fn row(&self, row: &Row, number: usize) -> Result<Line, String> {
        let name = format!("bench-row-{number}");
        let run = if row.kept() {
            self.full.run()
        } else if row.proxied() {
            self.bare.run()
        } else {
            self.nobody()
        };
        let file = (row.sink == Some(Sink::File)).then(|| self.dir.path().join(&name));
        let sink = file.as_deref().unwrap_or(Path::new("/dev/null"));
        let limits = Limits { calls: self.options.calls, seconds: self.options.seconds };
        let command = role::program_command(row, &limits, sink, &name)?;
        let account: program::Account = self.stage(run).play(command, sink)?;
        let mut lost = 0;
        let expected = account.times.calls;
        if let Some(file) = &file {
            lost = lost.max(expected.saturating_sub(lines_of(file)?));
        }
        if row.kept() {
            lost = lost.max(expected.saturating_sub(self.full.kept(&name)?));
        }
        Ok(Line { row: *row, account, lost })
    }

    fn loggers(&self) -> Vec<Measured> {
        let mut all = Vec::new();
        for &threads in &self.options.threads {
            for known in PEERS.iter().filter(|known| self.options.wants(known.name)) {
                match self.logger(known, threads) {
                    Ok(one) => {
                        let per_s = count(one.account.sustained_per_s);
                        eprintln!(
                            "{:<13} {threads:>2} threads: {:.1} ns a call, {per_s}/s {}",
                            one.name,
                            one.account.cpu_ns,
                            bad(&one)
                        );
                        self.options.tell(&logger_json(&one));
                        all.push(one);
                    }
                    Err(why) => {
                        eprintln!("{:<13} {threads:>2} threads: failed: {why}", known.name);
                        self.options.tell(&json!({"logger": known.name, "threads": threads, "failed": why}));
                    }
                }
            }
        }
        all
    }

    fn logger(&self, known: &Known, threads: usize) -> Result<Measured, String> {
        let sink = self.dir.path().join(format!("{}-{threads}", known.name));
        // A program says on its standard error what is wrong with it; our own logger also prints its records there.
        let said = if known.name == ours::TEXT { sink.clone() } else { self.dir.path().join("said") };
        let Options { calls, rounds, records, .. } = *self.options;
        let ask = cost::Ask {
            peer: known.name.to_owned(),
            threads,
            calls,
            rounds,
            records,
            sink: sink.clone(),
            account: PathBuf::new(),
        };
        let archived = known.name == ours::NAME;
        let run = if archived { self.full.run() } else { self.nobody() };
        let command = if known.name.starts_with("spdlog") {
            let program = self.options.spdlog.clone().unwrap_or_else(spdlog::beside);
            spdlog::command(&program, &ask)?
        } else {
            role::cost_command(&ask)?
        };
        let account: cost::Account = self.stage(run).play(command, &said)?;
        let found = if known.text {
            lines_of(&sink)?
        } else if archived {
            self.full.kept(&ours::name(threads))?
        } else {
            account.logged
        };
        // A gigabyte of text is not kept until the end.
        let _ = fs::remove_file(&sink);
        let lost = account.logged.saturating_sub(found);
        Ok(Measured { name: known.name, threads, account, lost })
    }

    fn network(&self) -> Option<network::Account> {
        let Options { calls, rounds, seconds, .. } = *self.options;
        let (tampu, data) = (self.tampu.clone(), self.data.to_owned());
        let account = self.dir.path().join("network");
        let ask = network::Ask { tampu, data, calls, rounds, seconds, threads: self.options.threads.clone(), account };
        match network::measure(&ask) {
            Ok(found) => {
                self.options.tell(&json!({"network": found}));
                Some(found)
            }
            Err(why) => {
                eprintln!("\nbench-call: NOT MEASURED: a collector 1 ms away: {why}\n");
                self.options.tell(&json!({"network": null, "not_measured": why}));
                None
            }
        }
    }
}

fn lines_of(path: &Path) -> Result<u64, String> {
    fs::File::open(path).and_then(cost::lines).map_err(|e| format!("{}: {e}", path.display()))
}

impl Line {
    fn bad(&self) -> String {
        let lost = (self.lost > 0).then(|| format!("LOST {} (told {})", self.lost, self.account.dropped));
        let unconfirmed = (!self.account.confirmed).then(|| "not confirmed".to_owned());
        lost.into_iter().chain(unconfirmed).collect::<Vec<_>>().join(" ")
    }

    fn json(&self) -> Value {
        json!({
            "row": self.row.number,
            "place": self.row.place,
            "threads": self.row.threads,
            "what": self.row.name(),
            "times": self.account.times,
            "average_ns": self.account.times.average_ns(),
            "published_us": self.row.published,
            "lost": self.lost,
            "dropped": self.account.dropped,
            "confirmed": self.account.confirmed,
        })
    }
}

/// Microseconds with as many digits as matter.
fn us(us: f64) -> String {
    match us {
        us if us < 1.0 => format!("{us:.3}"),
        us if us < 100.0 => format!("{us:.2}"),
        us => format!("{us:.0}"),
    }
}

/// So many times.
fn ratio(times: f64) -> String {
    if times < 10.0 { format!("{times:.2}") } else { format!("{times:.0}") }
}

fn paper_table(lines: &[Line]) -> String {
    let headings = [
        "us",
        "who",
        "threads",
        "calls",
        "total",
        "average",
        "min",
        "p50",
        "p99",
        "p99.9",
        "max",
        "ACS total",
        "average",
        "min",
        "max",
        "ACS/ours",
        "",
    ];
    let mut table = Table::new(&headings);
    for line in lines {
        let Line { row, account: program::Account { times, .. }, .. } = line;
        let place = if row.place == paper::Place::Client { "client" } else { "component" };
        let mut cells = vec![format!("{:>2} {}", row.number, row.name()), place.to_owned(), row.threads.to_string()];
        cells.push(times.calls.to_string());
        let ours = [times.total_ns, times.average_ns(), times.min_ns, times.p50_ns, times.p99_ns, times.p999_ns, times.max_ns];
        cells.extend(ours.map(|ns| us(ns / 1e3)));
        match row.published {
            Some(was) => {
                cells.extend([was.total, was.average, was.min, was.max].map(us));
                cells.push(ratio(was.average * 1e3 / times.average_ns()));
            }
            None => cells.extend(std::iter::repeat_n("-".to_owned(), 5)),
        }
        cells.push(line.bad());
        table.row(cells);
    }
    table.render()
}

fn network_table(far: &network::Account) -> String {
    let mut table = Table::new(&[
        "us, collector",
        "threads",
        "calls",
        "here: average",
        "p50",
        "p99",
        "1 ms away: calls",
        "average",
        "p50",
        "p99",
    ]);
    for pair in &far.pairs {
        let mut cells = vec![format!("{:>2} {}", pair.number, pair.name), pair.threads.to_string()];
        for Summary { calls, total_ns, p50_ns, p99_ns, .. } in [pair.near.times, pair.far.times] {
            cells.push(calls.to_string());
            cells.extend([total_ns / calls.max(1) as f64, p50_ns, p99_ns].map(|ns| us(ns / 1e3)));
        }
        table.row(cells);
    }
    format!("A collector that is away: {}\n{}", far.cable, table.render())
}

fn bad(one: &Measured) -> String {
    let lost = (one.lost > 0).then(|| format!("LOST {} (told {})", one.lost, one.account.dropped));
    let unconfirmed = (!one.account.confirmed).then(|| "not confirmed".to_owned());
    lost.into_iter().chain(unconfirmed).collect::<Vec<_>>().join(" ")
}

fn logger_table(measured: &[Measured]) -> String {
    let headings = [
        "ns",
        "threads",
        "cpu a call",
        "it/ours",
        "it/floor",
        "p50",
        "p99",
        "p99.9",
        "bursts: p50",
        "p99",
        "p99.9",
        "without a pause",
        "",
    ];
    let mut table = Table::new(&headings);
    for one in measured {
        let cpu = |name: &str| {
            measured.iter().find(|other| other.name == name && other.threads == one.threads).map(|other| other.account.cpu_ns)
        };
        let beside = |other: Option<f64>| other.map_or("-".to_owned(), |other| ratio(one.account.cpu_ns / other));
        let mut cells = vec![one.name.to_owned(), one.threads.to_string(), format!("{:.1}", one.account.cpu_ns)];
        cells.extend([beside(cpu(ours::NAME)), beside(cpu("floor"))]);
        for times in [one.account.flat_out, one.account.bursts] {
            cells.extend([times.p50_ns, times.p99_ns, times.p999_ns].map(|ns| format!("{ns:.0}")));
        }
        cells.push(format!("{}/s", count(one.account.sustained_per_s)));
        cells.push(bad(one));
        table.row(cells);
    }
    let mut text = table.render();
    for known in PEERS.iter().filter(|known| measured.iter().any(|one| one.name == known.name)) {
        text.push_str(&format!("{:<13} {}\n", known.name, known.about));
    }
    text
}

fn logger_json(one: &Measured) -> Value {
    json!({"logger": one.name, "threads": one.threads, "lost": one.lost, "account": one.account})
}
