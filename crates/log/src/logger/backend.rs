//! The thread that drains the log rings of its process: renders their records, prints them where requested, and
//! publishes them in packets. It releases the room in a ring when the collector has acknowledged its records.
//!
//! ```text
//! rings --pass--> packets --full, old or urgent--> sink --acknowledged--> room in the rings
//! ```
//! A *batch* is the set of records drained between two moments at which no packet was half full. Its room in the rings
//! is released when all its packets are delivered. So a record is in a ring or with a receiver that keeps it, however
//! the process ends. While no receiver is known, batches wait in the rings until a ring is half full; then they go into
//! the overflow files (`drain_batches`).

use std::{
    collections::VecDeque,
    ops::Range,
    sync::{Arc, atomic::Ordering, mpsc::Sender},
    time::{Duration, Instant},
};

use tampu_bus::{Grade, Wake};
use tampu_ring::Drainer;
use tampu_types::{Datum, Level, LogRecord, Time};

use crate::logger::{
    clock::now,
    command_queue::BackendCommand,
    drain_batches::{DrainBatch, DrainBatches},
    fields::LoggerFields,
    local::{Printer, Unprinted},
    outcome::Outcome,
    packet_builder::Sealed,
    packet_sink::{PacketSink, Refused},
    promises::{Promises, answer},
    rate_limits::Notice,
    renderer::{LOSS_MESSAGE, RecordRenderer, RenderOutcome},
    shared::LoggerShared,
    stream::Reach,
};

/// Pause before a packet that could not be sent is retried.
const RETRY: Duration = Duration::from_millis(100);
/// Interval at which the clock is compared with UTC.
const ANCHOR: Duration = Duration::from_secs(1);
/// Bytes of a batch while there are more: a ring holds several batches, so that its room is released in pieces.
const BATCH: u64 = 128 << 10;
/// Records taken from the rings before packets are looked after.
const PASS: usize = 2048;
/// The shortest sleep between passes; it doubles while the rings are empty.
const NAP: Duration = Duration::from_micros(100);
/// Interval at which acknowledgements are checked while batches are under way.
const LOOK: Duration = Duration::from_millis(1);

/// Records still present when the process ended.
#[derive(Debug, Default)]
pub(crate) struct Remainder {
    pub records: u64,
}

struct Backend {
    shared: Arc<LoggerShared>,
    sink: Box<dyn PacketSink>,
    drainer: Drainer,
    renderer: RecordRenderer,
    batches: DrainBatches,
    promises: Promises,
    /// The most that callers wait for whose records are being sent.
    awaited: Option<Grade>,
    /// Packets of the batch that is being drained.
    packets: Vec<(usize, u64)>,
    /// The places of those that keepers get.
    places: Vec<Range<usize>>,
    /// Bytes drained in it.
    drained: u64,
    /// Since when the oldest packet fills.
    filling_since: Option<Instant>,
    /// PacketBuilder with records that should not wait.
    urgent: Vec<usize>,
    /// True if the last pass left records in the rings.
    behind: bool,
    remainder: Remainder,
    /// Records that had been refused when somebody was last told whether everything is kept.
    told_refused: u64,
    /// Number of the last change of settings that it has applied.
    tuned: u64,
    /// Deadline of closing, from the drop of the last handle on.
    give_up: Option<Instant>,
    anchor_at: Instant,
}

/// Works until the last handle has gone.
pub(crate) fn run(shared: Arc<LoggerShared>, mut sink: Box<dyn PacketSink>, drainer: Drainer) -> Remainder {
    sink.attend(shared.clone());
    let settings = &shared.settings;
    let printer = Printer::new(&settings.output, settings.format, shared.life);
    let renderer = RecordRenderer::new(shared.life, &settings.host, &settings.process, settings.packet_size(), drainer.longs())
        .of_this_process(shared.clone(), printer);
    let (overflow, half) = (drainer.overflow_files(), settings.ring_bytes as u64 / 2);
    let mut backend = Backend {
        sink,
        drainer,
        renderer,
        batches: DrainBatches::new(overflow, half),
        promises: Promises::default(),
        awaited: None,
        packets: Vec::new(),
        places: Vec::new(),
        drained: 0,
        filling_since: None,
        urgent: Vec::new(),
        behind: false,
        remainder: Remainder::default(),
        told_refused: 0,
        tuned: u64::MAX,
        give_up: None,
        anchor_at: Instant::now() + ANCHOR,
        shared,
    };
    let mut nap = NAP;
    loop {
        let (commands, closing) = backend.shared.commands.take();
        backend.sink.hear();
        if closing && backend.give_up.is_none() {
            backend.give_up = Some(Instant::now() + backend.shared.settings.close_wait);
        }
        let busy = backend.pass() > 0 || !commands.is_empty();
        backend.handle(commands);
        backend.write(false);
        backend.look_after_packets(closing);
        backend.settle();
        if closing && !busy {
            backend.renderer.limits.tick(now(), true);
            backend.report_suppressed();
            backend.write(true);
            backend.sweep();
            backend.write(false);
            backend.close();
            return backend.remainder;
        }
        // Under load too: threads are started then, and making one ring takes no longer than the thread's own call would.
        let busy = backend.drainer.make_ahead() || busy;
        nap = if busy { NAP } else { longer(nap) };
        if !busy {
            let pause = backend.pause().min(nap);
            backend.sleep(pause);
        }
    }
}

