//! The settings of a sent flow.

use std::time::Duration;

use crate::{
    group::Group,
    message::{ProtectionLevel, Transport},
    name::Name,
    protection::Protection,
    receiver::OpenError,
};

/// Calls that wait until the receivers have acknowledged (the paper's handshake).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledge {
    /// No call waits.
    Never,
    /// `start` waits until all callbacks have taken the parameter; `stop`, until all have had all data and their stop.
    #[default]
    StartAndStop,
    /// `start`, `stop` and every `send` wait.
    EverySend,
}

/// Treatment of a slow receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Slow {
    /// It gets no more of this transfer, and joins the next one.
    #[default]
    Cut,
    /// The flow does not wait for it until it has caught up. Data without room is skipped, and the receiver gets the
    /// lost ranges.
    Skip,
}

/// The settings of a sent flow.
#[derive(Debug, Clone)]
pub struct SendFlow {
    /// The name of the flow.
    pub name: Name,
    /// The transport; `None`: the group if there is one, shared memory if both are on one host, else TCP.
    pub transport: Option<Transport>,
    /// The multicast group that data goes to, once for all receivers.
    pub group: Option<Group>,
    /// Protection that the flow demands on connections. A receiver may demand more.
    pub protection: Protection,
    /// True if payloads get a checksum.
    pub checked: bool,
    /// The longest payload of a frame, bytes.
    pub frame: u32,
    /// Bytes that may be sent and not acknowledged. It limits the lag of the slowest receiver, and the data for
    /// retransmission.
    pub window: usize,
    /// Number of bytes after which receivers acknowledge.
    pub ack_every: u64,
    /// The calls that wait for acknowledgements.
    pub acknowledge: Acknowledge,
    /// Longest time that a receiver may delay the others, or make no progress.
    pub wait: Duration,
    /// The treatment of such a receiver.
    pub slow: Slow,
    /// The longest wait of `start` and `stop` for a receiver without progress.
    pub ack_wait: Duration,
    /// The time for which data is kept for a receiver with a broken connection.
    pub resume: Duration,
    /// Limit in bytes a second, if any.
    pub throttle: Option<f64>,
    /// The number of receivers that `start` needs.
    pub receivers: usize,
    /// The longest wait for them.
    pub connect_wait: Duration,
    /// Bytes of a socket's send buffer; `None` leaves it to the kernel.
    pub socket_buffer: Option<usize>,
}

impl SendFlow {
    /// Makes the settings of a flow with this name.
    pub fn new(name: Name) -> SendFlow {
        SendFlow {
            name,
            transport: None,
            group: None,
            protection: Protection::Auto,
            checked: false,
            frame: 256 << 10,
            window: 32 << 20,
            ack_every: 1 << 20,
            acknowledge: Acknowledge::StartAndStop,
            wait: Duration::from_secs(5),
            slow: Slow::Cut,
            ack_wait: Duration::from_secs(10),
            resume: Duration::from_secs(30),
            throttle: None,
            receivers: 1,
            connect_wait: Duration::from_secs(5),
            socket_buffer: None,
        }
    }
}

impl SendFlow {
    /// Returns the requested transport, if any.
    pub(in crate::sender) fn way(&self) -> Option<Transport> {
        self.transport.or(self.group.map(|_| Transport::Multicast))
    }

    /// Returns the protection of the group's datagrams, which is one for all members.
    pub(in crate::sender) fn group_protection(&self) -> ProtectionLevel {
        self.group.map_or(ProtectionLevel::None, |group| self.protection.level(group.interface.is_loopback()))
    }

    /// Checks the settings.
    pub(in crate::sender) fn check(&self) -> Result<(), OpenError> {
        let why = match (self.way(), &self.group) {
            (Some(Transport::Multicast), None) => "none is named",
            (Some(Transport::Multicast), Some(_)) if self.slow == Slow::Skip => {
                "it goes at the pace of its slowest receiver, and nothing is skipped for one of them"
            }
            (Some(transport), Some(_)) if transport != Transport::Multicast => "it is set to go another way",
            _ => return Ok(()),
        };
        Err(OpenError::Group { flow: self.name.clone(), why: why.to_owned() })
    }
}
