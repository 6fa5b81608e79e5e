//! The boards of writers on this host, and waiting at them: what lies there is seen without a message.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use super::{Core, lane::Lane};
use crate::{links::lock, shared::BatchView};

impl Core {
    /// Takes what writers have put on their boards.
    pub fn look(&self) {
        let Some(Some(page)) = self.page.get() else { return };
        for slot in page.news() {
            let lane = lock(&self.attached).get(&slot).and_then(Weak::upgrade);
            if let Some(lane) = lane {
                self.read_board(&lane);
            }
        }
    }

    fn read_board(&self, lane: &Lane) {
        while let Some(batch) = lane.batches().and_then(BatchView::next) {
            self.arrived(batch);
        }
    }

    /// Takes batches from a writer's board from now on, if it can be mapped and its news be heard.
    pub(super) fn attach(&self, lane: &Arc<Lane>) {
        let Some(progress) = &lane.progress else { return };
        if lane.batches().is_some() && !lane.attached.swap(true, Ordering::AcqRel) {
            lock(&self.attached).insert(progress.number, Arc::downgrade(lane));
        }
    }

    /// The application has something to look at.
    pub(super) fn wake(&self) {
        self.gate.open();
        if let Some(Some(page)) = self.page.get() {
            page.ring();
        }
    }

    /// Waits for news: `seen` is how often the gate had been opened when there was none.
    pub(super) fn wait(&self, seen: u64, until: u64) {
        let clock = &self.links.clock;
        let Some(Some(page)) = self.page.get() else { return clock.wait(&self.gate, seen, until) };
        let timeout = Duration::from_nanos(until.saturating_sub(clock.monotonic()));
        page.sleep(timeout, || self.gate.openings() != seen);
    }
}
