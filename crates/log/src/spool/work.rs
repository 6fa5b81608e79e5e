//! The spool's worker: waits, stores log packets while no collector keeps them, and sends them back later.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    fs, io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tampu_bus::{Ack, Event, Gap, Hold, Qos, Reader, ReaderQos, Sample, StreamInfo, Writer};
use tampu_types::{Incarnation, Partition, PartitionFilter, SourceName, Time, TopicFilter, TopicName, log_batch::LogBatchView};

use super::{
    error::SpoolError,
    file::{self, Found},
    frame::{self, Frame, Packet},
    report::{Doing, News},
    state::SpoolShared,
    store::Room,
    topic::{SPOOL_TOPIC, SPOOLED},
};
use crate::collector::topics::LIVE_TOPICS;
use tampu_archive::Fault;

/// Interval at which the worker looks for work.
const LOOK: Duration = Duration::from_millis(50);
/// Bytes that go to the disk at once.
const GROUP: usize = 4 << 20;
/// Bytes that may wait on their way from the bus; beyond them batches are left to the writers' caches.
const QUEUE: usize = 32 << 20;
/// Bytes sent to a collector and not yet acknowledged; fewer than the writer keeps for a late collector.
const WINDOW: u64 = 4 << 20;
/// Interval between two reports of one source's refusals.
const TELL: Duration = Duration::from_secs(10);

pub(super) struct Work {
    shared: Arc<SpoolShared>,
    tell: Box<dyn Fn(News) + Send>,
    /// Refusals that are not yet reported, by source.
    refused: HashMap<SourceName, Refused>,
    /// Losses reported to collectors, in all.
    tallied: u64,
}

#[derive(Debug)]
struct Refused {
    records: u64,
    bytes: u64,
    why: &'static str,
    told: Option<Instant>,
}

/// Samples taken and not yet acknowledged: up to where, by stream.
type Waiting = HashMap<(Incarnation, u32), (Arc<StreamInfo>, u64)>;

impl Work {
    pub(super) fn new(shared: Arc<SpoolShared>, tell: Box<dyn Fn(News) + Send>) -> Work {
        Work { shared, tell, refused: HashMap::new(), tallied: 0 }
    }

    pub(super) fn run(mut self) {
        let faults: Vec<Fault> = self.shared.store().faults.clone();
        faults.into_iter().for_each(|fault| (self.tell)(News::Damaged(fault)));
        while !self.shared.is_stopping() {
            let outcome = if let Some(why) = self.shared.watch.is_away_for(self.shared.options.after) {
                self.spool(why)
            } else if self.shared.watch.is_there() && self.has_something_to_give() {
                self.replay()
            } else {
                Ok(())
            };
            if let Err(error) = outcome {
                (self.tell)(News::Failed(error.to_string()));
                self.pause(self.shared.options.after);
            }
            self.shared.state().doing = Doing::Watching;
            self.tell_refused(true);
            std::thread::sleep(LOOK);
        }
    }

