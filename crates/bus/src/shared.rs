//! Protocols in shared memory between a writer and readers on one host: batches, and the readers' progress.
//!
//! The memory itself, and the loans of large samples, are in the crate `tampu-shm`.

mod batches;
mod progress;
mod reused;

pub(crate) use batches::{BatchRing, BatchView, longest_for, size_for};
pub use progress::Wake;
pub(crate) use progress::{Progress, ProgressPage, Watch, whose};
