//! Read callback of an attribute, and the read that it was asked for.

use std::sync::Arc;

use parking_lot::Mutex;
use tampu_types::event::Failure;

/// A callback for reads. It must not wait.
pub(super) type Ask = dyn Fn(PendingRead) + Send + Sync;

/// Read callback of an attribute, and the state of its read.
#[derive(Default)]
pub(super) struct AttributeReads {
    /// Greatest age of a reading that needs no new one, in ns; and the callback.
    pub callback: Option<(u64, Arc<Ask>)>,
    pub is_under_way: bool,
    /// Number of reads that ended.
    pub ended: u64,
    /// Failure of the last one.
    pub failure: Option<Failure>,
}

/// A read that a callback was asked for. The callback pushes a reading, and then calls [`PendingRead::done`].
/// A dropped one counts as failed.
pub struct PendingRead {
    reads: Arc<Mutex<AttributeReads>>,
    /// Wakes those who wait.
    wake: Box<dyn Fn() + Send + Sync>,
    is_over: bool,
}

impl PendingRead {
    pub(super) fn new(reads: Arc<Mutex<AttributeReads>>, wake: Box<dyn Fn() + Send + Sync>) -> PendingRead {
        PendingRead { reads, wake, is_over: false }
    }

    /// Ends the read; the reading was pushed.
    pub fn done(mut self) {
        self.end(None);
    }

    /// Ends the read with an error, which those who asked get. It is no reading of the attribute.
    pub fn fail(mut self, failure: Failure) {
        self.end(Some(failure));
    }

    fn end(&mut self, failure: Option<Failure>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        {
            let mut reads = self.reads.lock();
            reads.is_under_way = false;
            reads.ended += 1;
            reads.failure = failure;
        }
        (self.wake)();
    }
}

impl Drop for PendingRead {
    fn drop(&mut self) {
        self.end(Some(Failure::new("Tampu_NotRead", "the program ended the read without a reading")));
    }
}
