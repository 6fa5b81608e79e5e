//! What a site says of its inputs. All are off unless it says otherwise, and then listen on this host only.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// Where something listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Door {
    /// Nowhere.
    Off,
    /// At this address; port 0 is any that is free.
    At(SocketAddr),
}

impl Door {
    /// A port of this host only.
    pub const fn loopback(port: u16) -> Door {
        Door::At(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// The address, if it can be reached from other hosts.
    pub fn beyond_this_host(self) -> Option<SocketAddr> {
        match self {
            Door::At(address) if !address.ip().is_loopback() => Some(address),
            _ => None,
        }
    }
}

/// Why a text is no place to listen at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no address to listen at (write \"127.0.0.1:5514\", \"0.0.0.0:5514\", \"[::]:5514\" or \"off\")")]
pub struct BadDoor(String);

impl FromStr for Door {
    type Err = BadDoor;

    fn from_str(text: &str) -> Result<Door, BadDoor> {
        match text {
            "off" => Ok(Door::Off),
            _ => text.parse().map(Door::At).map_err(|_| BadDoor(text.to_owned())),
        }
    }
}

impl TryFrom<String> for Door {
    type Error = BadDoor;

    fn try_from(text: String) -> Result<Door, BadDoor> {
        text.parse()
    }
}

impl From<Door> for String {
    fn from(door: Door) -> String {
        door.to_string()
    }
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Door::Off => f.write_str("off"),
            Door::At(address) => address.fmt(f),
        }
    }
}

/// Syslog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Syslog {
    /// Whether it is taken in.
    pub enabled: bool,
    /// Where datagrams are.
    pub udp: Door,
    /// Where streams are.
    pub tcp: Door,
    /// Bytes of a message that are kept; the rest is cut, and the record says so.
    pub max_message: usize,
    /// Streams that may be open; more are closed at once, and told.
    pub connections: usize,
    /// Bytes of datagrams that may wait in the kernel; what it drops beyond is counted and told.
    pub receive_buffer: usize,
}

impl Default for Syslog {
    fn default() -> Syslog {
        Syslog {
            enabled: false,
            udp: Door::loopback(5514),
            tcp: Door::loopback(5514),
            max_message: 65536,
            connections: 256,
            receive_buffer: 4 << 20,
        }
    }
}

/// The log of EPICS's IOCs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Epics {
    /// Whether it is taken in.
    pub enabled: bool,
    /// Where IOCs connect.
    pub listen: Door,
    /// Bytes of a line that are kept; the rest is cut, and the record says so.
    pub max_line: usize,
    /// IOCs that may be connected; more are closed at once, and told.
    pub connections: usize,
}

impl Default for Epics {
    fn default() -> Epics {
        Epics { enabled: false, listen: Door::loopback(7004), max_line: 8192, connections: 1024 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_are_addresses_or_off() {
        for text in ["off", "127.0.0.1:5514", "[::]:514"] {
            assert_eq!(text.parse::<Door>().unwrap().to_string(), text);
        }
        assert!("localhost:5514".parse::<Door>().unwrap_err().to_string().contains("'localhost:5514' is no address"));
        assert_eq!("0.0.0.0:5514".parse::<Door>().unwrap().beyond_this_host(), "0.0.0.0:5514".parse().ok());
        assert_eq!(Door::loopback(1).beyond_this_host(), None);
        assert_eq!(Door::Off.beyond_this_host(), None);
    }
}
