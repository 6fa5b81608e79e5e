//! Living processes without a drainer of their rings: a child made by `fork`, whose backend stayed in its parent; a
//! program without a backend, or with a dead one.
//!
//! Decision: if a process has logged for a while and its lease is free, a worker of this process drains it. Each
//! drained process has one worker, which sleeps on that process's own futex word. The lease (`flock`) ensures one
//! drainer at a time and ends with its holder. The cursor moves after everything before it is acknowledged. The worker
//! stops because the process wants to drain itself, because the process has died, or because this process ends. The
//! next drainer then gets the rest under the same ids.

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use tampu_bus::Participant;
use tampu_ring::{Busy, Cursor, Drainer, EntryContent};
use tampu_types::{Datum, Level, LogRecord, SourceName, Time};
use tampu_workers::{OnPanic, WorkerThread};

use super::{PACKETS, everybody};
use crate::logger::{
    bus_sink::BusSink,
    packet_sink::{PacketSink, Refused},
    renderer::{RecordRenderer, RenderOutcome},
    stream::Reach,
};

/// Bytes taken from the rings before they are handed off.
const BATCH: u64 = 256 << 10;
/// Longest wait for the bell while no records arrive.
const NAP: Duration = Duration::from_millis(20);
/// First wait after records. Programs in Java cannot ring, so a busy process is looked at more often than an idle one.
const DOZE: Duration = Duration::from_millis(2);
/// Interval at which acknowledgements are checked.
const LOOK: Duration = Duration::from_millis(1);
/// Interval at which the clock is compared with UTC, and the life of the process is checked.
const ANCHOR: Duration = Duration::from_millis(200);
/// Longest wait for packets under way after the process asked for its rings.
const GRACE: Duration = Duration::from_millis(300);

/// Reason why rings are not drained here.
pub(super) enum NotAdopted {
    /// Somebody drains them, or they are gone.
    Drained,
    /// The process has died: its rings are recovered instead.
    Dead,
    /// There is no drainer, and the rings cannot be drained here.
    Unusable(String),
}

/// A worker that drains one process's rings.
pub(super) struct Foster {
    source: SourceName,
    worker: JoinHandle<bool>,
}

impl Foster {
    /// Begins to drain, if there is no drainer.
    pub fn adopt(directory: &Path, participant: &Participant, stop: Arc<AtomicBool>) -> Result<Foster, NotAdopted> {
        let drainer = Drainer::attach(directory).map_err(|busy| match busy {
            Busy::Taken => NotAdopted::Drained,
            // The directory is not complete yet, or was removed meanwhile.
            Busy::Place(_) | Busy::Io(_) if !directory.join("source").exists() => NotAdopted::Drained,
            other => NotAdopted::Unusable(other.to_string()),
        })?;
        if !drainer.lives() {
            return Err(NotAdopted::Dead);
        }
        let Some(source) = drainer.source().cloned() else { return Err(NotAdopted::Drained) };
        let participant = participant.clone();
        let tending = Tending {
            renderer: RecordRenderer::new(source.incarnation, &source.host, &source.process, PACKETS, drainer.longs()),
            drainer,
            sink: BusSink::new(Box::new(move || Ok(participant.clone()))),
            under_way: HashMap::new(),
            stop,
            leave_at: None,
            looked: Instant::now(),
        };
        let name = format!("tampu-orphan-{}", source.incarnation.pid);
        let spawned = WorkerThread::named(name).counted_as("tampu-orphan").spawn(OnPanic::ReportOnly, move || tending.run());
        let worker = spawned.map_err(|error| NotAdopted::Unusable(format!("starting a worker: {error}")))?;
        Ok(Foster { source: source.name, worker })
    }

    /// Returns the name of the process that owns the rings.
    pub fn source(&self) -> &SourceName {
        &self.source
    }

    /// Returns whether draining has ended.
    pub fn has_ended(&self) -> bool {
        self.worker.is_finished()
    }

    /// Returns whether draining ended because the process does it itself.
    pub fn was_wanted_back(self) -> bool {
        // A worker that panicked has reported it, and its lease is free.
        self.worker.join().unwrap_or(false)
    }
}

struct Tending {
    drainer: Drainer,
    renderer: RecordRenderer,
    sink: BusSink,
    /// The last packet of each stream that is not acknowledged.
    under_way: HashMap<usize, u64>,
    stop: Arc<AtomicBool>,
    /// Deadline for packets under way, once the process has asked for its rings.
    leave_at: Option<Instant>,
    looked: Instant,
}

