//! The hub: all roles of one installation, as processes under a supervisor or in one process.
//!
//! | subject | module |
//! |-|-|
//! | configuration | [`config`]; the documented file is `crates/hub/tampu.toml` |
//! | access rules | [`rules`] |
//! | settings that are read again | [`reread`] |
//! | settings that administrators change while the hub runs | [`setting_changes`] |
//! | certificates, their use and their life | [`certificates`] |
//! | modes of the data's directories | [`private`] |
//! | inputs of other programs' logs | [`inputs`] |
//! | log records of bulk transfers | [`bulk`] |
//! | metrics for Prometheus | [`metrics`] |
//! | routes of records to files and other hosts | [`routes`] |
//! | the history of events | `history` |
//! | events from Tango and to Tango | the crate `tampu-tango` |
//! | the logbook | [`book`] |
//! | its API for programs | [`api`] |
//! | the pages of the console | `console` |
//! | login methods: directories, providers of identities, proxies | [`login`] |
//! | the HTTP server of all services | [`http`] |
//! | catalogue of queues and limits | [`bounds`] |
//! | the watch of the run-time directory | `run_dir_watch` |
//! | the running roles of one process | [`Hub`] |
//! | parts of a hub, their state | [`part`], [`roles`] |
//! | roles as processes of their own | [`supervisor`] |
//! | limits and sandbox of these processes | [`limits`], [`sandbox`] |
//!
//! A hub installs no signal handlers and prints nothing itself, except the local output of its logger. The calling
//! program decides when it ends, and calls [`tampu_bus::survive_truncation`] first. It survives `kill -9`: acknowledged
//! records are on disk, and the next start removes leftover files in the run-time directory.

pub mod api;
pub mod book;
pub mod bounds;
mod clock;
pub mod config;
pub mod http;
pub mod listen;
pub mod login;

pub mod bulk;
pub mod certificates;
mod collecting;
mod console;
pub mod event_json;
mod file_stamp;
pub mod gateway;
mod history;
pub mod host_file;
mod hub;
pub mod inputs;
pub mod limits;
mod memory;
pub mod metrics;
pub mod part;
pub mod plural;
pub mod private;
mod removal;
pub mod reread;
pub mod roles;
pub mod routes;
pub mod rules;
mod run_dir_watch;
pub mod sandbox;
pub mod setting_changes;
pub mod site;
pub mod supervisor;
mod topic_keeper;
mod untrusted_file;

pub use config::{Config, ConfigError, Role};
pub use hub::{Hub, HubError, is_book_optional};
