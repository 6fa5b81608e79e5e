//! Multicast group: the address to which a flow's data is sent once for all receivers, and its notation between the two
//! ends.
//!
//! Only IPv4 is supported. A group stays on the host unless its sender names another interface. A receiver joins the
//! group at the interface that its sender's connection came to. If both are on one host, it joins at the interface that
//! the sender names. A receiver that listens on the loopback joins only there, so a sender cannot open it to a network.

use std::{
    fmt, io,
    net::{IpAddr, Ipv4Addr, SocketAddrV4},
    str::FromStr,
};

use crate::interface::Interface;

/// The multicast group of a flow: its data is sent once for all receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// The group's address, 224.0.0.0 to 239.255.255.255.
    pub address: Ipv4Addr,
    /// Port of the members; `None` uses the number of the sender's port, which only this sender uses.
    pub port: Option<u16>,
    /// The sender's outgoing interface. The loopback keeps the group on the host.
    pub interface: Interface,
    /// The number of networks that a datagram may pass: 1 stays on the first.
    pub ttl: u8,
}

/// The fault of a group's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadGroup {
    /// The text has no valid address or port.
    #[error("invalid multicast group '{0}': write ADDRESS or ADDRESS:PORT, as in 239.255.7.1:4711")]
    Senseless(String),
    /// The address belongs to one host.
    #[error(
        "{0} is the address of one host; groups are 224.0.0.0 to 239.255.255.255, those of a site 239.0.0.0 to 239.255.255.255"
    )]
    NoGroup(Ipv4Addr),
}

impl FromStr for Group {
    type Err = BadGroup;

    /// Parses `ADDRESS[:PORT]`, on the loopback.
    fn from_str(text: &str) -> Result<Group, BadGroup> {
        let senseless = || BadGroup::Senseless(text.to_owned());
        let (address, port) = match text.split_once(':') {
            Some((address, port)) => (address, Some(port.parse().ok().filter(|port| *port > 0).ok_or_else(senseless)?)),
            None => (text, None),
        };
        let address: Ipv4Addr = address.parse().map_err(|_| senseless())?;
        if !address.is_multicast() {
            return Err(BadGroup::NoGroup(address));
        }
        Ok(Group { address, port, interface: Interface::Address(Ipv4Addr::LOCALHOST), ttl: 1 })
    }
}

impl fmt::Display for Group {
    /// Writes the form that [`FromStr`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => write!(f, "{}:{port}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

/// Group in the notation of a Hello: `239.255.7.1:4711 from 10.0.0.5:40123`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPlace {
    /// The address of the group.
    pub group: SocketAddrV4,
    /// The address of the sender.
    pub from: SocketAddrV4,
}

impl fmt::Display for GroupPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", self.group, self.from)
    }
}

impl FromStr for GroupPlace {
    type Err = BadGroup;

    fn from_str(text: &str) -> Result<GroupPlace, BadGroup> {
        let senseless = || BadGroup::Senseless(text.to_owned());
        let (group, from) = text.split_once(" from ").ok_or_else(senseless)?;
        let place = GroupPlace { group: group.parse().map_err(|_| senseless())?, from: from.parse().map_err(|_| senseless())? };
        if !place.group.ip().is_multicast() {
            return Err(BadGroup::NoGroup(*place.group.ip()));
        }
        if place.group.port() == 0 || place.from.port() == 0 || place.from.ip().is_multicast() || place.from.ip().is_unspecified()
        {
            return Err(senseless());
        }
        Ok(place)
    }
}

