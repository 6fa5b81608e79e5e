//! The logger for C and C++, and bulk data for C: the library `tampu_log`, whose contracts are `include/tampu_log.h` and
//! `include/tampu_bulk.h` ([`bulk`]).
//!
//! | who | includes | what a call costs |
//! |-|-|-|
//! | C | `tampu_log.h` | the text is the caller's; it is copied into this thread's ring |
//! | C++17 | `tampu_log.hpp` | arguments are stored raw, by the header's inline code, which writes the whole record ([`front`]); where that cannot be, between [`statement::tampu_log_claim`] and [`statement::tampu_log_commit`] |
//! | spdlog | `tampu_spdlog_sink.h` | as in C |
//!
//! What crosses the border is checked here and nowhere else: strings ([`string`]), handles ([`handle`]), and that nothing unwinds
//! ([`failure`]). Every exported function stands in a header with its promise; a test holds both lists together.
//!
//! ```c
//! tampu_logger *logger = tampu_log_open("CONTROL/DV01");
//! tampu_log_write(logger, TAMPU_LOG_INFO, __FILE__, __LINE__, __func__, "on source");
//! tampu_log_close(logger);
//! ```

pub mod bulk;
pub mod derive;
pub mod failure;
pub mod front;
pub mod handle;
pub mod level;
mod place;
pub mod statement;
pub mod stats;
pub mod string;
pub mod write;

#[cfg(test)]
mod tests;
