//! The logbook: the client of a hub's logbooks, for Python.
//!
//! ```text
//! tampu.book.Client -> JSON of an entry or a search -> tampu_logbook::client -> REST API of the hub
//! attachments: file of Python -> read piece by piece -> request; response -> written piece by piece -> file of Python
//! ```
//! Decision: this binds the Rust client, so that addresses, certificates, tokens and errors are those of `tampu book`.
//! Rejected: a second client in Python.
//!
//! | subject | module |
//! |-|-|
//! | the client | `client` |
//! | the hub of this host | `place` |
//! | files of Python as streams | `stream` |
//! | errors by their kind | `failure` |

pub mod client;
pub mod failure;
mod place;
mod stream;
