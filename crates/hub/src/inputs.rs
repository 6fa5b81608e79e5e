//! Logs of other programs, taken in beside the bus: syslog, and the log of EPICS's IOCs.
//!
//! ```text
//! datagrams, streams  -->  frames  -->  record  -->  desk: a logger of the source syslog@HOST  -->  bus
//! ```
//! Each input is a source on the bus like any process that logs, so what it takes is seen live, kept once under ids of its own,
//! and has a quota. Decision: a stream is read no further than what it brought is acknowledged, a few MiB apart, so its sender is
//! held by TCP instead of losing; datagrams then wait in the kernel's buffer, and what that drops is counted by the kernel and told
//! here. Rejected: a queue between socket and logger; it would be a third place where records wait, and get lost.
//!
//! What neither protocol can give is an acknowledgement: what a sender's kernel has taken is gone when the hub dies.
//!
//! | part | module |
//! |-|-|
//! | what a site says of them | [`settings`] |
//! | from bytes to the bus; counting and telling what goes wrong | `desk` |
//! | UDP | `datagrams` |
//! | TCP | `streams` |

use std::{io, net::SocketAddr, sync::Arc};

pub(crate) use desk::QUEUE;

use tampu_bus::Participant;
use tampu_log::Logger;
use tampu_types::{epics, frames::Framing, syslog};

use self::{
    datagrams::Datagrams,
    desk::{Counts, Desk, Kind},
    settings::{Door, Epics, Syslog},
    streams::Streams,
};

mod datagrams;
mod desk;
pub mod settings;
mod streams;

/// Why an input does not work.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Its address cannot be had.
    #[error("{input} cannot be taken in at {address}: {why}{}", advice(.why))]
    Listen {
        /// Which input.
        input: &'static str,
        /// Where.
        address: SocketAddr,
        /// What the system said.
        why: io::Error,
    },
    /// The system has no more threads.
    #[error("taking in {input}: {why}")]
    Worker {
        /// Which input.
        input: &'static str,
        /// What the system said.
        why: io::Error,
    },
}

fn advice(why: &io::Error) -> &'static str {
    match why.kind() {
        io::ErrorKind::PermissionDenied => "; ports below 1024 need the capability CAP_NET_BIND_SERVICE, or take a higher one",
        io::ErrorKind::AddrInUse => "; another program, perhaps this host's own syslog daemon, listens there",
        _ => "",
    }
}

/// How an input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputReport {
    /// Its name: `syslog`, `epics`.
    pub input: &'static str,
    /// What it has counted since it started.
    pub counts: Counts,
    /// Connections that are open.
    pub open: u64,
}

/// One input at work.
struct Input {
    // Both end before the desk does, whose logger they use.
    datagrams: Option<Datagrams>,
    streams: Option<Streams>,
    desk: Arc<Desk>,
}

/// The inputs at work; they end when dropped.
#[derive(Default)]
pub(crate) struct Inputs(Vec<Input>);

impl Inputs {
    /// How they are.
    pub fn reports(&self) -> Vec<InputReport> {
        let report = |input: &Input| InputReport {
            input: input.desk.kind.name,
            counts: input.desk.counts(),
            open: input.streams.as_ref().map_or(0, Streams::open),
        };
        self.0.iter().map(report).collect()
    }

    /// Starts taking in syslog.
    pub fn syslog(&mut self, settings: &Syslog, participant: &Participant, logger: Logger) -> Result<(), InputError> {
        let kind = Kind { name: "syslog", framing: Framing::Syslog, read: syslog::parse, limit: settings.max_message };
        let desk = Arc::new(Desk::new(kind, participant, logger));
        let mut input = Input { datagrams: None, streams: None, desk: desk.clone() };
        if let Door::At(address) = settings.udp {
            input.datagrams = Some(Datagrams::start(address, settings.receive_buffer, desk.clone())?);
        }
        if let Door::At(address) = settings.tcp {
            input.streams = Some(Streams::start(address, settings.connections, desk)?);
        }
        self.0.push(input);
        Ok(())
    }

    /// Starts taking in the log of IOCs.
    pub fn epics(&mut self, settings: &Epics, participant: &Participant, logger: Logger) -> Result<(), InputError> {
        let kind = Kind { name: "epics", framing: Framing::Lines, read: epics::parse, limit: settings.max_line };
        let desk = Arc::new(Desk::new(kind, participant, logger));
        let streams = match settings.listen {
            Door::At(address) => Some(Streams::start(address, settings.connections, desk.clone())?),
            Door::Off => None,
        };
        self.0.push(Input { datagrams: None, streams, desk });
        Ok(())
    }

    /// Where they listen, with the ports they got: `syslog udp 127.0.0.1:5514`.
    pub fn addresses(&self) -> Vec<String> {
        let of = |input: &Input| {
            let name = input.desk.kind.name;
            let udp = input.datagrams.as_ref().map(|datagrams| format!("{name} udp {}", datagrams.address()));
            let tcp = input.streams.as_ref().map(|streams| format!("{name} tcp {}", streams.address()));
            udp.into_iter().chain(tcp)
        };
        self.0.iter().flat_map(of).collect()
    }
}
