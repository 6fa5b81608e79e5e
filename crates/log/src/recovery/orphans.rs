//! Living processes whose rings nobody drains: a child made by `fork`, whose backend stayed behind in its parent; a program that has
//! none, or whose backend has died.
//!
//! Decision: whose lease can be had, although it has logged for a while, is drained from outside, by a worker for each process,
//! which sleeps on that process's own bell. The lease (`flock`) sees to it that there is one drainer at a time, and ends with
//! its holder. The cursor moves when everything before it is acknowledged; so when the worker lets go (because the process
//! wants to drain by itself, or has died, or we end), whoever comes next gets the rest under the same ids.

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
use tampu_ring::{Busy, Cursor, Drainer, What};
use tampu_types::{Datum, Level, LogRecord, SourceName, Time};

use super::{PACKETS, everybody};
use crate::logger::{
    bus_post::BusPost,
    lane::Reach,
    post::{Post, Refused},
    pump::{Pump, Pumped},
};

/// Bytes taken from the rings before they are handed off.
const ROUND: u64 = 256 << 10;
/// How long the bell is waited for while nothing comes.
const NAP: Duration = Duration::from_millis(20);
/// How often it is looked whether everything was acknowledged.
const LOOK: Duration = Duration::from_millis(1);
/// How often the clock is compared with UTC, and looked whether the process lives.
const ANCHOR: Duration = Duration::from_millis(200);
/// How long what is under way may still be waited for when we are to let go.
const GRACE: Duration = Duration::from_millis(300);

/// Why rings are not drained here.
pub(super) enum NotAdopted {
    /// Somebody drains them, or they are gone.
    Drained,
    /// Nobody does, and we cannot.
    Unusable(String),
}

/// A worker that drains one process's rings.
pub(super) struct Foster {
    source: SourceName,
    worker: JoinHandle<bool>,
}

impl Foster {
    /// Begins to drain, if nobody else does.
    pub fn adopt(directory: &Path, participant: &Participant, stop: Arc<AtomicBool>) -> Result<Foster, NotAdopted> {
        let drainer = Drainer::attach(directory).map_err(|busy| match busy {
            Busy::Taken => NotAdopted::Drained,
            // Not complete yet, or gone meanwhile.
            Busy::Place(_) | Busy::Io(_) if !directory.join("source").exists() => NotAdopted::Drained,
            other => NotAdopted::Unusable(other.to_string()),
        })?;
        let Some(source) = drainer.source().cloned() else { return Err(NotAdopted::Drained) };
        let participant = participant.clone();
        let tending = Tending {
            pump: Pump::new(source.incarnation, &source.host, &source.process, PACKETS, drainer.longs()),
            drainer,
            post: BusPost::new(Box::new(move || Ok(participant.clone()))),
            under_way: HashMap::new(),
            stop,
            leave_at: None,
            looked: Instant::now(),
        };
        let name = format!("tampu-orphan-{}", source.incarnation.pid);
        let spawned = std::thread::Builder::new().name(name).spawn(move || tending.run());
        let worker = spawned.map_err(|error| NotAdopted::Unusable(format!("starting a worker: {error}")))?;
        Ok(Foster { source: source.name, worker })
    }

    /// Whose rings they are.
    pub fn source(&self) -> &SourceName {
        &self.source
    }

    /// Whether it has let go.
    pub fn has_ended(&self) -> bool {
        self.worker.is_finished()
    }

    /// Whether it has let go because the process drains by itself.
    pub fn was_wanted_back(self) -> bool {
        // A worker that panicked has said so, and its lease is free.
        self.worker.join().unwrap_or(false)
    }
}

struct Tending {
    drainer: Drainer,
    pump: Pump,
    post: BusPost,
    /// The last packet of each lane that is not acknowledged.
    under_way: HashMap<usize, u64>,
    stop: Arc<AtomicBool>,
    /// When we are to let go, until when what is under way is waited for.
    leave_at: Option<Instant>,
    looked: Instant,
}

impl Tending {
    /// Returns whether the process wants to drain by itself.
    fn run(mut self) -> bool {
        while !self.is_leaving() {
            // What cannot be found now is found the next time.
            let _ = self.drainer.find_rings();
            // While nobody keeps records they stay where they are.
            if !self.post.is_heard(&everybody()) {
                std::thread::sleep(NAP);
            } else if self.take() == 0 {
                self.drainer.sleep(NAP);
            } else if self.hand_off() {
                let marks: Vec<Cursor> = self.drainer.rings().iter().map(|ring| ring.mark()).collect();
                for (ring, mark) in self.drainer.rings().iter_mut().zip(&marks) {
                    ring.commit(mark);
                }
                let files = self.drainer.longs();
                self.pump.taken_long().into_iter().for_each(|(ring, position)| files.remove(ring, position));
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

    /// Makes packets of what is in the rings; returns how many entries.
    fn take(&mut self) -> usize {
        let conversion = self.drainer.conversion();
        let (rings, dictionary) = self.drainer.parts();
        let (mut taken, mut damage) = (0, Vec::new());
        for ring in rings {
            let (number, begin) = (ring.number(), ring.mark().position);
            while ring.mark().position - begin < ROUND {
                let found = match ring.next_entry() {
                    Some(Ok(entry)) => self.pump.take(number, &entry, Time(conversion.utc(entry.ticks)), dictionary),
                    Some(Err(bad)) => {
                        damage.push(format!("ring {number}: {bad}"));
                        break;
                    }
                    None => break,
                };
                taken += 1;
                if matches!(found, Pumped::Unreadable | Pumped::TooLarge) {
                    damage.push(format!("ring {number}: no record can be made of an entry"));
                }
            }
            if let Some(entry) = ring.untold()
                && let What::Lost(_) = entry.what
            {
                self.pump.take(number, &entry, Time(conversion.utc(entry.ticks)), dictionary);
                taken += 1;
            }
        }
        if !damage.is_empty() {
            taken += 1;
            let mut record = LogRecord::new(Level::Warning, format!("{} entries of a log ring cannot be read", damage.len()));
            record.time = crate::logger::clock::now();
            record.data = damage.iter().take(10).map(|damage| Datum::new("damage", damage)).collect();
            self.pump.put(record);
        }
        self.pump.lanes.seal_all();
        taken
    }

    /// Sends what was taken and waits until it is acknowledged; whether it is.
    fn hand_off(&mut self) -> bool {
        while let Some(sealed) = self.pump.lanes.next_sealed() {
            // Only the process itself would have printed it.
            if self.pump.lanes.key(sealed.lane).reach == Reach::Local {
                continue;
            }
            loop {
                match self.post.publish(self.pump.lanes.key(sealed.lane), false, &sealed.bytes) {
                    Ok(number) => {
                        self.under_way.insert(sealed.lane, number);
                        break;
                    }
                    Err(Refused::NotYet(_)) if !self.is_leaving() => std::thread::sleep(NAP),
                    Err(Refused::NotYet(_)) => return false,
                    Err(Refused::Never(why)) => {
                        let records = sealed.records;
                        let mut record = LogRecord::new(Level::Warning, format!("{records} records cannot be published: {why}"));
                        record.time = crate::logger::clock::now();
                        record.data = vec![Datum::new("lost", records.to_string())];
                        self.pump.put(record);
                        self.pump.lanes.seal_all();
                        break;
                    }
                }
            }
            self.pump.lanes.recycle(sealed.bytes);
        }
        loop {
            let (post, lanes) = (&mut self.post, &self.pump.lanes);
            self.under_way.retain(|lane, number| post.delivered(lanes.key(*lane)).is_none_or(|next| next <= *number));
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
