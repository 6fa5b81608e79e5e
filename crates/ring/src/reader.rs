//! The reading side: draining the rings of a living process, and recovering those of a dead one.

#[cfg(all(test, not(loom)))]
mod crash_at_every_store;
pub(crate) mod drain;
pub(crate) mod recover;
pub(crate) mod snapshot;
