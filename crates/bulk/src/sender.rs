//! The sending side of a stream: its flows, each with receivers to which it connects and reconnects.
//!
//! ```text
//! send(block) -> frames (numbered, cut, checked) -> window (kept until all have acknowledged)
//!                                                      |-> link to a receiver: socket, how far written, how far acknowledged
//!                                                      '-> link to another
//! ```

use std::{
    io::{ErrorKind, Read},
    net::TcpStream,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_types::Incarnation;

use crate::{
    declared_flow::DeclaredFlow,
    handler::Peer,
    identity::Identity,
    name::Name,
    open::{OpenError, random_bytes},
    passes::PassOffice,
    protection::Protection,
    state::SenderReport,
    target::Target,
};
use connecting::Goal;
pub use error::{Refused, SendError};
pub use flow::{Acknowledge, Flow, Go, Periodic, SendFlow, Slow, Started};
pub use pool::Block;

mod connecting;
mod error;
mod flow;
mod group;
mod link;
mod pool;
mod rate;

/// The longest wait of closing for deliveries.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// Sending side of a stream. Dropping it gives up running transfers and closes its connections. It waits up to 3 s until
/// the receivers have read what was sent.
pub struct Sender {
    stream: Name,
    identity: Identity,
    flows: Vec<Flow>,
    workers: Vec<JoinHandle<()>>,
}

impl Sender {
    /// Opens a stream with these flows. It has no receivers at first. Add them with [`Sender::connect`], or with
    /// [`crate::directory::follow`] for all that announce themselves on the bus.
    pub fn open(identity: Identity, stream: Name, flows: Vec<SendFlow>) -> Result<Sender, OpenError> {
        let mut sender = Sender { stream, identity, flows: Vec::new(), workers: Vec::new() };
        for settings in flows {
            if sender.flow(&settings.name).is_some() {
                return Err(OpenError::Twice(settings.name));
            }
            settings.check()?;
            let session = u32::from_le_bytes(random_bytes()?);
            let (flow, worker) = Flow::open(sender.identity.clone(), sender.stream.clone(), settings, session)?;
            sender.flows.push(flow);
            sender.workers.push(worker);
        }
        Ok(sender)
    }

    /// Returns the name of its stream.
    pub fn stream(&self) -> &Name {
        &self.stream
    }

    /// Returns its identity.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Returns a flow by its name.
    pub fn flow(&self, name: &Name) -> Option<&Flow> {
        self.flows.iter().find(|flow| flow.name() == name)
    }

    /// Returns all flows.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Connects every flow to a receiver whose address is known without the bus. The receiver refuses the flows that it
    /// does not have.
    pub fn connect(&self, target: &Target) -> Result<(), OpenError> {
        let peer = Peer { source: String::new(), incarnation: Incarnation::default(), address: target.address.clone() };
        self.flows.iter().try_for_each(|flow| {
            let goal =
                Goal { target: target.clone(), boot: None, transports: Vec::new(), protection: Protection::None, passes: None };
            flow.add(target.to_string(), peer.clone(), goal)
        })
    }

    /// Connects a declared flow of a receiver, which gives passes there.
    pub(crate) fn add(
        &self,
        flow: &DeclaredFlow,
        key: &str,
        peer: &Peer,
        target: &Target,
        passes: &PassOffice,
    ) -> Result<(), OpenError> {
        let Some(own) = self.flow(&flow.name) else { return Ok(()) };
        let goal = Goal {
            target: target.clone(),
            boot: Some(peer.incarnation.boot),
            transports: flow.transports.clone(),
            protection: flow.protection,
            passes: Some(passes.clone()),
        };
        own.add(key.to_owned(), peer.clone(), goal)
    }

    /// Removes a receiver from a flow.
    pub(crate) fn remove(&self, flow: &Name, key: &str) {
        if let Some(flow) = self.flow(flow) {
            flow.remove(key);
        }
    }

    /// Returns the state of all flows.
    pub fn state(&self) -> SenderReport {
        SenderReport {
            stream: self.stream.clone(),
            source: self.identity.source.clone(),
            incarnation: self.identity.incarnation.to_string(),
            flows: self.flows.iter().map(Flow::state).collect(),
        }
    }
}

/// Waits until the other end has read everything and closed. A socket that is closed before takes unread data from the
/// other end, because answers that arrive afterwards break the connection.
fn wait_for_end(stream: &TcpStream, until: Instant) {
    let mut answers = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let waits = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(left)));
        if left.is_zero() || waits.is_err() {
            return;
        }
        match (&*stream).read(&mut answers) {
            Ok(1..) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return,
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let until = Instant::now() + CLOSE_WAIT;
        let ended: Vec<_> = self.flows.iter().flat_map(|flow| flow.close(until)).collect();
        for stream in ended {
            wait_for_end(&stream, until);
        }
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}
