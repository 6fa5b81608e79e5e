//! The address of the client that sent a request. This is the only place that decides it.
//!
//! A trusted proxy appends the address of its own client to `X-Forwarded-For`. The list is therefore read from its end,
//! and the first address that is not a trusted proxy is the client. Addresses before it are claims of the client, and
//! are ignored.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};

use super::headers::{all_lines, text};

/// The header in which a proxy reports its client.
const FORWARDED: &str = "x-forwarded-for";

/// The two ends of a connection and the client behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client: the other end of the connection, or the address that a trusted proxy reports.
    pub ip: IpAddr,
    /// The other end of the connection.
    pub peer: SocketAddr,
    /// This end of the connection.
    pub local: SocketAddr,
    /// True if the other end of the connection is a trusted proxy. Its headers are true; those of others are claims.
    pub is_from_proxy: bool,
    /// True if the client's own connection is TLS: the one to this hub, or the one to a trusted proxy as that reports.
    pub is_tls: bool,
}

/// The trusted proxies.
#[derive(Debug, Clone, Default)]
pub struct Proxies(Vec<IpAddr>);

impl Proxies {
    /// Trusts these proxies.
    pub fn new(addresses: &[IpAddr]) -> Proxies {
        Proxies(addresses.iter().map(IpAddr::to_canonical).collect())
    }

    /// Returns true if no proxy is trusted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if this address is a trusted proxy.
    pub fn has(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Finds the client of a request with these headers, received at `local` from `peer`.
    pub fn client(&self, headers: &HeaderMap, peer: SocketAddr, local: SocketAddr) -> ClientAddress {
        let mut ip = peer.ip().to_canonical();
        let is_trusted = self.0.contains(&ip);
        if is_trusted {
            let list = all_lines(headers, FORWARDED, ",");
            for one in list.rsplit(',') {
                let Ok(reported) = one.trim().parse::<IpAddr>() else { break };
                ip = reported.to_canonical();
                if !self.0.contains(&ip) {
                    break;
                }
            }
        }
        let scheme = text(headers, HeaderName::from_static("x-forwarded-proto"));
        let is_tls = is_trusted && scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        ClientAddress { ip, peer, local, is_from_proxy: is_trusted, is_tls }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_proxy_is_believed_and_nobody_before_it() {
        let proxies: Vec<IpAddr> = ["127.0.0.1", "10.0.0.1"].map(|ip| ip.parse().unwrap()).into();
        let behind = Proxies::new(&proxies);
        for (peer, lines, from) in [
            ("127.0.0.1", &["192.0.2.1"][..], "192.0.2.1"),
            ("::ffff:127.0.0.1", &["192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &["198.51.100.9, 192.0.2.1"], "192.0.2.1"),
            // Addresses that the client claims come first, in the same header line or in another one.
            ("127.0.0.1", &["198.51.100.9", "192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &["198.51.100.9", "192.0.2.1, 10.0.0.1"], "192.0.2.1"),
            ("127.0.0.1", &["198.51.100.9, unknown"], "127.0.0.1"),
            ("127.0.0.1", &["198.51.100.9, é, 10.0.0.1"], "10.0.0.1"),
            ("127.0.0.1", &["198.51.100.9,"], "127.0.0.1"),
            ("127.0.0.1", &["::ffff:192.0.2.1"], "192.0.2.1"),
            ("127.0.0.1", &[], "127.0.0.1"),
            ("192.0.2.7", &["198.51.100.9"], "192.0.2.7"),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(FORWARDED, HeaderValue::from_str(line).unwrap());
            }
            let peer = SocketAddr::new(peer.parse().unwrap(), 40_000);
            let found = behind.client(&headers, peer, peer);
            assert_eq!(found.ip, from.parse::<IpAddr>().unwrap(), "{peer} {lines:?}");
            assert_eq!(found.is_from_proxy, peer.ip().to_canonical().to_string() == "127.0.0.1", "{peer}");
        }
    }
}
