//! Attribute events.
pub mod ask;
pub mod criteria;
pub mod server;
pub mod topics;
