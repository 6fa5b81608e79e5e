//! The thread that empties the packets: publishes them, prints what is to be printed, and tells what was lost.

use std::{
    sync::{Arc, atomic::Ordering, mpsc::Sender},
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
        backend.handle(work.packets);
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
    /// Handles parcels: urgent packets, then the others, then who waits for all of them. A level is urgent or not, so the
    /// packets of one lane keep their order; a flush looks into the queue again and so comes after all that was taken before.
    fn handle(&mut self, mut parcels: Vec<(usize, Parcel)>) {
        // The sort is stable.
        parcels.sort_by_key(|(_, parcel)| match parcel {
            Parcel::Packet { urgent, .. } => u8::from(!urgent),
            Parcel::Flush(..) => 2,
        });
        for (size, parcel) in parcels {
            match parcel {
                Parcel::Packet { lane, bytes, records, urgent } => self.send(&lane, bytes, records, urgent),
                Parcel::Flush(timeout, tell) => self.flush(timeout, &tell),
            }
            self.shared.outbox.done(size);
        }
    }

    fn flush(&mut self, timeout: Duration, tell: &Sender<bool>) {
        let until = Instant::now() + timeout;
        self.sweep();
        let flushed = self.post.flush(until.saturating_duration_since(Instant::now()));
        // Whoever asked may have stopped waiting.
        let _ = tell.send(flushed);
    }

    /// Queues what a lane holds. Who has the lane may be waiting for room in the queue, which only this thread can make.
    fn seal(&mut self, lane: &Arc<Lane>) {
        while !self.shared.seal(lane) {
            match self.shared.outbox.take() {
                waiting if waiting.is_empty() => std::thread::yield_now(),
                waiting => self.handle(waiting),
            }
        }
    }

    /// Sends what does not wait for its packet to fill.
    fn send_urgent(&mut self) {
        self.shared.lanes().iter().filter(|lane| lane.take_urgent()).for_each(|lane| self.seal(lane));
        self.handle(self.shared.outbox.take());
    }

    /// Sends everything there is and tells what was lost.
    fn sweep(&mut self) {
        self.shared.settle();
        self.shared.lanes().iter().for_each(|lane| self.seal(lane));
        for voice in self.shared.take_losers() {
            self.tell_lost(&voice);
        }
        self.handle(self.shared.outbox.take());
    }

    fn send(&mut self, lane: &Arc<Lane>, bytes: Vec<u8>, records: u32, urgent: bool) {
        let level = lane.key.level;
        // What a record made by hand calls its logger may be no logger of ours.
        let of_others = self.shared.settings.local.passes(level) || lane.key.reach == Reach::Local;
        if of_others || self.shared.any_prints(level) {
            print::packet(&bytes, |logger| self.shared.prints(logger, level).unwrap_or(of_others));
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
                    counters.by_level[lane.key.level.ordinal()].fetch_add(u64::from(records), Ordering::Relaxed);
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
