//! The bus: every reader gets each stream in order, exact reports of losses, bounded waits, and the presence of all
//! processes.
//!
//! An [`engine`] carries bytes and promises nothing. On top stands one reliability layer, written once. Writers number
//! their samples and keep them for a while ([`Writer`]). Readers acknowledge, find gaps and request missing samples
//! again ([`Reader`]). Heartbeats announce the existing streams. A [`Participant`] is a process's place on the bus. It
//! runs two workers: the heartbeat worker (heartbeats, acknowledgements, lingering batches) and the refetch server
//! (answers from the cache, and what takes time: direct links, the memory of a stream that begins to share its batches).
//!
//! | part | module |
//! |-|-|
//! | joining: settings, endpoints, keys, the node | [`connect`] |
//! | the contract of an engine, and the engines | [`engine`] |
//! | messages on the wire | [`wire`] |
//! | limits and options | [`qos`], and a site's settings of them, [`topic_settings`] |
//! | authorisation | [`access`] |
//! | asking and answering | [`service`] |
//! | a session with a hub, for programs that do not join | [`gateway`] |
//! | writing: outbox (a value), loans, receipts | [`Writer`] |
//! | reading: inbox (a value), events | [`Reader`] |
//!
//! ```
//! use std::time::Duration;
//! use tampu_bus::{Event, Participant, Qos, QosTable, ReaderQos, TypeTag, engine::memory::MemoryNet};
//! use tampu_types::{Domain, Partition, PartitionFilter, SourceName, TopicFilter, TopicName};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let net = MemoryNet::new(1);
//! let join = |name: &str| -> Result<Participant, Box<dyn std::error::Error>> {
//!     Ok(Participant::on(net.engine("host"), Domain::new("demo")?, SourceName::new(name)?, QosTable::default())?)
//! };
//! let (antenna, viewer) = (join("DV01")?, join("viewer")?);
//!
//! let mut reader = viewer.reader(&TopicFilter::new("weather/*")?, &PartitionFilter::All, ReaderQos::default())?;
//! let writer = antenna.writer(&TopicName::new("weather/wind")?, &Partition::everybody(), TypeTag::OCTETS, Qos::default())?;
//! net.advance(Duration::from_millis(10));
//! writer.write(b"7.5 m/s")?;
//!
//! loop {
//!     match reader.next(Duration::from_secs(1)) {
//!         Some(Event::Sample(sample)) => {
//!             assert_eq!(sample.payload.bytes(), Some(&b"7.5 m/s"[..]));
//!             break;
//!         }
//!         Some(_) => continue,
//!         None => panic!("nothing arrived"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub mod access;
pub mod clock;
pub mod connect;
pub mod engine;
pub mod gateway;
pub mod group;
pub mod host;
pub mod qos;
pub mod run_dir;
pub mod service;
pub mod topic_settings;
pub mod wire;

mod ask;
mod error;
mod links;
mod nodes;
mod participant;
mod reader;
mod shared;
mod watched_file;
mod writer;

pub use ask::Answers;
pub use error::{BusError, CallError, LoanError, WriteError};
pub use links::Forgeries;
pub use participant::{Acquaintances, Participant, SourceInfo, StateOf};
pub use qos::{Ack, Grade, History, Hold, Qos, ReaderQos};
pub use reader::{
    Alarm, BatchEvent, Event, Gap, LentBytes, LossReason, Payload, Reader, ReaderStats, Sample, SourceChange, SourceState,
    StreamInfo, WholeBatch,
};
pub use shared::Wake;
pub use tampu_shm::{LoanMemory, Overwritten, lost_pages, survive_truncation};
pub use topic_settings::{QosPatch, QosTable, Subject};
pub use wire::state::{FollowerReport, ParticipantState, ReaderReport, WriterReport};
pub use writer::{Loan, ReaderState, ReaderStatus, Receipt, TypeTag, Writer, WriterStats, Written};
