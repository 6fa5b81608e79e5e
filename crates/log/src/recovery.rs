//! Takes over what processes have left in their log rings when they died.
//!
//! The records go out under their own ids, so that a collector which has some of them already keeps each once, and a viewer shows
//! what it remembers to have shown once. Room in a ring is given back, and the directory removed, only when everything is
//! with those who keep it: who recovers may die as well, and another begins where it was.
//!
//! The host's node does this by itself ([`RingKeeper`]), also for processes that live and have nobody who drains, and
//! `tampu log recover` for a directory that is named.

mod keeper;
mod orphans;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tampu_bus::Participant;
use tampu_ring::{RecoverError, recover};
use tampu_types::{Datum, Incarnation, Level, LogRecord, RecordId, SourceName, Time, log_batch::LogBatchView};

pub use keeper::{News, RingKeeper, dead_in};

use crate::logger::{
    bus_post::BusPost,
    clock::now,
    lane::{LaneKey, PacketSize, Reach},
    post::{Post, Refused},
    pump::{Pump, Pumped},
};

/// What was recovered of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Who it was.
    pub source: SourceName,
    /// In which life.
    pub incarnation: Incarnation,
    /// Records that were still in its rings.
    pub records: u64,
    /// Records it had no room for and could no longer tell of; the recovered ones tell of them.
    pub lost: u64,
    /// What could not be read, by file.
    pub damage: Vec<String>,
}

/// Why nothing was recovered. It can be tried again, and begins where it was.
#[derive(Debug, thiserror::Error)]
pub enum NotRecovered {
    /// The rings cannot be had.
    #[error(transparent)]
    Rings(#[from] RecoverError),
    /// No collector, or nobody at all, is there to keep the records.
    #[error("{0}: nobody is there to keep the records; start a hub with a collector")]
    NobodyKeeps(PathBuf),
    /// Not everything was acknowledged in time.
    #[error("{0}: the records were sent and not all acknowledged in time")]
    Unacknowledged(PathBuf),
    /// The bus refused.
    #[error("{0}: {1}")]
    Bus(PathBuf, String),
}

/// As a logger's packets.
const PACKETS: PacketSize = PacketSize { records: 100, bytes: 48 << 10 };
/// The ring in the id of the record that tells of a death: below those of records made by hand, of which a process has few.
const OF_DEATH: u32 = u32::MAX;
/// How long somebody who keeps records may take to be found.
const APPEARANCE: Duration = Duration::from_millis(500);

/// Recovers rings by way of one participant.
pub struct Recoverer {
    post: BusPost,
}

impl Recoverer {
    /// On a bus that is there.
    pub fn new(participant: Participant) -> Recoverer {
        Recoverer { post: BusPost::new(Box::new(move || Ok(participant.clone()))) }
    }

    /// Recovers one process's directory; waits at most this long until everything is acknowledged.
    pub fn recover(&mut self, directory: &Path, timeout: Duration) -> Result<Recovered, NotRecovered> {
        let mut found = recover(directory)?;
        let until = Instant::now() + timeout;
        if !self.somebody_keeps(until) {
            return Err(NotRecovered::NobodyKeeps(directory.to_owned()));
        }
        let (source, conversion) = (&found.source, &found.conversion);
        let mut pump = Pump::new(source.incarnation, &source.host, &source.process, PACKETS, found.longs.clone());
        let mut told = Recovered {
            source: source.name.clone(),
            incarnation: source.incarnation,
            records: 0,
            lost: 0,
            damage: found.damage.iter().map(ToString::to_string).collect(),
        };
        let mut last = HashMap::new();
        for packet in &found.packets {
            match lane_of(packet) {
                Some((key, records)) => {
                    told.records += records;
                    let lane = pump.lanes.find(key);
                    self.publish(&pump, lane, packet, &mut last, directory)?;
                }
                None => told.damage.push("a packet beside the rings is no log batch".to_owned()),
            }
        }
        for ring in &mut found.rings {
            let number = ring.number();
            while let Some(entry) = ring.next_entry() {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(damage) => {
                        told.damage.push(damage.to_string());
                        break;
                    }
                };
                if let tampu_ring::What::Lost(lost) = entry.what {
                    told.lost += lost.total();
                }
                match pump.take(number, &entry, Time(conversion.utc(entry.ticks)), &mut found.definitions) {
                    Pumped::InLane(_) => told.records += 1,
                    Pumped::Nothing | Pumped::Made => {}
                    Pumped::Unreadable | Pumped::TooLarge => {
                        told.damage.push(format!("ring {number}: no record can be made of entry {}", entry.number));
                    }
                }
                self.send(&mut pump, &mut last, directory)?;
            }
        }
        pump.put(obituary(&told));
        pump.lanes.seal_all();
        self.send(&mut pump, &mut last, directory)?;
        self.wait_for(&pump, &last, until).then_some(()).ok_or_else(|| NotRecovered::Unacknowledged(directory.to_owned()))?;
        for ring in &mut found.rings {
            let mark = ring.mark();
            ring.commit(&mark).map_err(RecoverError::from)?;
        }
        let left = found.remove()?;
        told.damage.extend(left.iter().map(|error| format!("not removed: {error}")));
        Ok(told)
    }

