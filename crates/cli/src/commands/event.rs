//! `tampu event ...`.

use clap::Subcommand;

use super::log::archive::{Archive, Kept};
use crate::{context::Context, failure::Outcome};

pub mod bridge_tango;
pub mod conf;
pub mod doctor;
pub mod get;
pub mod history;
pub mod list;
pub mod publish;
mod show;
pub mod sub;

/// List, read, follow and publish attributes; find what was kept of them; see and set when they send events, and why none come; bridge them from and to Tango
#[derive(Debug, Subcommand)]
pub enum Event {
    List(list::List),
    Get(get::Get),
    Sub(sub::Sub),
    #[command(name = "pub")]
    Publish(publish::Publish),
    History(history::History),
    Conf(conf::Conf),
    Doctor(doctor::Doctor),
    /// See, check, compact and back up what is kept of events
    ///
    /// As `tampu log archive` does for logs: a running hub does it itself; with --data it is done here.
    #[command(after_help = "Examples:\n  tampu event archive status\n  tampu event archive backup /backup/tampu")]
    Archive(Archive),
    BridgeTango(bridge_tango::BridgeTango),
}

impl Event {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Event::List(list) => list.run(context),
            Event::Get(get) => get.run(context),
            Event::Sub(sub) => sub.run(context),
            Event::Publish(publish) => publish.run(context),
            Event::Conf(conf) => conf.run(context),
            Event::History(history) => history.run(context),
            Event::Doctor(doctor) => doctor.run(context),
            Event::Archive(archive) => archive.run(context, Kept::Events),
            Event::BridgeTango(bridge) => bridge.run(context),
        }
    }
}
