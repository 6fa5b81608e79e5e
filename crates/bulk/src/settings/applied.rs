//! The settings of a flow from all their places, applied to what a sender or receiver is opened with.

use std::net::SocketAddr;

use super::table::{FASTEST_MB, FlowPatch, Protocol, Slow};
use crate::{
    group::Group,
    message::Transport,
    receiver::{FlowSettings, ReceiverSettings},
    sender::{self, SendFlow},
};

/// Settings that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadCombination {
    /// A protocol that cannot reach the group that is set beside it.
    #[error("a multicast group and another protocol contradict each other; leave one of them out")]
    Protocol,
    /// A group cannot skip data for one receiver.
    #[error(
        "a multicast group goes at the pace of its slowest receiver: one that is too slow is cut, and nothing skipped for it"
    )]
    Skip,
    /// The protocol is multicast, and there is no group.
    #[error("no multicast group is set: name it in the call, in TAMPU_BULK_MULTICAST, or in the configuration file")]
    NoGroup,
    /// An interface or a ttl without a group.
    #[error("an interface and a ttl are those of a multicast group; set a group too")]
    WithoutGroup,
}

/// The settings of one side of a flow, from all places.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowValues {
    all: FlowPatch,
}

impl FlowValues {
    /// Returns the settings of the file, overridden by those of each later place.
    pub fn new(file: FlowPatch, later: &[&FlowPatch]) -> Result<FlowValues, BadCombination> {
        let mut all = file;
        for said in later {
            match (said.multicast.is_some(), said.protocol) {
                (true, Some(Protocol::Tcp | Protocol::Shm | Protocol::Udp)) => return Err(BadCombination::Protocol),
                // A group beats the protocol of the places before.
                (true, None) => all.protocol = None,
                _ => {}
            }
            all = all.under(said);
        }
        // Another protocol removes the group of an earlier place.
        if !matches!(all.protocol, None | Some(Protocol::Auto | Protocol::Multicast)) {
            all.multicast = None;
        }
        if all.multicast.is_none() && later.iter().any(|said| said.interface.is_some() || said.ttl.is_some()) {
            return Err(BadCombination::WithoutGroup);
        }
        Ok(FlowValues { all })
    }

    fn transport(&self) -> Option<Transport> {
        self.all.protocol.and_then(Protocol::transport)
    }

    /// Applies the settings to a flow that is sent, whose own values are the defaults.
    pub fn to_sent(&self, default: SendFlow) -> Result<SendFlow, BadCombination> {
        let all = &self.all;
        let group = all.multicast.map(|group| Group {
            interface: all.interface.unwrap_or(group.interface),
            ttl: all.ttl.unwrap_or(group.ttl),
            ..group
        });
        if group.is_none() && all.protocol == Some(Protocol::Multicast) {
            return Err(BadCombination::NoGroup);
        }
        if group.is_some() && all.slow == Some(Slow::Skip) {
            return Err(BadCombination::Skip);
        }
        Ok(SendFlow {
            receivers: all.receivers.unwrap_or(default.receivers),
            throttle: match all.throttle_mb {
                None => default.throttle,
                Some(mb) => (mb < FASTEST_MB).then_some(mb * 1e6),
            },
            slow: match all.slow {
                None => default.slow,
                Some(Slow::Cut) => sender::Slow::Cut,
                Some(Slow::Skip) => sender::Slow::Skip,
            },
            checked: all.checksum.unwrap_or(default.checked),
            protection: all.protection.unwrap_or(default.protection),
            transport: if group.is_some() { Some(Transport::Multicast) } else { self.transport().or(default.transport) },
            group: group.or(default.group),
            ..default
        })
    }

    /// Applies the settings to a flow that is received, whose own values are the defaults.
    pub fn to_received(&self, default: FlowSettings) -> FlowSettings {
        FlowSettings {
            checked: self.all.checksum.unwrap_or(default.checked),
            protection: self.all.protection.unwrap_or(default.protection),
            transports: self.transport().map_or(default.transports, |transport| vec![transport]),
            ..default
        }
    }
}

impl ReceiverSettings {
    /// Returns these settings with the place where all flows of a receiver are taken: the first one that their settings have.
    pub fn at_place_of(self, flows: &[FlowValues]) -> ReceiverSettings {
        let listen = flows.iter().find_map(|flow| flow.all.endpoint).unwrap_or(self.listen);
        let announce = flows.iter().find_map(|flow| flow.all.announce.clone()).or(self.announce);
        ReceiverSettings { listen, announce: announce.or_else(|| host_of(listen)), ..self }
    }
}

