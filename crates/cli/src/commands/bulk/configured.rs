//! Settings of flows: from flags and the environment, then a hub's configuration file (`[[bulk.flow]]`), then the defaults.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use tampu_bulk::{
    Name, Protection,
    group::Group,
    interface::Interface,
    receiver::{FlowSettings, ReceiverSettings},
    sender::{self, SendFlow},
};
use tampu_hub::{
    Config,
    bulk::settings::{self as file, Bulk, Direction, FlowPatch, default_flow},
};
use tampu_types::units::parse_size;

use super::choices::{OnOff, ProtectionChoice, Protocol};
use crate::failure::Failure;

/// The configuration file.
#[derive(Debug, Clone, Args)]
pub struct FromFile {
    /// The hub's configuration file (TOML)
    #[arg(short, long, env = "TAMPU_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

impl FromFile {
    /// Loads the file's settings of flows; empty without a file.
    pub fn load(&self) -> Result<Bulk, Failure> {
        let Some(path) = &self.config else { return Ok(Bulk::default()) };
        let config = Config::from_file(path).map_err(|error| Failure::Usage(error.to_string()))?;
        config.bulk.check().map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
        Ok(config.bulk)
    }
}

/// Treatment of slow receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Slow {
    /// It gets no more of the transfer, and begins again with the next.
    Cut,
    /// Bytes that it has no time for are skipped, and it gets their ranges.
    Skip,
}

/// Options of a receiver.
#[derive(Debug, Clone, Args)]
pub struct TakingArgs {
    /// Address for incoming connections, port 0 for any free port. Senders on other hosts need an address that they reach [default: 127.0.0.1:0]
    #[arg(long, value_name = "ADDRESS", env = "TAMPU_BULK_LISTEN")]
    listen: Option<SocketAddr>,
    /// The name or address that senders connect to [default: this host's name where --listen is 0.0.0.0]
    #[arg(long, value_name = "HOST")]
    announce: Option<String>,
}

impl TakingArgs {
    /// Returns the receiver's settings for these flows of a stream.
    pub fn place(&self, file: &Bulk, stream: &Name, flows: &[Name]) -> ReceiverSettings {
        let patches: Vec<FlowPatch> = flows.iter().map(|flow| file.of(stream, flow, Direction::Recv)).collect();
        let default = ReceiverSettings::default();
        let listen = self.listen.or_else(|| patches.iter().find_map(|patch| patch.endpoint)).unwrap_or(default.listen);
        let announce = self.announce.clone().or_else(|| patches.iter().find_map(|patch| patch.announce.clone()));
        ReceiverSettings { listen, announce: host_to_announce(announce.as_deref(), listen), ..default }
    }
}

/// Options of the transport, for both sides.
#[derive(Debug, Clone, Default, Args)]
pub struct CarryingArgs {
    /// Checksums on the data
    #[arg(long, value_enum, value_name = "CHECKSUM", env = "TAMPU_BULK_CHECKSUM")]
    checksum: Option<OnOff>,
    /// Transport of the data [default: auto]
    #[arg(long, value_enum, value_name = "PROTOCOL", env = "TAMPU_BULK_PROTOCOL")]
    protocol: Option<Protocol>,
    /// Least protection of the connection; the higher demand of both ends holds [default: auto]
    #[arg(long, value_enum, value_name = "PROTECTION", env = "TAMPU_BULK_PROTECTION")]
    protection: Option<ProtectionChoice>,
}

impl CarryingArgs {
    /// Returns the demanded protection.
    fn protection(&self, patch: &FlowPatch) -> Protection {
        self.protection.map(ProtectionChoice::protection).or(patch.protection).unwrap_or_default()
    }

    /// Returns true if data has checksums.
    fn checked(&self, patch: &FlowPatch, default: bool) -> bool {
        self.checksum.map(OnOff::is_on).or(patch.checksum).unwrap_or(default)
    }

    /// The way that was asked for.
    fn protocol(&self, patch: &FlowPatch) -> Protocol {
        self.protocol.or(patch.protocol.map(Protocol::from)).unwrap_or(Protocol::Auto)
    }

    /// Into a flow that is taken.
    pub fn apply_to_taken(&self, patch: &FlowPatch, taken: &mut FlowSettings, checked: bool) {
        taken.checked = self.checked(patch, checked);
        taken.protection = self.protection(patch);
        if let Some(transport) = self.protocol(patch).transport() {
            taken.transports = vec![transport];
        }
    }
}

/// Options of a sender.
#[derive(Debug, Clone, Args)]
pub struct GivingArgs {
    /// Number of receivers that must be connected before a transfer begins
    #[arg(long, value_name = "N", env = "TAMPU_BULK_RECEIVERS")]
    receivers: Option<usize>,
    /// Send at most this many bytes a second: 50MB, 1GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size, env = "TAMPU_BULK_THROTTLE")]
    throttle: Option<u64>,
    /// Treatment of a receiver that takes no data, or holds up the others, for as long as --patience [default: cut]
    #[arg(long, value_enum, value_name = "SLOW", env = "TAMPU_BULK_SLOW")]
    slow: Option<Slow>,
    /// Send data once for all receivers, to this multicast group; any free port if none is given
    #[arg(long, value_name = "ADDRESS[:PORT]", env = "TAMPU_BULK_MULTICAST")]
    multicast: Option<Group>,
    /// Network interface for the multicast group: its address, name or index [default: 127.0.0.1, which stays on this host]
    #[arg(long, value_name = "INTERFACE", env = "TAMPU_BULK_INTERFACE")]
    interface: Option<Interface>,
    /// Number of networks that multicast may cross [default: 1]
    #[arg(long, value_name = "N", env = "TAMPU_BULK_TTL")]
    ttl: Option<u8>,
}

