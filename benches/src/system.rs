//! The catalogue of the measured systems, and the code that plays each part of them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::{
    bulk::peer as bulk,
    peer::{memory, nats, rsyslog, socket, zenoh, zmq},
    role::Speed,
    tampu,
};

/// A system that carries messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct System {
    /// Name in tables and in `--only`.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// True for Tampu itself.
    pub ours: bool,
    /// True if a process stands between writer and readers.
    pub server: bool,
    /// The shortest measured payload: loans are for large samples.
    pub from_size: usize,
    /// True if its single-sample latency is measured.
    pub latency: bool,
}

impl System {
    /// Returns true if one of the patterns is the system's whole name. A pattern that is not the whole name of any
    /// system may also be a part of the name. An empty list matches every system.
    pub fn is_meant_by(&self, patterns: &[String]) -> bool {
        let whole = |pattern: &str| SYSTEMS.iter().chain(LOG_PEERS).any(|system| system.name == pattern);
        let meant = |pattern: &String| self.name == pattern || !whole(pattern) && self.name.contains(pattern.as_str());
        patterns.is_empty() || patterns.iter().any(meant)
    }
}

const fn peer(name: &'static str, server: bool, about: &'static str) -> System {
    System { name, about, ours: false, server, from_size: 0, latency: true }
}

const fn tampu(name: &'static str, from_size: usize, about: &'static str) -> System {
    System { name, about, ours: true, server: true, from_size, latency: from_size == 0 }
}

/// Shortest size for loans, which are for samples whose copying costs more than locating them in shared memory.
const LENT_FROM: usize = 4096;
/// Payload size at which memory is the limit.
const LARGE: usize = 64 << 10;

/// All systems, with Tampu first so that a peer's row can show the ratio.
pub const SYSTEMS: &[System] = &[
    tampu("tampu-node", 0, "Tampu through the host's node"),
    tampu("tampu-direct", 0, "Tampu from process to process"),
    tampu("tampu-node-loan", LENT_FROM, "Tampu through the node, samples lent in shared memory"),
    tampu("tampu-direct-loan", LENT_FROM, "Tampu from process to process, samples lent in shared memory"),
    peer("zenoh-router", true, "zenoh, clients of a router over its unix socket, Block"),
    peer("zenoh-unix", false, "zenoh, peer to peer over a unix socket, Block"),
    peer("zenoh-tcp", false, "zenoh, peer to peer over loopback TCP, Block"),
    peer("zmq-ipc", false, "libzmq XPUB NODROP to SUB over a unix socket"),
    peer("zmq-tcp", false, "libzmq XPUB NODROP to SUB over loopback TCP"),
    peer("raw-unix", false, "a loop over unix sockets, joined to 64 KB"),
    peer("raw-tcp", false, "a loop over loopback TCP sockets, joined to 64 KB"),
    System {
        from_size: LARGE,
        latency: false,
        ..peer("raw-memory", false, "a ring of 8 slots in shared memory and nothing else")
    },
];

/// Systems that carry log records, beside Tampu.
pub const LOG_PEERS: &[System] = &[
    peer("nats-100", true, "nats-server, 100 records a message"),
    peer("nats-1", true, "nats-server, one record a message"),
    peer("rsyslog", true, "rsyslogd, from TCP into a file, without followers"),
];

/// Returns true if the system writes its messages to a file and has no readers.
pub fn has_no_readers(system: &System) -> bool {
    system.name == "rsyslog"
}

/// A part in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Process between writer and readers.
    Server,
    /// Process that publishes.
    Writer,
    /// Process that receives.
    Reader,
}

/// Part that this process plays; the bench passes it, not people.
#[derive(Debug, Clone, Args)]
pub struct Role {
    /// Name of a system.
    pub system: String,
    /// Part that this process plays.
    pub part: Part,
    /// A directory for sockets.
    #[arg(long)]
    pub dir: PathBuf,
    #[arg(long)]
    pub size: usize,
    /// Number of readers.
    #[arg(long)]
    pub readers: usize,
    /// Number of this reader.
    #[arg(long, default_value_t = 0)]
    pub number: usize,
    /// About a thousand messages a second, with times.
    #[arg(long)]
    pub paced: bool,
    /// Address to connect to.
    #[arg(long, default_value = "")]
    pub at: String,
}

