//! The options of `tampu perf log`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tampu_log::Grade;

mod account;
mod run;

/// Measure the log line: a process that logs, a node, a collector that keeps, clients that follow and check every record
///
/// Each is a process of its own, so that what one costs does not hide in another: the node's way to many clients is not the
/// collector's work.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  tampu perf log --clients 10 --for 30s --json\n  tampu perf log --rate 200000 --for 10m\n  tampu perf log --clients 0 --acknowledged kept --callers 4"
)]
pub struct PerfLog {
    /// Number of clients that follow the log
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub clients: usize,
    /// Duration of the measurement
    #[arg(long = "for", value_name = "DURATION", default_value = "10s", value_parser = super::options::seconds)]
    pub seconds: f64,
    /// Size of a record
    #[arg(long, value_name = "SIZE", default_value = "250", value_parser = super::options::bytes)]
    pub size: usize,
    /// Log this many records a second, instead of as many as possible
    #[arg(long, value_name = "N", value_parser = a_rate)]
    pub rate: Option<f64>,
    /// Records in a packet
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub packet: usize,
    /// Send this many immediate records a second as well, and report their delay
    #[arg(long, value_name = "N", value_parser = a_rate)]
    pub immediate: Option<f64>,
    /// Stop N of the clients (SIGSTOP) while it logs; they are waited for no longer than by an application
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub stopped: usize,
    /// Wait for slow clients no longer than an application does by default; they lose records beyond its cache
    #[arg(long)]
    pub bounded: bool,
    /// Measure live clients only: without a collector, and without the node's spool
    #[arg(long)]
    pub live: bool,
    /// Directory for the data of the measurement, removed afterwards; use a disk like that of the archive
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Log with calls that return when the collector has the record, and report their time
    #[arg(long, value_name = "GRADE", conflicts_with_all = ["rate", "live", "immediate", "stopped"])]
    pub acknowledged: Option<AckGrade>,
    /// Number of threads that make acknowledged calls
    #[arg(long, value_name = "N", default_value_t = 1, requires = "acknowledged", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub callers: u16,
    /// Skip the measurement of the disk
    #[arg(long)]
    pub no_disk: bool,
    /// Write JSON objects, one a line
    #[arg(long)]
    pub json: bool,
}

/// Grade that an acknowledged call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AckGrade {
    /// The collector's disk
    Kept,
    /// The collector's memory
    Received,
}

impl From<AckGrade> for Grade {
    fn from(grade: AckGrade) -> Grade {
        match grade {
            AckGrade::Kept => Grade::Kept,
            AckGrade::Received => Grade::Received,
        }
    }
}

fn a_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(rate),
        _ => Err("not a number above 0".to_owned()),
    }
}
