//! Recovery of the records that processes left in their log rings when they died.
//!
//! The records are sent under their original ids. A collector that already has some of them keeps each once, and a
//! viewer shows each once as far as it remembers. Room in a ring is released, and the directory removed, only after all
//! records are acknowledged. A recovering process may therefore die as well, and the next one begins at the same
//! position.
//!
//! The host's node recovers rings automatically ([`RingKeeper`]), also of living processes without a drainer. `tampu
//! log recover` does it for a named directory.

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
    bus_sink::BusSink,
    clock::now,
    packet_sink::{PacketSink, Refused},
    renderer::{RecordRenderer, RenderOutcome},
    stream::{PacketSize, Reach, StreamKey},
};

/// Records recovered from one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Name of the process.
    pub source: SourceName,
    /// Incarnation of the process.
    pub incarnation: Incarnation,
    /// Records that were still in its rings.
    pub records: u64,
    /// Records that the ring had no room for and did not report; the recovered records report them.
    pub lost: u64,
    /// Unreadable parts, by file.
    pub damage: Vec<String>,
    /// True if the process had ended in order: its death is not reported.
    pub ended: bool,
}

/// Reason why nothing was recovered. A recovery can be repeated, and begins where the last one stopped.
#[derive(Debug, thiserror::Error)]
pub enum NotRecovered {
    /// The rings cannot be had.
    #[error(transparent)]
    Rings(#[from] RecoverError),
    /// There is no collector, or no receiver at all, to keep the records.
    #[error("{0}: no collector runs that could store the records; start a hub with the role collector")]
    NobodyKeeps(PathBuf),
    /// Not everything was acknowledged in time.
    #[error("{0}: the records were sent and not all acknowledged in time")]
    Unacknowledged(PathBuf),
    /// The bus refused.
    #[error("{0}: {1}")]
    Bus(PathBuf, String),
}

/// Sizes of a logger's packets.
const PACKETS: PacketSize = PacketSize { records: 100, bytes: 48 << 10 };
/// The ring in the id of the record that reports a death: below those of records made by hand, of which a process has
/// few.
const OF_DEATH: u32 = u32::MAX;
/// Longest time to wait until a keeper of records is found.
const APPEARANCE: Duration = Duration::from_millis(500);

/// Recovers rings by way of one participant.
pub struct Recoverer {
    sink: BusSink,
}

impl Recoverer {
    /// Makes a recoverer on a joined bus.
    pub fn new(participant: Participant) -> Recoverer {
        Recoverer { sink: BusSink::new(Box::new(move || Ok(participant.clone()))) }
    }

