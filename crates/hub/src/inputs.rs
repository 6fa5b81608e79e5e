//! Inputs of other programs' logs: syslog, and the log of EPICS's IOCs.
//!
//! ```text
//! datagrams, streams  -->  frames  -->  record  -->  dispatcher: a logger of the source syslog@HOST  -->  bus
//! ```
//! Each input is a source on the bus like any process that logs. Its records are therefore live, are stored once under
//! ids of their own, and are subject to a quota.
//!
//! Decision: an input reads a stream only a few MiB ahead of the acknowledgements, so TCP slows the sender down and
//! nothing is lost. Datagrams then wait in the kernel's buffer; the kernel counts those it drops, and the input logs
//! them. Rejected: a queue between socket and logger, which would be a third place where records wait and can be lost.
//!
//! Senders of one input share its source's quota (see `shares`): the input itself drops or delays what is too much, of the
//! addresses that send most. Rejected: a bus source for each address, because senders of datagrams can forge addresses.
//!
//! Neither protocol has acknowledgements. Messages that a sender's kernel has accepted are lost when the hub dies.
//!
//! | part | module |
//! |-|-|
//! | configuration | [`settings`] |
//! | conversion of bytes to records; counts and log records of failures | `dispatcher` |
//! | UDP | `datagrams` |
//! | TCP | `streams` |

use std::sync::Arc;

pub(crate) use dispatcher::QUEUE;
pub use error::InputError;

use tampu_bus::Participant;
use tampu_log::{Logger, collector::quota::Quota};
use tampu_types::{epics, frames::Framing, syslog};

use crate::listen::ListenAddress;

use self::{
    datagrams::Datagrams,
    dispatcher::{Dispatcher, InputCounts, InputKind},
    settings::{Epics, Syslog},
    shares::ShareLimits,
    streams::Streams,
};

mod datagrams;
mod dispatcher;
mod error;
pub mod settings;
mod shares;
mod streams;

/// The state of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputReport {
    /// Its name: `syslog`, `epics`.
    pub input: &'static str,
    /// Counters since the start.
    pub counts: InputCounts,
    /// Number of open connections.
    pub open: u64,
}

/// A running input.
struct Input {
    // Both end before the dispatcher, because they use its logger.
    datagrams: Option<Datagrams>,
    streams: Option<Streams>,
    dispatcher: Arc<Dispatcher>,
}

/// The running inputs; they end when dropped.
#[derive(Default)]
pub(crate) struct Inputs(Vec<Input>);

/// The limits of an input's senders: a rate for each address, and for all of them the quota of the input's source.
fn limits(of_one: u32, quota: Quota) -> ShareLimits {
    ShareLimits { of_one, records_per_s: quota.records_per_s, bytes_per_s: quota.bytes_per_s }
}

impl Inputs {
    /// Returns the state of each input.
    pub fn reports(&self) -> Vec<InputReport> {
        let report = |input: &Input| InputReport {
            input: input.dispatcher.kind.name,
            counts: input.dispatcher.counts(),
            open: input.streams.as_ref().map_or(0, Streams::open),
        };
        self.0.iter().map(report).collect()
    }

    /// Starts the input for syslog.
    pub fn syslog(
        &mut self,
        settings: &Syslog,
        quota: Quota,
        participant: &Participant,
        logger: Logger,
    ) -> Result<(), InputError> {
        let kind = InputKind {
            name: "syslog",
            connection_worker: "syslog-connection",
            framing: Framing::Syslog,
            read: syslog::parse,
            limit: settings.max_message,
            limits: limits(settings.messages_per_s_per_address, quota),
        };
        let dispatcher = Arc::new(Dispatcher::new(kind, participant, logger));
        let mut input = Input { datagrams: None, streams: None, dispatcher: dispatcher.clone() };
        if let ListenAddress::At(address) = settings.udp {
            input.datagrams = Some(Datagrams::start(address, settings.receive_buffer, dispatcher.clone())?);
        }
        if let ListenAddress::At(address) = settings.tcp {
            input.streams = Some(Streams::start(address, settings.limits(), dispatcher)?);
        }
        self.0.push(input);
        Ok(())
    }

    /// Starts the input for the log of IOCs.
    pub fn epics(&mut self, settings: &Epics, quota: Quota, participant: &Participant, logger: Logger) -> Result<(), InputError> {
        let kind = InputKind {
            name: "epics",
            connection_worker: "epics-connection",
            framing: Framing::Lines,
            read: epics::parse,
            limit: settings.max_line,
            limits: limits(settings.lines_per_s_per_address, quota),
        };
        let dispatcher = Arc::new(Dispatcher::new(kind, participant, logger));
        let streams = match settings.listen {
            ListenAddress::At(address) => Some(Streams::start(address, settings.limits(), dispatcher.clone())?),
            ListenAddress::Off => None,
        };
        self.0.push(Input { datagrams: None, streams, dispatcher });
        Ok(())
    }

    /// Returns the addresses of all inputs with their actual ports, as `syslog udp 127.0.0.1:5514`.
    pub fn addresses(&self) -> Vec<String> {
        let of = |input: &Input| {
            let name = input.dispatcher.kind.name;
            let udp = input.datagrams.as_ref().map(|datagrams| format!("{name} udp {}", datagrams.address()));
            let tcp = input.streams.as_ref().map(|streams| format!("{name} tcp {}", streams.address()));
            udp.into_iter().chain(tcp)
        };
        self.0.iter().flat_map(of).collect()
    }
}
