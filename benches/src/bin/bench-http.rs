//! `bench-http`: the cost of TLS for the logbook over HTTP. See the README of this directory.

use std::{path::PathBuf, process::ExitCode, time::Duration, time::SystemTime};

use clap::Parser;
use serde_json::json;
use tampu_benches::{
    book::place::Place,
    table::Table,
    web::{self, Cell},
};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};

/// Smallest part of the plain rate that TLS must keep for large attachments.
const LEAST: f64 = 0.6;

/// Measures a logbook's entries, pages and attachments over http and https, by turns.
#[derive(Debug, Parser)]
#[command(name = "bench-http")]
struct Options {
    /// Numbers of clients that ask at a time.
    #[arg(long, value_delimiter = ',', default_value = "1,16")]
    clients: Vec<usize>,
    /// Time for which each side of a cell is asked.
    #[arg(long, default_value_t = 6.0, value_parser = a_time)]
    seconds: f64,
    /// Size of the large attachment, MB.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    large: u16,
    /// One JSON object a row on standard output instead of a table.
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
            eprintln!("bench-http: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(options: &Options) -> Result<(), String> {
    let beside = || Some(std::env::current_exe().ok()?.with_file_name("tampu"));
    let tampu = options.tampu.clone().or_else(beside).ok_or("the program to measure is not known: --tampu")?;
    let directory = tempfile::Builder::new().prefix("tampu-").tempdir().map_err(|error| error.to_string())?;
    let certificates = CertificateDir::new(directory.path().join("cert"));
    issue(&certificates).map_err(|error| error.to_string())?;
    let places =
        [("plain", None), ("tls", Some(&certificates))].map(|(name, certificates)| (directory.path().join(name), certificates));
    let hubs = places.iter().map(|(directory, certificates)| {
        std::fs::create_dir(directory).map_err(|error| error.to_string())?;
        Place { tampu: &tampu, directory, postgres: None, certificates: *certificates }.up()
    });
    let hubs: Vec<_> = hubs.collect::<Result<_, String>>()?;
    let [plain, tls] = &hubs[..] else { return Err("two hubs were not started".to_owned()) };
    let subjects = web::fill(plain, usize::from(options.large))?;
    web::fill(tls, usize::from(options.large))?;
    let time = Duration::from_secs_f64(options.seconds);
    let mut cells = Vec::new();
    for subject in &subjects {
        for &clients in &options.clients {
            let cell = web::cell(plain, tls, subject, clients.max(1), time)?;
            eprintln!("{}, {clients} clients: {:.0} and {:.0} requests/s", cell.what, cell.plain.requests, cell.tls.requests);
            cells.push(cell);
        }
    }
    let large = format!("attachment, {} MB", options.large);
    let worst = cells.iter().filter(|cell| cell.what == large).map(|cell| cell.ratio).fold(f64::INFINITY, f64::min);
    let goal = format!("an attachment of {} MB with TLS at {LEAST} of the plain rate or more", options.large);
    if options.json {
        cells.iter().for_each(|cell| println!("{}", json!(cell)));
        println!("{}", json!({ "goal": goal, "found": worst, "reached": worst >= LEAST }));
    } else {
        println!("{}", table(&cells).render());
        println!("{}: {goal}: {worst:.2}", if worst >= LEAST { "reached" } else { "missed" });
    }
    Ok(())
}

/// Makes the certificates of this host.
fn issue(directory: &CertificateDir) -> Result<(), tampu_tls::TlsError> {
    let now = SystemTime::now();
    let names = HostNames::new("localhost", &["127.0.0.1".to_owned()])?;
    Authority::create(directory, "bench-http", now)?.issue(directory, &names, KeyPairChoice::New, now).map(drop)
}

fn table(cells: &[Cell]) -> Table {
    let headings =
        ["", "clients", "bytes", "plain/s", "TLS/s", "TLS:plain", "plain MB/s", "TLS MB/s", "plain ms", "TLS ms", "p99", "p99"];
    let mut table = Table::new(&[&headings[..], &["hub CPU, ms", "TLS", "resumed"]].concat());
    for Cell { what, clients, bytes, plain, tls, ratio } in cells {
        let mut row = vec![what.clone(), clients.to_string(), bytes.to_string()];
        row.extend([plain.requests, tls.requests].map(|value| format!("{value:.1}")));
        row.push(format!("{ratio:.2}"));
        row.extend([plain.megabytes, tls.megabytes].map(|value| format!("{value:.1}")));
        row.extend([plain.median, tls.median, plain.p99, tls.p99, plain.cpu, tls.cpu].map(|value| format!("{value:.3}")));
        row.push(format!("{:.2}", tls.resumed));
        table.row(row);
    }
    table
}
