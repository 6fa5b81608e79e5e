//! Output of packets from the process: the interface to which the backend passes packets.

use std::{sync::Arc, time::Duration};

use tampu_bus::{Grade, Wake};

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
    /// does not wait for it. `awaited` is the most that a caller waits for.
    fn publish(&mut self, stream: &StreamKey, urgent: bool, awaited: Option<Grade>, packet: &[u8]) -> Result<u64, Refused>;

    /// Returns the number before which all keepers have acknowledged a stream's packets; `None` while there is no
    /// keeper. A stream for attached readers counts the acknowledgements of all readers for which it waits.
    fn delivered(&mut self, stream: &StreamKey) -> Option<u64>;

    /// Returns whether a node maintains the rings of a process when it ends.
    fn has_heir(&mut self) -> bool {
        false
    }

    /// Waits until all that was published has reached its readers; whether it has.
    fn flush(&mut self, timeout: Duration) -> bool;

    /// Sends what waits for more, and returns the streams for everybody, each with the number after its last packet.
    fn published(&mut self) -> Vec<(StreamKey, u64)>;

    /// Returns whether a keeper has the stream's packets before this number, in this grade.
    fn has_reached(&self, stream: &StreamKey, next: u64, grade: Grade) -> bool;

    /// Returns the number of packets for everybody that nobody can get any more, and that no keeper has.
    fn lost(&self) -> u64 {
        0
    }

    /// Returns words in shared memory that change when a keeper has these packets in this grade. Where there are none, the
    /// sink wakes the backend itself, or nobody does.
    fn wakes(&self, _: &[(StreamKey, u64)], _: Grade) -> Vec<Wake> {
        Vec::new()
    }
}

/// Reason why a packet was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The sink is not ready; retry the same packet.
    NotYet(String),
    /// This packet can never be sent.
    Never(String),
}
