//! The measured carriers of blocks.

/// A carrier of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carrier {
    /// Name in tables and in `--only`.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Kind of measurement.
    pub kind: Kind,
    /// Maximum number of receivers.
    pub receivers: usize,
}

/// Kind of measurement of a carrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `tampu perf bulk`.
    Ours(Way),
    /// A system of the bus bench; with a process between writer and readers, or without.
    Peer {
        /// True if there is a server between.
        server: bool,
    },
    Iperf,
}

/// Arguments of `tampu perf bulk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// Protocol of the transfer.
    pub protocol: &'static str,
    pub checksum: bool,
    /// Protection as between hosts.
    pub protection: &'static str,
    /// If true, each block has its start, its stop and the wait for both.
    pub handshake: bool,
    /// If true, the data passes through a distributor.
    pub relay: bool,
}

const PLAIN: Way = Way { protocol: "tcp", checksum: false, protection: "none", handshake: false, relay: false };

const fn ours(name: &'static str, way: Way, about: &'static str) -> Carrier {
    Carrier { name, about, kind: Kind::Ours(way), receivers: usize::MAX }
}

const fn peer(name: &'static str, server: bool, about: &'static str) -> Carrier {
    Carrier { name, about, kind: Kind::Peer { server }, receivers: usize::MAX }
}

/// All carriers. Carriers that are compared are neighbours, so that they are measured in the same minute.
pub const CARRIERS: &[Carrier] = &[
    ours("tcp", PLAIN, "Tampu over TCP, no checksum, no hand-shake"),
    peer("raw-blocks", false, "a loop over TCP sockets: fill a block, write it, read and check it in pieces of 256 KB"),
    ours("tcp-encrypted", Way { protection: "encrypted", ..PLAIN }, "Tampu over TCP, encrypted as between hosts"),
    ours("tcp-checked", Way { checksum: true, ..PLAIN }, "Tampu over TCP with checksums"),
    ours(
        "tcp-handshake",
        Way { handshake: true, ..PLAIN },
        "Tampu over TCP, each block with its start, its stop and the wait for both",
    ),
    ours("tcp-relay", Way { relay: true, ..PLAIN }, "Tampu over TCP to a distributor, and over TCP from there"),
    peer("raw-relay", true, "a loop over TCP sockets to a process that gives each piece to all"),
    ours("shm", Way { protocol: "shm", ..PLAIN }, "Tampu through shared memory"),
    ours(
        "shm-handshake",
        Way { protocol: "shm", handshake: true, ..PLAIN },
        "Tampu through shared memory, each block with its start and stop",
    ),
    ours("udp", Way { protocol: "udp", ..PLAIN }, "Tampu over UDP, lost datagrams sent again"),
    ours("udp-checked", Way { protocol: "udp", checksum: true, ..PLAIN }, "the same with checksums"),
    ours("udp-encrypted", Way { protocol: "udp", protection: "encrypted", ..PLAIN }, "the same, encrypted as between hosts"),
    ours("multicast", Way { protocol: "multicast", ..PLAIN }, "Tampu to a multicast group, each datagram once for all receivers"),
    ours("multicast-checked", Way { protocol: "multicast", checksum: true, ..PLAIN }, "the same with checksums"),
    peer("bus-ask", false, "a question with the block and the answers of all, one after the other: the paper's CORBA call"),
    peer("zmq-tcp", false, "libzmq over TCP"),
    peer("zmq-ipc", false, "libzmq over a unix socket"),
    Carrier {
        name: "iperf3",
        about: "iperf3 over TCP, which neither fills nor reads its bytes",
        kind: Kind::Iperf,
        receivers: 1,
    },
];

impl Carrier {
    /// Returns true if a pattern is the carrier's whole name. A pattern that is not the whole name of any carrier may
    /// also be a part of the name.
    pub fn is_meant_by(&self, patterns: &[String]) -> bool {
        let whole = |pattern: &str| CARRIERS.iter().any(|carrier| carrier.name == pattern);
        let meant = |pattern: &String| self.name == pattern || !whole(pattern) && self.name.contains(pattern.as_str());
        patterns.is_empty() || patterns.iter().any(meant)
    }

    /// Returns the carrier of this name.
    pub fn named(name: &str) -> Option<&'static Carrier> {
        CARRIERS.iter().find(|carrier| carrier.name == name)
    }

    /// Returns true for Tampu itself.
    pub fn is_ours(&self) -> bool {
        matches!(self.kind, Kind::Ours(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_name_means_one_carrier() {
        let meant = |pattern: &str| CARRIERS.iter().filter(|carrier| carrier.is_meant_by(&[pattern.to_owned()])).count();
        assert_eq!([meant("tcp"), meant("shm"), meant("zmq"), meant("relay"), meant("nobody")], [1, 1, 2, 2, 0]);
    }
}