/// Notes the stream of a record that should not wait, and counts a record that could not be rendered; returns whether it could.
#[inline]
fn count(shared: &LoggerShared, renderer: &RecordRenderer, urgent: &mut Vec<usize>, outcome: RenderOutcome) -> bool {
    match outcome {
        RenderOutcome::InStream(stream) => {
            if shared.settings.immediate.passes(renderer.packets.key(stream).level) && !urgent.contains(&stream) {
                urgent.push(stream);
            }
            true
        }
        RenderOutcome::Nothing => true,
        RenderOutcome::Unreadable | RenderOutcome::TooLarge => {
            shared.counters.dropped.fetch_add(1, Ordering::Relaxed);
            false
        }
    }
}

/// Returns the next sleep while the rings are empty. It stops growing where [`Backend::pause`] is shorter: a process
/// may be idle for months.
fn longer(nap: Duration) -> Duration {
    (nap * 2).min(RETRY)
}

impl Backend {
    /// Drains the records in the rings, in the order of time as far as possible; returns the number of entries.
    fn pass(&mut self) -> usize {
        self.retune();
        let overtaken = self.overtake();
        if Instant::now() >= self.anchor_at {
            self.anchor_at = Instant::now() + ANCHOR;
            self.renderer.limits.tick(now(), false);
            // Rings that are not found at this pass are found at the next.
            let _ = self.drainer.refresh();
        } else {
            let _ = self.drainer.find_rings();
        }
        let conversion = self.drainer.conversion();
        let mut stretch = conversion.stretch(u64::MAX);
        let (rings, dictionary) = self.drainer.parts();
        let mut taken = 0;
        while taken < PASS && !self.renderer.packets.are_due() {
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
            while taken < PASS && !self.renderer.packets.are_due() {
                let Some(Ok(entry)) = ring.next_entry_until(second) else { break };
                taken += 1;
                let time = Time(stretch.utc(entry.ticks).unwrap_or_else(|| {
                    stretch = conversion.stretch(entry.ticks);
                    conversion.utc(entry.ticks)
                }));
                let outcome = self.renderer.take(number, &entry, time, dictionary);
                if !count(&self.shared, &self.renderer, &mut self.urgent, outcome) {
                    self.remainder.records += 1;
                }
            }
            self.drained += ring.mark().position - before;
        }
        self.behind = taken >= PASS || self.renderer.packets.are_due();
        self.report_suppressed();
        taken + overtaken
    }

