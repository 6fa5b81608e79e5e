//! Messages between participants: batches, heartbeats, acknowledgements, refetches, announced keys, and the keys of all.

pub mod announced;
pub mod batch;
pub mod control;
pub mod keys;
pub mod refetch;
pub mod state;

pub(crate) mod cursor;

pub use cursor::BadMessage;
