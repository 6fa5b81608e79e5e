//! The engine ZeroMQ: samples travel through libzmq, from publishers to subscribers without a broker between them.
//!
//! ```text
//!   process (PUB) ------------------ process (SUB)      one host: sockets in the run-time directory
//!       \                                /
//!        node (XSUB, XPUB) === tcp === node             hosts: a sample crosses a link once
//! ```
//! Samples alone travel in this way. Presence, questions, acknowledgements and heartbeats travel beside them, on the links of the
//! zenoh engine, because ZeroMQ has none of them: a publisher is not told who reads, nor a subscriber that a publisher
//! died. The layer above adds order, exact loss and credit to both alike. Programs without our library see the samples
//! alone (`spec/wire/zmq.md`).
//!
//! | subject | module |
//! |-|-|
//! | the first frame of a message, and the prefix that a subscription sends | `frame` |
//! | sockets and their bounds | `socket` |
//! | the sending side of a process; its receiving side | `publisher`, `receiver` |
//! | the engine of a process; a node's router | `process`, `router` |
//! | forwarding between hosts; addresses and passwords for it | `lanes`, `far` |
//! | processes and hosts with another engine | `neighbours` |
//!
//! Rejected: the crate `zeromq` (pure Rust, 0.7). Its publishers keep 100 000 messages for each subscriber, which nobody
//! can change, so a stopped reader of images costs its writer all memory. libzmq has a bound for each socket.

mod far;
mod frame;
mod lanes;
mod neighbours;
mod process;
mod publisher;
mod receiver;
mod router;
mod socket;

use std::sync::Arc;

use self::{process::ZmqEngine, router::ZmqRouter};
use super::Driver;

/// This engine in the catalogue.
pub(super) const DRIVER: Driver = Driver {
    name: socket::NAME,
    open: |settings| Ok(Arc::new(ZmqEngine::open(settings)?)),
    route: |settings| Ok(Box::new(ZmqRouter::start(settings)?)),
};
