//! Records of logs in a subscription: the client's query, and the archive for what was lost live.
//!
//! A client that was paused for longer than the writers' caches reach has lost packets of a stream. The collector has
//! them: once it has committed the stream up to the gap's end, a search finds every record of the gap. Records of a ring
//! are numbered, and a stream has them in order. So a record is new to the client if its number is above the last one
//! delivered of its ring and stream. Records that the search finds beyond the gap arrive live as well, and are left out
//! there by the same rule. A subscription that begins in the archive remembers ids instead, because records of the
//! archive do not name their stream.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use tampu_archive::query::{BadQuery, Matcher, Query};
use tampu_bus::{Gap, Participant, StreamInfo, service::CallError};
use tampu_log::{
    collector::ask::{self, Kept},
    logger::{LOG_BATCH, topic_of},
};
use tampu_types::{
    BatchHeader, ClockState, Incarnation, Level, LogBatchBuilder, LogBatchView, LogRecord, RecordId, Time, TopicFilter,
    gateway::frame::{ARCHIVE_STREAM, put_sample, samples},
};

/// Time that the collector has for committing the end of a gap.
const COMMIT_WAIT: Duration = Duration::from_secs(5);
/// Pause between two questions about it.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Time for an answer of the collector.
const ANSWER: Duration = Duration::from_secs(30);
/// Bytes of a sample with records of the archive.
const SAMPLE: usize = 256 << 10;
/// Records whose live copies are awaited. Copies of further ones come twice.
const AWAITED: usize = 1 << 20;
/// Longest time from the receipt of a record to its commit, ns.
const UNCOMMITTED: i64 = 60_000_000_000;
/// Difference of clocks and of threads between two records of a stream, ns.
const SLACK: i64 = 2_000_000_000;

/// Topics of a subscription that are live logs.
pub(super) fn levels_of(filter: &TopicFilter) -> Vec<Level> {
    Level::ALL.into_iter().filter(|level| topic_of(*level).is_ok_and(|topic| filter.matches(&topic))).collect()
}

/// State of a subscription of logs.
pub(super) struct LogState {
    query: Query,
    /// Compiled form of the query, if the client has one.
    matcher: Option<Matcher>,
    levels: Vec<Level>,
    /// Last number delivered of each stream and ring.
    delivered: HashMap<(Incarnation, u32, u32), u64>,
    /// Last number of each stream and ring that came from the archive.
    filled: HashMap<(Incarnation, u32, u32), u64>,
    /// Time of the newest record delivered of each stream.
    times: HashMap<(Incarnation, u32), Time>,
    /// Records from the archive that may arrive live.
    awaited: HashSet<RecordId>,
    begun: Time,
    /// Batches from the archive so far.
    sent: u64,
}

/// A batch of the bus for the client.
pub(super) enum Passed {
    /// As it came.
    Unchanged,
    /// With other records.
    Changed(Vec<u8>),
    /// No record is for the client.
    Nothing,
}

impl LogState {
    /// Makes the state of a subscription that begins at this time.
    pub fn new(query: Option<Query>, levels: Vec<Level>, begun: Time) -> Result<LogState, BadQuery> {
        let matcher = query.as_ref().map(Query::compile).transpose()?;
        Ok(LogState {
            query: query.unwrap_or_default(),
            matcher,
            levels,
            delivered: HashMap::new(),
            filled: HashMap::new(),
            times: HashMap::new(),
            awaited: HashSet::new(),
            begun,
            sent: 0,
        })
    }