impl Tending {
    /// Returns whether the process wants to drain itself.
    fn run(mut self) -> bool {
        let mut nap = NAP;
        while !self.is_leaving() {
            // Rings that are not found at this pass are found at the next.
            let _ = self.drainer.find_rings();
            // Records stay in the rings while no reader keeps them.
            if !self.sink.is_heard(&everybody()) {
                std::thread::sleep(NAP);
            } else if self.take() == 0 {
                self.drainer.sleep(nap);
                nap = (nap * 2).min(NAP);
            } else if self.hand_off() {
                nap = DOZE;
                let marks: Vec<Cursor> = self.drainer.rings().iter().map(|ring| ring.mark()).collect();
                for (ring, mark) in self.drainer.rings().iter_mut().zip(&marks) {
                    ring.commit(mark);
                }
                let files = self.drainer.longs();
                self.renderer.taken_long().into_iter().for_each(|(ring, position)| files.remove(ring, position));
            }
        }
        self.drainer.is_wanted()
    }

    fn is_leaving(&mut self) -> bool {
        let mut leaving = self.leave_at.is_some() || self.stop.load(Ordering::Acquire) || self.drainer.is_wanted();
        if !leaving && self.looked.elapsed() >= ANCHOR {
            self.looked = Instant::now();
            leaving = !self.drainer.is_there() || !self.drainer.lives();
            if !leaving {
                let _ = self.drainer.refresh();
            }
        }
        if leaving {
            self.leave_at.get_or_insert_with(|| Instant::now() + GRACE);
        }
        leaving
    }

    /// Makes packets of the records in the rings; returns the number of entries.
    fn take(&mut self) -> usize {
        let conversion = self.drainer.conversion();
        let (rings, dictionary) = self.drainer.parts();
        let (mut taken, mut damage) = (0, Vec::new());
        for ring in rings {
            let (number, begin) = (ring.number(), ring.mark().position);
            while ring.mark().position - begin < BATCH {
                let found = match ring.next_entry() {
                    Some(Ok(entry)) => self.renderer.take(number, &entry, Time(conversion.utc(entry.ticks)), dictionary),
                    Some(Err(bad)) => {
                        damage.push(format!("ring {number}: {bad}"));
                        break;
                    }
                    None => break,
                };
                taken += 1;
                if matches!(found, RenderOutcome::Unreadable | RenderOutcome::TooLarge) {
                    damage.push(format!("ring {number}: unreadable or oversized entry"));
                }
            }
            if let Some(entry) = ring.unreported()
                && let EntryContent::Lost(_) = entry.what
            {
                self.renderer.take(number, &entry, Time(conversion.utc(entry.ticks)), dictionary);
                taken += 1;
            }
        }
        if !damage.is_empty() {
            taken += 1;
            let mut record = LogRecord::new(Level::Warning, format!("{} entries of a log ring cannot be read", damage.len()));
            record.time = crate::logger::clock::now();
            record.data = damage.iter().take(10).map(|damage| Datum::new("damage", damage)).collect();
            self.renderer.put(record);
        }
        self.renderer.packets.seal_all();
        taken
    }

    /// Sends the packets and waits until they are acknowledged; returns whether they are.
    fn hand_off(&mut self) -> bool {
        while let Some(sealed) = self.renderer.packets.next_sealed() {
            // Only the process itself would have printed this record.
            if self.renderer.packets.key(sealed.stream).reach == Reach::Local {
                continue;
            }
            loop {
                let packets = &self.renderer.packets;
                match self.sink.publish(packets.key(sealed.stream), false, None, packets.bytes(&sealed)) {
                    Ok(number) => {
                        self.under_way.insert(sealed.stream, number);
                        break;
                    }
                    Err(Refused::NotYet(_)) if !self.is_leaving() => std::thread::sleep(NAP),
                    Err(Refused::NotYet(_)) => return false,
                    Err(Refused::Never(why)) => {
                        let records = sealed.records;
                        let mut record = LogRecord::new(Level::Warning, format!("{records} records cannot be published: {why}"));
                        record.time = crate::logger::clock::now();
                        record.data = vec![Datum::new("lost", records.to_string())];
                        self.renderer.put(record);
                        self.renderer.packets.seal_all();
                        break;
                    }
                }
            }
        }
        let memory = self.renderer.packets.take_memory();
        self.renderer.packets.recycle(memory);
        loop {
            let (sink, streams) = (&mut self.sink, &self.renderer.packets);
            self.under_way.retain(|stream, number| sink.delivered(streams.key(*stream)).is_none_or(|next| next <= *number));
            if self.under_way.is_empty() {
                return true;
            }
            if self.is_leaving() && self.leave_at.is_some_and(|at| at <= Instant::now()) {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }
}
