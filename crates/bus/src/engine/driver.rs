//! The catalogue entry of an engine: functions to join through it, and to route with it.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use super::contract::{Engine, EngineError};
use crate::{
    access::Policy,
    connect::{Endpoint, Key, Settings},
    run_dir::DomainDir,
};

/// One engine of this build.
pub(crate) struct Driver {
    /// The name by which settings choose it.
    pub name: &'static str,
    /// Joins as a process.
    pub open: fn(&Settings) -> Result<Arc<dyn Engine>, EngineError>,
    /// Starts a node's router.
    pub route: fn(RouterSettings) -> Result<Box<dyn Router>, EngineError>,
}

/// Settings of a router.
#[cfg_attr(not(feature = "zenoh"), expect(dead_code, reason = "only engines with a router read it"))]
pub(crate) struct RouterSettings {
    /// The settings with which the node's own engine joins.
    pub process: Settings,
    /// The domain's part of the run-time directory.
    pub dir: DomainDir,
    /// Endpoints to listen at; the first one is the host's socket.
    pub listen: Vec<Endpoint>,
    /// Other nodes to stay connected to.
    pub connect: Vec<Endpoint>,
    /// Key that a caller must have; `None` relies on the file system to keep others out.
    pub key: Option<Key>,
    /// Names of the hosts that may pass on what other hosts send; `None` are those that this node connects to.
    pub relays: Option<Vec<String>>,
    /// Rules about topics that hold from the first connection on.
    pub policy: Arc<Policy>,
}

/// Traffic of one open link between hosts. Only encrypted links count; links within a host are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkTraffic {
    /// Name in the other end's certificate.
    pub host: Option<String>,
    /// Address of this end.
    pub own: SocketAddr,
    /// Address of the other end.
    pub other: SocketAddr,
    /// Bytes sent, before encryption.
    pub sent: u64,
    /// Bytes received, after decryption.
    pub received: u64,
    /// Time since the link was made.
    pub age: Duration,
}

/// Returns the reason for which a host, by the name in its certificate, may not be connected at this own address; the flag
/// is true if this end has made the connection.
pub(crate) type AskForHost = Arc<dyn Fn(&str, SocketAddr, bool) -> Option<String> + Send + Sync>;

/// A running router; dropping it stops it.
pub(crate) trait Router: Send + Sync {
    /// Returns an engine on the router itself.
    fn engine(&self) -> Result<Arc<dyn Engine>, EngineError>;

    /// Returns the network addresses at which it listens (loopback excepted), with the assigned ports.
    fn addresses(&self) -> Vec<String>;

    /// Returns the numbers of connected processes and of other connected nodes.
    fn connections(&self) -> (usize, usize);

    /// Returns what the open links to other hosts have carried.
    fn links(&self) -> Vec<LinkTraffic>;

    /// Calls `work` with a number that changes when the router has made its sockets anew. It does not do so meanwhile. It
    /// fails if the router cannot make them anew.
    fn at_rest(&self, work: &mut dyn FnMut(u64)) -> Result<(), EngineError>;

    /// Asks this rule for each host that connects with a certificate, and for connected ones from time to time.
    fn ask_for_hosts(&self, rule: AskForHost);

    /// Returns the names of the hosts that it connects to, as far as their certificates have proved them.
    fn dialed_hosts(&self) -> Vec<String>;

    /// Returns faults for which samples of others do not arrive, each in a sentence.
    fn trouble(&self) -> Vec<String> {
        Vec::new()
    }

    /// Lets these rules decide which topics a host reads and writes over its links.
    fn hold_to(&self, policy: &Arc<Policy>);
}
