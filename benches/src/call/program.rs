//! A row of the published table: a client program, or a container with one component that logs.
//!
//! The text is always two integers and a short string. The program's standard output and error go to the row's sink,
//! and Tampu's logger prints into it.

use std::{
    fs::File,
    hint::black_box,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tampu_bus::run_dir::RunDir;
use tampu_log::{LogSettings, Logger, Threshold, logger::local::Output};
use tampu_types::{Domain, Level, SourceName};

use crate::call::{
    gang::{self, Plan},
    marks::DOMAIN,
    paper::{Place, What},
    summary::Summary,
    tsc::Scale,
};

/// Longest wait for calls in progress.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Time for a proxy without listeners to detect that.
const NOBODY: Duration = Duration::from_millis(500);
/// The container's other components, and the rate at which each logs.
const NEIGHBOURS: [&str; 3] = ["CONTROL/DV01/Mount", "CONTROL/DV01/LLC", "CONTROL/DV02/Mount"];
const NEIGHBOUR_EVERY: Duration = Duration::from_millis(100);
/// The component that is measured.
const COMPONENT: &str = "CONTROL/DV01/FrontEnd";
/// The short string.
pub const STATES: [&str; 4] = ["tracking", "slewing", "idle", "stowed"];

/// Arguments of a program.
#[derive(Debug, Clone, clap::Args)]
pub struct Ask {
    /// Program that logs.
    #[arg(long)]
    pub place: Place,
    /// Kind of call.
    #[arg(long)]
    pub what: What,
    /// Number of threads that share the calls.
    #[arg(long)]
    pub threads: usize,
    /// Calls in all.
    #[arg(long)]
    pub calls: u64,
    /// No call is begun later than this.
    #[arg(long)]
    pub seconds: f64,
    /// The source's name.
    #[arg(long)]
    pub name: String,
    /// File for raw text.
    #[arg(long)]
    pub sink: PathBuf,
    /// File for the account.
    #[arg(long)]
    pub account: PathBuf,
}

/// Account of a program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Account {
    pub times: Summary,
    /// Records that the logger dropped.
    pub dropped: u64,
    /// True if every reader received every record. Without readers, it has no meaning.
    pub confirmed: bool,
}

/// Returns a call's second integer, from its number.
#[inline(always)]
pub fn angle(number: u64) -> u64 {
    number.wrapping_mul(7) % 360
}

/// Returns a call's string.
#[inline(always)]
pub fn state(number: u64) -> &'static str {
    STATES[number as usize % STATES.len()]
}

/// Returns the logger's settings for a program of this name, with the file into which it prints, if any.
pub fn settings(name: &str, prints: Option<&Path>, publishes: bool) -> Result<LogSettings, String> {
    let domain = Domain::new(DOMAIN).map_err(|e| e.to_string())?;
    let source = SourceName::new(name).map_err(|e| e.to_string())?;
    let mut settings = LogSettings::isolated(domain, source);
    // The measured records survive the process.
    let directory = RunDir::from_env().domain(&settings.domain).map_err(|e| e.to_string())?;
    settings.rings = Some(directory.log_rings());
    if let Some(file) = prints {
        settings.local = Threshold::From(Level::Delouse);
        settings.output = Output::File(file.to_owned());
    }
    if !publishes {
        settings.central = Threshold::Off;
    }
    Ok(settings)
}

/// Makes the calls.
pub fn run(ask: &Ask) -> Result<Account, String> {
    let on = ask.what != What::Noop;
    let publishes = matches!(ask.what, What::Proxy | What::Acknowledged | What::Oneway);
    let settings = settings(&ask.name, on.then_some(&*ask.sink), publishes)?;
    let logger = Logger::open(settings).map_err(|e| e.to_string())?;
    if publishes {
        // Before the measurement, a client of ACS has its proxy and knows its central logger; so does this one.
        tampu_log::info!(logger, "{} begins", ask.name);
        let patience = if ask.what == What::Proxy { NOBODY } else { PATIENCE };
        let reached = logger.flush(patience);
        if !reached && ask.what != What::Proxy {
            return Err(format!("no collector within {patience:?}"));
        }
    }
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        if ask.place == Place::Component {
            for name in NEIGHBOURS {
                let (neighbour, over) = (logger.for_object(name), &over);
                scope.spawn(move || live(&neighbour, over));
            }
        }
        let speaker = if ask.place == Place::Component { logger.for_object(COMPONENT) } else { logger.clone() };
        let account = measure(ask, &speaker);
        over.store(true, Ordering::Relaxed);
        account
    })
}

/// Runs a component that is not measured.
fn live(logger: &Logger, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        tampu_log::debug!(logger, "monitor point read"; value = 1);
        thread::sleep(NEIGHBOUR_EVERY);
    }
}

fn measure(ask: &Ask, logger: &Logger) -> Result<Account, String> {
    let limit = Duration::try_from_secs_f64(ask.seconds).unwrap_or(Duration::MAX);
    let plan = Plan { threads: ask.threads, calls: ask.calls, rounds: 1, warm_up: 0, limit };
    let scale = Scale::measure();
    let ticks = match ask.what {
        What::Log | What::Proxy | What::Oneway => gang::timed(plan, || {
            |number| tampu_log::info!(logger, "antenna {} at {} is {}", number, angle(number), state(number))
        }),
        What::Acknowledged => gang::timed(plan, || {
            |number| {
                tampu_log::info!(logger, "antenna {} at {} is {}", number, angle(number), state(number));
                logger.flush(PATIENCE);
            }
        }),
        What::Noop => gang::timed(plan, || {
            let logger = black_box(logger);
            move |number| tampu_log::info!(logger, "antenna {} at {} is {}", number, angle(number), state(number))
        }),
        What::Raw => {
            // Descriptors of a terminal and of a file are written alike: one line, one system call.
            let sink = File::options().append(true).create(true).open(&ask.sink);
            let sink = &sink.map_err(|e| format!("{}: {e}", ask.sink.display()))?;
            gang::timed(plan, || {
                let mut line = Vec::with_capacity(256);
                move |number| {
                    line.clear();
                    // The count of lines shows a failed write.
                    let _ = writeln!(line, "antenna {} at {} is {}", number, angle(number), state(number));
                    let _ = { sink }.write_all(&line);
                }
            })
        }
    };
    let confirmed = match ask.what {
        What::Acknowledged | What::Oneway => logger.flush(PATIENCE),
        _ => true,
    };
    Ok(Account { times: Summary::of(ticks, scale), dropped: logger.stats().dropped, confirmed })
}
