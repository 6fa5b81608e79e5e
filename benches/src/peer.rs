//! The peers, one file each. None of them uses Tampu.

pub mod memory;
pub mod nats;
pub mod rsyslog;
pub mod socket;
pub mod zenoh;
pub mod zmq;
