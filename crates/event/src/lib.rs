//! Attribute events: a server publishes the values of its attributes, and clients subscribe to them.
//!
//! A server declares attributes `domain/family/member/attribute` and pushes readings, or has them polled. Criteria
//! choose the kinds of event for a reading: change, alarm, archive, periodic. The server's code can choose them
//! instead. A client subscribes to names and patterns. It gets the current value first, then every update once, and
//! changes of the source: died, hung, returned. It learns exactly which events it missed.
//!
//! A server (`examples/server.rs`):
//! ```no_run
//! use std::{thread::sleep, time::Duration};
//!
//! use tampu_event::{AttributeConfig, DataType, Format, Server, Value, join, server::ServerSettings};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let server = Server::start(join("vacuum")?, ServerSettings::default())?;
//!     let mut config = AttributeConfig::new("sr/vacuum/c01-1/pressure".parse()?, DataType::Double, Format::Scalar);
//!     config.unit = "mbar".into();
//!     // A change of 5 % sends a change event.
//!     config.criteria.change.rel = Some("5".parse()?);
//!     let pressure = server.declare(config)?;
//!     for step in 0u32.. {
//!         let value = 1.2e-9 * (1.0 + 0.02 * f64::from(step % 10));
//!         let pushed = pressure.push(Value::scalar(&value))?;
//!         println!("{value:.3e} mbar, sent as: {}", pushed.kinds);
//!         sleep(Duration::from_secs(1));
//!     }
//!     Ok(())
//! }
//! ```
//! A client (`examples/client.rs`):
//! ```no_run
//! use std::time::Duration;
//!
//! use tampu_event::{
//!     Client,
//!     client::{ClientSettings, SubscribeOptions},
//!     join,
//! };
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::start(join("panel")?, ClientSettings::default())?;
//!     // At most 1000 events wait; beyond that the oldest is dropped and counted.
//!     let events = client.stream(SubscribeOptions::of(["*/vacuum/*/pressure".parse()?]), 1000);
//!     loop {
//!         let Some(event) = events.next(Duration::from_secs(5)) else {
//!             println!("no event for 5 s; is a server running?");
//!             continue;
//!         };
//!         let config = &event.attribute.config;
//!         match event.reading().and_then(|reading| reading.value?.number(0)) {
//!             Some(value) => println!("{}: {value:e} {} ({})", config.name, config.unit, event.reason.name()),
//!             None => println!("{}: {}", config.name, event.reason.name()),
//!         }
//!     }
//! }
//! ```
//! Programs on one host find each other without further settings; [`join`] names the variables for other hosts.
//!
//! | subject | module |
//! |-|-|
//! | the publishing side: [`Server`], [`Attribute`] | [`server`] |
//! | the subscribing side: [`Client`], callbacks, streams, latest values | [`client`] |
//! | criteria: the kinds of event for a reading | [`criteria`] |
//! | lists, current values, criteria set from outside, facts about missing events | [`ask`] |
//! | the history of events | [`history`] |
//! | topics and services | [`topics`] |
//!
//! The nouns and their encoding are in `tampu_types::event`; the contract is `spec/events.md`, the decisions are in
//! `spec/decisions/0010-events.md`.
//!
//! Both sides in one process, in a directory of their own, as a test uses them:
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use tampu_bus::{Participant, connect::Settings};
//! use tampu_event::{
//!     AttributeConfig, Client, DataType, Format, Reason, Server, Value,
//!     client::{ClientSettings, SubscribeOptions},
//!     server::ServerSettings,
//! };
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let dir = tempfile::tempdir()?;
//!     let config = Settings::isolated(dir.path());
//!     let join = |name: &str| -> Result<Participant, Box<dyn std::error::Error>> {
//!         Ok(Participant::open(config.clone(), name.parse()?)?)
//!     };
//!     let server = Server::start(join("vacuum")?, ServerSettings::default())?;
//!     let mut pressure = AttributeConfig::new("sr/vacuum/c01-1/pressure".parse()?, DataType::Double, Format::Scalar);
//!     pressure.unit = "mbar".into();
//!     pressure.criteria.change.rel = Some("5".parse()?);
//!     let pressure = server.declare(pressure)?;
//!     pressure.push(Value::scalar(&1.2e-9))?;
//!
//!     let client = Client::start(join("panel")?, ClientSettings::default())?;
//!     let (sender, events) = mpsc::channel();
//!     let _subscription = client.subscribe(SubscribeOptions::of(["*/vacuum/*/pressure".parse()?]), move |event| {
//!         let value = event.reading.and_then(|reading| reading.value?.number(0));
//!         let _ = sender.send((event.reason, value));
//!     });
//!     assert_eq!(events.recv_timeout(Duration::from_secs(30))?, (Reason::First, Some(1.2e-9)));
//!     pressure.push(Value::scalar(&1.4e-9))?;
//!     assert_eq!(events.recv_timeout(Duration::from_secs(30))?, (Reason::Update, Some(1.4e-9)));
//!     Ok(())
//! }
//! ```

#![warn(missing_docs)]

pub mod ask;
pub mod client;
pub mod criteria;
mod filter;
pub mod history;
mod join;
mod names_reader;
mod precedence;
pub mod server;
pub mod topics;

pub use client::Client;
pub use join::{JoinError, join};
pub use server::{Attribute, Server};
pub use tampu_bus::Participant;
pub use tampu_types::event::{AttributeConfig, AttributeName, AttributePattern, DataType, Format, Kinds, Quality, Reason, Value};