    /// Sends urgent records first when the rings hold more than one pass reads. They do not wait for older records in
    /// the rings of other threads, if they are next in their own.
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
                && self.renderer.level_of(site).is_some_and(|level| immediate.passes(level))
                && let Some(Ok(entry)) = ring.next_entry()
            {
                taken += 1;
                let time = Time(conversion.utc(entry.ticks));
                let outcome = self.renderer.take(number, &entry, time, dictionary);
                if !count(&self.shared, &self.renderer, &mut self.urgent, outcome) {
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
        for stream in std::mem::take(&mut self.urgent) {
            self.renderer.packets.seal(stream);
        }
        self.send_sealed();
    }

    /// Applies settings that have changed since.
    fn retune(&mut self) {
        let tuned = self.shared.tuned.load(Ordering::Acquire);
        if self.tuned != tuned {
            self.tuned = tuned;
            self.renderer.limits.set_limit(self.shared.tunable().max_per_s, now());
            self.renderer.renew_guards();
        }
    }

    /// Reports the records that settings have suppressed.
    fn report_suppressed(&mut self) {
        let suppressed = self.renderer.limits.take_suppressed();
        if suppressed > 0 {
            self.shared.counters.suppressed.fetch_add(suppressed, Ordering::Relaxed);
        }
        for Notice { record, reach } in self.renderer.limits.take_notices() {
            self.log_own(record, reach);
        }
    }

    /// Handles the requests that arrived without a ring.
    fn handle(&mut self, commands: VecDeque<BackendCommand>) {
        for command in commands {
            match command {
                BackendCommand::Record(record, reach) => {
                    let outcome = self.renderer.take_whole(*record, reach);
                    count(&self.shared, &self.renderer, &mut self.urgent, outcome);
                }
                BackendCommand::Flush(timeout, tell) => self.flush(timeout, &tell),
                BackendCommand::Tell(grade, until, tell) => {
                    self.promises.begin(grade, until, tell);
                    self.awaited = self.awaited.max(Some(grade));
                }
                BackendCommand::Refused(tell) => answer(tell, Outcome::Refused),
            }
        }
        if self.awaited.is_some() {
            self.promise();
        }
    }

    /// Writes the local output. Counts the failed records, and reports them as soon as writing succeeds again.
    fn write(&mut self, at_last: bool) {
        let Some(printer) = self.renderer.printer() else { return };
        let unprinted = printer.flush();
        if unprinted > 0 {
            self.shared.counters.unprinted.fetch_add(unprinted, Ordering::Relaxed);
        }
        if let Some(told) = printer.take_unprinted(at_last) {
            self.report_unprinted(&told);
        }
    }

    /// Reports in the log the records that are missing in the local output.
    fn report_unprinted(&mut self, Unprinted { records, to, why }: &Unprinted) {
        let mut record = LogRecord::new(Level::Warning, format!("{records} records could not be written to {to}: {why}"));
        record.data = vec![Datum::new("unprinted", records.to_string())];
        self.log_own(record, Reach::Central);
    }

    /// Sends everything there is.
    fn send_all(&mut self) {
        // A pass takes nothing while much waits to be sent.
        self.send_sealed();
        while self.pass() > 0 {
            self.write(false);
            self.send_sealed();
        }
        self.sweep();
        self.write(false);
    }

    /// Sends everything that callers wait for, and notes what it is.
    fn promise(&mut self) {
        self.send_all();
        self.awaited = None;
        let refused = self.remainder.records > self.told_refused;
        if self.promises.sent(&mut *self.sink, refused) && refused {
            self.told_refused = self.remainder.records;
        }
    }

    fn flush(&mut self, timeout: Duration, tell: &Sender<bool>) {
        let until = Instant::now() + timeout;
        self.send_all();
        let flushed = self.sink.flush(until.saturating_duration_since(Instant::now()));
        self.settle();
        // The asker may have stopped waiting.
        let _ = tell.send(flushed);
    }

    /// Sends packets that are full, urgent or old.
    fn look_after_packets(&mut self, closing: bool) {
        for (level, count) in self.shared.take_unreported() {
            self.report_dropped(level, count);
        }
        self.send_urgent();
        if !self.renderer.packets.is_filling() {
            self.filling_since = None;
        } else if self.filling_since.is_none() {
            self.filling_since = Some(Instant::now());
        }
        let period = self.shared.settings.flush_period;
        let old = !period.is_zero() && self.filling_since.is_some_and(|since| since.elapsed() >= period);
        // If no packet is being filled, a batch ends by itself.
        let much = self.drained >= BATCH || self.renderer.packets.is_full();
        if old || closing || much || (self.filling_since.is_none() && self.drained > 0) {
            self.sweep();
        }
    }

    /// Sends everything there is, which ends a batch.
    fn sweep(&mut self) {
        self.tell_lost();
        self.renderer.packets.seal_all();
        self.send_sealed();
        self.filling_since = None;
        if self.drained > 0 {
            let marks = self.drainer.rings().iter().map(|ring| (ring.number(), ring.mark())).collect();
            let (packets, places) = (std::mem::take(&mut self.packets), std::mem::take(&mut self.places));
            let (longs, bytes) = (self.renderer.taken_long(), self.renderer.packets.take_memory());
            self.batches.push(DrainBatch { marks, packets, longs, bytes, places });
            self.drained = 0;
        } else {
            self.packets.clear();
            self.places.clear();
            let memory = self.renderer.packets.take_memory();
            self.renderer.packets.recycle(memory);
        }
    }

    fn send_sealed(&mut self) {
        while let Some(sealed) = self.renderer.packets.next_sealed() {
            self.send(&sealed);
            // Packets that only attached readers receive are not kept for others.
            if self.renderer.packets.key(sealed.stream).reach == Reach::Central {
                self.places.push(sealed.place);
            }
        }
    }

    fn send(&mut self, sealed: &Sealed) {
        let (key, packet) = (self.renderer.packets.key(sealed.stream), self.renderer.packets.bytes(sealed));
        let urgent = self.shared.settings.immediate.passes(key.level);
        let records = u64::from(sealed.records);
        loop {
            match self.sink.publish(key, urgent, self.awaited, packet) {
                Ok(number) => {
                    self.shared.counters.published.fetch_add(records, Ordering::Relaxed);
                    self.shared.counters.by_level[key.level.ordinal()].fetch_add(records, Ordering::Relaxed);
                    self.shared.counters.bytes.fetch_add(packet.len() as u64, Ordering::Relaxed);
                    match self.packets.iter_mut().find(|(stream, _)| *stream == sealed.stream) {
                        Some((_, last)) => *last = number,
                        None => self.packets.push((sealed.stream, number)),
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
                // Callers continue to fill the rings meanwhile.
                Err(Refused::NotYet(_)) => std::thread::sleep(RETRY),
            }
            // Whoever waits for an answer gets it in time, also while nothing can be sent.
            self.promises.look(&*self.sink, Instant::now(), false);
            self.shared.commands.take_late(Instant::now()).into_iter().for_each(|tell| answer(tell, Outcome::Unconfirmed));
            let closing = || self.shared.commands.is_closing().then(|| Instant::now() + self.shared.settings.close_wait);
            self.give_up = self.give_up.or_else(closing);
        }
    }

    /// Gives back the room of batches that are over.
    fn settle(&mut self) {
        self.batches.settle(&mut self.drainer, &mut self.renderer.packets, &mut *self.sink, self.give_up.is_some());
        self.promises.look(&*self.sink, Instant::now(), false);
    }

    /// Reports the losses at the end of a ring, after which no record made the ring report them.
    fn tell_lost(&mut self) {
        let conversion = self.drainer.conversion();
        let (rings, dictionary) = self.drainer.parts();
        for ring in rings {
            let number = ring.number();
            if let Some(entry) = ring.unreported() {
                let time = Time(conversion.utc(entry.ticks));
                self.renderer.take(number, &entry, time, dictionary);
                self.drained += 1;
            }
        }
    }

    /// Sleeps until a command comes, a ring fills, or a collector has what a caller waits for.
    fn sleep(&self, at_most: Duration) {
        let wakes = self.promises.wakes(&*self.sink);
        let words: Vec<_> = wakes.iter().map(Wake::word).collect();
        self.drainer.sleep_beside(&words, at_most, || !self.shared.commands.is_empty());
    }

    /// Returns the time until there is work, unless the bell rings.
    fn pause(&self) -> Duration {
        let period = self.shared.settings.flush_period;
        let until_old = match self.filling_since {
            _ if period.is_zero() => RETRY,
            Some(since) => period.saturating_sub(since.elapsed()),
            None => period,
        };
        let is_awaited = self.batches.are_awaited() || self.promises.are_open();
        if is_awaited { until_old.min(LOOK) } else { until_old.min(RETRY) }
    }

    /// Says in-band how many records found no room on their way without a ring.
    fn report_dropped(&mut self, level: Level, count: u64) {
        let mut record = LogRecord::new(Level::Warning, format!("{count}{LOSS_MESSAGE} the queue to the bus stayed full"));
        record.data = vec![Datum::new("lost", count.to_string()), Datum::new(level.name(), count.to_string())];
        self.log_own(record, Reach::Central);
    }

    /// Logs a record of the logging itself.
    fn log_own(&mut self, mut record: LogRecord, reach: Reach) {
        let identity = self.shared.own_identity();
        LoggerFields::clone(&identity.fields).complete(&mut record, &self.shared.settings);
        record.id = Some(self.shared.next_id(&identity));
        let outcome = self.renderer.put_whole(&record, reach);
        count(&self.shared, &self.renderer, &mut self.urgent, outcome);
    }

    fn close(&mut self) {
        let left = self.give_up.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        self.sink.flush(left);
        self.settle();
        // Losses are reported early only when all earlier reports are settled.
        self.sweep();
        if !self.batches.are_over() {
            self.sink.flush(self.give_up.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now())));
            self.settle();
        }
        self.promises.look(&*self.sink, Instant::now(), true);
        // A function that was told something may have asked again.
        for command in self.shared.commands.take().0 {
            if let BackendCommand::Tell(.., tell) | BackendCommand::Refused(tell) = command {
                answer(tell, Outcome::Unconfirmed);
            }
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
