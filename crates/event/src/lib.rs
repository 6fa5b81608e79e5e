//! Attribute events.
pub mod criteria;
