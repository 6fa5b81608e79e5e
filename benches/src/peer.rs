//! The peers, one file each: nothing here is ours.

pub mod memory;
pub mod nats;
pub mod rsyslog;
pub mod socket;
pub mod zenoh;
pub mod zmq;
