//! The thread that drains the log rings of its process: makes records of what they hold, prints what is to be printed, publishes
//! the rest in packets, and gives a ring's room back once what was in it is with the collector.
//!
//! ```text
//! rings --pass--> packets --full, old or urgent--> post --acknowledged--> room in the rings
//! ```
//! A *round* is what was drained between two moments at which no packet was half full. Its room in the rings is given back when
//! all its packets are delivered; so whatever ends the process, a record is in a ring or with somebody who keeps it. Where nobody is
//! there to have packets, rounds wait in the rings too, until a ring is half full; then they go into the refuge (`rounds`).

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering, mpsc::Sender},
    time::{Duration, Instant},
};

use tampu_ring::Drainer;
use tampu_types::{Datum, Level, LogRecord, Time};

use crate::logger::{
    clock::now,
    inlet::Parcel,
    lane::{Reach, Sealed},
    local::{Printer, Unprinted},
    post::{Post, Refused},
    pump::{Pump, Pumped},
    restraint::Notice,
    rounds::{Round, Rounds},
    shared::Shared,
    taken::{judge_made, put_made, take},
    voice::Identity,
};

/// How soon a packet that could not go out is tried again.
const RETRY: Duration = Duration::from_millis(100);
/// How often the clock is compared with UTC.
const ANCHOR: Duration = Duration::from_secs(1);
/// Bytes drained in a round while more is there: several rounds lie in a ring, so that room comes back in pieces.
const ROUND: u64 = 128 << 10;
/// Records taken from the rings before packets are looked after.
const PASS: usize = 2048;
/// The shortest sleep between passes; it doubles while nothing comes.
const NAP: Duration = Duration::from_micros(100);
/// How often delivery is looked for while rounds are under way.
const LOOK: Duration = Duration::from_millis(1);

/// What was still there when the process ended.
#[derive(Debug, Default)]
pub(crate) struct Remainder {
    pub records: u64,
}

struct Backend {
    shared: Arc<Shared>,
    post: Box<dyn Post>,
    drainer: Drainer,
    pump: Pump,
    rounds: Rounds,
    /// Packets of the round that is being drained.
    packets: Vec<(usize, u64)>,
    /// The packets themselves.
    bytes: Vec<Vec<u8>>,
    /// Bytes drained in it.
    drained: u64,
    /// Since when the oldest packet fills.
    filling_since: Option<Instant>,
    /// Lanes with records that should not wait.
    urgent: Vec<usize>,
    /// Whether the last pass left something in the rings.
    behind: bool,
    remainder: Remainder,
    /// Which change of what may change it has seen.
    tuned: u64,
    /// When the last handle was dropped and the close bound began to run.
    give_up: Option<Instant>,
    anchor_at: Instant,
}

/// Works until the last handle has gone.
pub(crate) fn run(shared: Arc<Shared>, mut post: Box<dyn Post>, drainer: Drainer) -> Remainder {
    post.attend(shared.clone());
    let settings = &shared.settings;
    let printer = Printer::new(&settings.output, settings.format, shared.life);
    let own = shared.levels(settings.source.as_str());
    let pump =
        Pump::new(shared.life, &settings.host, &settings.process, settings.packet_size(), drainer.longs()).printing(printer, own);
    let (refuge, half) = (drainer.refuge(), settings.ring_bytes as u64 / 2);
    let mut backend = Backend {
        post,
        drainer,
        pump,
        rounds: Rounds::new(refuge, half),
        packets: Vec::new(),
        bytes: Vec::new(),
        drained: 0,
        filling_since: None,
        urgent: Vec::new(),
        behind: false,
        remainder: Remainder::default(),
        tuned: u64::MAX,
        give_up: None,
        anchor_at: Instant::now() + ANCHOR,
        shared,
    };
    let mut nap = NAP;
    loop {
        let (parcels, closing) = backend.shared.inlet.take();
        backend.post.hear();
        if closing && backend.give_up.is_none() {
            backend.give_up = Some(Instant::now() + backend.shared.settings.close_wait);
        }
        let busy = backend.pass() > 0 || !parcels.is_empty();
        backend.handle(parcels);
        backend.write(false);
        backend.look_after_packets(closing);
        backend.settle();
        if closing && !busy {
            backend.pump.restraint.tick(now(), true);
            backend.tell_restrained();
            backend.write(true);
            backend.sweep();
            backend.write(false);
            backend.close();
            return backend.remainder;
        }
        // Under load too: that is when threads are started, and one ring takes no longer than the thread's call would have.
        let busy = backend.drainer.stock_up() || busy;
        nap = if busy { NAP } else { longer(nap) };
        if !busy {
            let pause = backend.pause().min(nap);
            backend.drainer.sleep(pause);
        }
    }
}

