//! Addresses at which a node publishes for other hosts, as it announces them, and what other programs must say there.

use std::{
    net::{IpAddr, TcpStream, ToSocketAddrs, UdpSocket},
    time::Duration,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tampu_types::{Domain, name};

use super::socket::NAME;
use crate::{
    connect::{Encryption, Endpoint, Key},
    engine::EngineError,
};

/// Time for a connection to one of a node's addresses.
const REACH: Duration = Duration::from_secs(1);

/// One address of a node: its publishers of ordinary and of urgent samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarAddress {
    /// Name or address of the host, in brackets if it has colons.
    pub host: String,
    /// Ports of the two publishers.
    pub ports: [u16; 2],
}

impl FarAddress {
    /// Returns the addresses in libzmq's notation.
    pub fn endpoints(&self) -> [String; 2] {
        self.ports.map(|port| format!("tcp://{}:{port}", self.host))
    }

    /// Reports if somebody listens there.
    pub fn answers(&self) -> bool {
        let found = format!("{}:{}", self.host, self.ports[0]).to_socket_addrs();
        found.is_ok_and(|mut found| found.any(|address| TcpStream::connect_timeout(&address, REACH).is_ok()))
    }
}

/// Writes addresses as one chunk of a key.
pub fn to_chunk(addresses: &[FarAddress]) -> String {
    let texts: Vec<String> = addresses.iter().map(|one| format!("{} {} {}", one.host, one.ports[0], one.ports[1])).collect();
    name::escape(&texts.join(","))
}

/// Reads addresses from a chunk of a key; bad ones are left out.
pub fn from_chunk(chunk: &str) -> Vec<FarAddress> {
    let read = |text: &str| {
        let mut words = text.split(' ');
        let host = words.next().filter(|host| !host.is_empty())?.to_owned();
        let ports = [words.next()?.parse().ok()?, words.next()?.parse().ok()?];
        words.next().is_none().then_some(FarAddress { host, ports })
    };
    name::unescape(chunk).unwrap_or_default().split(',').filter_map(read).collect()
}

/// User and password at a node's publishers. The password is not the domain's key, which crosses no network in clear text.
#[derive(Debug, Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl Credentials {
    /// Derives them from the domain and its key.
    pub fn of(domain: &Domain, key: &Key) -> Credentials {
        let user = name::escape(domain.as_str());
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key.reveal().as_bytes()) else {
            unreachable!("a MAC takes keys of any length")
        };
        mac.update(format!("tampu zmq {user}").as_bytes());
        let password = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        Credentials { user, password }
    }
}

/// Returns the addresses of this host to listen at, for the addresses at which the node listens and those that it connects
/// to. `found` are those that an address for all interfaces stands for, with ports.
pub fn own_hosts(listen: &[Endpoint], connect: &[Endpoint], found: &[String]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    let host_in = |address: &String| address.rsplit_once(':').map(|(host, _)| host.to_owned());
    let told = listen.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Tcp(address) => host_in(address),
        Endpoint::Unix(_) => None,
    });
    let (of_all, mut listening): (Vec<String>, Vec<String>) = told.partition(|host| is_for_all_interfaces(host));
    if !of_all.is_empty() {
        listening.extend(found.iter().filter_map(host_in));
    }
    let towards = connect.iter().filter_map(|endpoint| match endpoint {
        Endpoint::Tcp(address) => own_address_towards(address),
        Endpoint::Unix(_) => None,
    });
    for host in listening.iter().flat_map(|host| literal(host)).chain(towards) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    hosts
}

/// Returns the addresses that a host's name stands for: libzmq listens at addresses alone.
fn literal(host: &str) -> Vec<String> {
    let in_text = |ip: IpAddr| if ip.is_ipv6() { format!("[{ip}]") } else { ip.to_string() };
    let found = format!("{host}:0").to_socket_addrs();
    found.map(|found| found.map(|address| in_text(address.ip())).collect()).unwrap_or_default()
}

/// Reports if an address to listen at means all interfaces, so that nobody can connect to it.
fn is_for_all_interfaces(host: &str) -> bool {
    host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
}

/// Returns the address of this host from which packets to that address leave. Nothing is sent.
fn own_address_towards(address: &str) -> Option<String> {
    let to = address.to_socket_addrs().ok()?.next()?;
    let socket = UdpSocket::bind(if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" }).ok()?;
    socket.connect(to).ok()?;
    let own = socket.local_addr().ok()?.ip();
    Some(if own.is_ipv6() { format!("[{own}]") } else { own.to_string() })
}

/// Refuses connections to other hosts that must be encrypted: this build's libzmq has no encryption.
pub fn check(encryption: &Encryption) -> Result<(), EngineError> {
    if !matches!(encryption, Encryption::Tls(_)) {
        return Ok(());
    }
    Err(EngineError::Refused {
        engine: NAME,
        doing: "opening it to other hosts".to_owned(),
        why: "samples on ZeroMQ are not encrypted; choose the engine zenoh, or renounce encryption on a network that you trust \
            (--no-encryption, TAMPU_ENCRYPTION=none)"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_travel_in_a_chunk_of_a_key() {
        let addresses = vec![
            FarAddress { host: "10.0.0.5".to_owned(), ports: [1, 2] },
            FarAddress { host: "[fe80::1]".to_owned(), ports: [65535, 4] },
        ];
        let chunk = to_chunk(&addresses);
        assert!(!chunk.contains('/'), "{chunk}");
        assert_eq!(from_chunk(&chunk), addresses);
        assert_eq!(addresses[1].endpoints(), ["tcp://[fe80::1]:65535", "tcp://[fe80::1]:4"]);
        for bad in ["", " 1 2", "host 1", "host 1 2 3", "host 1 70000"] {
            assert_eq!(from_chunk(&name::escape(bad)), [], "{bad}");
        }
    }

    #[test]
    fn the_password_is_neither_the_key_nor_that_of_another_domain() {
        let key = Key::new("correct horse").unwrap();
        let of = |domain| Credentials::of(&Domain::new(domain).unwrap(), &key);
        assert_eq!(of("lab").password, of("lab").password);
        assert_ne!(of("lab").password, of("alma").password);
        assert!(!of("lab").password.contains("horse"));
    }

    #[test]
    fn a_node_listens_where_it_is_told_and_where_it_connects_from() {
        let tcp = |address: &str| Endpoint::Tcp(address.to_owned());
        let hosts =
            own_hosts(&[Endpoint::Unix("/s".into()), tcp("127.0.0.1:7447")], &[tcp("127.0.0.1:1"), tcp("127.0.0.2:2")], &[]);
        assert_eq!(hosts, ["127.0.0.1"]);
        assert!(own_hosts(&[tcp("localhost:7447")], &[], &[]).iter().any(|host| ["127.0.0.1", "[::1]"].contains(&&**host)));
        let found = ["10.0.0.5:7447".to_owned(), "[2001:db8::5]:7447".to_owned()];
        for all in ["0.0.0.0:7447", "[::]:7447"] {
            assert_eq!(own_hosts(&[tcp(all), tcp("127.0.0.1:7447")], &[], &found), ["127.0.0.1", "10.0.0.5", "[2001:db8::5]"]);
        }
        assert_eq!(own_hosts(&[tcp("0.0.0.0:7447")], &[], &[]), Vec::<String>::new(), "the network is not there yet");
    }
}
