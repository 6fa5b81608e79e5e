//! Intake of batches from the bus by one reader and one worker: append to the archive, acknowledge after the commit.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use tampu_bus::{BatchEvent, Gap, Reader, SourceChange, SourceState, StreamInfo, access::Denied};
use tampu_types::{
    BatchHeader, ClockState, Incarnation, LogRecord, SourceName, Time,
    log_batch::{TYPE_ID, VERSION, encode_records},
};

use super::{
    dropped::{Dropped, Ledger},
    gaps::Teller,
    quota::{Meters, Packet},
    router::Router,
    state::CollectorShared,
};
use crate::spool::{
    frame::{self, Frame},
    ledger::Lost,
};
use tampu_archive::{Appended, ArchiveError, Arrival, StreamOffset};

mod packets;

/// Time for which an answer of the access rules holds.
const ASKED_FOR: Duration = Duration::from_secs(1);
/// Shortest time between two records about messages in the name of other hosts' processes.
const FORGED_EVERY: Duration = Duration::from_secs(60);
/// Longest wait of the worker for events; a commit wakes it.
const IDLE: Duration = Duration::from_millis(100);

pub(super) struct Intake {
    reader: Reader,
    store: Store,
}

/// A batch that is taken: up to where its stream is durable once its ticket is.
struct Waiting {
    ticket: u64,
    stream: Arc<StreamInfo>,
    next: u64,
    since: Instant,
}

/// Handling of events, apart from the reader that they are borrowed from.
struct Store {
    shared: Arc<CollectorShared>,
    /// Taken, not yet durable: in the order of their tickets.
    waiting: VecDeque<Waiting>,
    /// Second destination of records, and the packets that go there once their ticket is committed.
    router: Option<Arc<dyn Router>>,
    to_route: VecDeque<(u64, Vec<u8>)>,
    /// Streams whose end is unknown because their writer died; reported in one record a writer.
    open_ends: HashMap<Incarnation, (SourceName, Vec<(String, u64)>)>,
    /// Decision of the access hook about each stream; it is called once a stream, not once a packet.
    asked: HashMap<(Incarnation, u32), (Instant, Result<(), Denied>)>,
    /// Consumption of each source, compared with its quota.
    meters: Meters,
    /// Number of the quotas' changes that the meters know.
    quota_changes: u64,
    /// Dropped packets that are not yet logged.
    ledger: Ledger,
    /// Refused messages in the name of other hosts' processes that are logged, and the time of the last record.
    forged: (u64, Option<Instant>),
}

impl Intake {
    pub(super) fn new(shared: Arc<CollectorShared>, reader: Reader, router: Option<Arc<dyn Router>>) -> Intake {
        Intake { reader, store: Store::new(shared, router) }
    }

    pub(super) fn run(mut self) {
        let mut committed = 0;
        let alarm = self.reader.alarm();
        self.store.shared.archive.on_commit(Box::new(move |_| alarm.ring()));
        while !self.store.is_stopping() {
            let (taken, soon) = match self.reader.next_batch(IDLE) {
                Some(BatchEvent::Batch(batch)) => (self.store.batch(&batch), batch.soon()),
                Some(BatchEvent::Sample(sample)) => (self.store.sample(&sample), sample.soon),
                Some(BatchEvent::Gap(gap)) => {
                    self.store.gap(gap);
                    (false, false)
                }
                Some(BatchEvent::Source(change)) => {
                    self.store.changed(&change);
                    (false, false)
                }
                None => (false, false),
            };
            if taken {
                if soon {
                    self.store.shared.archive.hurry();
                }
                self.reader.note_received();
            }
            let now_committed = self.store.shared.archive.committed();
            if now_committed != committed {
                committed = now_committed;
                self.acknowledge(committed);
            }
            self.store.tell_dropped();
            self.store.tell_forged();
        }
        self.store.tell_dropped_last();
        // Samples that are durable at the end need not be sent again.
        self.store.shared.archive.flush(Duration::from_secs(2));
        self.acknowledge(self.store.shared.archive.committed());
    }

