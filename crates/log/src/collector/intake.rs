//! Taking batches off the bus, one reader, one worker: append, and acknowledge once committed.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tampu_bus::{Event, Gap, LossReason, Reader, Sample, SourceChange, SourceState, StreamInfo};
use tampu_types::{
    BatchHeader, Incarnation, LogRecord, SourceName, Time,
    log_batch::{TYPE_ID, VERSION, encode_records},
};

use super::{Shared, gaps::Teller};
use crate::archive::{Appended, ArchiveError, Arrival, StreamOffset};

/// How long the worker waits for events while nothing waits to be acknowledged.
const IDLE: Duration = Duration::from_millis(100);
/// The same while something does: how late an acknowledgement may be after its commit.
const BUSY: Duration = Duration::from_millis(2);

pub(super) struct Intake {
    reader: Reader,
    store: Store,
}

/// What is done with events, apart from the reader they are borrowed from.
struct Store {
    shared: Arc<Shared>,
    /// Taken, not yet durable: in the order of their tickets.
    waiting: VecDeque<(u64, Arc<StreamInfo>, u64)>,
    /// Streams whose writer's death left their end unknown; told in one record a writer.
    open_ends: HashMap<Incarnation, (SourceName, Vec<(String, u64)>)>,
}

impl Intake {
    pub(super) fn new(shared: Arc<Shared>, reader: Reader) -> Intake {
        Intake { reader, store: Store { shared, waiting: VecDeque::new(), open_ends: HashMap::new() } }
    }

    pub(super) fn run(mut self) {
        let mut committed = 0;
        while !self.store.is_stopping() {
            let timeout = if self.store.waiting.is_empty() { IDLE } else { BUSY };
            match self.reader.next(timeout) {
                Some(Event::Sample(sample)) => self.store.sample(&sample),
                Some(Event::Gap(gap)) => self.store.gap(gap),
                Some(Event::Source(change)) => self.store.changed(&change),
                None => {}
            }
            let now_committed = self.store.shared.archive.committed();
            if now_committed != committed {
                committed = now_committed;
                self.acknowledge(committed);
            }
        }
        // What is durable by now need not come again.
        self.store.shared.archive.flush(Duration::from_secs(2));
        self.acknowledge(self.store.shared.archive.committed());
    }

    fn acknowledge(&mut self, committed: u64) {
        let mut furthest: HashMap<(Incarnation, u32), (Arc<StreamInfo>, u64)> = HashMap::new();
        while let Some((_, stream, next)) = self.store.waiting.pop_front_if(|(ticket, ..)| *ticket <= committed) {
            furthest.insert((stream.incarnation, stream.stream), (stream, next));
        }
        for (stream, next) in furthest.values() {
            self.reader.acknowledge(stream, *next);
        }
    }
}

impl Store {
    fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Acquire)
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let stream = sample.stream;
        let bytes = match sample.payload.bytes() {
            Some(bytes) => Cow::Borrowed(bytes),
            None => match sample.payload.to_vec() {
                Ok(bytes) => Cow::Owned(bytes),
                // Lent memory that its writer has taken back: the sample is gone as if it had been dropped.
                Err(_) => {
                    let (from, to, why) = (sample.sequence, Some(sample.sequence + 1), LossReason::Dropped);
                    return self.gap(Gap { stream: stream.clone(), from, to, why });
                }
            },
        };
        let header = BatchHeader {
            domain: self.shared.participant.domain().clone(),
            source: stream.source.clone(),
            incarnation: stream.incarnation,
            stream: stream.stream,
            first: sample.sequence,
            count: 1,
            type_id: stream.type_tag.id,
            type_version: stream.type_tag.version,
            acquired: sample.acquired,
            sent: sample.sent,
            clock: sample.clock,
            tai_offset: sample.tai_offset,
            flags: 0,
        };
        let samples = [bytes.as_ref()];
        let arrival = Arrival::of_stream(&header, &samples, sample.received);
        let taken = if stream.type_tag.id == TYPE_ID {
            self.append(&arrival)
        } else {
            Err(format!("its type is {}, a log batch's is {TYPE_ID}", stream.type_tag.id))
        };
        let taken = match taken {
            Ok(appended) => appended,
            Err(why) => {
                self.shared.rejected.put(&header, &bytes, &why);
                self.shared.status.rejected(&stream.source);
                // Set aside, it is done with: it must not come again.
                self.append(&Arrival { samples: &[], ..arrival }).unwrap_or_default()
            }
        };
        if let Some(appended) = taken {
            self.shared.status.took(&stream.source, stream.incarnation, &appended, sample.received);
            self.waiting.push_back((appended.ticket, stream.clone(), sample.sequence + 1));
        }
    }

    /// Appends, waiting for a full disk as long as it takes: meanwhile batches wait in their writers' caches. `None` if the
    /// collector ends first; an error if the batch cannot be read.
    fn append(&self, arrival: &Arrival<'_>) -> Result<Option<Appended>, String> {
        while !self.is_stopping() {
            match self.shared.archive.append(arrival) {
                Ok(appended) => return Ok(Some(appended)),
                Err(ArchiveError::Undecodable { why, .. }) => return Err(why),
                Err(ArchiveError::Closed) => return Ok(None),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn gap(&mut self, gap: Gap) {
        let stream = &gap.stream;
        self.shared.status.lost(&stream.source, gap.to.map(|to| to - gap.from));
        let Some(to) = gap.to else {
            let ends = self.open_ends.entry(stream.incarnation).or_insert_with(|| (stream.source.clone(), Vec::new()));
            ends.1.push((stream.topic.to_string(), gap.from));
            return;
        };
        let record = self.teller().lost(stream, gap.from, to, gap.why);
        let offset = StreamOffset { incarnation: stream.incarnation, stream: stream.stream, next: to };
        if let Some(appended) = self.tell(record, Some(offset)) {
            self.waiting.push_back((appended.ticket, stream.clone(), to));
        }
    }

    fn changed(&mut self, change: &SourceChange) {
        self.shared.status.changed(&change.source, change.incarnation, change.state);
        if matches!(change.state, SourceState::Died | SourceState::Left)
            && let Some((source, ends)) = self.open_ends.remove(&change.incarnation)
        {
            let record = self.teller().open_ends(&source, change.incarnation, &ends);
            self.tell(record, None);
        }
    }

    fn teller(&self) -> Teller<'_> {
        let participant = &self.shared.participant;
        Teller {
            name: participant.source(),
            incarnation: participant.incarnation(),
            number: self.shared.numbers.fetch_add(1, Ordering::Relaxed),
            now: participant.clock().utc(),
        }
    }

    /// Keeps a record of the collector's own, and with it where a stream stands.
    fn tell(&self, record: LogRecord, advances: Option<StreamOffset>) -> Option<Appended> {
        let number = record.id.map_or(0, |id| id.number);
        let now: Time = record.time;
        let sample = encode_records(&[record]).ok()?;
        let participant = &self.shared.participant;
        let discipline = participant.clock().discipline();
        let header = BatchHeader {
            domain: participant.domain().clone(),
            source: participant.source().clone(),
            incarnation: participant.incarnation(),
            // Not one of its streams on the bus: those are numbered from 0.
            stream: u32::MAX,
            first: number,
            count: 1,
            type_id: TYPE_ID,
            type_version: VERSION,
            acquired: now,
            sent: now,
            clock: discipline.state,
            tai_offset: discipline.tai_offset,
            flags: 0,
        };
        let arrival = Arrival { header: &header, samples: &[&sample], received: now, advances };
        self.append(&arrival).ok().flatten()
    }
}
