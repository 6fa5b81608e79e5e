//! Settings of a sender's flow.

use std::{ffi::c_char, time::Duration};

use tampu_bulk::{
    group::Group,
    sender::{Acknowledge, SendFlow},
    settings::{FlowPatch, Protocol, Slow},
};

use super::{DEFAULT, UNSET, protection_of};
use crate::{failure::Failure, string::optional};

/// Maximum window, in bytes.
const WINDOW_LIMIT: u64 = 16 << 30;

/// Bytes of the settings in the first release.
pub(super) const SETTINGS_FIRST: usize = 32;

/// `tampu_bulk_send_settings`: a zero field is left to the configuration, or has its default. A later release appends fields.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct SettingsOfC {
    pub window: u64,
    pub throttle: f64,
    pub receivers: u32,
    pub connect_wait_ms: u32,
    pub transport: i32,
    pub checked: i32,
    pub group: *const c_char,
    pub group_interface: *const c_char,
    pub group_ttl: u32,
    pub protection: i32,
    pub slow: i32,
    pub acknowledge: i32,
    pub wait_ms: u32,
    pub ack_wait_ms: u32,
    pub resume_ms: u32,
    pub reserved: i32,
}

impl SettingsOfC {
    /// Returns the settings that the configuration may have, too: those of the call, over an empty patch.
    ///
    /// # Safety
    /// Its texts are NULL or C strings.
    pub(super) unsafe fn said(&self, empty: FlowPatch) -> Result<FlowPatch, Failure> {
        let odd = |what, value: String, possible| Failure::Odd { what, value, possible };
        let header = "the header has the possible values";
        if self.throttle.is_nan() || self.throttle < 0.0 {
            let possible = "give bytes per second, 0 for the configured limit, or INFINITY for none";
            return Err(odd("the throttle", self.throttle.to_string(), possible));
        }
        // SAFETY: by the caller.
        let (group, interface) = unsafe { (optional(self.group), optional(self.group_interface)) };
        let interface = match interface {
            Some(interface) => {
                let possible = "give the IPv4 address, the name or the index of an interface of this host";
                Some(interface.parse().map_err(|_| odd("the group's interface", interface, possible))?)
            }
            None => None,
        };
        let ttl = u8::try_from(self.group_ttl);
        let ttl = ttl.map_err(|_| odd("the group's ttl", self.group_ttl.to_string(), "give 1 to 255"))?;
        Ok(FlowPatch {
            protocol: match self.transport {
                UNSET => None,
                DEFAULT => Some(Protocol::Auto),
                1 => Some(Protocol::Tcp),
                2 => Some(Protocol::Shm),
                3 => Some(Protocol::Udp),
                4 => Some(Protocol::Multicast),
                other => return Err(odd("the transport", other.to_string(), header)),
            },
            checksum: (self.checked != UNSET).then_some(self.checked > 0),
            protection: protection_of(self.protection)?,
            receivers: (self.receivers > 0).then_some(self.receivers as usize),
            throttle_mb: (self.throttle > 0.0).then_some(self.throttle / 1e6),
            slow: match self.slow {
                UNSET => None,
                DEFAULT => Some(Slow::Cut),
                1 => Some(Slow::Skip),
                other => return Err(odd("the treatment of a slow receiver", other.to_string(), header)),
            },
            multicast: group.map(|group| group.parse::<Group>()).transpose()?,
            interface,
            ttl: (ttl > 0).then_some(ttl),
            ..empty
        })
    }

    /// Applies the other settings, which only a call has.
    pub(super) fn over(&self, mut flow: SendFlow) -> Result<SendFlow, Failure> {
        let odd = |what, value: String, possible| Failure::Odd { what, value, possible };
        if self.window > WINDOW_LIMIT {
            return Err(odd("the window", self.window.to_string(), "at most 16 GiB"));
        }
        if self.window > 0 {
            flow.window = usize::try_from(self.window)
                .map_err(|_| odd("the window", self.window.to_string(), "it exceeds this machine's addresses"))?;
        }
        flow.acknowledge = match self.acknowledge {
            0 => Acknowledge::StartAndStop,
            1 => Acknowledge::Never,
            2 => Acknowledge::EverySend,
            other => return Err(odd("the calls that wait", other.to_string(), "the header has the possible values")),
        };
        let time = |ms: u32, otherwise| if ms == 0 { otherwise } else { Duration::from_millis(ms.into()) };
        flow.connect_wait = time(self.connect_wait_ms, flow.connect_wait);
        flow.wait = time(self.wait_ms, flow.wait);
        flow.ack_wait = time(self.ack_wait_ms, flow.ack_wait);
        flow.resume = time(self.resume_ms, flow.resume);
        Ok(flow)
    }
}
