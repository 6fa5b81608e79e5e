//! `tampu perf ...`: measurements with processes of their own, in a domain and directories of their own, so that no
//! other process on this host takes part.

use clap::Subcommand;

use crate::{context::Context, failure::Outcome};

pub mod bulk;
pub mod bus;
pub mod event;
mod follower;
pub mod log;
mod members;
mod options;
mod part;
mod process;
mod producer;
mod report;
mod samples;
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
