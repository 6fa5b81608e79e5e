//! `bench-book`: the logbook over HTTP, in SQLite and in PostgreSQL. See the README of this directory.

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;
use serde_json::json;
use tampu_benches::{
    book::{
        goal::{Found, verdicts},
        place::{Place, Server},
        plan, site,
    },
    table::Table,
};

/// Measures a hub's logbook over HTTP: every kind of search at the sizes of LHCb's table, many who search at once,
/// posts, start and import.
#[derive(Debug, Parser)]
#[command(name = "bench-book")]
struct Options {
    /// Numbers of entries.
    #[arg(long, value_delimiter = ',', default_value = "1,464,11332,76270")]
    entries: Vec<u32>,
    /// And 1 000 000.
    #[arg(long)]
    million: bool,
    /// And 5 000 000, which takes 20 GB of disk with SQLite, and several times that with PostgreSQL.
    #[arg(long)]
    five_million: bool,
    /// Only these: sqlite, postgres.
    #[arg(long, value_delimiter = ',', default_value = "sqlite,postgres")]
    only: Vec<String>,
    /// Searches of each kind.
    #[arg(long, default_value_t = 300)]
    samples: usize,
    /// Time for which each crowd searches.
    #[arg(long, default_value_t = 3.0, value_parser = a_time)]
    seconds: f64,
    /// One JSON object a row on standard output instead of tables.
    #[arg(long)]
    json: bool,
    /// The program to measure; the one beside this one if not said.
    #[arg(long)]
    tampu: Option<PathBuf>,
}

fn a_time(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= 1e4);
    seconds.ok_or_else(|| "not a number of seconds above 0".to_owned())
}

fn main() -> ExitCode {
    match bench(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-book: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("tampu"));
    let tampu = options.tampu.clone().or_else(beside).ok_or("the program to measure is not known: --tampu")?;
    let mut sizes = options.entries.clone();
    if options.million {
        sizes.push(1_000_000);
    }
    if options.five_million {
        sizes.push(5_000_000);
    }
    for store in ["sqlite", "postgres"] {
        if !options.only.iter().any(|only| only == store) {
            continue;
        }
        for &entries in &sizes {
            let found = one(options, &tampu, store, entries)?;
            if options.json {
                tell_lines(&found);
            } else {
                tell_tables(&found);
            }
        }
    }
    if !options.json {
        println!(
            "ELOG 3.1.5, measured on another day with 300 searches of 76 270 entries by its own HTTP: a search 2650 ms, and nobody else is answered meanwhile."
        );
    }
    Ok(())
}

fn one(options: &Options, tampu: &std::path::Path, store: &'static str, entries: u32) -> Result<Found, String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let site = directory.path().join("elog");
    site::write(&site, entries)?;
    let server = if store == "postgres" { Some(Server::start()?) } else { None };
    let address = server.as_ref().map(Server::address);
    let place = Place { tampu, directory: directory.path(), postgres: address.as_deref(), certificates: None };
    let import = place.import(&site)?;
    let hub = place.up()?;
    let mut found = Found { store, entries, import, start: hub.started, ..Found::default() };
    found.rows = plan::searches(&hub, store, entries, options.samples)?;
    let time = Duration::from_secs_f64(options.seconds);
    for crowd in [(1, 0, false), (4, 0, false), (16, 0, false), (16, 0, true), (16, 4, false)] {
        found.crowds.push(plan::crowd(&hub, server.as_ref(), (store, entries), crowd, time)?);
    }
    found.posts = plan::posts(&hub, time)?;
    Ok(found)
}

fn tell_lines(found: &Found) {
    for row in &found.rows {
        println!("{}", json!(row));
    }
    for crowd in &found.crowds {
        println!("{}", json!(crowd));
    }
    let Found { store, entries, posts, import, start, .. } = found;
    println!("{}", json!({ "store": store, "entries": entries, "posts": posts, "import_s": import, "start_s": start }));
    for goal in verdicts(found) {
        println!(
            "{}",
            json!({ "store": store, "entries": entries, "goal": goal.what, "found": goal.found, "reached": goal.reached })
        );
    }
}

fn tell_tables(found: &Found) {
    println!("{}, {} entries: imported in {:.1} s, started in {:.2} s", found.store, found.entries, found.import, found.start);
    let mut table = Table::new(&["ms", "average", "min", "median", "p99", "max", "us an entry", "CPU", "reads", "RSS, MB"]);
    for row in &found.rows {
        let ms = [row.average, row.min, row.median, row.p99, row.max].map(|value| format!("{value:.2}"));
        let mut cells = vec![row.what.clone()];
        cells.extend(ms);
        cells.push(format!("{:.3}", row.average * 1e3 / f64::from(row.entries)));
        cells.extend([row.cpu, row.reads, row.rss].map(|value| format!("{value:.1}")));
        table.row(cells);
    }
    println!("{}", table.render());
    let headings = ["at once", "searches/s", "posts/s", "an entry, ms", "p99", "hub CPU, ms", "database's", "clients'"];
    let mut table = Table::new(&headings);
    for crowd in &found.crowds {
        let again = if crowd.again { ", again" } else { "" };
        let mut cells = vec![format!("{} searchers, {} writers{again}", crowd.searchers, crowd.writers)];
        cells.extend([crowd.searches, crowd.posts].map(|value| format!("{value:.0}")));
        let ms = [crowd.probe, crowd.probe_p99, crowd.hub_cpu, crowd.database_cpu, crowd.client_cpu];
        cells.extend(ms.map(|value| format!("{value:.2}")));
        table.row(cells);
    }
    println!("{}", table.render());
    println!("posts with 100 KB attachments: {:.0}/s", found.posts);
    for goal in verdicts(found) {
        println!("{}: {}: {}", if goal.reached { "reached" } else { "missed" }, goal.what, goal.found);
    }
    println!();
}
