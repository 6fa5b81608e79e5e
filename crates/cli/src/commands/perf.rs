//! `tampu perf ...`: measurements with processes of their own, in a domain and directories of their own, so that nothing that
//! runs on this host takes part.

use clap::Subcommand;

use crate::{commands::Context, failure::Outcome};

mod account;
pub mod bulk;
pub mod bus;
pub mod event;
mod follower;
pub mod log;
mod members;
mod part;
mod producer;
mod scene;
mod verify;

/// Measure the bus, the log line, attribute events and bulk data on this host
#[derive(Debug, Subcommand)]
pub enum Perf {
    Log(log::PerfLog),
    Bus(bus::PerfBus),
    Event(event::PerfEvent),
    Bulk(bulk::PerfBulk),
    #[command(hide = true)]
    Part(part::Part),
}

/// The longest measurement, s: what adds up times has no need to look for overflows.
const LONGEST: f64 = 1e7;

/// Reads how long to measure.
fn a_time(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= LONGEST => Ok(seconds),
        _ => Err(format!("not a number of seconds above 0 and up to {LONGEST}")),
    }
}

impl Perf {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Perf::Log(log) => log.run(context),
            Perf::Bus(bus) => bus.run(context),
            Perf::Event(event) => event.run(),
            Perf::Bulk(bulk) => bulk.run(),
            Perf::Part(part) => part.run(context),
        }
    }
}
