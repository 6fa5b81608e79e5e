//! Log records: from Python's `logging` into the log rings of this process.
//!
//! ```text
//! logging.Logger.callHandlers -> RecordHandler.handle: reads the LogRecord, formats its text -> ring of this thread
//!                                '-> anything unusual: `_slow` of tampu/logging.py -> LogWriter.write -> ring
//! ```
//! Decision: the handler's method `handle` is a function of this library. A method of Python that calls one costs more
//! than the record itself. Rejected: a queue with a thread in Python, because `os._exit`, `fork` and kill -9 lose what
//! is in it.
//!
//! | subject | module |
//! |-|-|
//! | writes a `LogRecord`, the usual case | `record_handler` |
//! | its attributes | `attributes` |
//! | a logger with everything that Python can ask of it | `writer` |
//! | the loggers and statements that were used before | `known` |
//! | a record on its way: values, payload, a whole record | `call` |

pub mod attributes;
pub mod call;
pub mod known;
pub mod record_handler;
pub mod writer;