impl GivingArgs {
    /// Applies the settings to a flow, whose own values are the defaults.
    pub fn apply(&self, carrying: &CarryingArgs, patch: &FlowPatch, given: SendFlow) -> Result<SendFlow, Failure> {
        let slow = self.slow.or(patch.slow.map(Slow::from));
        let group = self.group(carrying.protocol, patch)?;
        if group.is_some() && slow == Some(Slow::Skip) {
            let why = "a multicast group goes at the pace of its slowest receiver: one that is too slow is cut, and nothing skipped for it";
            return Err(Failure::Usage(why.to_owned()));
        }
        let transport = if group.is_some() { Protocol::Multicast } else { carrying.protocol(patch) }.transport();
        Ok(SendFlow {
            receivers: self.receivers.or(patch.receivers).unwrap_or(given.receivers),
            throttle: self.throttle.map(|bytes| bytes as f64).or(patch.throttle_mb.map(|mb| mb * 1e6)).or(given.throttle),
            slow: slow.map_or(given.slow, |slow| if slow == Slow::Skip { sender::Slow::Skip } else { sender::Slow::Cut }),
            checked: carrying.checked(patch, given.checked),
            protection: carrying.protection(patch),
            transport,
            group,
            ..given
        })
    }

    /// Returns the multicast group of the data, if there is one.
    fn group(&self, protocol: Option<Protocol>, patch: &FlowPatch) -> Result<Option<Group>, Failure> {
        let usage = |why: &str| Err(Failure::Usage(why.to_owned()));
        let group = match (self.multicast, protocol) {
            (Some(group), None | Some(Protocol::Auto | Protocol::Multicast)) => Some(group),
            (Some(_), Some(_)) => return usage("--multicast and --protocol contradict each other; leave one of them out"),
            // Another protocol in the configuration removes the group of an earlier entry.
            (None, _) => match protocol.or(patch.protocol.map(Protocol::from)) {
                None | Some(Protocol::Auto | Protocol::Multicast) => patch.multicast,
                Some(_) => None,
            },
        };
        let wanted = protocol.or(patch.protocol.map(Protocol::from)) == Some(Protocol::Multicast);
        match group {
            None if wanted => usage("no multicast group is set: name it with --multicast, or in the configuration file"),
            None if self.interface.is_some() || self.ttl.is_some() => {
                usage("--interface and --ttl need a multicast group: name it with --multicast")
            }
            None => Ok(None),
            Some(group) => Ok(Some(Group {
                interface: self.interface.or(patch.interface).unwrap_or(group.interface),
                ttl: self.ttl.or(patch.ttl).unwrap_or(group.ttl),
                ..group
            })),
        }
    }
}

impl From<file::Protocol> for Protocol {
    fn from(protocol: file::Protocol) -> Protocol {
        match protocol {
            file::Protocol::Auto => Protocol::Auto,
            file::Protocol::Tcp => Protocol::Tcp,
            file::Protocol::Shm => Protocol::Shm,
            file::Protocol::Udp => Protocol::Udp,
            file::Protocol::Multicast => Protocol::Multicast,
        }
    }
}

impl From<file::Slow> for Slow {
    fn from(slow: file::Slow) -> Slow {
        match slow {
            file::Slow::Cut => Slow::Cut,
            file::Slow::Skip => Slow::Skip,
        }
    }
}

/// Returns the stream: the named one, or the only one of the file.
pub fn stream(said: Option<&Name>, file: &Bulk, direction: Direction) -> Result<Name, Failure> {
    if let Some(stream) = said {
        return Ok(stream.clone());
    }
    match file.streams(direction).as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::Usage("no stream is set: name it with --stream, or in the configuration file".to_owned())),
        several => {
            Err(Failure::Usage(format!("the configuration has several streams: {}; choose one with --stream", listed(several))))
        }
    }
}

/// Returns the flows: the named ones, or those of the stream in the file, or the flow without a name.
pub fn flows(said: &[Name], file: &Bulk, stream: &Name, direction: Direction) -> Vec<Name> {
    let found = if said.is_empty() { file.flows(stream, direction) } else { said.to_vec() };
    if found.is_empty() { vec![default_flow()] } else { found }
}

/// Returns the flow where there can be only one.
pub fn flow(said: Option<&Name>, file: &Bulk, stream: &Name, direction: Direction) -> Result<Name, Failure> {
    match flows(&said.cloned().into_iter().collect::<Vec<_>>(), file, stream, direction).as_slice() {
        [one] => Ok(one.clone()),
        several => {
            Err(Failure::Usage(format!("the configuration has several flows: {}; choose one with --flow", listed(several))))
        }
    }
}

fn listed(names: &[Name]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

/// Returns the address that senders connect to: the given one, else this host's name if the receiver listens at every address.
fn host_to_announce(said: Option<&str>, listen: SocketAddr) -> Option<String> {
    let own = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    said.map(str::to_owned).or_else(|| listen.ip().is_unspecified().then(own))
}
