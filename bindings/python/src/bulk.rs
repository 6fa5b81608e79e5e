//! Bulk data: senders and receivers of Python.
//!
//! ```text
//! flow.send(array) -> bytes, borrowed -> copied once into a block of the flow -> receivers
//! worker of a connection -> ItemQueue -> a thread of Python: `next`, the loop of asyncio
//!                           '-> or a file, written by the worker itself
//! ```
//! Decision: a receiver is read, not called. Its items are handed out one at a time, and the next call answers the one
//! before: so the sender's `start` and `stop` return after the program has done its part, as with callbacks in Rust and
//! C++. Rejected: callbacks on the threads of the connections, which take the interpreter's lock for each frame.
//!
//! | subject | module |
//! |-|-|
//! | the member of the bus behind both ends | `member` |
//! | settings of both ends | `settings` |
//! | senders | `sender` |
//! | control by other programs | `control` |
//! | receivers | `receiver` |
//! | the opening of a receiver, also by other programs | `opening` |
//! | items of a receiver | `item` |
//! | the queue between a connection and Python | `queue` |
//! | files that are received | `files` |
//! | errors that name flow and addresses | `failure` |

pub mod control;
pub mod failure;
mod files;
mod item;
mod member;
mod opening;
mod queue;
pub mod receiver;
pub mod sender;
mod settings;
