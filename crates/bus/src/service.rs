//! Services: requests from one process to others, and their answers.
//!
//! A service has a name (`log/query`). Any number of processes [`serve`] it. [`call`] sends a question to all of them
//! and reads their answers, part by part. This module alone defines the wire of an answer and of a refusal
//! (`spec/services.md`). It calls the access hook and limits questions and answers. It also frees the place of a
//! question, however its handler ends.
//!
//! ```text
//! call(name, question) ---> every process that serves `name`
//!        Parts <----------- incarnation, content    any number of parts a process, in its order
//!        Parts <----------- incarnation, {"error"}  a refusal, the last part of its process
//! ```
//! The caller decides which answers count: the first process that answers ([`Parts::first`]), or all of them (the
//! iterator).
//!
//! Decision: a handler owns its [`Request`]. It may answer on the engine's worker or on its own thread, or put the
//! request into a queue. Dropping the request, also by a panic, frees its place among the running questions. Rejected:
//! handlers that return an answer. Searches send parts while they run, and stop when nobody reads them.
//!
//! ```
//! # use std::time::Duration;
//! # use tampu_bus::{Participant, QosTable, engine::memory::MemoryNet};
//! use tampu_bus::service::{Limits, Permission, Request, call, serve};
//! # use tampu_types::{Domain, SourceName, TopicName};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let net = MemoryNet::new(1);
//! # let join = |name: &str| -> Result<Participant, Box<dyn std::error::Error>> {
//! #     Ok(Participant::on(net.engine("host"), Domain::new("demo")?, SourceName::new(name)?, QosTable::default())?)
//! # };
//! # let (mount, viewer) = (join("mount")?, join("viewer")?);
//! let name = TopicName::new("mount/position")?;
//! let answer = |request: Request| {
//!     request.answer(&[180.0, 45.0]);
//! };
//! let _serving = serve(&mount, &name, Permission::Everybody, &Limits::inline(), answer)?;
//! # net.advance(Duration::from_millis(10));
//! let position: [f64; 2] = call(&viewer, "mount/position", "", Duration::from_secs(1))?.first().json()?;
//! assert_eq!(position, [180.0, 45.0]);
//! # Ok(())
//! # }
//! ```

mod call;
mod limits;
mod request;

pub use crate::error::CallError;
pub use call::{FirstAnswer, Part, Parts, call, call_json};
pub use limits::Limits;
pub use request::{PART_LENGTH, Permission, Request, serve};

#[cfg(test)]
mod tests;
