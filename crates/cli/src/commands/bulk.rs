//! `tampu bulk ...`.

use clap::Subcommand;

use super::log::archive::{Archive, Kept};
use crate::{context::Context, failure::Outcome};

pub mod choices;
mod configured;
pub mod control;
pub mod history;
mod input;
mod obeying;
mod offer;
pub mod recv;
pub mod relay;
mod report;
pub mod send;
mod sending;
pub mod stat;
mod taking;
mod waiting;
mod watch;

/// Send, receive and distribute files and data outside the message fabric
#[derive(Debug, Subcommand)]
pub enum Bulk {
    Send(send::Send),
    Recv(recv::Recv),
    Relay(relay::Relay),
    Stat(stat::Stat),
    History(history::History),
    /// See, check, compact and back up what is kept of transfers
    ///
    /// As `tampu log archive` does for logs: a running hub does it itself; with --data it is done here.
    #[command(after_help = "Examples:\n  tampu bulk archive status\n  tampu bulk archive backup -o /backup/tampu")]
    Archive(Archive),
    Control(control::Control),
}

impl Bulk {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Bulk::Send(send) => send.run(context),
            Bulk::Recv(recv) => recv.run(context),
            Bulk::Relay(relay) => relay.run(context),
            Bulk::Stat(stat) => stat.run(context),
            Bulk::History(history) => history.run(context),
            Bulk::Archive(archive) => archive.run(context, Kept::Transfers),
            Bulk::Control(control) => control.run(context),
        }
    }
}