    fn pause(&self, long: Duration) {
        let until = Instant::now() + long;
        while !self.shared.is_stopping() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    fn now(&self) -> Time {
        self.shared.participant.clock().utc()
    }

    // --- writing ---

    fn spool(&mut self, why: String) -> Result<(), SpoolError> {
        let qos = ReaderQos { ack: Ack::Manual, hold: Hold::Interim, queue: QUEUE, ..ReaderQos::default() };
        let mut reader = self.shared.participant.reader(&TopicFilter::new(LIVE_TOPICS)?, &PartitionFilter::All, qos)?;
        self.shared.state().doing = Doing::Spooling;
        (self.tell)(News::Began(why));
        let mut waiting = Waiting::new();
        let mut since: Option<Instant> = None;
        while !self.shared.is_stopping() && !self.shared.watch.is_there() {
            let linger = self.shared.options.linger;
            let gathered = self.shared.store().gathered();
            let left = since.map_or(LOOK, |since| linger.saturating_sub(since.elapsed()));
            if gathered < GROUP && !left.is_zero() {
                match reader.next(left) {
                    Some(Event::Sample(sample)) => self.sample(&sample, &mut waiting),
                    Some(Event::Gap(gap)) => self.gap(&gap, &mut waiting),
                    Some(Event::Source(_)) | None => {}
                }
                if since.is_none() && self.shared.store().has_news() {
                    since = Some(Instant::now());
                }
                continue;
            }
            if self.commit(&reader, &mut waiting) {
                since = None;
            } else {
                self.pause(self.shared.options.retry);
            }
            self.tell_refused(false);
        }
        // A packet that cannot be written is not acknowledged, and stays with its process.
        self.commit(&reader, &mut waiting);
        Ok(())
    }

    fn sample(&mut self, sample: &Sample<'_>, waiting: &mut Waiting) {
        let stream = sample.stream;
        let bytes = match sample.payload.bytes() {
            Some(bytes) => Cow::Borrowed(bytes),
            None => match sample.payload.to_vec() {
                Ok(bytes) => Cow::Owned(bytes),
                // The writer has taken back the lent memory.
                Err(_) => {
                    let (number, StreamInfo { topic, source, .. }) = (sample.sequence, &**stream);
                    let what = format!("sample {number} of {topic} from {source} lost: its writer took it back");
                    return self.miss(stream, number, number + 1, what, waiting);
                }
            },
        };
        let records = LogBatchView::claimed(&bytes).map_or(1, |count| count as u32);
        let packet = Packet {
            received: sample.received,
            records,
            topic: stream.topic.clone(),
            partition: stream.partition.clone(),
            header: sample.header(self.shared.participant.domain()),
            bytes: &bytes,
        };
        let why = match self.shared.store().take(&packet) {
            Room::Free => None,
            Room::SourceFull => Some("it has its share of the spool already ([spool] per_source_mb)"),
            Room::Full => Some("the spool is full ([spool] total_mb)"),
        };
        if let Some(why) = why {
            let fresh = Refused { records: 0, bytes: 0, why, told: None };
            let refused = self.refused.entry(stream.source.clone()).or_insert(fresh);
            refused.records += u64::from(records);
            refused.bytes += bytes.len() as u64;
            refused.why = why;
        }
        waiting.insert((stream.incarnation, stream.stream), (stream.clone(), sample.sequence + 1));
    }

    fn gap(&mut self, gap: &Gap, waiting: &mut Waiting) {
        let stream = &gap.stream;
        match gap.to {
            Some(to) => {
                let count = to - gap.from;
                let what = format!("{count} samples of {} from {} lost: {}", stream.topic, stream.source, gap.why);
                self.miss(stream, gap.from, to, what, waiting);
            }
            None => {
                let (source, from) = (stream.source.clone(), gap.from);
                let what = format!("{source} died; whether it wrote more is not known: {} after {from} samples", stream.topic);
                (self.tell)(News::Missed { source, what });
            }
        }
    }

    fn miss(&mut self, stream: &Arc<StreamInfo>, from: u64, to: u64, what: String, waiting: &mut Waiting) {
        self.shared.store().miss(&stream.source, stream.incarnation, stream.stream, from..to);
        waiting.insert((stream.incarnation, stream.stream), (stream.clone(), to));
        (self.tell)(News::Missed { source: stream.source.clone(), what });
    }

    /// Writes the gathered packets to the disk, then acknowledges them; returns whether the write succeeded.
    fn commit(&mut self, reader: &Reader, waiting: &mut Waiting) -> bool {
        let now = self.now();
        let committed = self.shared.store().commit(now);
        let stuck = committed.as_ref().err().map(|error| describe(error, &self.shared.directory));
        let before = std::mem::replace(&mut self.shared.state().stuck, stuck.clone());
        if before != stuck {
            (self.tell)(News::Stuck(stuck));
        }
        if committed.is_ok() {
            waiting.drain().for_each(|(_, (stream, next))| reader.acknowledge(&stream, next));
        }
        committed.is_ok()
    }

    /// Reports refused packets: the first at once, later ones at intervals.
    fn tell_refused(&mut self, at_last: bool) {
        let mut news = Vec::new();
        self.refused.retain(|source, refused| {
            let due = at_last || refused.told.is_none_or(|told| told.elapsed() >= TELL);
            if due && refused.records > 0 {
                let (records, bytes) = (std::mem::take(&mut refused.records), std::mem::take(&mut refused.bytes));
                news.push(News::Refused { source: source.clone(), records, bytes, why: refused.why });
                refused.told = Some(Instant::now());
                return !at_last;
            }
            !due
        });
        news.into_iter().for_each(|news| (self.tell)(news));
    }

    // --- replay ---

    fn has_something_to_give(&self) -> bool {
        let store = self.shared.store();
        !store.is_empty() || lost_in_all(&store) > self.tallied
    }

    fn replay(&mut self) -> Result<(), SpoolError> {
        self.shared.state().doing = Doing::Replaying;
        let qos = Qos { cache: 64 << 20, keep: 16 << 20, credit: 4 << 20, ..Qos::default() };
        let topic = TopicName::new(SPOOL_TOPIC)?;
        let writer = self.shared.participant.writer(&topic, &Partition::everybody(), SPOOLED, qos)?;
        let mut under_way = UnderWay::default();
        let mut number = 0;
        loop {
            let next = self.shared.store().after(number);
            let Some((found, path, end)) = next else { break };
            number = found;
            if !self.replay_file(&writer, number, path, end, &mut under_way)? {
                return Ok(());
            }
        }
        let tally = self.tally(&writer, &mut under_way);
        while !under_way.sent.is_empty() {
            self.settle(&writer, &mut under_way)?;
            if self.is_to_stop() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.tallied = tally.unwrap_or(self.tallied);
        if under_way.files > 0 {
            (self.tell)(News::Replayed { records: under_way.records, files: under_way.files });
        }
        Ok(())
    }

    fn is_to_stop(&self) -> bool {
        self.shared.is_stopping() || self.shared.watch.is_away_for(self.shared.options.after).is_some()
    }

    /// Sends one file; returns `false` if there is no receiver.
    fn replay_file(
        &mut self,
        writer: &Writer,
        number: u64,
        path: PathBuf,
        end: u64,
        under_way: &mut UnderWay,
    ) -> Result<bool, SpoolError> {
        let failed = |source| SpoolError::File { doing: "reading", path: path.clone(), source };
        let mut bytes = fs::read(&path).map_err(failed)?;
        bytes.truncate(end as usize);
        let begin = file::FILES
            .check_header(&bytes, self.shared.participant.domain())
            .map_err(|why| failed(io::Error::new(io::ErrorKind::InvalidData, why)))?;
        for found in file::walk(&bytes, begin) {
            match found {
                Found::Frame(at, Frame::Packet(packet)) => {
                    let frame = &bytes[at as usize..];
                    let length = frame::FRAMES.check(frame).map_or(0, |whole| whole.bytes.len());
                    while under_way.bytes >= WINDOW || writer.kept().is_none() {
                        self.settle(writer, under_way)?;
                        if self.is_to_stop() {
                            return Ok(false);
                        }
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    match writer.write(&frame[..length]) {
                        Ok(written) => under_way.add(written.sequence, length as u64, u64::from(packet.records)),
                        Err(error) => {
                            let (header, what) =
                                (&packet.header, format!("a packet in {} cannot be sent: {error}", path.display()));
                            self.shared.store().miss(
                                &header.source,
                                header.incarnation,
                                header.stream,
                                header.first..header.next(),
                            );
                            (self.tell)(News::Missed { source: header.source.clone(), what });
                        }
                    }
                }
                Found::Frame(..) => {}
                // The frame was whole when it was written, or when the spool was opened.
                Found::Damage(place, why) => self.damaged(&path, place.start, place.end, &why.to_string()),
                Found::Torn(at) => self.damaged(&path, at, end, "no frame is there"),
            }
        }
        under_way.end_of_file(number);
        self.settle(writer, under_way)?;
        Ok(true)
    }

    fn damaged(&mut self, path: &std::path::Path, from: u64, to: u64, why: &str) {
        let what = format!("damaged ({why}): {} bytes are not served, the rest is", to - from);
        let fault = Fault { file: path.to_owned(), from, to, what };
        let mut store = self.shared.store();
        if !store.faults.contains(&fault) {
            store.faults.push(fault.clone());
            store.set_aside(path);
            drop(store);
            (self.tell)(News::Damaged(fault));
        }
    }

    /// Reports all losses to collectors; returns their total.
    fn tally(&mut self, writer: &Writer, under_way: &mut UnderWay) -> Option<u64> {
        let (json, sum) = {
            let store = self.shared.store();
            (serde_json::to_vec(store.ledger().lost()).ok()?, lost_in_all(&store))
        };
        if sum == self.tallied {
            return None;
        }
        let frame = frame::tally(&json, self.now());
        let written = writer.write(&frame).ok()?;
        under_way.add(written.sequence, frame.len() as u64, 0);
        Some(sum)
    }

    /// Removes the files that are acknowledged by now.
    fn settle(&mut self, writer: &Writer, under_way: &mut UnderWay) -> Result<(), SpoolError> {
        let Some(kept) = writer.kept() else { return Ok(()) };
        while let Some(sent) = under_way.sent.pop_front_if(|sent| sent.sequence < kept) {
            under_way.bytes -= sent.bytes;
            under_way.records += sent.records;
            self.shared.state().replayed += sent.records;
            for number in sent.ends {
                let removed = self.shared.store().remove(number);
                removed.map_err(|source| SpoolError::File {
                    doing: "removing a file of",
                    path: self.shared.directory.clone(),
                    source,
                })?;
                under_way.files += 1;
            }
        }
        if under_way.sent.is_empty() {
            for number in std::mem::take(&mut under_way.empty) {
                let removed = self.shared.store().remove(number);
                removed.map_err(|source| SpoolError::File {
                    doing: "removing a file of",
                    path: self.shared.directory.clone(),
                    source,
                })?;
            }
        }
        Ok(())
    }
}

/// Packets sent to a collector and not yet acknowledged.
#[derive(Debug, Default)]
struct UnderWay {
    sent: VecDeque<Sent>,
    bytes: u64,
    /// Files that may go as soon as nothing is under way.
    empty: Vec<u64>,
    /// Acknowledged records, and files that have gone.
    records: u64,
    files: u64,
}

#[derive(Debug)]
struct Sent {
    sequence: u64,
    bytes: u64,
    records: u64,
    /// Files whose last sample this is.
    ends: Vec<u64>,
}

impl UnderWay {
    fn add(&mut self, sequence: u64, bytes: u64, records: u64) {
        self.bytes += bytes;
        self.sent.push_back(Sent { sequence, bytes, records, ends: Vec::new() });
    }

    fn end_of_file(&mut self, number: u64) {
        match self.sent.back_mut() {
            Some(last) => last.ends.push(number),
            None => self.empty.push(number),
        }
    }
}

fn lost_in_all(store: &super::store::Store) -> u64 {
    store.ledger().lost().values().map(|lost| lost.records + lost.samples).sum()
}

fn describe(error: &io::Error, directory: &std::path::Path) -> String {
    if error.kind() == io::ErrorKind::StorageFull || error.raw_os_error() == Some(28) {
        format!("the disk of {} is full", directory.display())
    } else {
        format!("{}: {error}", directory.display())
    }
}
