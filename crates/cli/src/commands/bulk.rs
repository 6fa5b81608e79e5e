//! `tampu bulk ...`.

use std::net::SocketAddr;

use clap::{Subcommand, ValueEnum};
use serde_json::{Value, json};
use tampu_bulk::message::Transport;

use crate::{commands::Context, failure::Outcome};

mod configured;
mod offer;
pub mod recv;
pub mod relay;
pub mod send;
mod sending;
pub mod stat;
mod store;
mod taking;
mod waiting;
mod watch;

/// Send files and data to receivers outside the message fabric, receive and distribute them, and see who waits for whom
#[derive(Debug, Subcommand)]
pub enum Bulk {
    Send(send::Send),
    Recv(recv::Recv),
    Relay(relay::Relay),
    Stat(stat::Stat),
}

impl Bulk {
    pub fn run(self, context: &Context) -> Outcome {
        match self {
            Bulk::Send(send) => send.run(context),
            Bulk::Recv(recv) => recv.run(context),
            Bulk::Relay(relay) => relay.run(context),
            Bulk::Stat(stat) => stat.run(context),
        }
    }
}

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// What both ends can: shared memory on one host, else TCP.
    Auto,
    /// On the connection itself.
    Tcp,
    /// Through memory that both map.
    Shm,
    /// As datagrams, with what is lost sent again.
    Udp,
    /// The same, once for all receivers, to a multicast group.
    Multicast,
}

impl Protocol {
    /// As the library has it.
    pub fn transport(self) -> Option<Transport> {
        match self {
            Protocol::Auto => None,
            Protocol::Tcp => Some(Transport::Tcp),
            Protocol::Shm => Some(Transport::Shm),
            Protocol::Udp => Some(Transport::Udp),
            Protocol::Multicast => Some(Transport::Multicast),
        }
    }
}

/// A switch that is said in full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnOff {
    On,
    Off,
}

impl OnOff {
    /// Whether it is on.
    pub fn is_on(self) -> bool {
        self == OnOff::On
    }
}

/// What senders are told to connect to: what was said, else this host's name where every address is listened at.
fn host_to_announce(said: Option<&str>, listen: SocketAddr) -> Option<String> {
    let own = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    said.map(str::to_owned).or_else(|| listen.ip().is_unspecified().then(own))
}

/// Bytes a second; nothing where no time has passed.
fn rate(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 }
}

/// An object that says what happened, with what belongs to it.
fn event(name: &str, mut with: Value) -> Value {
    if let Value::Object(fields) = &mut with {
        fields.insert("event".to_owned(), json!(name));
    }
    with
}
