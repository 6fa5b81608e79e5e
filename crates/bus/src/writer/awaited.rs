//! Samples for which a caller waits: they are sent at once with the wish on them, and the caller is woken.
//!
//! A reader on this host shows its position in shared memory, and the waiting thread sleeps on a word there
//! ([`Writer::wakes`]). Other readers send messages; [`Writer::on_word`] is called for each.

use super::{Writer, Written};
use crate::{error::WriteError, links::lock, qos::Grade, shared::Wake};

impl Writer {
    /// Writes a sample for which a caller waits. It is sent at once, and the readers that keep it learn what the caller
    /// waits for.
    pub fn write_awaited(&self, sample: &[u8], grade: Grade) -> Result<Written, WriteError> {
        self.stream.write(sample, true, Some(grade))
    }

    /// Returns the position up to which a reader that keeps samples has come; `None` while there is none that has
    /// answered. Unlike [`Writer::kept`], one of several readers is enough, and a substitute does not count.
    pub fn reached(&self, grade: Grade) -> Option<u64> {
        lock(&self.stream.outbox).reached(grade)
    }

    /// Returns the number of samples that no reader can get any more, and that none had put on a disk.
    pub fn lost_unkept(&self) -> u64 {
        lock(&self.stream.outbox).lost_unkept()
    }

    /// Begins a wait until a reader that keeps samples has come to `next`. Returns the words that change then. Empty if a
    /// message brings the news instead ([`Writer::on_word`]), or if a reader has come as far.
    pub fn wakes(&self, grade: Grade, next: u64) -> Vec<Wake> {
        let watches = lock(&self.stream.outbox).watches_of_keepers();
        watches.iter().filter_map(|watch| watch.arm(next, grade)).collect()
    }

    /// Calls `tell` whenever a reader has sent its position. Only the first call of this counts.
    pub fn on_word(&self, tell: impl Fn() + Send + Sync + 'static) {
        // A second callback is dropped, as documented.
        let _ = self.stream.on_word.set(Box::new(tell));
    }
}
