//! Questions and answers of the service (`spec/bulk-control.md`). Values without I/O.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Name, Protection, receiver::FlowSettings, settings::Protocol};

/// Name of the service of all offers. Rules about one offer name `bulk/control/NAME`.
pub const CONTROL: &str = "bulk/control";

/// Lowest limit of a rate, in bytes a second.
pub const SLOWEST: f64 = 1e3;
/// Highest limit of a rate, in bytes a second.
pub const FASTEST: f64 = 1e12;

/// A question. Without a name it asks for all offers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlQuestion {
    /// Name of the offer, compared with case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Name>,
    /// Incarnation of the only process that may answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
    /// The command, by default a question for the state.
    #[serde(default, rename = "do")]
    pub command: ControlCommand,
}

/// A command to a sender or a receiver.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlCommand {
    /// Return the state, and change nothing.
    #[default]
    State,
    /// Start sending what the command names, or what the program chooses.
    Start(StartCommand),
    /// Limit the rate of a sender.
    Pace {
        /// One flow; by default all flows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<Name>,
        /// The limit in bytes a second, [`SLOWEST`] to [`FASTEST`]; 0 lifts it.
        bytes_per_s: f64,
    },
    /// Send no data until it is resumed.
    Pause {
        /// One flow; by default all flows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<Name>,
    },
    /// End a pause.
    Resume {
        /// One flow; by default all flows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<Name>,
    },
    /// End the running transfer.
    Stop {
        /// One flow; by default all flows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flow: Option<Name>,
    },
    /// Open a receiver.
    Open(OpenCommand),
    /// Close a receiver. Its running transfers end incomplete.
    Close,
}

/// Content of a start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartCommand {
    /// The flow; a sender with one flow needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Name>,
    /// Text that receivers get before the data.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameter: String,
    /// One of the files that the program offers, by its name at the receivers. By default the program decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// Settings with which a receiver opens. They may narrow the settings of its program, and never widen them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenCommand {
    /// The flows; by default all flows of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<Name>,
    /// The only accepted protocol of the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// True to demand checksums.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<bool>,
    /// The demanded protection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
}

impl OpenCommand {
    /// Returns the wanted ones of a program's flows, or an error that names a flow which is not among them.
    pub fn choose<'a>(&self, flows: &'a [Name]) -> Result<Vec<&'a Name>, String> {
        if let Some(strange) = self.flows.iter().find(|flow| !flows.contains(flow)) {
            return Err(no_flow(strange, flows));
        }
        Ok(flows.iter().filter(|flow| self.flows.is_empty() || self.flows.contains(flow)).collect())
    }

    /// Narrows the settings of a flow, or returns why that is not possible.
    pub fn narrow(&self, flow: FlowSettings) -> Result<FlowSettings, String> {
        let mut flow = flow;
        flow.checked |= self.checksum.unwrap_or(false);
        if let Some(wanted) = self.protocol.and_then(Protocol::transport) {
            if !flow.transports.contains(&wanted) {
                let accepted: Vec<&str> = flow.transports.iter().map(|one| one.name()).collect();
                return Err(format!("flow '{}' accepts {} only, and not {}", flow.name, accepted.join(", "), wanted.name()));
            }
            flow.transports = vec![wanted];
        }
        if let Some(protection) = self.protection {
            let own = flow.protection;
            if [true, false].into_iter().any(|one_host| protection.level(one_host) < own.level(one_host)) {
                return Err(format!("flow '{}' demands the protection '{own}', and '{protection}' is less", flow.name));
            }
            flow.protection = protection;
        }
        Ok(flow)
    }
}

/// Side of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlKind {
    /// It obeys start, pace, pause, resume and stop.
    Sender,
    /// It obeys open and close.
    Receiver,
}

impl ControlKind {
    /// Returns its word.
    pub fn name(self) -> &'static str {
        match self {
            ControlKind::Sender => "sender",
            ControlKind::Receiver => "receiver",
        }
    }
}

/// State of an offer, the answer to every command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlState {
    /// Name of the offer.
    pub name: Name,
    /// The side of the stream.
    pub kind: ControlKind,
    /// Incarnation of its process.
    pub process: String,
    /// Name of its process on the bus.
    pub source: String,
    /// Name of the stream.
    pub stream: Name,
    /// True if a sender sends, or if a receiver is open.
    pub active: bool,
    /// Number of starts by command, or of times that the receiver was opened.
    pub starts: u64,
    /// Reason for which the last start or the last opening failed.
    #[serde(default)]
    pub failure: Option<String>,
    /// State of the sender or receiver, as `bulk/state` has it. Lists of offers have none, nor has a closed receiver.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub report: Value,
}

/// Returns the error for a flow that an offer does not have.
pub(super) fn no_flow(flow: &Name, flows: &[Name]) -> String {
    let names: Vec<String> = flows.iter().map(|name| format!("'{name}'")).collect();
    format!("there is no flow '{flow}'; name one of {}", names.join(", "))
}

/// Checks the limit of a rate. `None` means no limit.
pub(super) fn checked_rate(bytes_per_s: f64) -> Result<Option<f64>, String> {
    match bytes_per_s {
        0.0 => Ok(None),
        rate if (SLOWEST..=FASTEST).contains(&rate) => Ok(Some(rate)),
        rate => Err(format!("invalid rate of {rate} bytes/s: use {SLOWEST} to {FASTEST}, or 0 for no limit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Transport;

    #[test]
    fn opening_narrows_the_settings_of_the_program_and_never_widens_them() {
        let own = FlowSettings { protection: Protection::Authenticated, ..FlowSettings::new("spectra".parse().unwrap()) };
        let open = |text: &str| serde_json::from_str::<OpenCommand>(text).unwrap().narrow(own.clone());
        let narrowed = open(r#"{"protocol":"udp","checksum":true,"protection":"encrypted"}"#).unwrap();
        assert_eq!((narrowed.transports, narrowed.checked), (vec![Transport::Udp], true));
        assert_eq!(narrowed.protection, Protection::Encrypted);
        for less in ["auto", "none"] {
            let why = open(&format!(r#"{{"protection":"{less}"}}"#)).unwrap_err();
            assert!(why.contains("'spectra' demands the protection 'authenticated'"), "{why}");
        }
        let own = FlowSettings { transports: vec![Transport::Tcp], checked: true, ..own };
        let shm = OpenCommand { protocol: Some(Protocol::Shm), ..OpenCommand::default() };
        assert_eq!(shm.narrow(own.clone()).unwrap_err(), "flow 'spectra' accepts tcp only, and not shm");
        let without = OpenCommand { checksum: Some(false), ..OpenCommand::default() };
        assert!(without.narrow(own).unwrap().checked);
    }

    #[test]
    fn rates_have_limits_and_zero_is_none() {
        assert_eq!(checked_rate(0.0), Ok(None));
        assert_eq!(checked_rate(1e3), Ok(Some(1e3)));
        for wrong in [-1.0, 999.0, 1.1e12, f64::NAN, f64::INFINITY] {
            assert!(checked_rate(wrong).unwrap_err().contains("use 1000 to 1000000000000, or 0"), "{wrong}");
        }
    }
}
