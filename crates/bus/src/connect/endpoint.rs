//! Addresses on the bus.

use std::{fmt, path::PathBuf, str::FromStr};

/// An address to listen at or to connect to: `host:port` (or `tcp/host:port`), or the path of a unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A host's name or address, and a port.
    Tcp(String),
    /// A unix socket of this host.
    Unix(PathBuf),
}

/// The error of an invalid endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid endpoint '{0}': write host:port or the path of a socket (without ? and #)")]
pub struct BadEndpoint(pub String);

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Endpoint, BadEndpoint> {
        let bad = || BadEndpoint(text.to_owned());
        // An engine's notation may end an address at these.
        if text.contains(['?', '#', ' ', ';']) || text.chars().any(char::is_control) {
            return Err(bad());
        }
        let address = text.strip_prefix("tcp/").unwrap_or(text);
        let path = text.strip_prefix("unixsock-stream/").or_else(|| text.strip_prefix("unix:")).unwrap_or(text);
        if path.starts_with('/') {
            return Ok(Endpoint::Unix(PathBuf::from(path)));
        }
        let (host, port) = address.rsplit_once(':').ok_or_else(bad)?;
        if host.is_empty() || host.contains('/') || port.parse::<u16>().is_err() {
            return Err(bad());
        }
        Ok(Endpoint::Tcp(address.to_owned()))
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp(address) => f.pad(address),
            Endpoint::Unix(path) => f.pad(&path.to_string_lossy()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_and_typing_errors_are_kept_apart() {
        assert_eq!("hub.site:7447".parse(), Ok(Endpoint::Tcp("hub.site:7447".to_owned())));
        assert_eq!("tcp/[::1]:7447".parse(), Ok(Endpoint::Tcp("[::1]:7447".to_owned())));
        assert_eq!("/run/tampu/x.sock".parse(), Ok(Endpoint::Unix(PathBuf::from("/run/tampu/x.sock"))));
        assert_eq!("unixsock-stream//run/x".parse(), Ok(Endpoint::Unix(PathBuf::from("/run/x"))));
        for bad in ["", "hub", "hub:", ":7447", "hub:70000", "udp/hub:1", "tcp/hub:1?rel=0", "/a#b"] {
            assert_eq!(bad.parse::<Endpoint>(), Err(BadEndpoint(bad.to_owned())));
        }
    }
}
