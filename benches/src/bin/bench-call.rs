//! `bench-call`: the cost of a log call, beside ACS's published figures and beside other loggers. See the README of
//! this directory.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use tampu_benches::{
    call::{amount::Amount, paths::Paths, peer::spdlog, report, role::Role, scene::Scene, tsc::Scale},
    disk, perf_log,
};

/// Measures what a log call costs: ACS's published table, the same with a far collector, and other loggers.
#[derive(Debug, Parser)]
#[command(name = "bench-call")]
struct Options {
    #[command(subcommand)]
    part: Option<Hidden>,
    #[command(flatten)]
    amount: Amount,
    /// Only the published table (`table`) or loggers whose name holds one of these (`tampu`, `floor`, `spdlog`).
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Also with a collector in a network namespace, 1 ms away; says so where that cannot be had.
    #[arg(long)]
    network: bool,
    /// Directory for the collector's segments and the text: the disk that is measured
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
    let place = Paths {
        tampu: options.tampu.clone().unwrap_or_else(perf_log::beside),
        spdlog: options.spdlog.clone().unwrap_or_else(spdlog::beside),
        data: options.data.clone().unwrap_or_else(|| made.path().to_owned()),
    };
    let tell: fn(&Value) = if options.json { |line| println!("{line}") } else { |_| {} };
    let reading = Scale::measure().reading_ns();
    eprintln!("looking at the time-stamp counter costs {reading:.1} ns; every timed call below has that in it");
    let (data, kind) = (place.data.display(), disk::kind(&place.data));
    eprintln!("text and segments go to {data} ({kind})");
    tell(&json!({"reading_ns": reading, "data": place.data, "file_system": kind}));
    let scene = Scene::new(&options.amount, &place, tell)?;
    let lines = if options.wants("table") { scene.paper() } else { Vec::new() };
    let far = if options.network { scene.network() } else { None };
    let measured = scene.loggers(|name| options.wants(name));
    if !options.json {
        report::tables(&lines, &measured, far.as_ref()).iter().for_each(|table| println!("{table}"));
    }
    Ok(())
}

impl Options {
    /// Returns true if a part is to be run.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| name.contains(pattern.as_str()))
    }
}