impl Role {
    /// Returns the arguments that start a process in this role.
    pub fn arguments(&self) -> Vec<String> {
        let part = match self.part {
            Part::Server => "server",
            Part::Writer => "writer",
            Part::Reader => "reader",
        };
        let mut list = vec!["role".to_owned(), self.system.clone(), part.to_owned()];
        let options = [
            ("--dir", self.dir.display().to_string()),
            ("--size", self.size.to_string()),
            ("--readers", self.readers.to_string()),
            ("--number", self.number.to_string()),
            ("--at", self.at.clone()),
        ];
        list.extend(options.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        list.extend(self.paced.then(|| "--paced".to_owned()));
        list
    }

    /// Runs the part until it is over.
    pub fn play(&self) -> Result<(), String> {
        let Role { dir, at, size, readers, .. } = self;
        let (size, readers) = (*size, *readers);
        let speed = if self.paced { Speed::Paced } else { Speed::Full };
        match (self.system.as_str(), self.part) {
            (name, Part::Server) if name.starts_with("tampu-") => tampu::server(dir),
            (name, Part::Writer) if name.starts_with("tampu-") => tampu::writer(tampu::way(name), dir, size, speed),
            (name, Part::Reader) if name.starts_with("tampu-") => tampu::reader(tampu::way(name), dir, self.number, size),
            ("zenoh-router", Part::Server) => zenoh::server(dir),
            ("nats-1" | "nats-100", Part::Server) => nats::server(dir),
            ("rsyslog", Part::Server) => rsyslog::server(dir),
            ("raw-relay", Part::Server) => bulk::raw_relay(readers),
            (name, Part::Server) => Err(format!("{name} has no server")),
            ("zenoh-router", Part::Writer) => zenoh::writer(zenoh::Shape::Router, dir, at, size, speed),
            ("zenoh-router", Part::Reader) => zenoh::reader(zenoh::Shape::Router, at, size),
            ("zenoh-unix", Part::Writer) => zenoh::writer(zenoh::Shape::Unix, dir, at, size, speed),
            ("zenoh-unix", Part::Reader) => zenoh::reader(zenoh::Shape::Unix, at, size),
            ("zenoh-tcp", Part::Writer) => zenoh::writer(zenoh::Shape::Tcp, dir, at, size, speed),
            ("zenoh-tcp", Part::Reader) => zenoh::reader(zenoh::Shape::Tcp, at, size),
            ("zmq-ipc", Part::Writer) => zmq::writer(zmq::Kind::Ipc, dir, size, speed),
            ("zmq-tcp", Part::Writer) => zmq::writer(zmq::Kind::Tcp, dir, size, speed),
            ("zmq-ipc" | "zmq-tcp", Part::Reader) => zmq::reader(at, size),
            ("raw-unix", Part::Writer) => socket::writer(socket::Kind::Unix, dir, readers, size, speed),
            ("raw-unix", Part::Reader) => socket::reader(socket::Kind::Unix, at, size),
            ("raw-tcp", Part::Writer) => socket::writer(socket::Kind::Tcp, dir, readers, size, speed),
            ("raw-tcp", Part::Reader) => socket::reader(socket::Kind::Tcp, at, size),
            ("raw-memory", Part::Writer) => memory::writer(dir, readers, size, speed),
            ("raw-memory", Part::Reader) => memory::reader(at, self.number, size),
            ("raw-blocks", Part::Writer) => bulk::raw_writer(readers, size, speed),
            ("raw-blocks", Part::Reader) => bulk::raw_reader(at, None, size),
            ("raw-relay", Part::Writer) => bulk::raw_writer_to(at, size, speed),
            ("raw-relay", Part::Reader) => bulk::raw_reader(at, Some(bulk::READS), size),
            ("bus-ask", Part::Writer) => bulk::ask_writer(dir, readers, size, speed),
            ("bus-ask", Part::Reader) => bulk::ask_reader(dir, self.number, size),
            ("nats-1", Part::Writer) => nats::writer(at, 1, size, speed),
            ("nats-100", Part::Writer) => nats::writer(at, 100, size, speed),
            ("rsyslog", Part::Writer) => rsyslog::writer(dir, at, size, speed),
            ("nats-1" | "nats-100", Part::Reader) => nats::reader(at, size),
            (name, _) => Err(format!("nothing here is called {name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_name_means_one_system_and_a_part_means_several() {
        let meant = |pattern: &str| SYSTEMS.iter().filter(|system| system.is_meant_by(&[pattern.to_owned()])).count();
        assert_eq!([meant("tampu-direct"), meant("tampu"), meant("loan"), meant("nobody")], [1, 4, 2, 0]);
        assert!(SYSTEMS.iter().all(|system| system.is_meant_by(&[])));
    }
}
