//! How a flow is sent.

use std::time::Duration;

use crate::{group::Group, message::Transport, name::Name, receiver::OpenError};

/// Which calls wait until the receivers have done with what was sent (the paper's hand-shake).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Acknowledge {
    /// None.
    Never,
    /// `start`, until all callbacks have taken the parameter; `stop`, until all have had all data and their stop.
    #[default]
    StartAndStop,
    /// Those, and every `send`.
    EverySend,
}

/// What becomes of a receiver that is slower than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Slow {
    /// It gets no more of this transfer, and begins again with the next.
    #[default]
    Cut,
    /// It is not waited for any more until it has caught up; data that has no room is left out for it, and it is told which.
    Skip,
}

/// How a flow is sent.
#[derive(Debug, Clone)]
pub struct SendFlow {
    /// Its name.
    pub name: Name,
    /// Which way; `None`: to the group where there is one, shared memory where both are on one host, else TCP.
    pub transport: Option<Transport>,
    /// The multicast group that data goes to, once for all receivers.
    pub group: Option<Group>,
    /// Payloads get a checksum.
    pub checked: bool,
    /// The longest payload of a frame, bytes.
    pub frame: u32,
    /// Bytes that may be sent and not acknowledged: how far the slowest receiver may be behind, and what can be sent again.
    pub window: usize,
    /// Receivers acknowledge after so many bytes.
    pub ack_every: u64,
    /// Which calls wait for acknowledgements.
    pub acknowledge: Acknowledge,
    /// How long a receiver may hold up the others, or get on with nothing at all.
    pub wait: Duration,
    /// What becomes of it then.
    pub slow: Slow,
    /// How long `start` and `stop` wait for a receiver that gets on with nothing.
    pub ack_wait: Duration,
    /// How long what a receiver has not got is kept after its connection broke.
    pub resume: Duration,
    /// At most so many bytes a second.
    pub throttle: Option<f64>,
    /// How many receivers `start` wants.
    pub receivers: usize,
    /// How long it waits for them.
    pub connect_wait: Duration,
    /// Bytes of a socket's send buffer; `None`: as the kernel thinks best.
    pub socket_buffer: Option<usize>,
}

impl SendFlow {
    /// A flow of this name.
    pub fn new(name: Name) -> SendFlow {
        SendFlow {
            name,
            transport: None,
            group: None,
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
    /// Which way it asks for, if it asks for one.
    pub(in crate::sender) fn way(&self) -> Option<Transport> {
        self.transport.or(self.group.map(|_| Transport::Multicast))
    }

    /// Whether it makes sense.
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
