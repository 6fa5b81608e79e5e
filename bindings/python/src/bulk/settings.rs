//! Settings of senders and receivers, which come from Python as JSON.

use std::time::Duration;

use pyo3::PyResult;
use serde::Deserialize;
use tampu_bulk::{
    Name, Protection,
    group::Group,
    message::Transport,
    receiver::{FlowSettings, ReceiverSettings},
    sender::{Acknowledge, SendFlow, Slow},
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

impl SenderOptions {
    /// Reads the settings.
    pub fn parse(text: &str) -> PyResult<SenderOptions> {
        serde_json::from_str(text).map_err(|error| other(format_args!("invalid settings of a sender: {error}")))
    }

    /// Returns the settings of a flow.
    pub fn flow(&self, name: Name) -> PyResult<SendFlow> {
        let mut flow = SendFlow::new(name);
        let said =
            |what: &str, value: &str, possible: &str| Err(other(format_args!("invalid {what} '{value}': give {possible}")));
        flow.transport = self.transport;
        flow.protection = self.protection.unwrap_or_default();
        flow.checked = self.checked.unwrap_or(flow.checked);
        flow.frame = self.frame.unwrap_or(flow.frame);
        flow.receivers = self.receivers.unwrap_or(flow.receivers);
        flow.acknowledge = match self.acknowledge.as_deref() {
            None | Some("start_and_stop") => Acknowledge::StartAndStop,
            Some("never") => Acknowledge::Never,
            Some("every_send") => Acknowledge::EverySend,
            Some(odd) => return said("acknowledge", odd, "start_and_stop, never or every_send"),
        };
        flow.slow = match self.slow.as_deref() {
            None | Some("cut") => Slow::Cut,
            Some("skip") => Slow::Skip,
            Some(odd) => return said("slow", odd, "cut or skip"),
        };
        if let Some(window) = self.window {
            if !(1..=WINDOW_LIMIT).contains(&window) {
                return said("window", &window.to_string(), "1 byte to 16 GiB");
            }
            flow.window = window;
        }
        if let Some(throttle) = self.throttle {
            if !(throttle.is_finite() && throttle > 0.0) {
                return said("throttle", &throttle.to_string(), "bytes a second");
            }
            flow.throttle = Some(throttle);
        }
        if let Some(text) = &self.group {
            let mut group: Group = text.parse().map_err(other)?;
            if let Some(interface) = &self.interface {
                let Ok(interface) = interface.parse() else {
                    return said("interface", interface, "the IPv4 address, the name or the index of one of this host");
                };
                group.interface = interface;
            }
            flow.group = Some(group);
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

    /// Returns the settings of the receiver.
    pub fn receiver(&self) -> PyResult<ReceiverSettings> {
        let mut settings = ReceiverSettings { announce: self.announce.clone(), ..ReceiverSettings::default() };
        if let Some(listen) = &self.listen {
            let odd = |_| other(format_args!("invalid listen '{listen}': give an IP address and a port, as 10.0.0.5:0"));
            settings.listen = listen.parse().map_err(odd)?;
        }
        if settings.listen.ip().is_unspecified() && settings.announce.is_none() {
            let text = "give `announce`, the address at which others reach this host";
            return Err(other(format_args!("listen is {}, which is no address for senders: {text}", settings.listen)));
        }
        settings.resume = self.resume.map_or(settings.resume, seconds);
        Ok(settings)
    }

    /// Returns the settings of a flow.
    pub fn flow(&self, name: Name) -> FlowSettings {
        let mut flow = FlowSettings::new(name);
        flow.protection = self.protection.unwrap_or_default();
        flow.checked = self.checked.unwrap_or(flow.checked);
        flow.transports = self.transports.clone().unwrap_or(flow.transports);
        flow.callback_limit = CALL_LIMIT;
        flow.callback_average_limit = CALL_AVERAGE_LIMIT;
        flow
    }
}