/// Reason why a receiver does not join a group.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotJoined {
    #[error(transparent)]
    Named(#[from] BadGroup),
    #[error("the group goes out at {0}, and this receiver listens on the loopback alone")]
    OnlyHere(Ipv4Addr),
    #[error("the group goes out at the loopback of the sender's host")]
    OnlyThere,
    #[error("the connection is one of IPv6, the group one of IPv4")]
    Version,
    #[error("the sender does not name the port its datagrams come from")]
    NoPort,
    #[error("the group's datagrams are not sealed as this receiver demands")]
    Readable,
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl GroupPlace {
    /// Returns the address of the interface to join at, for a connection from `there` to `here`.
    pub(crate) fn interface(&self, here: IpAddr, there: IpAddr) -> Result<Ipv4Addr, NotJoined> {
        let (here, there) = (here.to_canonical(), there.to_canonical());
        let from = *self.from.ip();
        match here {
            _ if here == there || there.is_loopback() => {
                if here.is_loopback() && !from.is_loopback() {
                    Err(NotJoined::OnlyHere(from))
                } else {
                    Ok(from)
                }
            }
            _ if from.is_loopback() => Err(NotJoined::OnlyThere),
            IpAddr::V4(here) => Ok(here),
            IpAddr::V6(_) => Err(NotJoined::Version),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_group_is_an_address_and_perhaps_a_port() {
        let group: Group = "239.255.7.1:4711".parse().unwrap();
        assert_eq!((group.address, group.port), (Ipv4Addr::new(239, 255, 7, 1), Some(4711)));
        assert_eq!((group.interface, group.ttl), (Interface::Address(Ipv4Addr::LOCALHOST), 1));
        assert_eq!("239.255.7.1".parse::<Group>().unwrap().port, None);
        for text in ["239.255.7.1:4711", "239.255.7.1"] {
            assert_eq!(text.parse::<Group>().unwrap().to_string(), text);
        }
        assert_eq!("10.0.0.1:5".parse::<Group>(), Err(BadGroup::NoGroup(Ipv4Addr::new(10, 0, 0, 1))));
        for bad in ["", ":", "239.255.7.1:", "239.255.7.1:0", "239.255.7.1:99999", "239.255.7", "ff02::1", "a b"] {
            assert_eq!(bad.parse::<Group>(), Err(BadGroup::Senseless(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn a_place_leads_back_and_a_senseless_one_is_refused() {
        let text = "239.255.7.1:4711 from 10.0.0.5:40123";
        assert_eq!(text.parse::<GroupPlace>().unwrap().to_string(), text);
        for bad in [
            "",
            "239.255.7.1:4711",
            "239.255.7.1 from 10.0.0.5:1",
            "239.255.7.1:1 from 10.0.0.5",
            "10.0.0.1:1 from 10.0.0.5:1",
            "239.255.7.1:0 from 10.0.0.5:1",
            "239.255.7.1:1 from 10.0.0.5:0",
            "239.255.7.1:1 from 239.255.7.1:1",
            "239.255.7.1:1 from 10.0.0.5:1 from 10.0.0.5:1",
            "[ff02::1]:1 from 10.0.0.5:1",
        ] {
            assert!(bad.parse::<GroupPlace>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_harm(text in "[0-9.: from]{0,40}") {
            let _ = text.parse::<Group>();
            if let Ok(place) = text.parse::<GroupPlace>() {
                prop_assert_eq!(place.to_string().parse::<GroupPlace>(), Ok(place));
            }
        }
    }

    #[test]
    fn nobody_is_opened_to_a_network_by_what_a_sender_says() {
        let at = |from: &str| format!("239.255.7.1:1 from {from}:1").parse::<GroupPlace>().unwrap();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let [loopback, own, other] = ["127.0.0.1", "10.0.0.1", "10.0.0.2"].map(address);
        assert_eq!(at("127.0.0.1").interface(loopback, loopback).unwrap(), Ipv4Addr::LOCALHOST);
        assert!(matches!(at("10.0.0.1").interface(loopback, loopback), Err(NotJoined::OnlyHere(_))));
        assert_eq!(at("10.0.0.1").interface(own, own).unwrap(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(at("127.0.0.1").interface(own, own).unwrap(), Ipv4Addr::LOCALHOST);
        assert_eq!(at("10.0.0.2").interface(own, other).unwrap(), Ipv4Addr::new(10, 0, 0, 1));
        assert!(matches!(at("127.0.0.1").interface(own, other), Err(NotJoined::OnlyThere)));
        assert!(matches!(at("10.0.0.2").interface(address("fd00::1"), address("fd00::2")), Err(NotJoined::Version)));
    }
}
