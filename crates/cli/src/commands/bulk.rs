//! `tampu bulk ...`.

use clap::Subcommand;

use crate::{context::Context, failure::Outcome};

pub mod choices;
mod configured;
pub mod control;
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
    Control(control::Control),
}

impl Bulk {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Bulk::Send(send) => send.run(context),
            Bulk::Recv(recv) => recv.run(context),
            Bulk::Relay(relay) => relay.run(context),
            Bulk::Stat(stat) => stat.run(context),
            Bulk::Control(control) => control.run(context),
        }
    }
}
