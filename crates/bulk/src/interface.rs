//! Network interface of a multicast group, given by its address, its name or its index.
//!
//! A name is looked up when the sender opens: an interface may get its address after the configuration was written, and
//! its index is another one after each restart of the machine. Names are found in `/proc/net/igmp`, which shows the
//! interfaces of the process's own network namespace that can carry IPv4 multicast; `/sys/class/net` shows those of the
//! namespace that mounted it.

use std::{
    fmt, fs, io,
    net::Ipv4Addr,
    num::NonZeroU32,
    str::{self, FromStr},
};

/// Longest name of an interface in Linux, bytes.
const NAME: usize = 15;
/// Index of the loopback in every network namespace of Linux.
const LOOPBACK: u32 = 1;
/// File with the interfaces that can carry IPv4 multicast.
const INTERFACES: &str = "/proc/net/igmp";

/// Interface through which a sender reaches a multicast group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// The interface with this address.
    Address(Ipv4Addr),
    /// The interface with this name, as in `eth0`.
    Name(InterfaceName),
    /// The interface with this index, as `ip link` shows it.
    Index(NonZeroU32),
}

/// Name of an interface.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct InterfaceName {
    bytes: [u8; NAME],
    length: usize,
}

/// The fault of an interface's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid network interface '{0}': write its IPv4 address, its name or its index, as in 10.0.0.5, eth0 or 2")]
pub struct BadInterface(String);

impl Interface {
    /// Returns whether the interface is the loopback. One that is not there is none.
    pub fn is_loopback(self) -> bool {
        match self {
            Interface::Address(address) => address.is_loopback(),
            Interface::Name(_) | Interface::Index(_) => self.index().is_ok_and(|index| index == LOOPBACK),
        }
    }

    /// Returns the address to send from, and the index of an interface that is given by name or index. The address is 0.0.0.0
    /// if the kernel takes the interface's one.
    pub(crate) fn outgoing(self) -> io::Result<(Ipv4Addr, Option<u32>)> {
        match self {
            Interface::Address(address) if address.is_unspecified() || address.is_multicast() => {
                let why = format!("{address} is not the address of an interface; a multicast group needs one");
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
            Interface::Address(address) => Ok((address, None)),
            Interface::Name(_) | Interface::Index(_) => match self.index()? {
                // The kernel would take the address of another interface, and receivers of this host would not join.
                LOOPBACK => Ok((Ipv4Addr::LOCALHOST, Some(LOOPBACK))),
                index => Ok((Ipv4Addr::UNSPECIFIED, Some(index))),
            },
        }
    }

    /// Returns the index of an interface that is given by name or index.
    fn index(self) -> io::Result<u32> {
        let missing = || {
            let why = format!("no network interface '{self}' that can carry IPv4 multicast; `ip link` shows all");
            io::Error::new(io::ErrorKind::NotFound, why)
        };
        match self {
            Interface::Index(index) => Ok(index.get()),
            Interface::Name(name) => index_of(name.as_str(), &fs::read_to_string(INTERFACES)?).ok_or_else(missing),
            Interface::Address(_) => Err(missing()),
        }
    }
}

/// Returns the index of the interface with this name in the content of [`INTERFACES`].
fn index_of(name: &str, interfaces: &str) -> Option<u32> {
    // An interface's line begins with its index. Lines of its groups, which follow, are indented.
    interfaces.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).find_map(|line| {
        let mut fields = line.split_whitespace();
        let (index, found) = (fields.next()?, fields.next()?);
        (found.trim_end_matches(':') == name).then(|| index.parse().ok()).flatten()
    })
}

impl InterfaceName {
    fn as_str(&self) -> &str {
        // The bytes come from a text and are whole.
        str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }
}

impl FromStr for Interface {
    type Err = BadInterface;

    fn from_str(text: &str) -> Result<Interface, BadInterface> {
        let bad = || BadInterface(text.to_owned());
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            let is_of_one = !address.is_unspecified() && !address.is_multicast();
            return is_of_one.then_some(Interface::Address(address)).ok_or_else(bad);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().map(Interface::Index).map_err(|_| bad());
        }
        // A text with dots and digits alone is a wrong address; a name such as `eth0.7` has a letter.
        let is_name = text.len() <= NAME
            && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':')
            && text.bytes().any(|byte| byte.is_ascii_alphabetic());
        if !is_name {
            return Err(bad());
        }
        let mut bytes = [0; NAME];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Interface::Name(InterfaceName { bytes, length: text.len() }))
    }
}

impl fmt::Display for Interface {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interface::Address(address) => write!(f, "{address}"),
            Interface::Name(name) => f.write_str(name.as_str()),
            Interface::Index(index) => write!(f, "{index}"),
        }
    }
}

impl fmt::Debug for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_interface_is_an_address_a_name_or_an_index() {
        for text in ["10.0.0.5", "127.0.0.1", "eth0", "enp3s0f1.100", "lo", "2", "veth-a_b@x"] {
            assert_eq!(text.parse::<Interface>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.5".parse(), Ok(Interface::Address(Ipv4Addr::new(10, 0, 0, 5))));
        assert!(matches!("7".parse(), Ok(Interface::Index(index)) if index.get() == 7));
        for bad in [
            "",
            "0",
            "4294967296",
            "0.0.0.0",
            "239.255.7.1",
            "10.0.0",
            "10.0.0.5:1",
            "eth 0",
            "a/b",
            "::1",
            "sixteen-letters-",
            "é0",
        ] {
            assert_eq!(bad.parse::<Interface>(), Err(BadInterface(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn a_name_is_found_among_the_interfaces() {
        let interfaces = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n\
            1\tlo        :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
            2\teth0      :     1      V3\n\t\t\t\t010000E0     1 0:00000000\t\t0\n\
            13\teth0.100000000:     2      V2\n\t\t\t\t0107FFEF     1 0:00000000\t\t0\n";
        assert_eq!(index_of("lo", interfaces), Some(1));
        assert_eq!(index_of("eth0", interfaces), Some(2));
        assert_eq!(index_of("eth0.100000000", interfaces), Some(13));
        for absent in ["eth", "eth1", "", "Device", "010000E0"] {
            assert_eq!(index_of(absent, interfaces), None, "{absent}");
        }
    }

    #[test]
    fn the_loopback_is_known_however_it_is_given() {
        for (text, is_loopback) in
            [("127.0.0.1", true), ("lo", true), ("1", true), ("10.0.0.5", false), ("absent0", false), ("7", false)]
        {
            assert_eq!(text.parse::<Interface>().unwrap().is_loopback(), is_loopback, "{text}");
        }
        let why = "absent0".parse::<Interface>().unwrap().index().unwrap_err();
        assert!(why.to_string().contains("absent0"), "{why}");
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in ".{0,24}") {
            if let Ok(interface) = text.parse::<Interface>() {
                prop_assert_eq!(interface.to_string().parse::<Interface>(), Ok(interface));
            }
        }
    }
}
