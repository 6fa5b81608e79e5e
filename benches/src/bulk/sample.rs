//! One measurement of a carrier.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sample {
    /// Payload bytes a second at the slowest receiver.
    pub bytes_per_s: f64,
    /// Bytes that did not arrive.
    pub lost: f64,
    /// Bytes, or blocks, that arrived changed.
    pub wrong: f64,
    /// Processor seconds of the sender, of the process between, and of all receivers together.
    pub cpu: [f64; 3],
    /// Resident memory of these processes in 10^6 bytes.
    pub rss_mb: [f64; 3],
    /// Duration in seconds.
    pub seconds: f64,
}
