//! The values of the options that several commands of bulk data share.

use clap::ValueEnum;
use tampu_bulk::{Protection, message::Transport};

/// Transports of bulk data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// Shared memory on one host, else TCP.
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

/// Protection that an end demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProtectionChoice {
    /// Encrypted between hosts, nothing on one host.
    Auto,
    /// This end demands nothing.
    None,
    /// Nobody on the network can change data.
    Authenticated,
    /// Nobody on the network can read or change data.
    Encrypted,
}

impl ProtectionChoice {
    /// As the library has it.
    pub fn protection(self) -> Protection {
        match self {
            ProtectionChoice::Auto => Protection::Auto,
            ProtectionChoice::None => Protection::None,
            ProtectionChoice::Authenticated => Protection::Authenticated,
            ProtectionChoice::Encrypted => Protection::Encrypted,
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
    /// Returns true for on.
    pub fn is_on(self) -> bool {
        self == OnOff::On
    }
}
