//! Attribute events: a server that publishes what its attributes are, and clients that are told.
//!
//! A server declares attributes `domain/family/member/attribute` and pushes readings, or has them polled. Criteria decide as which
//! kinds of event a reading is sent: change, alarm, archive, periodic; or the server's code says so. A client subscribes to names
//! and patterns, is told the current value first, then every update once, and word of the source: died, hung, returned, and
//! exactly what was missed.
//!
//! | subject | module |
//! |-|-|
//! | the publishing side: [`Server`], [`Attribute`] | [`server`] |
//! | the subscribing side: [`Client`], callbacks, streams, latest values | [`client`] |
//! | whether a reading is told | [`criteria`] |
//! | lists, current values, criteria set from outside, why nothing comes | [`ask`] |
//! | topics and services | [`topics`] |
//!
//! The nouns and their encoding are in `tampu_types::event`; the contract is `spec/events.md`, the decisions are in
//! `spec/decisions/0010-events.md`.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use tampu_bus::{Participant, QosTable, engine::zenoh::config::ZenohConfig};
//! use tampu_event::{Client, Server, client::{ClientSettings, Wish}, server::ServerSettings};
//! use tampu_types::event::{AttributeConfig, DataType, Format, Reason, Value};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let config = ZenohConfig::isolated(dir.path());
//! let join = |name: &str| -> Result<Participant, Box<dyn std::error::Error>> {
//!     Ok(Participant::open(config.clone(), name.parse()?, QosTable::default())?)
//! };
//! let server = Server::start(join("vacuum")?, ServerSettings::default())?;
//! let mut pressure = AttributeConfig::new("sr/vacuum/c01-1/pressure".parse()?, DataType::Double, Format::Scalar);
//! pressure.unit = "mbar".into();
//! pressure.criteria.change.rel = Some("5".parse()?);
//! let pressure = server.declare(pressure)?;
//! pressure.push(Value::scalar(&1.2e-9))?;
//!
//! let client = Client::start(join("panel")?, ClientSettings::default())?;
//! let (tell, told) = mpsc::channel();
//! let _subscription = client.subscribe(Wish::of(["*/vacuum/*/pressure".parse()?]), move |event| {
//!     let value = event.reading.and_then(|reading| reading.value?.number(0));
//!     let _ = tell.send((event.reason, value));
//! });
//! assert_eq!(told.recv_timeout(Duration::from_secs(30))?, (Reason::First, Some(1.2e-9)));
//! pressure.push(Value::scalar(&1.4e-9))?;
//! assert_eq!(told.recv_timeout(Duration::from_secs(30))?, (Reason::Update, Some(1.4e-9)));
//! # Ok(())
//! # }
//! ```

pub mod ask;
pub mod client;
pub mod criteria;
pub mod server;
pub mod topics;

pub use client::Client;
pub use server::{Attribute, Server};
