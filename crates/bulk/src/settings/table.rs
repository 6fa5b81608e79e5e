//! The table `[[bulk.flow]]`: entries for flows, and their checks. A hub only checks them; programs and commands use them.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{Name, Protection, group::Group, interface::Interface, message::Transport};

/// All settings of bulk flows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bulk {
    /// Patches in order; a later one overrides an earlier one.
    pub flow: Vec<FlowPatch>,
}

/// A side of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The sending side: a sender, or the output of a distributor.
    Send,
    /// The receiving side: a receiver, or the input of a distributor.
    Recv,
}

/// The protocol of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// The fastest protocol that both ends support: shared memory on one host, else TCP.
    Auto,
    /// TCP, on the connection itself.
    Tcp,
    /// Shared memory that both ends map.
    Shm,
    /// Datagrams over UDP.
    Udp,
    /// Datagrams to a multicast group.
    Multicast,
}

impl Protocol {
    /// Returns the transport that a connection has then; `None` if its ends choose.
    pub fn transport(self) -> Option<Transport> {
        match self {
            Protocol::Auto => None,
            Protocol::Tcp => Some(Transport::Tcp),
            Protocol::Shm => Some(Transport::Shm),
            Protocol::Udp => Some(Transport::Udp),
            Protocol::Multicast => Some(Transport::Multicast),
        }
    }
}

impl From<Transport> for Protocol {
    fn from(transport: Transport) -> Protocol {
        match transport {
            Transport::Tcp => Protocol::Tcp,
            Transport::Shm => Protocol::Shm,
            Transport::Udp => Protocol::Udp,
            Transport::Multicast => Protocol::Multicast,
        }
    }
}

/// The treatment of a slow receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Slow {
    /// The receiver is removed from the transfer.
    Cut,
    /// The receiver misses the data for which it is too slow.
    Skip,
}

/// Settings of a flow; unset ones come from flags, the environment or the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowPatch {
    /// The stream's name.
    pub stream: Name,
    /// The flow's name.
    #[serde(default = "default_flow")]
    pub flow: Name,
    /// One side only; by default the settings apply to both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// The protocol of a flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// If true, the data has checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<bool>,
    /// The protection that this end demands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
    /// The address that accepts connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<SocketAddr>,
    /// The name or address that senders connect to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announce: Option<String>,
    /// Number of receivers that must be present before a transfer begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receivers: Option<usize>,
    /// Maximum rate in 10^6 bytes a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_mb: Option<f64>,
    /// The treatment of a slow receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    /// The multicast group that data goes to, `ADDRESS[:PORT]`.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "group_text")]
    pub multicast: Option<Group>,
    /// The interface that sends to the group: its address, name or index.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "interface_text")]
    pub interface: Option<Interface>,
    /// Maximum number of routers on the path of multicast packets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<u8>,
}

