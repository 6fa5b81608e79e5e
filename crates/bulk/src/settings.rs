//! Settings of a site for its flows: `[[bulk.flow]]` in the configuration file.
//!
//! | beats the ones before | source | form |
//! |-|-|-|
//! | | the defaults | [`SendFlow::new`](crate::sender::SendFlow::new) and others, or what a program passes as such |
//! | 1 | the site | `[[bulk.flow]]` in the file that `TAMPU_CONFIG` names; a later entry beats an earlier one |
//! | 2 | the environment | `TAMPU_BULK_PROTOCOL` and others: [`VARIABLES`] |
//! | 3 | the call | a [`FlowPatch`] |
//!
//! ```
//! use tampu_bulk::{Name, sender::SendFlow, settings::{Direction, FlowPatch, of_program}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (stream, flow) = (Name::new("correlator")?, Name::new("spectra")?);
//! let said = FlowPatch { checksum: Some(true), ..FlowPatch::new(stream, flow.clone()) };
//! let settings = of_program(Direction::Send, &said)?.to_sent(SendFlow::new(flow))?;
//! assert!(settings.checked);
//! # Ok(())
//! # }
//! ```
//!
//! The command line, the libraries for C, C++ and Python and programs in Rust all use this module, so one file means the same to
//! each of them.

mod applied;
mod environment;
mod file;
mod table;

pub use applied::{BadCombination, FlowValues};
pub use environment::{BadVariable, VARIABLES};
pub use file::{BadFlowSettings, of_program};
pub use table::{BadFlow, Bulk, Direction, FlowPatch, Protocol, Slow, default_flow};
