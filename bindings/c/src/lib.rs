//! Logs, events and bulk data for C and C++: the library `tampu_log`. The contracts are `include/tampu_log.h`,
//! `include/tampu_event.h` ([`event`]) and `include/tampu_bulk.h` ([`bulk`]).
//!
//! | language | header | cost of a call |
//! |-|-|-|
//! | C | `tampu_log.h` | the text is the caller's; it is copied into this thread's ring |
//! | C++17 | `tampu_log.hpp` | arguments are stored raw by the header's inline code, which writes the whole record ([`front`]); if it cannot, the arguments are stored between [`statement::tampu_log_claim`] and [`statement::tampu_log_commit`] |
//! | spdlog | `tampu_spdlog_sink.h` | as in C |
//! | log4cplus | `tampu_log4cplus_appender.h` | as in C |
//!
//! This crate alone checks everything that crosses the border: strings ([`string`]), handles ([`handle`]), and panics,
//! which never unwind into C ([`failure`]). A header declares every exported function with its contract; a test
//! compares both lists.
//!
//! ```c
//! tampu_logger *logger = tampu_log_open("CONTROL/DV01");
//! tampu_log_write(logger, TAMPU_LOG_INFO, __FILE__, __LINE__, __func__, "on source");
//! tampu_log_close(logger);
//! ```

#![warn(missing_docs)]

pub mod bulk;
mod callback;
pub mod derive;
pub mod event;
pub mod failure;
pub mod front;
mod grade;
pub mod handle;
pub mod level;
pub mod statement;
pub mod stats;
pub mod string;
mod structure;
pub mod write;

#[cfg(test)]
mod tests;