/// The sleep after this one while nothing comes. It stops growing where [`Backend::pause`] is the shorter one anyway: a process may
/// be idle for months.
fn longer(nap: Duration) -> Duration {
    (nap * 2).min(RETRY)
}

impl Backend {
    /// Takes from the rings what is there, in the order of time as far as it goes; returns how many entries.
    fn pass(&mut self) -> usize {
        self.retune();
        let overtaken = self.overtake();
        if Instant::now() >= self.anchor_at {
            self.anchor_at = Instant::now() + ANCHOR;
            self.pump.restraint.tick(now(), false);
            // What cannot be found now is found the next time.
            let _ = self.drainer.refresh();
        } else {
            let _ = self.drainer.find_rings();
        }
        let conversion = self.drainer.conversion();
        let mut stretch = conversion.stretch(u64::MAX);
        let (rings, dictionary) = self.drainer.parts();
        let mut taken = 0;
        while taken < PASS {
            let mut first: Option<(u64, usize)> = None;
            let mut second = u64::MAX;
            for (index, ring) in rings.iter_mut().enumerate() {
                let Some(ticks) = ring.peek() else { continue };
                match first {
                    Some((lowest, _)) if ticks >= lowest => second = second.min(ticks),
                    _ => {
                        second = first.map_or(second, |(lowest, _)| second.min(lowest));
                        first = Some((ticks, index));
                    }
                }
            }
            let Some((_, index)) = first else { break };
            let ring = &mut rings[index];
            let before = ring.mark().position;
            let number = ring.number();
            while taken < PASS {
                let Some(Ok(entry)) = ring.next_entry_until(second) else { break };
                taken += 1;
                let time = Time(stretch.utc(entry.ticks).unwrap_or_else(|| {
                    stretch = conversion.stretch(entry.ticks);
                    conversion.utc(entry.ticks)
                }));
                if !take(&self.shared, &mut self.pump, &mut self.urgent, (number, &entry), time, dictionary) {
                    self.remainder.records += 1;
                }
            }
            self.drained += ring.mark().position - before;
        }
        self.behind = taken >= PASS;
        self.tell_restrained();
        taken + overtaken
    }

    /// Where more is in the rings than a pass takes, urgent records do not wait for what is older in the rings of others: they go out
    /// before it, as far as they are next in their own.
    fn overtake(&mut self) -> usize {
        if !self.behind {
            return 0;
        }
        let conversion = self.drainer.conversion();
        let immediate = self.shared.settings.immediate;
        let (rings, dictionary) = self.drainer.parts();
        let mut taken = 0;
        for ring in rings {
            let (before, number) = (ring.mark().position, ring.number());
            while let Some(site) = ring.peek_site()
                && taken < PASS
                && self.pump.level_of(site).is_some_and(|level| immediate.passes(level))
                && let Some(Ok(entry)) = ring.next_entry()
            {
                taken += 1;
                let time = Time(conversion.utc(entry.ticks));
                if !take(&self.shared, &mut self.pump, &mut self.urgent, (number, &entry), time, dictionary) {
                    self.remainder.records += 1;
                }
            }
            self.drained += ring.mark().position - before;
        }
        if taken > 0 {
            self.send_urgent();
        }
        taken
    }

    fn send_urgent(&mut self) {
        for lane in std::mem::take(&mut self.urgent) {
            self.pump.lanes.seal(lane);
        }
        self.send_sealed();
    }

    /// Goes by what has been changed since.
    fn retune(&mut self) {
        let tuned = self.shared.tuned.load(Ordering::Acquire);
        if self.tuned != tuned {
            self.tuned = tuned;
            self.pump.restraint.set_limit(self.shared.tunable().max_per_s, now());
            self.pump.renew_guards();
        }
    }

