//! Settings of senders and receivers, which come from Python as JSON. Those that `[[bulk.flow]]` can have beat the environment,
//! which beats the configuration file.

use std::time::Duration;

use pyo3::PyResult;
use serde::Deserialize;
use tampu_bulk::{
    Name, Protection,
    group::Group,
    message::Transport,
    receiver::{FlowSettings, ReceiverSettings},
    sender::{Acknowledge, SendFlow},
    settings::{Direction, FlowPatch, FlowValues, Protocol, Slow, of_program},
};

use crate::{bulk::failure::other, event::client::seconds};

/// Settings of a sender's flows. A missing field has the default of the crate.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderOptions {
    transport: Option<Transport>,
    group: Option<String>,
    interface: Option<String>,
    protection: Option<Protection>,
    checked: Option<bool>,
    frame: Option<u32>,
    window: Option<usize>,
    acknowledge: Option<String>,
    slow: Option<String>,
    throttle: Option<f64>,
    receivers: Option<usize>,
    connect_wait: Option<f64>,
    wait: Option<f64>,
    ack_wait: Option<f64>,
    resume: Option<f64>,
}

/// Largest window, in bytes.
const WINDOW_LIMIT: usize = 16 << 30;

fn invalid<T>(what: &str, value: &str, possible: &str) -> PyResult<T> {
    Err(other(format_args!("invalid {what} '{value}': give {possible}")))
}

impl SenderOptions {
    /// Reads the settings.
    pub fn parse(text: &str) -> PyResult<SenderOptions> {
        serde_json::from_str(text).map_err(|error| other(format_args!("invalid settings of a sender: {error}")))
    }

    /// Returns the settings of a flow of a stream, from all places.
    pub fn flow(&self, stream: &Name, name: Name) -> PyResult<SendFlow> {
        let said = self.said(FlowPatch::new(stream.clone(), name.clone()))?;
        let all = of_program(Direction::Send, &said).map_err(other)?;
        all.to_sent(self.alone(name)?).map_err(other)
    }

    /// Returns what the call says of the settings that the configuration may have, too.
    fn said(&self, empty: FlowPatch) -> PyResult<FlowPatch> {
        let slow = match self.slow.as_deref() {
            None => None,
            Some("cut") => Some(Slow::Cut),
            Some("skip") => Some(Slow::Skip),
            Some(odd) => return invalid("slow", odd, "cut or skip"),
        };
        if let Some(throttle) = self.throttle.filter(|throttle| !(throttle.is_finite() && *throttle >= 0.0)) {
            return invalid("throttle", &throttle.to_string(), "bytes a second, or 0 for no limit");
        }
        let interface = match &self.interface {
            None => None,
            Some(text) => match text.parse() {
                Ok(interface) => Some(interface),
                Err(_) => return invalid("interface", text, "the IPv4 address, the name or the index of one of this host"),
            },
        };
        Ok(FlowPatch {
            protocol: self.transport.map(Protocol::from),
            checksum: self.checked,
            protection: self.protection,
            receivers: self.receivers,
            throttle_mb: self.throttle.map(|bytes| if bytes == 0.0 { f64::INFINITY } else { bytes / 1e6 }),
            slow,
            multicast: self.group.as_ref().map(|text| text.parse::<Group>()).transpose().map_err(other)?,
            interface,
            ..empty
        })
    }

    /// Returns the settings that only a call has.
    fn alone(&self, name: Name) -> PyResult<SendFlow> {
        let mut flow = SendFlow::new(name);
        flow.frame = self.frame.unwrap_or(flow.frame);
        flow.acknowledge = match self.acknowledge.as_deref() {
            None | Some("start_and_stop") => Acknowledge::StartAndStop,
            Some("never") => Acknowledge::Never,
            Some("every_send") => Acknowledge::EverySend,
            Some(odd) => return invalid("acknowledge", odd, "start_and_stop, never or every_send"),
        };
        if let Some(window) = self.window {
            if !(1..=WINDOW_LIMIT).contains(&window) {
                return invalid("window", &window.to_string(), "1 byte to 16 GiB");
            }
            flow.window = window;
        }
        let time = |given: Option<f64>, default: Duration| given.map_or(default, seconds);
        flow.connect_wait = time(self.connect_wait, flow.connect_wait);
        flow.wait = time(self.wait, flow.wait);
        flow.ack_wait = time(self.ack_wait, flow.ack_wait);
        flow.resume = time(self.resume, flow.resume);
        Ok(flow)
    }
}

/// Settings of a receiver. A missing field has the default of the crate.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverOptions {
    listen: Option<String>,
    announce: Option<String>,
    protection: Option<Protection>,
    transports: Option<Vec<Transport>>,
    checked: Option<bool>,
    resume: Option<f64>,
}

/// Limit of a call of the handler. A program that works on an item for longer is reported as slow, as `tampu bulk recv` is.
const CALL_LIMIT: Duration = Duration::from_secs(10);
/// Limit of the average of a transfer's calls.
const CALL_AVERAGE_LIMIT: Duration = Duration::from_secs(1);

impl ReceiverOptions {
    /// Reads the settings.
    pub fn parse(text: &str) -> PyResult<ReceiverOptions> {
        serde_json::from_str(text).map_err(|error| other(format_args!("invalid settings of a receiver: {error}")))
    }

    /// Returns the settings of one of its flows, from all places.
    pub fn values(&self, stream: &Name, name: &Name) -> PyResult<FlowValues> {
        let mut said = FlowPatch::new(stream.clone(), name.clone());
        (said.checksum, said.protection, said.announce) = (self.checked, self.protection, self.announce.clone());
        if let Some(listen) = &self.listen {
            let odd = |_| other(format_args!("invalid listen '{listen}': give an IP address and a port, as 10.0.0.5:0"));
            said.endpoint = Some(listen.parse().map_err(odd)?);
        }
        of_program(Direction::Recv, &said).map_err(other)
    }

    /// Returns the settings of the receiver, whose place is the first one that its flows have.
    pub fn receiver(&self, flows: &[FlowValues]) -> PyResult<ReceiverSettings> {
        let mut settings = ReceiverSettings::default().at_place_of(flows);
        settings.resume = self.resume.map_or(settings.resume, seconds);
        Ok(settings)
    }

    /// Returns the settings of a flow.
    pub fn flow(&self, name: Name, values: &FlowValues) -> FlowSettings {
        let mut flow = values.to_received(FlowSettings::new(name));
        flow.transports = self.transports.clone().unwrap_or(flow.transports);
        flow.callback_limit = CALL_LIMIT;
        flow.callback_average_limit = CALL_AVERAGE_LIMIT;
        flow
    }
}
