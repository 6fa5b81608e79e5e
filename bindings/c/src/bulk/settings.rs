//! Settings of a sender's flow.

use std::{ffi::c_char, time::Duration};

use tampu_bulk::{
    group::Group,
    message::Transport,
    sender::{Acknowledge, SendFlow, Slow},
};

use super::protection_of;
use crate::{failure::Failure, string::optional};

/// Maximum window, in bytes.
const WINDOW_LIMIT: u64 = 16 << 30;

/// Bytes of the settings in the first release.
pub(super) const SETTINGS_FIRST: usize = 32;

/// `tampu_bulk_send_settings`: a zero field means the default. A later release appends fields.
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
    /// Returns the multicast group of the settings.
    ///
    /// # Safety
    /// Its texts are NULL or C strings.
    unsafe fn group(&self) -> Result<Option<Group>, Failure> {
        let odd = |what, value: String, possible| Failure::Odd { what, value, possible };
        // SAFETY: by the caller.
        let (group, interface) = unsafe { (optional(self.group), optional(self.group_interface)) };
        let Some(group) = group else {
            return match (interface, self.group_ttl) {
                (None, 0) => Ok(None),
                (interface, _) => Err(odd("a group's interface and ttl", interface.unwrap_or_default(), "set a group too")),
            };
        };
        let mut group: Group = group.parse()?;
        if let Some(interface) = interface {
            let possible = "give the IPv4 address, the name or the index of an interface of this host";
            group.interface = interface.parse().map_err(|_| odd("the group's interface", interface, possible))?;
        }
        if self.group_ttl > 0 {
            group.ttl =
                u8::try_from(self.group_ttl).map_err(|_| odd("the group's ttl", self.group_ttl.to_string(), "give 1 to 255"))?;
        }
        Ok(Some(group))
    }

    /// Applies the given settings over the defaults.
    ///
    /// # Safety
    /// Its texts are NULL or C strings.
    pub(super) unsafe fn over(&self, mut flow: SendFlow) -> Result<SendFlow, Failure> {
        let odd = |what, value: String, possible| Failure::Odd { what, value, possible };
        if self.window > WINDOW_LIMIT {
            return Err(odd("the window", self.window.to_string(), "at most 16 GiB"));
        }
        if !(self.throttle.is_finite() && self.throttle >= 0.0) {
            return Err(odd("the throttle", self.throttle.to_string(), "give bytes per second, or 0 for no limit"));
        }
        flow.transport = match self.transport {
            0 => None,
            1 => Some(Transport::Tcp),
            2 => Some(Transport::Shm),
            3 => Some(Transport::Udp),
            4 => Some(Transport::Multicast),
            other => return Err(odd("the transport", other.to_string(), "the header has the possible values")),
        };
        if self.window > 0 {
            flow.window = usize::try_from(self.window)
                .map_err(|_| odd("the window", self.window.to_string(), "it exceeds this machine's addresses"))?;
        }
        if self.throttle > 0.0 {
            flow.throttle = Some(self.throttle);
        }
        if self.receivers > 0 {
            flow.receivers = self.receivers as usize;
        }
        flow.checked = self.checked != 0;
        flow.slow = match self.slow {
            0 => Slow::Cut,
            1 => Slow::Skip,
            other => {
                return Err(odd("the treatment of a slow receiver", other.to_string(), "the header has the possible values"));
            }
        };
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
        flow.protection = protection_of(self.protection)?;
        // SAFETY: by the caller.
        flow.group = unsafe { self.group() }?;
        Ok(flow)
    }
}
