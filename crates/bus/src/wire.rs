//! What participants say to one another: batches, heartbeats, acknowledgements, refetches, and the keys they go by.

pub mod batch;
pub mod control;
pub mod keys;
pub mod refetch;

mod cursor;

pub use cursor::BadMessage;