/// Conversion of a group to text.
mod group_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::group::Group;

    pub fn serialize<S: Serializer>(group: &Option<Group>, serializer: S) -> Result<S::Ok, S::Error> {
        match group {
            Some(group) => serializer.collect_str(group),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Group>, D::Error> {
        String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
    }
}

/// Conversion of an interface to text.
mod interface_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    use crate::interface::Interface;

    pub fn serialize<S: Serializer>(interface: &Option<Interface>, serializer: S) -> Result<S::Ok, S::Error> {
        match interface {
            Some(interface) => serializer.collect_str(interface),
            None => serializer.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Interface>, D::Error> {
        String::deserialize(deserializer)?.parse().map(Some).map_err(D::Error::custom)
    }
}

/// Returns the default name of a flow.
pub fn default_flow() -> Name {
    // A constant that is a valid name.
    Name::new("data").unwrap_or_else(|_| unreachable!("'data' is a name"))
}

/// An invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("of {flow}: {setting}: {why}")]
pub struct BadFlow {
    /// The flow, as `stream#flow`.
    pub flow: String,
    /// The setting's name.
    pub setting: &'static str,
    /// The reason, and the way out.
    pub why: String,
}

/// The highest throttle, in 10^6 bytes a second. Above it the rate is not limited.
pub(super) const FASTEST_MB: f64 = 1e6;
/// The lowest rate, in MB/s.
const SLOWEST_MB: f64 = 1e-3;

impl FlowPatch {
    /// Makes empty settings for a flow.
    pub fn new(stream: Name, flow: Name) -> FlowPatch {
        FlowPatch {
            stream,
            flow,
            direction: None,
            protocol: None,
            checksum: None,
            protection: None,
            endpoint: None,
            announce: None,
            receivers: None,
            throttle_mb: None,
            slow: None,
            multicast: None,
            interface: None,
            ttl: None,
        }
    }

    /// Returns these settings, overridden by a later entry.
    pub(super) fn under(self, later: &FlowPatch) -> FlowPatch {
        FlowPatch {
            protocol: later.protocol.or(self.protocol),
            checksum: later.checksum.or(self.checksum),
            protection: later.protection.or(self.protection),
            endpoint: later.endpoint.or(self.endpoint),
            announce: later.announce.clone().or(self.announce),
            receivers: later.receivers.or(self.receivers),
            throttle_mb: later.throttle_mb.or(self.throttle_mb),
            slow: later.slow.or(self.slow),
            multicast: later.multicast.or(self.multicast),
            interface: later.interface.or(self.interface),
            ttl: later.ttl.or(self.ttl),
            ..self
        }
    }

    fn is_for(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|own| own == direction)
    }

    fn check(&self) -> Result<(), BadFlow> {
        let wrong = |setting, why: String| Err(BadFlow { flow: format!("{}#{}", self.stream, self.flow), setting, why });
        if let Some(throttle) = self.throttle_mb.filter(|throttle| !(SLOWEST_MB..=FASTEST_MB).contains(throttle)) {
            return wrong("throttle_mb", format!("invalid rate {throttle} MB/s; use {SLOWEST_MB} to {FASTEST_MB}"));
        }
        if self.multicast.is_some() {
            match (self.protocol, self.slow) {
                (None | Some(Protocol::Auto | Protocol::Multicast), None | Some(Slow::Cut)) => {}
                (_, Some(Slow::Skip)) => {
                    return wrong("slow", "a multicast group cannot skip data for one receiver; use 'cut'".to_owned());
                }
                (Some(_), _) => {
                    return wrong(
                        "protocol",
                        "this protocol cannot send to a multicast group; use 'multicast' or remove the group".to_owned(),
                    );
                }
            }
        }
        // Rejects settings that would have no effect.
        let of_the_other_side = match self.direction {
            Some(Direction::Send) => self.endpoint.map(|_| "endpoint").or_else(|| self.announce.as_ref().map(|_| "announce")),
            Some(Direction::Recv) => self
                .receivers
                .map(|_| "receivers")
                .or_else(|| self.throttle_mb.map(|_| "throttle_mb"))
                .or_else(|| self.slow.map(|_| "slow"))
                .or_else(|| self.multicast.map(|_| "multicast"))
                .or_else(|| self.interface.map(|_| "interface"))
                .or_else(|| self.ttl.map(|_| "ttl")),
            None => None,
        };
        match of_the_other_side {
            Some(setting) => wrong(setting, "this setting belongs to the other side; set it there".to_owned()),
            None => Ok(()),
        }
    }
}

impl Bulk {
    /// Checks all flows.
    pub fn check(&self) -> Result<(), BadFlow> {
        self.flow.iter().try_for_each(FlowPatch::check)?;
        for patch in self.flow.iter().filter(|patch| patch.endpoint.is_some()) {
            let own = self.of(&patch.stream, &patch.flow, Direction::Recv);
            let flows = self.flows(&patch.stream, Direction::Recv);
            let mut endpoints = flows.iter().filter_map(|flow| self.of(&patch.stream, flow, Direction::Recv).endpoint);
            if let Some(other) = endpoints.find(|other| Some(*other) != own.endpoint) {
                let flow = format!("{}#{}", patch.stream, patch.flow);
                let why = format!("another flow of the stream has {other}; a receiver takes all its flows at one place");
                return Err(BadFlow { flow, setting: "endpoint", why });
            }
        }
        Ok(())
    }

    /// Returns the settings of one side of a flow.
    pub fn of(&self, stream: &Name, flow: &Name, direction: Direction) -> FlowPatch {
        let meant = |patch: &&FlowPatch| patch.stream == *stream && patch.flow == *flow && patch.is_for(direction);
        self.flow.iter().filter(meant).fold(FlowPatch::new(stream.clone(), flow.clone()), FlowPatch::under)
    }

    /// Returns the configured flows of a stream, each once.
    pub fn flows(&self, stream: &Name, direction: Direction) -> Vec<Name> {
        let own = self.flow.iter().filter(|patch| patch.stream == *stream && patch.is_for(direction));
        once(own.map(|patch| &patch.flow))
    }

    /// Returns the configured streams, each once.
    pub fn streams(&self, direction: Direction) -> Vec<Name> {
        once(self.flow.iter().filter(|patch| patch.is_for(direction)).map(|patch| &patch.stream))
    }
}

fn once<'a>(names: impl Iterator<Item = &'a Name>) -> Vec<Name> {
    let mut found: Vec<Name> = Vec::new();
    for name in names {
        if !found.contains(name) {
            found.push(name.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Bulk {
        toml::from_str(text).unwrap()
    }

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    const FILE: &str = r#"
        [[flow]]
        stream = "correlator"
        flow = "spectra"
        protocol = "tcp"
        throttle_mb = 50
        [[flow]]
        stream = "Correlator"
        flow = "spectra"
        direction = "recv"
        endpoint = "0.0.0.0:4711"
        protocol = "udp"
        [[flow]]
        stream = "files"
        slow = "skip"
        [[flow]]
        stream = "group"
        multicast = "239.255.7.1:4711"
        interface = "eth0"
        ttl = 2
    "#;

    #[test]
    fn what_is_said_later_and_of_this_side_holds() {
        let bulk = read(FILE);
        bulk.check().unwrap();
        let (correlator, spectra) = (name("correlator"), name("spectra"));
        let sent = bulk.of(&correlator, &spectra, Direction::Send);
        assert_eq!((sent.protocol, sent.throttle_mb, sent.endpoint), (Some(Protocol::Tcp), Some(50.0), None));
        let received = bulk.of(&correlator, &spectra, Direction::Recv);
        assert_eq!((received.protocol, received.endpoint.map(|at| at.port())), (Some(Protocol::Udp), Some(4711)));
        assert_eq!(bulk.of(&name("files"), &name("data"), Direction::Send).slow, Some(Slow::Skip));
        assert_eq!(bulk.flows(&name("files"), Direction::Send), [name("data")]);
        assert_eq!(bulk.streams(Direction::Recv), [correlator, name("files"), name("group")]);
        let group = bulk.of(&name("group"), &name("data"), Direction::Send);
        assert_eq!(group.multicast.map(|group| group.to_string()).as_deref(), Some("239.255.7.1:4711"));
        assert_eq!((group.interface, group.ttl), (Some("eth0".parse().unwrap()), Some(2)));
        assert_eq!(read(&toml::to_string(&bulk).unwrap()), bulk);
        assert_eq!(bulk.of(&name("none"), &name("data"), Direction::Send), FlowPatch::new(name("none"), name("data")));
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (text, setting) in [
            ("throttle_mb = 0", "throttle_mb"),
            ("throttle_mb = nan", "throttle_mb"),
            ("direction = \"send\"\nendpoint = \"127.0.0.1:1\"", "endpoint"),
            ("direction = \"recv\"\nreceivers = 2", "receivers"),
            ("direction = \"recv\"\nmulticast = \"239.255.7.1\"", "multicast"),
            ("protocol = \"udp\"\nmulticast = \"239.255.7.1\"", "protocol"),
            ("slow = \"skip\"\nmulticast = \"239.255.7.1\"", "slow"),
            ("endpoint = \"127.0.0.1:1\"\n[[flow]]\nstream = \"s\"\nflow = \"b\"\nendpoint = \"127.0.0.1:2\"", "endpoint"),
        ] {
            let error = read(&format!("[[flow]]\nstream = \"s\"\n{text}")).check().unwrap_err();
            assert_eq!((error.setting, error.flow.as_str()), (setting, "s#data"), "{text}");
        }
        for bad in [
            "[[flow]]",
            "[[flow]]\nstream = \"a#b\"",
            "[[flow]]\nstream = \"a\"\nslow = \"wait\"",
            "[[flow]]\nstream = \"a\"\nx = 1",
            "[[flow]]\nstream = \"a\"\nmulticast = \"10.0.0.1\"",
            "[[flow]]\nstream = \"a\"\ninterface = \"10.0.0\"",
        ] {
            assert!(toml::from_str::<Bulk>(bad).is_err(), "{bad}");
        }
    }
}
