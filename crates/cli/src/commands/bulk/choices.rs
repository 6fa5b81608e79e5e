//! The values of the options that several commands of bulk data share.

use clap::ValueEnum;
use tampu_bulk::{Protection, message::Transport, settings};

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
        settings::Protocol::from(self).transport()
    }
}

impl From<Protocol> for settings::Protocol {
    fn from(protocol: Protocol) -> settings::Protocol {
        match protocol {
            Protocol::Auto => settings::Protocol::Auto,
            Protocol::Tcp => settings::Protocol::Tcp,
            Protocol::Shm => settings::Protocol::Shm,
            Protocol::Udp => settings::Protocol::Udp,
            Protocol::Multicast => settings::Protocol::Multicast,
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
