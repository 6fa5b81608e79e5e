//! The sending side of a stream: its flows, each with receivers that are connected to and kept connected.
//!
//! ```text
//! send(block) -> frames (numbered, cut, checked) -> window (kept until all have acknowledged)
//!                                                      |-> link to a receiver: socket, how far written, how far acknowledged
//!                                                      '-> link to another
//! ```

use std::thread::JoinHandle;

use tampu_types::Incarnation;

use crate::{
    handler::Peer,
    message::{Refusal, Transport},
    name::Name,
    receiver::{Identity, OpenError, chance},
    sending::Misuse,
    state::SenderReport,
    target::Target,
};
use connecting::Goal;
pub use flow::{Acknowledge, Flow, Go, Periodic, SendFlow, Slow, Started};
pub use pool::Block;

mod connecting;
mod flow;
mod group;
mod link;
mod pool;
mod rate;

/// Why something could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A call that is not allowed now.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// Too few receivers when a transfer was to begin.
    #[error("flow '{flow}' wants {wanted} receivers and has {here}{}", Refused::list(.refused))]
    NoReceiver {
        /// Which flow.
        flow: Name,
        /// How many it wants.
        wanted: usize,
        /// How many are connected.
        here: usize,
        /// Those that are there and sent this sender away.
        refused: Vec<Refused>,
    },
    /// All receivers that took part are gone.
    #[error("flow '{flow}' has no receiver left ({why})")]
    NobodyLeft {
        /// Which flow.
        flow: Name,
        /// What became of each.
        why: String,
    },
    /// The sender was closed.
    #[error("the sender was closed")]
    Closed,
}

/// A receiver that does not take this sender.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{receiver} refuses: {text}")]
pub struct Refused {
    /// Who.
    pub receiver: Peer,
    /// Why.
    pub why: Refusal,
    /// In words, with who has the flow or what there is instead.
    pub text: String,
}

impl Refused {
    fn list(all: &[Refused]) -> String {
        all.iter().map(|one| format!("; {one}")).collect()
    }
}

/// The sending side of a stream. Dropping it gives up what is under way and closes its connections.
pub struct Sender {
    stream: Name,
    identity: Identity,
    flows: Vec<Flow>,
    workers: Vec<JoinHandle<()>>,
}

impl Sender {
    /// Opens a stream with these flows. It has no receivers until somebody adds them: [`Sender::connect`], or
    /// [`crate::directory::follow`] for all that announce themselves on the bus.
    pub fn open(identity: Identity, stream: Name, flows: Vec<SendFlow>) -> Result<Sender, OpenError> {
        let mut sender = Sender { stream, identity, flows: Vec::new(), workers: Vec::new() };
        for settings in flows {
            if sender.flow(&settings.name).is_some() {
                return Err(OpenError::Twice(settings.name));
            }
            settings.check()?;
            let [a, b, c, d, ..] = chance()?;
            let session = u32::from_le_bytes([a, b, c, d]);
            let (flow, worker) = Flow::open(sender.identity.clone(), sender.stream.clone(), settings, session)?;
            sender.flows.push(flow);
            sender.workers.push(worker);
        }
        Ok(sender)
    }

    /// Which stream.
    pub fn stream(&self) -> &Name {
        &self.stream
    }

    /// Who it is.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// A flow by its name.
    pub fn flow(&self, name: &Name) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.name() == name)
    }

    /// All of them.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Connects every flow to a receiver whose place is known without the bus; one that does not have a flow refuses it.
    pub fn connect(&self, target: &Target) -> Result<(), OpenError> {
        let peer = Peer { source: String::new(), incarnation: Incarnation::default(), address: target.address.clone() };
        self.flows.iter().try_for_each(|flow| {
            let goal = Goal { target: target.clone(), boot: None, transports: Vec::new() };
            flow.add(target.to_string(), peer.clone(), goal)
        })
    }

    /// Connects one flow to a receiver that takes these ways.
    pub(crate) fn add(
        &self,
        flow: &Name,
        key: &str,
        peer: &Peer,
        target: &Target,
        transports: &[Transport],
    ) -> Result<(), OpenError> {
        let Some(flow) = self.flow(flow) else { return Ok(()) };
        let goal = Goal { target: target.clone(), boot: Some(peer.incarnation.boot), transports: transports.to_vec() };
        flow.add(key.to_owned(), peer.clone(), goal)
    }

    /// Takes a receiver off a flow's list.
    pub(crate) fn remove(&self, flow: &Name, key: &str) {
        if let Some(flow) = self.flow(flow) {
            flow.remove(key);
        }
    }

    /// How everything stands.
    pub fn state(&self) -> SenderReport {
        SenderReport {
            stream: self.stream.clone(),
            source: self.identity.source.clone(),
            incarnation: self.identity.incarnation.to_string(),
            flows: self.flows.iter().map(Flow::state).collect(),
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.flows.iter().for_each(Flow::close);
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