/// Returns this host's name if the receiver listens at every address, so that no single one can be announced.
fn host_of(listen: SocketAddr) -> Option<String> {
    listen.ip().is_unspecified().then(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Name, Protection};

    fn patch() -> FlowPatch {
        FlowPatch::new(Name::new("s").unwrap(), Name::new("data").unwrap())
    }

    fn sent(file: FlowPatch, later: &[&FlowPatch]) -> Result<SendFlow, BadCombination> {
        FlowValues::new(file, later)?.to_sent(SendFlow::new(Name::new("data").unwrap()))
    }

    #[test]
    fn a_call_lifts_the_limit_of_the_site() {
        let file = FlowPatch { throttle_mb: Some(5.0), ..patch() };
        let lifted = FlowPatch { throttle_mb: Some(f64::INFINITY), ..patch() };
        assert_eq!(sent(file.clone(), &[]).unwrap().throttle, Some(5e6));
        assert_eq!(sent(file, &[&lifted]).unwrap().throttle, None);
    }

    #[test]
    fn each_place_beats_the_ones_before_it() {
        let file = FlowPatch { receivers: Some(2), throttle_mb: Some(3.0), checksum: Some(true), ..patch() };
        let environment = FlowPatch { receivers: Some(4), protection: Some(Protection::None), ..patch() };
        let call = FlowPatch { checksum: Some(false), protocol: Some(Protocol::Tcp), ..patch() };
        let flow = sent(file.clone(), &[&environment, &call]).unwrap();
        assert_eq!((flow.receivers, flow.throttle, flow.checked), (4, Some(3e6), false));
        assert_eq!((flow.protection, flow.transport), (Protection::None, Some(Transport::Tcp)));
        let default = SendFlow::new(Name::new("data").unwrap());
        let flow = sent(patch(), &[]).unwrap();
        assert_eq!((flow.receivers, flow.throttle, flow.slow), (default.receivers, default.throttle, default.slow));
        let taken = FlowValues::new(file, &[&environment, &call]).unwrap().to_received(FlowSettings::new(default.name));
        assert_eq!((taken.checked, taken.protection, taken.transports), (false, Protection::None, vec![Transport::Tcp]));
    }

    #[test]
    fn a_group_and_a_protocol_remove_each_other_from_earlier_places() {
        let group = FlowPatch { multicast: Some("239.255.7.1:4711".parse().unwrap()), ttl: Some(3), ..patch() };
        let tcp = FlowPatch { protocol: Some(Protocol::Tcp), ..patch() };
        let flow = sent(group.clone(), &[]).unwrap();
        assert_eq!((flow.group.map(|group| group.ttl), flow.transport), (Some(3), Some(Transport::Multicast)));
        let flow = sent(group.clone(), &[&tcp]).unwrap();
        assert_eq!((flow.group, flow.transport), (None, Some(Transport::Tcp)));
        let flow = sent(tcp.clone(), &[&group]).unwrap();
        assert_eq!((flow.group.map(|group| group.ttl), flow.transport), (Some(3), Some(Transport::Multicast)));
        let interface = FlowPatch { interface: Some("eth0".parse().unwrap()), ..patch() };
        assert_eq!(sent(group.clone(), &[&interface]).unwrap().group.map(|group| group.interface), interface.interface);
        for (file, call, why) in [
            (patch(), FlowPatch { protocol: Some(Protocol::Tcp), ..group.clone() }, BadCombination::Protocol),
            (group, FlowPatch { slow: Some(Slow::Skip), ..patch() }, BadCombination::Skip),
            (patch(), FlowPatch { protocol: Some(Protocol::Multicast), ..patch() }, BadCombination::NoGroup),
            (tcp, interface, BadCombination::WithoutGroup),
            (patch(), FlowPatch { ttl: Some(1), ..patch() }, BadCombination::WithoutGroup),
        ] {
            assert_eq!(sent(file, &[&call]).unwrap_err(), why);
        }
    }

    #[test]
    fn a_receiver_at_every_address_announces_its_host() {
        let values = |endpoint: &str, announce: Option<&str>| {
            let announce = announce.map(str::to_owned);
            FlowValues::new(FlowPatch { endpoint: Some(endpoint.parse().unwrap()), announce, ..patch() }, &[]).unwrap()
        };
        let empty = FlowValues::new(patch(), &[]).unwrap();
        let at = |flows: &[FlowValues]| ReceiverSettings::default().at_place_of(flows);
        assert_eq!(at(std::slice::from_ref(&empty)).listen, ReceiverSettings::default().listen);
        assert_eq!(at(std::slice::from_ref(&empty)).announce, None);
        let place = at(&[empty, values("127.0.0.2:5", Some("here"))]);
        assert_eq!((place.listen, place.announce.as_deref()), ("127.0.0.2:5".parse().unwrap(), Some("here")));
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        assert_eq!(at(&[values("0.0.0.0:5", None)]).announce, Some(host));
    }
}
