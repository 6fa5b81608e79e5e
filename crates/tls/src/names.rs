//! Names and addresses of a host.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use rustls::pki_types::DnsName;

use crate::error::TlsError;

/// The name of a host, with the further names and addresses at which clients reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNames {
    /// The host's own name, which is the certificate's common name.
    pub name: String,
    /// DNS names, the own one included.
    pub dns: Vec<String>,
    /// IP addresses of the host.
    pub addresses: Vec<IpAddr>,
}

/// Longest common name (X.520).
const LONGEST: usize = 64;

impl HostNames {
    /// Checks the name of a host and its further names or addresses. Names of the host to itself are always added:
    /// `localhost` and the loopback addresses.
    pub fn new(name: &str, others: &[String]) -> Result<HostNames, TlsError> {
        let bad = |name: &str| TlsError::Name { name: name.to_owned() };
        let address = name.parse::<IpAddr>().ok();
        if name.len() > LONGEST || address.is_none() && !is_dns_name(name) {
            return Err(bad(name));
        }
        let mut names = HostNames { name: name.to_owned(), dns: Vec::new(), addresses: Vec::new() };
        for one in [name].into_iter().chain(others.iter().map(String::as_str)).chain(["localhost", "127.0.0.1", "::1"]) {
            match one.parse::<IpAddr>() {
                Ok(ip) if !names.addresses.contains(&ip) => names.addresses.push(ip),
                Ok(_) => {}
                Err(_) if !is_dns_name(one) => return Err(bad(one)),
                Err(_) if !names.dns.iter().any(|known| known.eq_ignore_ascii_case(one)) => names.dns.push(one.to_owned()),
                Err(_) => {}
            }
        }
        Ok(names)
    }
}

/// Returns true if this is a DNS name and also the name of a directory.
fn is_dns_name(name: &str) -> bool {
    DnsName::try_from(name).is_ok() && !name.ends_with('.')
}

/// Returns the addresses of this host, without those that mean something on one link only.
pub fn local_addresses() -> Vec<IpAddr> {
    let table = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (four, six) = (four(&table("/proc/net/fib_trie")), six(&table("/proc/net/if_inet6")));
    four.into_iter().map(IpAddr::V4).chain(six.into_iter().map(IpAddr::V6)).collect()
}

/// Reads the local addresses in the kernel's table of routes: a line with an address, followed by `/32 host LOCAL`.
fn four(table: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut last = None;
    for line in table.lines() {
        if let Some(address) = line.trim_start().strip_prefix("|-- ") {
            last = address.trim().parse::<Ipv4Addr>().ok();
        } else if line.trim() == "/32 host LOCAL"
            && let Some(address) = last
            && !address.is_loopback()
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// Reads the kernel's table of IPv6 addresses: 32 hexadecimal digits begin a line.
fn six(table: &str) -> Vec<Ipv6Addr> {
    let address = |line: &str| u128::from_str_radix(line.get(..32)?, 16).ok().map(Ipv6Addr::from);
    table.lines().filter_map(address).filter(|ip| !ip.is_loopback() && !ip.is_unicast_link_local()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_appear_once() {
        let others = ["ARCHIVE", "archive.example.org", "10.0.0.5", "10.0.0.5", "fd00::5"].map(str::to_owned);
        let names = HostNames::new("archive", &others).unwrap();
        assert_eq!(names.dns, ["archive", "archive.example.org", "localhost"]);
        assert_eq!(names.addresses, ["10.0.0.5", "fd00::5", "127.0.0.1", "::1"].map(|ip| ip.parse::<IpAddr>().unwrap()));
        for bad in ["", "a b", "../up", "*.example.org", "a/b", &"long.".repeat(20), "host."] {
            let error = HostNames::new(bad, &[]).unwrap_err().to_string();
            assert!(error.contains("is not a host's name or address"), "{error}");
        }
        assert!(HostNames::new("archive", &["a b".to_owned()]).is_err());
    }

    #[test]
    fn local_addresses_are_read_from_the_kernels_tables() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     |-- 10.0.0.5\n        /32 host LOCAL\n     \
                     |-- 10.0.0.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.0.0.5\n        /32 host LOCAL\n";
        assert_eq!(four(table), [Ipv4Addr::new(10, 0, 0, 5)]);
        let table = "00000000000000000000000000000001 01 80 10 80       lo\nfe800000000000000000000000000001 02 40 20 80     eth0\n\
                     fd000000000000000000000000000005 02 40 00 80     eth0\n";
        assert_eq!(six(table), ["fd00::5".parse::<Ipv6Addr>().unwrap()]);
        assert!(local_addresses().iter().all(|ip| !ip.is_loopback()));
    }
}
