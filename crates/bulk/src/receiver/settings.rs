//! Settings of a receiver.

use std::{net::SocketAddr, time::Duration};

use crate::message::Token;

/// The settings of a receiver.
#[derive(Debug, Clone)]
pub struct ReceiverSettings {
    /// The address for connections; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Announced address, if it differs from the listening one.
    pub announce: Option<String>,
    /// The token of admitted senders; `None`: a random one, declared on the bus.
    pub token: Option<Token>,
    /// The time a transfer stays open while its sender is away.
    pub resume: Duration,
    /// Time without data after which a connection is closed.
    pub silence: Duration,
    /// Most connected senders; more are refused. Callers without identification do not count.
    pub connections: usize,
    /// The longest wait for a caller's Hello.
    pub hello: Duration,
    /// Bytes of a socket's receive buffer; `None` leaves it to the kernel.
    pub socket_buffer: Option<usize>,
}

impl Default for ReceiverSettings {
    fn default() -> ReceiverSettings {
        ReceiverSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            announce: None,
            token: None,
            resume: Duration::from_secs(30),
            silence: Duration::from_secs(10),
            connections: 64,
            hello: Duration::from_secs(5),
            socket_buffer: None,
        }
    }
}