    /// Notes the records of a batch, and leaves out those that are not for the client.
    pub fn pass(&mut self, stream: &StreamInfo, batch: &[u8]) -> Passed {
        if stream.type_tag.id != LOG_BATCH.id {
            return Passed::Unchanged;
        }
        let Ok((header, body)) = BatchHeader::decode(batch) else { return Passed::Unchanged };
        let mut kept = Vec::new();
        let (mut all, mut any) = (true, false);
        for sample in samples(body).flatten() {
            // What this release cannot read is the client's business.
            let Ok(view) = LogBatchView::parse(sample) else { return Passed::Unchanged };
            for record in view.records().flatten() {
                let wanted = self.take(stream, record.id(), record.time())
                    && self.matcher.as_ref().is_none_or(|matcher| matcher.wants(&record));
                all &= wanted;
                any |= wanted;
                kept.push(wanted);
            }
        }
        if all {
            return Passed::Unchanged;
        }
        if !any && self.matcher.is_some() {
            return Passed::Nothing;
        }
        let mut wanted = kept.into_iter();
        let mut changed = Vec::new();
        for sample in samples(body).flatten() {
            let Ok(view) = LogBatchView::parse(sample) else { return Passed::Unchanged };
            let mut builder = LogBatchBuilder::new();
            for record in view.records().flatten() {
                // It was in a batch of the same limit before.
                if wanted.next() == Some(true) && builder.push_record(&record.to_record()).is_err() {
                    return Passed::Unchanged;
                }
            }
            put_sample(&mut changed, builder.seal());
        }
        let mut bytes = Vec::new();
        header.encode(changed.len() as u32, &mut bytes);
        bytes.extend_from_slice(&changed);
        Passed::Changed(bytes)
    }

    /// Notes a live record. Returns false if the archive has brought it.
    fn take(&mut self, stream: &StreamInfo, id: Option<RecordId>, time: Time) -> bool {
        let newest = self.times.entry((stream.incarnation, stream.stream)).or_insert(time);
        *newest = time.max(*newest);
        let Some(id) = id else { return true };
        if !self.awaited.is_empty() && self.awaited.remove(&id) {
            return false;
        }
        if id.incarnation != stream.incarnation {
            return true;
        }
        let key = (stream.incarnation, stream.stream, id.ring);
        self.delivered.insert(key, id.number);
        self.filled.get(&key).is_none_or(|last| id.number > *last)
    }

    /// Returns the last number of each stream and ring that the client has. A second gap may come before what the archive
    /// brought for the first one has come live.
    fn last_numbers(&self) -> HashMap<(Incarnation, u32, u32), u64> {
        let mut last = self.delivered.clone();
        for (&place, &number) in &self.filled {
            last.entry(place).and_modify(|last| *last = number.max(*last)).or_insert(number);
        }
        last
    }

    /// Sends the records of a gap from the archive. Returns whether it had them all.
    pub fn fill(&mut self, participant: &Participant, gap: &Gap, send: &mut dyn FnMut(Vec<u8>) -> bool) -> bool {
        let Some(to) = gap.to else { return false };
        let stream = &gap.stream;
        if stream.type_tag.id != LOG_BATCH.id || !self.is_committed(participant, stream, to) {
            return false;
        }
        let Some(level) = self.levels.iter().copied().find(|level| topic_of(*level).is_ok_and(|topic| topic == stream.topic))
        else {
            return false;
        };
        let key = (stream.incarnation, stream.stream);
        let since = self.times.get(&key).copied().unwrap_or(self.begun);
        let query = Query {
            since: Some(Time(since.0.saturating_sub(SLACK))),
            until: None,
            min_level: None,
            levels: vec![level],
            newest_first: false,
            limit: None,
            ..self.query.clone()
        };
        let partition: HashSet<String> = stream.partition.names().map(str::to_lowercase).collect();
        let mut last = self.last_numbers();
        let mut is_missing = |record: &LogRecord| {
            let Some(id) = record.id.filter(|id| id.incarnation == stream.incarnation) else { return false };
            let audiences: HashSet<String> = record.audiences.iter().map(|name| name.to_lowercase()).collect();
            if audiences != partition {
                return false;
            }
            let place = (stream.incarnation, stream.stream, id.ring);
            let is_new = last.get(&place).is_none_or(|last| id.number > *last);
            if is_new {
                last.insert(place, id.number);
            }
            is_new
        };
        let is_complete = self.search(participant, &query, &mut is_missing, send);
        self.filled.extend(last.into_iter().filter(|((incarnation, of, _), _)| (*incarnation, *of) == key));
        is_complete
    }

