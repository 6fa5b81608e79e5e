//! The hub: the roles of one installation put together.
//!
//! | subject | module |
//! |-|-|
//! | what a hub is told | [`config`]; the documented file is `crates/hub/tampu.toml` |
//! | who may do what | [`rules`] |
//! | logs of other programs, taken in | [`inputs`] |
//! | bulk transfers it has heard of; what a site sets for flows | [`bulk`] |
//! | how it is, for Prometheus | [`metrics`] |
//! | where records go besides the archive | [`routes`] |
//! | the history of events | [`history`] |
//! | events from Tango and to Tango | [`tango`] |
//! | the logbook, served | [`book`] |
//! | the roles at work | [`Hub`] |
//!
//! A hub installs no signal handlers and prints nothing itself (its logger's local output excepted); the program around it
//! decides when it ends. `kill -9` is survived: what was acknowledged had been committed, and the run-time directory's
//! leftovers are removed by the next start.

pub mod book;
pub mod config;

pub mod bulk;
mod collecting;
pub mod history;
mod hub;
pub mod inputs;
pub mod metrics;
pub mod routes;
pub mod rules;
pub mod tango;

pub use config::{Config, ConfigError, Role};
pub use hub::{Hub, HubError};
