//! The permit for the check of all logbooks: one check at a time.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// The permit of the check, which is free or taken.
#[derive(Debug, Default)]
pub struct Checking(Arc<AtomicBool>);

/// The taken permit; dropping it lets another check begin.
pub(super) struct CheckPermit(Arc<AtomicBool>);

impl Checking {
    /// Begins a check. Returns `None` while another one runs.
    pub(super) fn begin(&self) -> Option<CheckPermit> {
        (!self.0.swap(true, Ordering::AcqRel)).then(|| CheckPermit(self.0.clone()))
    }
}

impl Drop for CheckPermit {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
