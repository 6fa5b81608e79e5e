//! Settings of the inputs. By default all are off, and listen on this host only.

use serde::{Deserialize, Serialize};

use super::streams::ConnectionLimits;
use crate::listen::ListenAddress;

/// The input for syslog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Syslog {
    /// If true, the input is on.
    pub enabled: bool,
    /// The address for datagrams.
    pub udp: ListenAddress,
    /// The address for streams.
    pub tcp: ListenAddress,
    /// Maximum length of a message in bytes. The rest is cut, and the record is marked.
    pub max_message: usize,
    /// Maximum number of open streams. A further one replaces the longest silent one, and that is logged.
    pub connections: usize,
    /// Maximum number of open streams of one address.
    pub connections_per_address: usize,
    /// Messages a second of one address; 0 for no limit. Further datagrams are dropped, counted and logged; streams wait.
    pub messages_per_s_per_address: u32,
    /// Size in bytes of the kernel's buffer for datagrams; further ones are dropped, counted and logged.
    pub receive_buffer: usize,
}

impl Default for Syslog {
    fn default() -> Syslog {
        Syslog {
            enabled: false,
            udp: ListenAddress::loopback(5514),
            tcp: ListenAddress::loopback(5514),
            max_message: 65536,
            connections: 256,
            connections_per_address: 16,
            messages_per_s_per_address: 20_000,
            receive_buffer: 4 << 20,
        }
    }
}

/// The input for the log of EPICS's IOCs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Epics {
    /// If true, the input is on.
    pub enabled: bool,
    /// The address for IOCs.
    pub listen: ListenAddress,
    /// Maximum length of a line in bytes. The rest is cut, and the record is marked.
    pub max_line: usize,
    /// Maximum number of connected IOCs. A further one replaces the longest silent one, and that is logged.
    pub connections: usize,
    /// Maximum number of connected IOCs of one address.
    pub connections_per_address: usize,
    /// Lines a second of one address; 0 for no limit. Its streams wait.
    pub lines_per_s_per_address: u32,
}

impl Default for Epics {
    fn default() -> Epics {
        Epics {
            enabled: false,
            listen: ListenAddress::loopback(7004),
            max_line: 8192,
            connections: 1024,
            connections_per_address: 64,
            lines_per_s_per_address: 20_000,
        }
    }
}

impl Syslog {
    pub(super) fn limits(&self) -> ConnectionLimits {
        ConnectionLimits { all: self.connections, of_one_address: self.connections_per_address }
    }
}

impl Epics {
    pub(super) fn limits(&self) -> ConnectionLimits {
        ConnectionLimits { all: self.connections, of_one_address: self.connections_per_address }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_addresses_or_off() {
        for text in ["off", "127.0.0.1:5514", "[::]:514"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
        assert!(
            "localhost:5514"
                .parse::<ListenAddress>()
                .unwrap_err()
                .to_string()
                .contains("invalid listen address 'localhost:5514'")
        );
        assert_eq!("0.0.0.0:5514".parse::<ListenAddress>().unwrap().beyond_this_host(), "0.0.0.0:5514".parse().ok());
        assert_eq!(ListenAddress::loopback(1).beyond_this_host(), None);
        assert_eq!(ListenAddress::Off.beyond_this_host(), None);
    }
}