    fn acknowledge(&mut self, committed: u64) {
        let mut furthest: HashMap<(Incarnation, u32), (Arc<StreamInfo>, u64)> = HashMap::new();
        let now = Instant::now();
        let before = self.store.waiting.len();
        while let Some(Waiting { stream, next, since, .. }) = self.store.waiting.pop_front_if(|taken| taken.ticket <= committed) {
            self.store.shared.latency.add(now.saturating_duration_since(since));
            furthest.insert((stream.incarnation, stream.stream), (stream, next));
        }
        self.store.shared.waiting.fetch_sub((before - self.store.waiting.len()) as u64, Ordering::Relaxed);
        for (stream, next) in furthest.values() {
            self.reader.acknowledge(stream, *next);
        }
        self.store.route(committed);
    }
}

impl Store {
    fn new(shared: Arc<CollectorShared>, router: Option<Arc<dyn Router>>) -> Store {
        let quotas = (**shared.quotas.read()).clone();
        Store {
            meters: Meters::new(quotas),
            quota_changes: 0,
            shared,
            waiting: VecDeque::new(),
            router,
            to_route: VecDeque::new(),
            open_ends: HashMap::new(),
            asked: HashMap::new(),
            ledger: Ledger::default(),
            forged: (0, None),
        }
    }

    fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Acquire)
    }

    /// Uses the quotas in force, if they have changed.
    fn follow_quotas(&mut self) {
        let changes = self.shared.quota_changes.load(Ordering::Acquire);
        if changes != self.quota_changes {
            self.quota_changes = changes;
            let quotas = self.shared.quotas.read().clone();
            self.meters.set((*quotas).clone());
        }
    }

    /// Returns true if records go elsewhere too.
    fn has_routes(&self) -> bool {
        self.router.as_ref().is_some_and(|router| !router.is_idle())
    }

    /// Stores a sample of a spool: a packet as if it had arrived directly, except that the spool's stream advances.
    fn spooled(&mut self, stream: &Arc<StreamInfo>, number: u64, bytes: &[u8], received: Time) {
        let offset = StreamOffset { incarnation: stream.incarnation, stream: stream.stream, next: number + 1 };
        let appended = match frame::read(bytes) {
            Ok((Frame::Packet(packet), _)) => self.spooled_packet(&packet, stream, offset, received),
            Ok((Frame::Tally(json), _)) => {
                let tally = serde_json::from_slice::<BTreeMap<String, Lost>>(json).unwrap_or_default();
                for (source, records) in self.shared.spooled.tally(stream.incarnation.boot, tally) {
                    if let Ok(source) = SourceName::new(source) {
                        self.shared.status.lost_in_spool(&source, records);
                    }
                }
                self.advance(offset, received)
            }
            Ok((Frame::Unknown(_), _)) => self.advance(offset, received),
            Err(why) => {
                self.shared.status.rejected(&stream.source);
                self.ledger.add(&stream.source, format!("a spool's frame cannot be read: {why}"), 1, bytes.len() as u64);
                self.advance(offset, received)
            }
        };
        if let Some(appended) = appended {
            self.wait_for(&appended, stream, number + 1);
        }
    }

    fn spooled_packet(
        &mut self,
        spooled: &frame::Packet<'_>,
        stream: &StreamInfo,
        offset: StreamOffset,
        received: Time,
    ) -> Option<Appended> {
        let frame::Packet { header, bytes, topic, records, .. } = spooled;
        let source = &header.source;
        if !self.shared.participant.speaks_for(stream.host.as_deref(), header.incarnation) {
            let host = stream.host.as_deref().unwrap_or_default().escape_debug().to_string();
            let why = format!("the spool of the host '{host}' names a process of another host");
            self.shared.status.refused(source, u64::from(*records), &why);
            self.ledger.add(&stream.source, why, u64::from(*records), bytes.len() as u64);
            return self.advance(offset, received);
        }
        self.shared.spooled.came(&self.shared.participant, header.incarnation, header.stream, header.first..header.next());
        if let Err(denied) = self.shared.may_write(stream.host.as_deref(), topic, source) {
            let why = denied.to_string();
            self.shared.status.refused(source, u64::from(*records), &why);
            self.ledger.add(source, why, u64::from(*records), bytes.len() as u64);
            return self.advance(offset, received);
        }
        let (incarnation, stream) = (header.incarnation, header.stream);
        let packet = Packet { source, incarnation, stream, topic, sent: header.sent, received: None };
        self.follow_quotas();
        if let Err(over) = self.meters.admit(&packet) {
            self.shared.status.over_quota(source, u64::from(*records));
            self.ledger.add(source, over.to_string(), u64::from(*records), bytes.len() as u64);
            return self.advance(offset, received);
        }
        let sifted = self.router.as_ref().and_then(|router| router.sift(bytes));
        let kept = match &sifted {
            Some(sifted) => sifted.kept.as_deref(),
            None => Some(*bytes),
        };
        let arrival = Arrival { header, samples: kept.as_slice(), received, advances: Some(offset) };
        let appended = match self.append(&arrival) {
            Ok(appended) => appended?,
            Err(why) => {
                self.shared.rejected.put(header, bytes, &why);
                self.shared.status.rejected(source);
                return self.advance(offset, received);
            }
        };
        // Duplicates have been charged before.
        self.meters.charge(&packet, appended.records, if appended.records > 0 { bytes.len() as u64 } else { 0 });
        self.shared.status.spooled(source, header.incarnation, &appended, bytes.len() as u64, spooled.received);
        self.note_losses(source, topic, bytes, &appended);
        if let (true, Some(kept), true) = (self.has_routes(), kept, appended.records > 0) {
            self.to_route.push_back((appended.ticket, kept.to_vec()));
        }
        if let (Some(router), Some(sifted)) = (&self.router, sifted) {
            self.shared.status.left_out(source, sifted.records);
            router.route(sifted.left_out);
        }
        Some(appended)
    }

    /// A stream moves on without anything to keep.
    fn advance(&self, offset: StreamOffset, received: Time) -> Option<Appended> {
        let participant = &self.shared.participant;
        let header = BatchHeader {
            domain: participant.domain().clone(),
            source: participant.source().clone(),
            incarnation: offset.incarnation,
            stream: offset.stream,
            first: offset.next,
            count: 0,
            type_id: TYPE_ID,
            type_version: VERSION,
            acquired: received,
            sent: received,
            clock: ClockState::Unknown,
            tai_offset: 0,
            flags: 0,
        };
        self.append(&Arrival { header: &header, samples: &[], received, advances: Some(offset) }).ok().flatten()
    }

    /// Routes the packets that have become durable.
    fn route(&mut self, committed: u64) {
        let Some(router) = &self.router else { return };
        while let Some((_, packet)) = self.to_route.pop_front_if(|(ticket, _)| *ticket <= committed) {
            router.route(packet);
        }
    }

    fn wait_for(&mut self, appended: &Appended, stream: &Arc<StreamInfo>, next: u64) {
        self.shared.waiting.fetch_add(1, Ordering::Relaxed);
        self.waiting.push_back(Waiting { ticket: appended.ticket, stream: stream.clone(), next, since: Instant::now() });
    }

    fn may_write(&mut self, stream: &StreamInfo) -> Result<(), Denied> {
        let asked = self.asked.len();
        let ask = || self.shared.may_write(stream.host.as_deref(), &stream.topic, &stream.source);
        let answer = self.asked.entry((stream.incarnation, stream.stream)).or_insert_with(|| (Instant::now(), ask()));
        // The rules may have changed.
        if answer.0.elapsed() >= ASKED_FOR {
            *answer = (Instant::now(), ask());
        }
        let answer = answer.1.clone();
        self.shared.streams.fetch_add((self.asked.len() - asked) as u64, Ordering::Relaxed);
        answer
    }

    /// Logs the refused messages in the name of other hosts' processes, at most once in a while.
    fn tell_forged(&mut self) {
        let forgeries = self.shared.participant.forgeries();
        let (told, at) = self.forged;
        if forgeries.count == told || at.is_some_and(|at| at.elapsed() < FORGED_EVERY) {
            return;
        }
        self.forged = (forgeries.count, Some(Instant::now()));
        let record = self.teller().forged(forgeries.count - told, &forgeries);
        self.tell(record, None);
    }

    /// Reports the drops that are due.
    fn tell_dropped(&mut self) {
        if self.ledger.is_empty() {
            return;
        }
        let due = self.ledger.due(self.shared.participant.clock().monotonic());
        self.tell_all(&due);
    }

    fn tell_all(&mut self, dropped: &[Dropped]) {
        for dropped in dropped {
            let record = self.teller().dropped(dropped);
            self.tell(record, None);
        }
    }

    /// Reports the remaining drops when the collector ends. Each is reported once, because nothing waits for a full
    /// disk then.
    fn tell_dropped_last(&mut self) {
        for dropped in self.ledger.all() {
            self.with_own_arrival(&self.teller().dropped(&dropped), None, |arrival| {
                // If the record cannot be written at this point, the count is lost with the process.
                let _ = self.shared.archive.append(arrival);
            });
        }
    }

    /// Appends, and waits for a full disk without limit; meanwhile batches wait in their writers' caches. Returns
    /// `None` if the collector ends first, and an error if the batch cannot be read.
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
        let Some(to) = gap.to else {
            self.shared.status.lost(&stream.source, None);
            let ends = self.open_ends.entry(stream.incarnation).or_insert_with(|| (stream.source.clone(), Vec::new()));
            ends.1.push((stream.topic.to_string(), gap.from));
            return;
        };
        let offset = StreamOffset { incarnation: stream.incarnation, stream: stream.stream, next: to };
        // Samples that a node has kept meanwhile are read from its spool.
        let missing = self.shared.spooled.missing(&self.shared.participant, stream.incarnation, stream.stream, gap.from..to);
        let mut last = None;
        for hole in &missing {
            self.shared.status.lost(&stream.source, Some(hole.end - hole.start));
            let record = self.teller().lost(stream, hole.start, hole.end, gap.why);
            last = self.tell(record, (hole.end == to).then_some(offset));
        }
        if missing.last().is_none_or(|hole| hole.end < to) {
            last = self.advance(offset, self.shared.participant.clock().utc());
        }
        if let Some(appended) = last {
            self.wait_for(&appended, stream, to);
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
        if matches!(change.state, SourceState::Died | SourceState::Left) {
            self.meters.ended(&change.source, change.incarnation);
            let asked = self.asked.len();
            self.asked.retain(|(incarnation, _), _| *incarnation != change.incarnation);
            self.shared.streams.fetch_sub((asked - self.asked.len()) as u64, Ordering::Relaxed);
            let left = self.ledger.of(&change.source);
            self.tell_all(&left);
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
    fn tell(&mut self, record: LogRecord, advances: Option<StreamOffset>) -> Option<Appended> {
        let (appended, packet) = self.with_own_arrival(&record, advances, |arrival| {
            let packet = self.has_routes().then(|| arrival.samples.concat());
            self.append(arrival).ok().flatten().zip(Some(packet))
        })??;
        if let Some(packet) = packet {
            self.to_route.push_back((appended.ticket, packet));
        }
        Some(appended)
    }

    /// Makes the arrival of the collector's own record; `None` if it cannot be encoded.
    fn with_own_arrival<T>(
        &self,
        record: &LogRecord,
        advances: Option<StreamOffset>,
        take: impl FnOnce(&Arrival<'_>) -> T,
    ) -> Option<T> {
        let now: Time = record.time;
        let sample = encode_records(std::slice::from_ref(record)).ok()?;
        let participant = &self.shared.participant;
        let discipline = participant.clock().discipline();
        let header = BatchHeader {
            domain: participant.domain().clone(),
            source: participant.source().clone(),
            incarnation: participant.incarnation(),
            // No stream number of the bus: those start at 0.
            stream: u32::MAX,
            first: record.id.map_or(0, |id| id.number),
            count: 1,
            type_id: TYPE_ID,
            type_version: VERSION,
            acquired: now,
            sent: now,
            clock: discipline.state,
            tai_offset: discipline.tai_offset,
            flags: 0,
        };
        Some(take(&Arrival { header: &header, samples: &[&sample], received: now, advances }))
    }
}