    fn somebody_keeps(&mut self, until: Instant) -> bool {
        let until = until.min(Instant::now() + APPEARANCE);
        while !self.post.is_heard(&everybody()) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    fn send(&mut self, pump: &mut Pump, last: &mut HashMap<usize, u64>, directory: &Path) -> Result<(), NotRecovered> {
        while let Some(sealed) = pump.lanes.next_sealed() {
            // Only the process itself would have printed it.
            if pump.lanes.key(sealed.lane).reach == Reach::Local {
                continue;
            }
            self.publish(pump, sealed.lane, &sealed.bytes, last, directory)?;
            pump.lanes.recycle(sealed.bytes);
        }
        Ok(())
    }

    fn publish(
        &mut self,
        pump: &Pump,
        lane: usize,
        packet: &[u8],
        last: &mut HashMap<usize, u64>,
        directory: &Path,
    ) -> Result<(), NotRecovered> {
        let published = self.post.publish(pump.lanes.key(lane), false, packet);
        let number =
            published.map_err(|(Refused::NotYet(why) | Refused::Never(why))| NotRecovered::Bus(directory.to_owned(), why))?;
        last.insert(lane, number);
        Ok(())
    }

    fn wait_for(&mut self, pump: &Pump, last: &HashMap<usize, u64>, until: Instant) -> bool {
        loop {
            let waiting =
                last.iter().any(|(lane, number)| self.post.delivered(pump.lanes.key(*lane)).is_none_or(|next| next <= *number));
            if !waiting {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            self.post.flush(Duration::from_millis(20));
        }
    }
}

/// Where a packet went that its process had made, and how many records it holds.
fn lane_of(packet: &[u8]) -> Option<(LaneKey, u64)> {
    let view = LogBatchView::parse(packet).ok()?;
    let first = view.records().next()?.ok()?;
    let partition = tampu_types::Partition::of(first.origin().audiences());
    Some((LaneKey { level: first.level(), partition, reach: Reach::Central }, view.count() as u64))
}

/// The lane that whoever keeps records reads in any case.
fn everybody() -> LaneKey {
    LaneKey { level: Level::Warning, partition: tampu_types::Partition::everybody(), reach: Reach::Central }
}

/// What the log says of the death. It has an id of the dead, so that it is there once however often it is told.
fn obituary(told: &Recovered) -> LogRecord {
    let text =
        format!("{} died (process {}); {} records were still in its log rings", told.source, told.incarnation.pid, told.records);
    let mut record = LogRecord::new(Level::Warning, text);
    record.time = now();
    record.id = Some(RecordId { incarnation: told.incarnation, ring: OF_DEATH, number: 0 });
    record.data = vec![Datum::new("recovered", told.records.to_string()), Datum::new("lost", told.lost.to_string())];
    record.data.extend(told.damage.iter().take(10).map(|damage| Datum::new("damage", damage)));
    record
}
