//! Announcements of writers on this host, and waiting for them: an announced batch is found without a message.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use super::{Core, Origin, stream_state::StreamState};
use crate::{links::lock, shared::BatchView};

impl Core {
    /// Takes the batches that writers have announced.
    pub fn look(&self) {
        let Some(Some(page)) = self.page.get() else { return };
        for slot in page.news() {
            let stream_state = lock(&self.attached).get(&slot).and_then(Weak::upgrade);
            if let Some(stream_state) = stream_state {
                self.read_board(&stream_state);
            }
        }
    }

    fn read_board(&self, stream_state: &StreamState) {
        while let Some(batch) = stream_state.batches().and_then(BatchView::next) {
            self.arrived(batch, Origin::Participant(stream_state.info.incarnation));
        }
    }

    /// Follows a writer's announcements from now on, if they can be mapped and its notices received.
    pub(super) fn attach(&self, stream_state: &Arc<StreamState>) {
        let Some(progress) = &stream_state.progress else { return };
        if stream_state.batches().is_some() && !stream_state.attached.swap(true, Ordering::AcqRel) {
            lock(&self.attached).insert(progress.number, Arc::downgrade(stream_state));
        }
    }

    /// Wakes the application for new data.
    pub(super) fn wake(&self) {
        self.gate.open();
        if let Some(Some(page)) = self.page.get() {
            page.ring();
        }
    }

    /// Waits for news. `seen` is the gate's number of openings at the last check without news.
    pub(super) fn wait(&self, seen: u64, until: u64) {
        let clock = &self.links.clock;
        let Some(Some(page)) = self.page.get() else { return clock.wait(&self.gate, seen, until) };
        let timeout = Duration::from_nanos(until.saturating_sub(clock.monotonic()));
        page.sleep(timeout, || self.gate.openings() != seen);
    }
}
