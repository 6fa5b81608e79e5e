//! The bus that keeps its promises: every reader gets each stream in order, what is lost is told exactly, nobody waits longer
//! than agreed, and who lives is known.
//!
//! An [`engine`] carries bytes and promises nothing. On top stands one reliability layer, written once: writers number their
//! samples and keep them for a while ([`Writer`]), readers acknowledge, find holes and fetch again ([`Reader`]), heartbeats
//! say what there is. A [`Participant`] is a process's place on the bus and runs the two workers behind all this: the pulse
//! (heartbeats, acknowledgements, lingering batches) and the librarian (answers from the cache).
//!
//! | part | module |
//! |-|-|
//! | what an engine is, and the engines | [`engine`] |
//! | what is on the wire | [`wire`] |
//! | bounds and wishes | [`qos`] |
//! | who may do what | [`access`] |
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

pub mod access;
pub mod clock;
pub mod crowd;
pub mod engine;
pub mod host;
pub mod qos;
pub mod run_dir;
pub mod wire;

mod ask;
mod error;
mod links;
mod participant;
mod reader;
mod shared;
mod writer;

pub use ask::Answers;
pub use error::{AskError, BusError, LoanError, WriteError};
pub use participant::{Participant, SourceInfo};
pub use qos::{Ack, History, Hold, Qos, QosPatch, QosTable, ReaderQos};
pub use reader::{Alarm, Event, Gap, LossReason, Payload, Reader, ReaderStats, Sample, SourceChange, SourceState, StreamInfo};
pub use shared::Overwritten;
pub use writer::{Loan, ReaderState, ReaderStatus, Receipt, TypeTag, Writer, WriterStats, Written};