    /// Sends the archive's records from a time on, before the live ones, which begin at these positions.
    pub fn begin(&mut self, participant: &Participant, since: Time, kept: &Kept, send: &mut dyn FnMut(Vec<u8>) -> bool) -> bool {
        let live_from = Time(kept.now.0.saturating_sub(UNCOMMITTED));
        // Writers that end before they know of the reader. If it fails, so will the search.
        let _ = ask::commit(participant, ANSWER);
        let query = Query { since: Some(since), newest_first: false, limit: None, ..self.query.clone() };
        let query = match self.levels.len() == Level::ALL.len() {
            true => query,
            false => Query { min_level: None, levels: self.wanted_levels(), ..query },
        };
        let mut awaited = std::mem::take(&mut self.awaited);
        let mut note = |record: &LogRecord| {
            if let Some(id) = record.id
                && record.received.is_none_or(|received| received >= live_from)
                && awaited.len() < AWAITED
            {
                awaited.insert(id);
            }
            true
        };
        let is_complete = self.search(participant, &query, &mut note, send);
        self.awaited = awaited;
        is_complete
    }

    fn wanted_levels(&self) -> Vec<Level> {
        let wanted = self.query.wanted_levels();
        self.levels.iter().copied().filter(|level| wanted.contains(level)).collect()
    }

    fn search(
        &mut self,
        participant: &Participant,
        query: &Query,
        is_missing: &mut dyn FnMut(&LogRecord) -> bool,
        send: &mut dyn FnMut(Vec<u8>) -> bool,
    ) -> bool {
        let mut builder = LogBatchBuilder::new();
        let mut goes_on = true;
        let found = ask::query(participant, query, ANSWER, &mut |record| {
            if !is_missing(&record) {
                return goes_on;
            }
            if builder.push_record(&record).is_err() {
                goes_on = false;
                return false;
            }
            if builder.len() >= SAMPLE {
                goes_on = send(self.archived(participant, &builder.finish()));
            }
            goes_on
        });
        if goes_on && !builder.is_empty() {
            goes_on = send(self.archived(participant, &builder.finish()));
        }
        goes_on && found.is_ok_and(|scanned| scanned.complete)
    }

    /// Makes a batch of one sample with records of the archive.
    fn archived(&mut self, participant: &Participant, sample: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        put_sample(&mut body, sample);
        let now = participant.clock().utc();
        let header = BatchHeader {
            flags: 0,
            clock: ClockState::Unknown,
            type_id: LOG_BATCH.id,
            type_version: LOG_BATCH.version,
            tai_offset: 0,
            incarnation: participant.incarnation(),
            stream: ARCHIVE_STREAM,
            count: 1,
            first: self.sent,
            acquired: now,
            sent: now,
            domain: participant.domain().clone(),
            source: participant.source().clone(),
        };
        self.sent += 1;
        let mut bytes = Vec::new();
        header.encode(body.len() as u32, &mut bytes);
        bytes.extend_from_slice(&body);
        bytes
    }

    /// Waits until the collector has committed a stream up to this sample.
    fn is_committed(&self, participant: &Participant, stream: &StreamInfo, to: u64) -> bool {
        let until = Instant::now() + COMMIT_WAIT;
        loop {
            match ask::offsets_with(participant, stream.incarnation, ANSWER) {
                Ok(kept) => {
                    let is_this =
                        |kept: &&ask::KeptStream| kept.incarnation == stream.incarnation && kept.stream == stream.stream;
                    if kept.streams.iter().find(is_this).is_some_and(|kept| kept.next >= to) {
                        return true;
                    }
                }
                Err(_) => return false,
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(ASK_AGAIN);
        }
    }
}

/// Returns the positions up to which a collector has kept the streams.
pub(super) fn offsets(participant: &Participant) -> Result<Kept, CallError> {
    ask::offsets(participant, ANSWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_gap_begins_behind_what_the_archive_brought_for_the_first() {
        let mut logs = LogState::new(None, Vec::new(), Time(0)).unwrap();
        let place = |ring| (Incarnation::default(), 1, ring);
        logs.delivered = HashMap::from([(place(0), 5), (place(1), 8)]);
        logs.filled = HashMap::from([(place(0), 9), (place(1), 7), (place(2), 3)]);
        assert_eq!(logs.last_numbers(), HashMap::from([(place(0), 9), (place(1), 8), (place(2), 3)]));
    }
}
