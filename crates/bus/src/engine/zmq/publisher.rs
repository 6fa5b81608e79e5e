//! The sending side of a process: two publishers, so that urgent samples do not wait behind others.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use zmq::{Context, DONTWAIT, SNDMORE, Socket};

use super::socket::{self, refused};
use crate::{engine::EngineError, run_dir::DomainDir};
use tampu_types::Incarnation;

/// Returns the addresses at which a process of this host publishes: ordinary samples, and urgent ones.
pub fn addresses(dir: &DomainDir, process: Incarnation) -> Result<[String; 2], EngineError> {
    let address = |path: PathBuf| format!("ipc://{}", path.display());
    let [ordinary, urgent] = dir.publisher_sockets(process).map_err(|why| EngineError::Refused {
        engine: socket::NAME,
        doing: "naming the publisher's socket".to_owned(),
        why: why.to_string(),
    })?;
    Ok([address(ordinary), address(urgent)])
}

/// The publishers of one process.
pub struct Publisher {
    ordinary: Mutex<Socket>,
    urgent: Mutex<Socket>,
}

impl Publisher {
    /// Listens at these addresses.
    pub fn listen([ordinary, urgent]: &[String; 2], context: &Context, longest: usize) -> Result<Publisher, EngineError> {
        let listen = |address: &str| {
            let made = socket::open(context, zmq::PUB, longest)?;
            made.bind(address).map_err(refused(format!("listening at {address}")))?;
            Ok::<_, EngineError>(Mutex::new(made))
        };
        Ok(Publisher { ordinary: listen(ordinary)?, urgent: listen(urgent)? })
    }

    /// Sends to whoever has subscribed; it never waits.
    pub fn send(&self, is_urgent: bool, topic: &[u8], message: &[u8]) -> Result<(), EngineError> {
        let socket = if is_urgent { &self.urgent } else { &self.ordinary }.lock();
        let sent = socket.send(topic, SNDMORE | DONTWAIT).and_then(|()| socket.send(message, DONTWAIT));
        sent.map_err(refused("sending"))
    }
}

/// Reports if the files of these addresses are in the run-time directory.
pub fn is_here(addresses: &[String; 2]) -> bool {
    addresses.iter().filter_map(|address| address.strip_prefix("ipc://")).all(|path| Path::new(path).exists())
}

impl Publisher {
    /// Lets libzmq forget subscribers that have gone. It does so in calls alone, and a publisher may have nothing to send.
    pub fn tend(&self) {
        for socket in [&self.ordinary, &self.urgent] {
            let _ = socket.lock().get_events();
        }
    }
}

/// Removes the files of addresses whose process has ended.
pub fn remove(addresses: &[String; 2]) {
    for path in addresses.iter().filter_map(|address| address.strip_prefix("ipc://")) {
        let _ = std::fs::remove_file(Path::new(path));
    }
}
