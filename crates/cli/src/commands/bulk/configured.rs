//! Settings of flows: from flags and the environment, then a hub's configuration file (`[[bulk.flow]]`), then the defaults.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use tampu_bulk::{
    Name,
    group::Group,
    interface::Interface,
    receiver::{FlowSettings, ReceiverSettings},
    sender::SendFlow,
    settings::{self, BadCombination, Bulk, Direction, FlowPatch, FlowValues, default_flow},
};
use tampu_hub::Config;
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
        config.bulk.checked(path).map_err(|error| Failure::Usage(error.to_string()))
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
    pub fn place(&self, file: &Bulk, stream: &Name, flows: &[Name]) -> Result<ReceiverSettings, Failure> {
        let values = |flow: &Name| {
            let empty = FlowPatch::new(stream.clone(), flow.clone());
            let said = FlowPatch { endpoint: self.listen, announce: self.announce.clone(), ..empty };
            FlowValues::new(file.of(stream, flow, Direction::Recv), &[&said]).map_err(contradiction)
        };
        let values = flows.iter().map(values).collect::<Result<Vec<_>, _>>()?;
        Ok(ReceiverSettings::default().at_place_of(&values))
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
    /// Returns the flags and variables as settings of a flow.
    fn said(&self, file: &FlowPatch) -> FlowPatch {
        FlowPatch {
            checksum: self.checksum.map(OnOff::is_on),
            protocol: self.protocol.map(settings::Protocol::from),
            protection: self.protection.map(ProtectionChoice::protection),
            ..FlowPatch::new(file.stream.clone(), file.flow.clone())
        }
    }

    /// Applies the settings to a flow that is received, whose own values are the defaults.
    pub fn apply_to_taken(&self, file: FlowPatch, default: FlowSettings) -> Result<FlowSettings, Failure> {
        let said = self.said(&file);
        Ok(FlowValues::new(file, &[&said]).map_err(contradiction)?.to_received(default))
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
    pub fn apply(&self, carrying: &CarryingArgs, file: FlowPatch, given: SendFlow) -> Result<SendFlow, Failure> {
        let said = FlowPatch {
            receivers: self.receivers,
            throttle_mb: self.throttle.map(|bytes| bytes as f64 / 1e6),
            slow: self.slow.map(settings::Slow::from),
            multicast: self.multicast,
            interface: self.interface,
            ttl: self.ttl,
            ..carrying.said(&file)
        };
        FlowValues::new(file, &[&said]).and_then(|values| values.to_sent(given)).map_err(contradiction)
    }
}

/// Returns the failure of settings that contradict each other, with the names of the flags.
fn contradiction(why: BadCombination) -> Failure {
    Failure::Usage(match why {
        BadCombination::Protocol => "--multicast and --protocol contradict each other; leave one of them out".to_owned(),
        BadCombination::NoGroup => "no multicast group is set: name it with --multicast, or in the configuration file".to_owned(),
        BadCombination::WithoutGroup => "--interface and --ttl need a multicast group: name it with --multicast".to_owned(),
        BadCombination::Skip => why.to_string(),
    })
}

impl From<Slow> for settings::Slow {
    fn from(slow: Slow) -> settings::Slow {
        match slow {
            Slow::Cut => settings::Slow::Cut,
            Slow::Skip => settings::Slow::Skip,
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
