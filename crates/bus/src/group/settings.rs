//! Settings of a multicast group.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr},
    str::FromStr,
};

use tampu_types::TopicFilter;

/// Port of a group without another setting.
pub const PORT: u16 = 7448;

/// A multicast group for the topics of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupSettings {
    /// Address of the group, IPv4 or IPv6.
    pub address: IpAddr,
    /// Port of all members.
    pub port: u16,
    /// Interface of this host; `None` is the one that the kernel's routes name.
    pub interface: Option<GroupInterface>,
    /// Number of networks that a datagram may pass: 1 stays on the first.
    pub ttl: u8,
    /// Topics that go to the group.
    pub topics: TopicFilter,
}

/// Interface through which a host reaches a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupInterface {
    /// The interface with this address.
    Address(Ipv4Addr),
    /// The interface with this name, as in `eth0`.
    Name(String),
    /// The interface with this index.
    Index(u32),
}

/// The fault of an interface's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid network interface '{0}': write its name, its index or its IPv4 address, as in eth0, 2 or 10.0.0.5")]
pub struct BadGroupInterface(String);

/// The fault of a group's settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGroup {
    /// The address belongs to one host.
    #[error("{0} is the address of one host; a group's is one of 239.0.0.0 to 239.255.255.255, or begins with ff")]
    NoGroup(IpAddr),
    /// Members need a port.
    #[error("the port of a multicast group is 1 to 65535, the same on all hosts")]
    NoPort,
    /// Datagrams would not leave the host.
    #[error("with ttl = 0 no datagram leaves this host; 1 reaches the hosts on the same network")]
    NoTtl,
    /// Addresses of this kind exist once on each network.
    #[error("the group {0} exists on each network of this host: set `interface` to the name or index of one")]
    NoInterface(IpAddr),
    /// An IPv4 address cannot name the interface of an IPv6 group.
    #[error("an IPv4 address cannot name the interface of an IPv6 group: set `interface` to its name or index")]
    Version,
    /// Two groups with one address and port would hear each other.
    #[error("two groups have the address {0} and one port")]
    Twice(IpAddr),
}

impl FromStr for GroupInterface {
    type Err = BadGroupInterface;

    fn from_str(text: &str) -> Result<GroupInterface, BadGroupInterface> {
        let bad = || BadGroupInterface(text.to_owned());
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            let is_of_one = !address.is_unspecified() && !address.is_multicast();
            return is_of_one.then_some(GroupInterface::Address(address)).ok_or_else(bad);
        }
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().filter(|index| *index > 0).map(GroupInterface::Index).ok_or_else(bad);
        }
        let is_name = text.len() < 16
            && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':')
            && text.bytes().any(|byte| byte.is_ascii_alphabetic());
        is_name.then(|| GroupInterface::Name(text.to_owned())).ok_or_else(bad)
    }
}

impl fmt::Display for GroupInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupInterface::Address(address) => write!(f, "{address}"),
            GroupInterface::Name(name) => f.write_str(name),
            GroupInterface::Index(index) => write!(f, "{index}"),
        }
    }
}

impl GroupSettings {
    /// Makes the settings of a group for all topics, on the first network only.
    pub fn new(address: IpAddr) -> GroupSettings {
        // A constant that is a valid pattern.
        let topics = TopicFilter::new("**").unwrap_or_else(|_| unreachable!("'**' is a pattern"));
        GroupSettings { address, port: PORT, interface: None, ttl: 1, topics }
    }

    /// Returns true for the IPv6 groups of one host or one network, as `ff02::7448`. Their addresses need an interface.
    pub(crate) fn is_of_one_network(&self) -> bool {
        matches!(self.address, IpAddr::V6(address) if address.is_multicast() && matches!(address.octets()[1] & 15, 1 | 2))
    }

    /// Checks the groups of a node.
    pub fn check(groups: &[GroupSettings]) -> Result<(), BadGroup> {
        for (at, group) in groups.iter().enumerate() {
            if !group.address.is_multicast() {
                return Err(BadGroup::NoGroup(group.address));
            }
            if group.port == 0 {
                return Err(BadGroup::NoPort);
            }
            if group.ttl == 0 {
                return Err(BadGroup::NoTtl);
            }
            if group.is_of_one_network() && group.interface.is_none() {
                return Err(BadGroup::NoInterface(group.address));
            }
            if group.address.is_ipv6() && matches!(group.interface, Some(GroupInterface::Address(_))) {
                return Err(BadGroup::Version);
            }
            if groups[..at].iter().any(|other| (other.address, other.port) == (group.address, group.port)) {
                return Err(BadGroup::Twice(group.address));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_a_name_an_index_or_an_address() {
        for text in ["eth0", "enp3s0f1.100", "2", "10.0.0.5"] {
            assert_eq!(text.parse::<GroupInterface>().unwrap().to_string(), text);
        }
        for bad in ["", "0", "0.0.0.0", "239.1.1.1", "10.0.0", "eth 0", "a/b", "::1", "sixteen-letters-", "4294967296"] {
            assert_eq!(bad.parse::<GroupInterface>(), Err(BadGroupInterface(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn addresses_of_hosts_and_groups_given_twice_are_refused() {
        let of = |address: &str| GroupSettings::new(address.parse().unwrap());
        assert_eq!(GroupSettings::check(&[of("239.255.7.1"), of("ff15::7448")]), Ok(()));
        assert_eq!(GroupSettings::check(&[GroupSettings { ttl: 0, ..of("239.1.1.1") }]), Err(BadGroup::NoTtl));
        let of_network = "ff02::7448".parse().unwrap();
        assert_eq!(GroupSettings::check(&[GroupSettings::new(of_network)]), Err(BadGroup::NoInterface(of_network)));
        let by_index = GroupSettings { interface: Some(GroupInterface::Index(1)), ..of("ff02::7448") };
        assert_eq!(GroupSettings::check(&[by_index]), Ok(()));
        assert_eq!(GroupSettings::check(&[of("10.0.0.1")]), Err(BadGroup::NoGroup("10.0.0.1".parse().unwrap())));
        assert_eq!(GroupSettings::check(&[GroupSettings { port: 0, ..of("239.1.1.1") }]), Err(BadGroup::NoPort));
        let by_address = Some(GroupInterface::Address(Ipv4Addr::LOCALHOST));
        assert_eq!(GroupSettings::check(&[GroupSettings { interface: by_address, ..of("ff02::1") }]), Err(BadGroup::Version));
        let twice = GroupSettings::check(&[of("239.1.1.1"), of("239.1.1.1")]);
        assert_eq!(twice, Err(BadGroup::Twice("239.1.1.1".parse().unwrap())));
    }
}
