//! `tampu perf ...`: measurements with processes of their own, in a domain and directories of their own, so that nothing that
//! runs on this host takes part.

use clap::Subcommand;

use crate::{commands::Context, failure::Outcome};

mod account;
pub mod bus;
pub mod event;
mod follower;
pub mod log;
mod members;
mod part;
mod producer;
mod scene;
mod verify;

/// Measure the bus, the log line and attribute events on this host
#[derive(Debug, Subcommand)]
pub enum Perf {
    Log(log::PerfLog),
    Bus(bus::PerfBus),
    Event(event::PerfEvent),
    #[command(hide = true)]
    Part(part::Part),
}

impl Perf {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Perf::Log(log) => log.run(context),
            Perf::Bus(bus) => bus.run(context),
            Perf::Event(event) => event.run(),
            Perf::Part(part) => part.run(context),
        }
    }
}
