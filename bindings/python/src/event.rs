//! Attribute events: servers and clients of Python.
//!
//! ```text
//! Attribute.push -> value of Python, borrowed -> encoded into the stream
//! stream -> worker of the client -> Inbox -> a thread of Python: `take`, `run`, the loop of asyncio
//! poller of the server -> due attributes -> a thread of Python reads and pushes
//! ```
//! Decision: the crates' threads only put events and due polls into queues. A thread of Python takes them, in batches,
//! and calls the program. Rejected: calls from the crates' threads, which take the interpreter's lock for each event,
//! and meet an interpreter that is about to end. With `in_place`, a worker waits until the thread of Python is done with a
//! long value in its server's memory.
//!
//! | subject | module |
//! |-|-|
//! | values in both directions | `value` |
//! | servers, attributes, due polls | `server` |
//! | clients and their subscriptions | `client` |
//! | queues between the crates' threads and Python's | `inbox` |
//! | values in their server's memory; waits until the program is done with one | `in_place`, `holds` |
//! | one event | `received` |

pub mod client;
pub mod holds;
pub mod in_place;
pub mod inbox;
pub mod received;
pub mod server;
pub mod value;

use pyo3::prelude::*;
use tampu_bus::{Participant, connect::Settings};
use tampu_types::Domain;

use crate::failure::raised;

/// Joins the bus of a domain, by default that of the environment.
pub fn join(py: Python<'_>, source: &str, domain: Option<&str>) -> PyResult<Participant> {
    let mut settings = Settings::from_env().map_err(raised)?;
    if let Some(domain) = domain {
        settings = settings.in_domain(Domain::new(domain).map_err(raised)?);
    }
    let source = source.parse().map_err(|error: tampu_types::identity::BadName| raised(error))?;
    py.detach(|| Participant::open(settings, source)).map_err(raised)
}
