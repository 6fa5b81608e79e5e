//! Commands to a flow beside its running call: another rate, a pause, the end of the transfer. They return at once, and
//! come from any thread.

use std::time::Instant;

use super::Flow;
use crate::{sender::error::SendError, sending::Phase};

impl Flow {
    /// Sets the limit of the rate in bytes a second; `None` or zero lifts it. It holds for a running transfer from its next
    /// frame on, and for the transfers after it.
    pub fn set_throttle(&self, bytes_per_second: Option<f64>) {
        let mut core = self.inner.core.lock();
        core.throttle.set_rate(bytes_per_second, Instant::now());
        drop(core);
        self.wake_waiting();
    }

    /// Sends no data until [`Flow::resume`]. A call that sends waits; receivers get signs of life, and wait as well.
    pub fn pause(&self) {
        self.inner.core.lock().paused = true;
    }

    /// Ends a pause.
    pub fn resume(&self) {
        self.inner.core.lock().paused = false;
        self.wake_waiting();
    }

    /// Ends the sending of the running transfer: a call that sends returns [`SendError::Cancelled`] after its present frame,
    /// and so does each further one. The owner of the transfer then ends it with [`Flow::stop`], or gives it up with
    /// [`Flow::reset`]. Returns false if no transfer is running.
    pub fn cancel(&self) -> bool {
        let mut core = self.inner.core.lock();
        let runs = core.numbering.phase() == Phase::Data;
        core.cancelled |= runs;
        drop(core);
        self.wake_waiting();
        runs
    }

    /// Returns true after a cancel, until the transfer has ended.
    pub fn is_cancelled(&self) -> bool {
        self.inner.core.lock().is_cancelled()
    }

    /// Cancels the running transfer and all that would follow it, or withdraws that.
    pub(crate) fn set_halted(&self, halted: bool) {
        let mut core = self.inner.core.lock();
        core.halted = halted;
        core.cancelled &= halted;
        drop(core);
        self.wake_waiting();
    }

    pub(super) fn was_cancelled(&self) -> SendError {
        SendError::Cancelled { flow: self.name().clone() }
    }

    fn wake_waiting(&self) {
        self.inner.changed.notify_all();
    }
}
