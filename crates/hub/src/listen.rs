//! The listen address of a service, as a setting.

use std::{
    fmt,
    net::{Ipv4Addr, SocketAddr},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

/// A listen address, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ListenAddress {
    /// Does not listen.
    Off,
    /// Listens on this address; port 0 takes any free port.
    At(SocketAddr),
}

impl ListenAddress {
    /// Returns a port of this host only.
    pub const fn loopback(port: u16) -> ListenAddress {
        ListenAddress::At(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port))
    }

    /// Returns the address, if other hosts can reach it.
    pub fn beyond_this_host(self) -> Option<SocketAddr> {
        match self {
            ListenAddress::At(address) if !address.ip().is_loopback() => Some(address),
            _ => None,
        }
    }
}

/// Error of a text that is not a listen address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid listen address '{0}' (write \"127.0.0.1:5514\", \"0.0.0.0:5514\", \"[::]:5514\" or \"off\")")]
pub struct BadListenAddress(String);

impl FromStr for ListenAddress {
    type Err = BadListenAddress;

    fn from_str(text: &str) -> Result<ListenAddress, BadListenAddress> {
        match text {
            "off" => Ok(ListenAddress::Off),
            _ => text.parse().map(ListenAddress::At).map_err(|_| BadListenAddress(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = BadListenAddress;

    fn try_from(text: String) -> Result<ListenAddress, BadListenAddress> {
        text.parse()
    }
}

impl From<ListenAddress> for String {
    fn from(address: ListenAddress) -> String {
        address.to_string()
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenAddress::Off => f.write_str("off"),
            ListenAddress::At(address) => address.fmt(f),
        }
    }
}
