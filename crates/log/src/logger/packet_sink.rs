//! Output of packets from the process: the interface to which the backend passes packets.

use std::{sync::Arc, time::Duration};

use crate::logger::{control::Controlled, stream::StreamKey};

/// Takes packets and publishes them.
pub(crate) trait PacketSink: Send {
    /// Lets these loggers be asked and set from outside, where the way out leads both ways. Called once, before anything else.
    fn attend(&mut self, loggers: Arc<dyn Controlled>) {
        drop(loggers);
    }

    /// Reads the requests of attached readers, if the sink also receives. Called repeatedly; does not block.
    fn hear(&mut self) {}

    /// Publishes one packet of a stream; returns its number there. May block for as long as its own bounds allow; the application
    /// does not wait for it.
    fn publish(&mut self, stream: &StreamKey, urgent: bool, packet: &[u8]) -> Result<u64, Refused>;

    /// Returns the number before which all keepers have acknowledged a stream's packets; `None` while there is no
    /// keeper. A stream for attached readers counts the acknowledgements of all readers for which it waits.
    fn delivered(&mut self, stream: &StreamKey) -> Option<u64>;

    /// Returns whether a node maintains the rings of a process when it ends.
    fn has_heir(&mut self) -> bool {
        false
    }

    /// Waits until all that was published has reached its readers; whether it has.
    fn flush(&mut self, timeout: Duration) -> bool;

    /// Waits until a keeper has committed all packets published for everybody; returns whether it has.
    fn keep(&mut self, timeout: Duration) -> bool;

    /// Returns the streams for everybody, each with the number after its last packet.
    fn published(&self) -> Vec<(StreamKey, u64)>;

    /// Returns whether a keeper has committed a stream's packets before this number.
    fn is_kept(&self, stream: &StreamKey, next: u64) -> bool;
}

/// Reason why a packet was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The sink is not ready; retry the same packet.
    NotYet(String),
    /// This packet can never be sent.
    Never(String),
}