    /// Recovers one process's directory; waits at most this long until everything is acknowledged.
    pub fn recover(&mut self, directory: &Path, timeout: Duration) -> Result<Recovered, NotRecovered> {
        let mut found = recover(directory)?;
        let until = Instant::now() + timeout;
        if !self.somebody_keeps(until) {
            return Err(NotRecovered::NobodyKeeps(directory.to_owned()));
        }
        let (source, conversion) = (&found.source, &found.conversion);
        let mut renderer = RecordRenderer::new(source.incarnation, &source.host, &source.process, PACKETS, found.longs.clone());
        let mut told = Recovered {
            source: source.name.clone(),
            incarnation: source.incarnation,
            records: 0,
            lost: 0,
            damage: found.damage.iter().map(ToString::to_string).collect(),
            ended: found.ended,
        };
        let mut last = HashMap::new();
        for packet in &found.packets {
            match stream_of(packet) {
                Some((key, records)) => {
                    told.records += records;
                    let stream = renderer.packets.find(key);
                    self.publish(&renderer, stream, packet, &mut last, directory)?;
                }
                None => told.damage.push("invalid log batch in a packet beside the rings".to_owned()),
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
                if let tampu_ring::EntryContent::Lost(lost) = entry.what {
                    told.lost = told.lost.saturating_add(lost.total());
                }
                match renderer.take(number, &entry, Time(conversion.utc(entry.ticks)), &mut found.definitions) {
                    RenderOutcome::InStream(_) => told.records += 1,
                    RenderOutcome::Nothing => {}
                    RenderOutcome::Unreadable | RenderOutcome::TooLarge => {
                        told.damage.push(format!("ring {number}: unreadable or oversized entry {}", entry.number));
                    }
                }
                self.send(&mut renderer, &mut last, directory)?;
            }
        }
        if !told.ended || told.lost > 0 || !told.damage.is_empty() {
            renderer.put(obituary(&told));
        }
        renderer.packets.seal_all();
        self.send(&mut renderer, &mut last, directory)?;
        self.wait_for(&renderer, &last, until).then_some(()).ok_or_else(|| NotRecovered::Unacknowledged(directory.to_owned()))?;
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
        while !self.sink.is_heard(&everybody()) {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        true
    }

    fn send(
        &mut self,
        renderer: &mut RecordRenderer,
        last: &mut HashMap<usize, u64>,
        directory: &Path,
    ) -> Result<(), NotRecovered> {
        while let Some(sealed) = renderer.packets.next_sealed() {
            // Only the process itself would have printed this record.
            if renderer.packets.key(sealed.stream).reach == Reach::Local {
                continue;
            }
            self.publish(renderer, sealed.stream, renderer.packets.bytes(&sealed), last, directory)?;
        }
        let memory = renderer.packets.take_memory();
        renderer.packets.recycle(memory);
        Ok(())
    }

    fn publish(
        &mut self,
        renderer: &RecordRenderer,
        stream: usize,
        packet: &[u8],
        last: &mut HashMap<usize, u64>,
        directory: &Path,
    ) -> Result<(), NotRecovered> {
        let published = self.sink.publish(renderer.packets.key(stream), false, None, packet);
        let number =
            published.map_err(|(Refused::NotYet(why) | Refused::Never(why))| NotRecovered::Bus(directory.to_owned(), why))?;
        last.insert(stream, number);
        Ok(())
    }

    fn wait_for(&mut self, renderer: &RecordRenderer, last: &HashMap<usize, u64>, until: Instant) -> bool {
        loop {
            let waiting = last
                .iter()
                .any(|(stream, number)| self.sink.delivered(renderer.packets.key(*stream)).is_none_or(|next| next <= *number));
            if !waiting {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            self.sink.flush(Duration::from_millis(20));
        }
    }
}

/// Returns the stream of a packet that its process had made, and its number of records.
fn stream_of(packet: &[u8]) -> Option<(StreamKey, u64)> {
    let view = LogBatchView::parse(packet).ok()?;
    let first = view.records().next()?.ok()?;
    let partition = tampu_types::Partition::of(first.origin().audiences());
    Some((StreamKey { level: first.level(), partition, reach: Reach::Central }, view.count() as u64))
}

/// The stream that every keeper reads.
fn everybody() -> StreamKey {
    StreamKey { level: Level::Warning, partition: tampu_types::Partition::everybody(), reach: Reach::Central }
}

/// Makes the record about the death, or about a damaged end. It has an id of the dead process, so that it is stored once
/// however often it is written.
fn obituary(told: &Recovered) -> LogRecord {
    let verb = if told.ended { "ended" } else { "died" };
    let text = format!(
        "{} {verb} (process {}); {} records were still in its log rings",
        told.source, told.incarnation.pid, told.records
    );
    let mut record = LogRecord::new(Level::Warning, text);
    record.time = now();
    record.id = Some(RecordId { incarnation: told.incarnation, ring: OF_DEATH, number: 0 });
    record.data = vec![Datum::new("recovered", told.records.to_string()), Datum::new("lost", told.lost.to_string())];
    record.data.extend(told.damage.iter().take(10).map(|damage| Datum::new("damage", damage)));
    record
}
