//! The engines, which implement the [`Engine`] contract. Only this crate names one.
//!
//! A new engine is a directory here and an entry in [`DRIVERS`]. Code above the contract does not depend on the chosen
//! engine.

mod contract;
mod driver;
pub mod memory;
#[cfg(feature = "zenoh")]
mod zenoh;
#[cfg(feature = "zmq")]
mod zmq;

pub use contract::{
    Answer, Answerer, Answers, CaughtUp, Class, Connected, Deliver, Engine, EngineError, Guard, Limits, OWN_HOST, Outlet,
    Presence, Question, Seen, Tick, UNPROVED, with_host,
};
pub use driver::LinkTraffic;
pub(crate) use driver::{AskForHost, Driver, Router, RouterSettings};

pub use crate::host::Fate;

/// Engines of this build that settings can name; the first one is the default. (The memory engine is for tests, which
/// create it directly.)
pub(crate) const DRIVERS: &[Driver] = &[
    #[cfg(feature = "zenoh")]
    zenoh::DRIVER,
    #[cfg(feature = "zmq")]
    zmq::DRIVER,
];
