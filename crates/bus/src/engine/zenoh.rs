//! The default engine: zenoh, with processes as clients of their host's node.
//!
//! ```text
//!   process   process   process        process   process
//!       \        |        /                \       /
//!        node (a router, unix socket) ---- node (TCP, with key)
//! ```
//! A full mesh of peers was tried first and failed. At 100 processes it had 7000 connections and was not complete after
//! 44 s. In contrast, 200 clients of one router see each other after 1.5 s. Without a node (two programs on a desk) processes
//! meet through the run-time directory, each connected to all others. They move to the node when one appears.
//!
//! | subject | module |
//! |-|-|
//! | the engine's settings, with reasons | `settings` |
//! | the engine of a process; a node's router | `process`, `router` |
//! | sessions, and the declarations repeated on a new one | `core`, `link`, `declaration`, `supervisor`, `inbox` |
//! | messages; questions; presence | `outlet`, `question`, `presence` |
//! | announced keys that a node passes on to its processes | `table`, `feed` |
//! | links between two processes without the node | `direct` |
//! | rules about links of other hosts | `gate`, `host_name`, `host_rule` |
//!
//! The layer above relies on these facts:
//! - A sample is dropped after a full link held it up for 1 ms. `send` may take that long, and its `Ok` guarantees
//!   nothing.
//! - Declarations and presence overtake samples: a process reported as gone may still have samples under way.
//! - After moving to another session, samples sent meanwhile may be lost or arrive twice.
//! - The zenoh library installs no signal handler and writes nothing to the terminal.

mod connection;
mod core;
mod credentials;
mod declaration;
mod direct;
mod feed;
mod gate;
mod held_session;
mod host_name;
mod host_rule;
mod inbox;
mod lease;
mod link;
mod node_keys;
mod outlet;
mod pattern;
mod payload;
mod presence;
mod process;
mod question;
mod router;
mod settings;
mod supervisor;
mod table;
mod worker;

use std::sync::Arc;

use self::{process::ZenohEngine, router::ZenohRouter};
use super::Driver;

/// This engine in the catalogue.
pub(super) const DRIVER: Driver = Driver {
    name: settings::NAME,
    open: |settings| Ok(Arc::new(ZenohEngine::open(settings.clone())?)),
    route: |settings| Ok(Box::new(ZenohRouter::start(settings)?)),
};
