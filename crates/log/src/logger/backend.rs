//! The thread that empties the packets: publishes them, prints what is to be printed, and tells what was lost.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tampu_types::{Datum, Level, LogRecord, Time};

use crate::logger::{
    lane::{Lane, Reach},
    post::{Post, Refused},
    print,
    shared::{Parcel, Shared},
    voice::Voice,
};

/// How soon a packet that could not go out is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// What was still there when the process ended.
#[derive(Debug, Default)]
pub(crate) struct Remainder {
    pub records: u64,
}

struct Backend<'a> {
    shared: &'a Shared,
    post: Box<dyn Post>,
    remainder: Remainder,
    /// When the last handle was dropped and the close bound began to run.
    give_up: Option<Instant>,
}

/// Works until the last handle has gone.
pub(crate) fn run(shared: &Shared, post: Box<dyn Post>) -> Remainder {
    let mut backend = Backend { shared, post, remainder: Remainder::default(), give_up: None };
    let mut sweep_at: Option<Instant> = None;
    loop {
        let work = shared.outbox.wait(sweep_at);
        if work.closing && backend.give_up.is_none() {
            backend.give_up = Some(Instant::now() + shared.settings.close_wait);
        }
        for (size, parcel) in work.packets {
            backend.handle(parcel);
            shared.outbox.done(size);
        }
        if work.rung {
            backend.send_urgent();
            sweep_at = sweep_at.or(Some(Instant::now() + shared.settings.flush_period));
        }
        if work.closing || sweep_at.is_some_and(|at| at <= Instant::now()) {
            sweep_at = None;
            backend.sweep();
        }
        if work.closing {
            // The report of losses may itself have filled a packet.
            backend.sweep();
            backend.close();
            return backend.remainder;
        }
    }
}

impl Backend<'_> {
    fn handle(&mut self, parcel: Parcel) {
        match parcel {
            Parcel::Packet { lane, bytes, records, urgent } => self.send(&lane, bytes, records, urgent),
            Parcel::Flush(timeout, tell) => {
                let deadline = Instant::now() + timeout;
                self.sweep();
                let flushed = self.post.flush(deadline.saturating_duration_since(Instant::now()));
                // Whoever asked may have stopped waiting.
                let _ = tell.send(flushed);
            }
        }
    }

    /// Sends what does not wait for its packet to fill.
    fn send_urgent(&mut self) {
        for lane in self.shared.lanes().iter().filter(|lane| lane.is_urgent()) {
            self.empty(lane, true);
        }
    }

    /// Sends everything there is and tells what was lost.
    fn sweep(&mut self) {
        self.shared.settle();
        self.shared.lanes().iter().for_each(|lane| self.empty(lane, lane.is_urgent()));
        for voice in self.shared.take_losers() {
            self.tell_lost(&voice);
        }
    }

    fn empty(&mut self, lane: &Arc<Lane>, urgent: bool) {
        // A packet that waits for the queue comes first, then what has gathered since.
        loop {
            let mut packet = lane.lock();
            lane.take_urgent();
            if packet.is_empty() {
                return;
            }
            let (bytes, records) = packet.seal(self.shared.buffer());
            drop(packet);
            self.send(lane, bytes, records, urgent);
        }
    }

    fn send(&mut self, lane: &Arc<Lane>, bytes: Vec<u8>, records: u32, urgent: bool) {
        if self.shared.settings.local.passes(lane.key.level) || lane.key.reach == Reach::Local {
            print::packet(&bytes);
        }
        if lane.key.reach == Reach::Central {
            self.publish(lane, &bytes, records, urgent);
        }
        self.shared.recycle(bytes);
    }

    fn publish(&mut self, lane: &Arc<Lane>, bytes: &[u8], records: u32, urgent: bool) {
        let counters = &self.shared.counters;
        loop {
            match self.post.publish(&lane.key, urgent, bytes) {
                Ok(()) => {
                    counters.published.fetch_add(u64::from(records), Ordering::Relaxed);
                    counters.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    return;
                }
                Err(Refused::Never(why)) => {
                    counters.dropped.fetch_add(u64::from(records), Ordering::Relaxed);
                    self.remainder.records += u64::from(records);
                    eprintln!("tampu-log: {}: {records} records cannot be published: {why}", self.shared.settings.source);
                    return;
                }
                Err(Refused::NotYet(_)) if self.give_up.is_some_and(|at| at <= Instant::now()) => {
                    self.remainder.records += u64::from(records);
                    return;
                }
                // Callers keep filling the queue meanwhile, up to its bound.
                Err(Refused::NotYet(_)) => self.shared.outbox.pause(RETRY),
            }
            self.give_up =
                self.give_up.or(self.shared.outbox.is_closing().then(|| Instant::now() + self.shared.settings.close_wait));
        }
    }

    /// Says in-band how many records a logger has lost, in its own name.
    fn tell_lost(&mut self, voice: &Arc<Voice>) {
        let since = Time(voice.dropped_since.swap(0, Ordering::AcqRel) as i64);
        let mut record = LogRecord::new(Level::Warning, "");
        let mut total = 0;
        for (level, counter) in Level::ALL.iter().zip(&voice.dropped) {
            let lost = counter.swap(0, Ordering::Relaxed);
            if lost > 0 {
                total += lost;
                record.data.push(Datum::new(level.name(), lost.to_string()));
            }
        }
        if total == 0 {
            return;
        }
        record.message = format!("{total} records lost here: the queue to the bus stayed full");
        record.time = since;
        record.data.insert(0, Datum::new("lost", total.to_string()));
        self.shared.speak_for(voice, record);
    }

    fn close(&mut self) {
        let left = self.give_up.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        self.post.flush(left);
    }
}