    /// Says what settings have kept out.
    fn tell_restrained(&mut self) {
        let suppressed = self.pump.restraint.take_suppressed();
        if suppressed > 0 {
            self.shared.counters.suppressed.fetch_add(suppressed, Ordering::Relaxed);
        }
        for Notice { record, reach } in self.pump.restraint.take_notices() {
            self.say(record, reach);
        }
    }

    /// Takes what came without a ring.
    fn handle(&mut self, parcels: VecDeque<Parcel>) {
        for parcel in parcels {
            match parcel {
                Parcel::Record(record, reach) => {
                    if let Some(record) = judge_made(&self.shared, &mut self.pump, *record, reach) {
                        self.take_record(&record, reach);
                    }
                }
                Parcel::Flush(timeout, tell) => self.flush(timeout, &tell, Self::deliver),
                Parcel::Keep(timeout, tell) => self.flush(timeout, &tell, Self::keep),
            }
        }
    }

    /// Takes a record made by hand.
    fn take_record(&mut self, record: &LogRecord, reach: Reach) {
        match put_made(&self.shared, &mut self.pump, record, reach) {
            Pumped::InLane(lane) if self.shared.settings.immediate.passes(record.level) => self.urgent.push(lane),
            Pumped::InLane(_) | Pumped::Nothing | Pumped::Made => {}
            Pumped::Unreadable | Pumped::TooLarge => {
                self.shared.counters.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Writes what was printed. What could not be is counted, and told once it can be again.
    fn write(&mut self, at_last: bool) {
        let Some(printer) = self.pump.printer() else { return };
        let unprinted = printer.flush();
        if unprinted > 0 {
            self.shared.counters.unprinted.fetch_add(unprinted, Ordering::Relaxed);
        }
        if let Some(told) = printer.take_unprinted(at_last) {
            self.tell_unprinted(&told);
        }
    }

    /// Says in the log what is missing in the local output.
    fn tell_unprinted(&mut self, Unprinted { records, to, why }: &Unprinted) {
        let mut record = LogRecord::new(Level::Warning, format!("{records} records could not be written to {to}: {why}"));
        record.data = vec![Datum::new("unprinted", records.to_string())];
        self.say(record, Reach::Central);
    }

    fn deliver(&mut self, timeout: Duration) -> bool {
        self.post.flush(timeout)
    }

    fn keep(&mut self, timeout: Duration) -> bool {
        self.post.keep(timeout)
    }

    fn flush(&mut self, timeout: Duration, tell: &Sender<bool>, wait: fn(&mut Backend, Duration) -> bool) {
        let until = Instant::now() + timeout;
        while self.pass() > 0 {
            self.write(false);
            self.send_sealed();
        }
        self.sweep();
        self.write(false);
        let flushed = wait(self, until.saturating_duration_since(Instant::now()));
        self.settle();
        // Whoever asked may have stopped waiting.
        let _ = tell.send(flushed);
    }

    /// Sends packets that are full, urgent or old.
    fn look_after_packets(&mut self, closing: bool) {
        for (level, count) in self.shared.take_untold() {
            self.tell_untold(level, count);
        }
        self.send_urgent();
        if !self.pump.lanes.is_filling() {
            self.filling_since = None;
        } else if self.filling_since.is_none() {
            self.filling_since = Some(Instant::now());
        }
        let period = self.shared.settings.flush_period;
        let old = !period.is_zero() && self.filling_since.is_some_and(|since| since.elapsed() >= period);
        // Where nothing is filling, a round ends by itself.
        if old || closing || self.drained >= ROUND || (self.filling_since.is_none() && self.drained > 0) {
            self.sweep();
        }
    }

    /// Sends everything there is, which ends a round.
    fn sweep(&mut self) {
        self.tell_lost();
        self.pump.lanes.seal_all();
        self.send_sealed();
        self.filling_since = None;
        if self.drained > 0 {
            let marks = self.drainer.rings().iter().map(|ring| (ring.number(), ring.mark())).collect();
            let (packets, bytes) = (std::mem::take(&mut self.packets), std::mem::take(&mut self.bytes));
            self.rounds.push(Round { marks, packets, longs: self.pump.taken_long(), bytes });
            self.drained = 0;
        } else {
            self.packets.clear();
            self.bytes.drain(..).for_each(|buffer| self.pump.lanes.recycle(buffer));
        }
    }

    fn send_sealed(&mut self) {
        while let Some(sealed) = self.pump.lanes.next_sealed() {
            self.send(&sealed);
            // What only attached readers have is nothing to be kept for others.
            if self.pump.lanes.key(sealed.lane).reach == Reach::Central {
                self.bytes.push(sealed.bytes);
            } else {
                self.pump.lanes.recycle(sealed.bytes);
            }
        }
    }

    fn send(&mut self, sealed: &Sealed) {
        let key = self.pump.lanes.key(sealed.lane).clone();
        let urgent = self.shared.settings.immediate.passes(key.level);
        let records = u64::from(sealed.records);
        loop {
            match self.post.publish(&key, urgent, &sealed.bytes) {
                Ok(number) => {
                    self.shared.counters.published.fetch_add(records, Ordering::Relaxed);
                    self.shared.counters.by_level[key.level.ordinal()].fetch_add(records, Ordering::Relaxed);
                    self.shared.counters.bytes.fetch_add(sealed.bytes.len() as u64, Ordering::Relaxed);
                    match self.packets.iter_mut().find(|(lane, _)| *lane == sealed.lane) {
                        Some((_, last)) => *last = number,
                        None => self.packets.push((sealed.lane, number)),
                    }
                    return;
                }
                Err(Refused::Never(why)) => {
                    self.shared.counters.dropped.fetch_add(records, Ordering::Relaxed);
                    self.remainder.records += records;
                    eprintln!("tampu-log: {}: {records} records cannot be published: {why}", self.shared.settings.source);
                    return;
                }
                Err(Refused::NotYet(_)) if self.give_up.is_some_and(|at| at <= Instant::now()) => {
                    self.remainder.records += records;
                    return;
                }
                // Callers keep filling the rings meanwhile.
                Err(Refused::NotYet(_)) => std::thread::sleep(RETRY),
            }
            let closing = || self.shared.inlet.is_closing().then(|| Instant::now() + self.shared.settings.close_wait);
            self.give_up = self.give_up.or_else(closing);
        }
    }

    /// Gives back the room of rounds that are over.
    fn settle(&mut self) {
        self.rounds.settle(&mut self.drainer, &mut self.pump.lanes, &mut *self.post, self.give_up.is_some());
    }

    /// Says what was lost at the end of a ring, where no later record has made the ring say it.
    fn tell_lost(&mut self) {
        let conversion = self.drainer.conversion();
        let (rings, dictionary) = self.drainer.parts();
        for ring in rings {
            let number = ring.number();
            if let Some(entry) = ring.untold() {
                let time = Time(conversion.utc(entry.ticks));
                self.pump.take(number, &entry, time, dictionary);
                self.drained += 1;
            }
        }
    }

    /// How long there is nothing to do, unless the bell rings.
    fn pause(&self) -> Duration {
        let period = self.shared.settings.flush_period;
        let until_old = match self.filling_since {
            _ if period.is_zero() => RETRY,
            Some(since) => period.saturating_sub(since.elapsed()),
            None => period,
        };
        if !self.rounds.are_awaited() { until_old.min(RETRY) } else { until_old.min(LOOK) }
    }

    /// Says in-band how many records found no room on their way without a ring.
    fn tell_untold(&mut self, level: Level, count: u64) {
        let mut record = LogRecord::new(Level::Warning, format!("{count} records lost here: the queue to the bus stayed full"));
        record.data = vec![Datum::new("lost", count.to_string()), Datum::new(level.name(), count.to_string())];
        self.say(record, Reach::Central);
    }

    /// Logs what the logging itself has to say.
    fn say(&mut self, mut record: LogRecord, reach: Reach) {
        let voice = self.shared.own_voice();
        Identity::clone(&voice.identity).complete(&mut record, &self.shared.settings);
        record.id = Some(self.shared.next_id(&voice));
        self.take_record(&record, reach);
    }

    fn close(&mut self) {
        let left = self.give_up.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        self.post.flush(left);
        self.settle();
        // Losses are told early only when those told before are settled.
        self.sweep();
        if !self.rounds.are_over() {
            self.post.flush(self.give_up.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now())));
            self.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn naps_of_an_idle_process_grow_and_stay_bounded() {
        assert_eq!(longer(NAP), 2 * NAP);
        assert_eq!((0..1000).fold(NAP, |nap, _| longer(nap)), RETRY);
    }
}
