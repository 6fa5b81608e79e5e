//! Subscriptions of topics: one reader and one worker for each pattern.
//!
//! The worker reads only while the client has given credit and there is room in the window. Else batches wait in the
//! reader's bounded queue, then in the writers' caches.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tampu_archive::query::Query;
use tampu_bus::{
    BatchEvent, Gap, History, Reader, ReaderQos, Sample, SourceChange, SourceState, StreamInfo, WholeBatch,
    access::{Principal, Resource, Verb},
};
use tampu_log::collector::ask::Kept;
use tampu_types::{
    BatchHeader, Incarnation, PartitionFilter, Time, TopicFilter,
    gateway::{
        Kind,
        frame::{FLAG_ARCHIVED, put_sample},
        messages::{Big, Code, End, From, GapInfo, Life, Open, Opened, StreamInfo as StreamBody},
    },
};
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    limits::{ALL_SUBSCRIPTIONS, GUEST_SUBSCRIPTIONS, READER_QUEUE, SUBSCRIPTIONS},
    logs::{self, LogState, Passed},
    outgoing::Closed,
    session::{Entry, Readable, Session},
    shared::GatewayShared,
    subscription::Subscription,
};

/// Most patterns of one subscription.
const PATTERNS: usize = 16;
/// Longest sleep of a worker without an event. The end of its subscription wakes it.
const IDLE: Duration = Duration::from_secs(60);
/// Topics that only the hub's own user reads, because rules about attributes and logs do not name them.
const INTERNAL: [&str; 6] = ["event", "event-own", "event-names", "log-attached", "log-spool", "log-import"];

/// Opens a subscription of topics.
pub(super) fn open(session: &Arc<Session>, gateway: &Arc<GatewayShared>, id: u32, open: &Open) -> Result<(), End> {
    let bad = |why: &dyn std::fmt::Display| End::because(Code::Bad, why);
    if open.topics.len() > PATTERNS {
        return Err(End::because(Code::Limit, format_args!("{} topics; at most {PATTERNS} in one OPEN", open.topics.len())));
    }
    if !open.attributes.is_empty() || open.kinds.is_some() || open.first.is_some() || open.filter.is_some() {
        return Err(bad(&"attributes, kinds, first and filter do not go with topics"));
    }
    let mut qos = qos_of(open);
    let partitions = match &open.partitions {
        None => PartitionFilter::All,
        Some(names) => PartitionFilter::any(names.iter().map(String::as_str)),
    };
    let mut filters = Vec::new();
    for topic in &open.topics {
        let filter = TopicFilter::new(topic).map_err(|why| bad(&why))?;
        if session.principal != Principal::this_user() && is_internal(topic) {
            return Err(End::because(Code::Denied, format_args!("the topic {topic} is open to the hub's own user only")));
        }
        session.require(gateway, Verb::Read, &Resource::Topic(topic.clone()))?;
        filters.push(filter);
    }
    let mut logs = Vec::new();
    for filter in &filters {
        logs.push(log_state(session, gateway, open, filter)?);
    }
    let recalled = recalled(gateway, open, &mut qos)?;
    enter(session, gateway, filters.len())?;
    let subscription = Arc::new(Subscription::new(open.credit.unwrap_or(0)));
    let mut workers = Vec::new();
    for (filter, logs) in filters.into_iter().zip(logs) {
        let reader = match gateway.participant.reader(&filter, &partitions, qos.clone()) {
            Ok(reader) => reader,
            Err(why) => {
                leave(session, gateway, open.topics.len());
                return Err(End::because(Code::Failed, why));
            }
        };
        let alarm = reader.alarm();
        subscription.at_end(move || alarm.ring());
        workers.push(TopicWorker {
            session: session.clone(),
            gateway: gateway.clone(),
            subscription: subscription.clone(),
            id,
            reader,
            state: Announced::default(),
            logs,
            recalled: recalled.clone(),
        });
    }
    session.entries.lock().insert(id, Entry::Subscription(subscription.clone()));
    // The readers are on the bus now, and the client hears of the subscription before it hears of its streams.
    let _ = session.send_json(Kind::Opened, id, &Opened::default());
    let mut left = open.topics.len();
    for mut worker in workers {
        let thread = WorkerThread::named("gateway topics").stack_size(256 << 10);
        let begun = thread.spawn(OnPanic::ReportOnly, move || {
            worker.run();
            leave(&worker.session, &worker.gateway, 1);
        });
        if let Err(why) = begun {
            leave(session, gateway, left);
            return Err(End::because(Code::Failed, why));
        }
        left -= 1;
    }
    Ok(())
}

/// Takes places among the subscriptions.
pub(super) fn enter(session: &Session, gateway: &GatewayShared, count: usize) -> Result<(), End> {
    let of_all = gateway.subscribed.fetch_add(count, Ordering::AcqRel) + count;
    let of_one = session.subscribed.fetch_add(count, Ordering::AcqRel) + count;
    let most = if session.is_guest() { GUEST_SUBSCRIPTIONS } else { SUBSCRIPTIONS };
    if of_one <= most && of_all <= ALL_SUBSCRIPTIONS {
        return Ok(());
    }
    leave(session, gateway, count);
    Err(End::because(Code::Limit, format_args!("a session has at most {most} subscriptions, and a hub {ALL_SUBSCRIPTIONS}")))
}

/// Gives places among the subscriptions back.
pub(super) fn leave(session: &Session, gateway: &GatewayShared, count: usize) {
    gateway.subscribed.fetch_sub(count, Ordering::AcqRel);
    session.subscribed.fetch_sub(count, Ordering::AcqRel);
}

/// Returns the state for records of logs, if the pattern has some.
fn log_state(session: &Session, gateway: &GatewayShared, open: &Open, filter: &TopicFilter) -> Result<Option<LogState>, End> {
    let bad = |why: &dyn std::fmt::Display| End::because(Code::Bad, why);
    let levels = logs::levels_of(filter);
    if levels.is_empty() {
        return match open.query.is_some() || open.since.is_some() {
            true => Err(bad(&format_args!("query and since are for topics of logs; {} is none", filter.as_str()))),
            false => Ok(None),
        };
    }
    let query = open.query.clone().map(serde_json::from_value::<Query>).transpose();
    let query = query.map_err(|why| bad(&format_args!("query: {why}")))?;
    if open.since.is_some() {
        session.require(gateway, Verb::Query, &Resource::Service("log/query".to_owned()))?;
    }
    let now = gateway.participant.clock().utc();
    LogState::new(query, levels, now).map(Some).map_err(|why| bad(&why))
}

/// Returns the beginning in the archive that OPEN wants. Its live part begins at the positions that a collector has kept.
fn recalled(gateway: &GatewayShared, open: &Open, qos: &mut ReaderQos) -> Result<Option<(Time, Arc<Kept>)>, End> {
    let Some(since) = open.since else { return Ok(None) };
    let kept = logs::offsets(&gateway.participant).map_err(|why| End::because(Code::Unanswered, why))?;
    qos.history = History::All;
    qos.resume = kept.streams.iter().map(|stream| (stream.incarnation, stream.stream, stream.next)).collect();
    Ok(Some((since, Arc::new(kept))))
}

fn is_internal(topic: &str) -> bool {
    let first = topic.split('/').next().unwrap_or_default();
    first.contains('*') || INTERNAL.iter().any(|name| name.eq_ignore_ascii_case(first))
}

fn qos_of(open: &Open) -> ReaderQos {
    let (history, resume) = match &open.from {
        From::Now => (History::None, Vec::new()),
        From::Held => (History::All, Vec::new()),
        From::Last(count) => (History::Last(*count), Vec::new()),
        From::Positions(positions) => {
            (History::All, positions.iter().map(|position| (position.0, position.1, position.2.0)).collect())
        }
    };
    ReaderQos { history, resume, reliable: open.reliable.unwrap_or(true), queue: READER_QUEUE, ..ReaderQos::default() }
}

/// Streams and processes that the client knows.
#[derive(Default)]
struct Announced {
    /// Streams, each with whether the client may read it.
    streams: HashMap<(Incarnation, u32), bool>,
    topics: Readable,
    /// Processes of which the client reads a stream.
    sources: HashSet<Incarnation>,
}

struct TopicWorker {
    session: Arc<Session>,
    gateway: Arc<GatewayShared>,
    subscription: Arc<Subscription>,
    id: u32,
    reader: Reader,
    state: Announced,
    logs: Option<LogState>,
    /// Beginning in the archive, and the positions of the live part.
    recalled: Option<(Time, Arc<Kept>)>,
}

/// Frames of one event of the reader.
type Sends = Vec<(Kind, Vec<u8>)>;

impl TopicWorker {
    fn run(&mut self) {
        let subscription = self.subscription.clone();
        if let Some((since, kept)) = self.recalled.take()
            && let Some(mut logs) = self.logs.take()
        {
            logs.begin(&self.gateway.participant, since, &kept, &mut |body| self.send_archived(&body));
            self.logs = Some(logs);
        }
        while !subscription.is_stopped() {
            if !subscription.await_credit(IDLE) {
                continue;
            }
            let (frames, gap) = self.next();
            let filled = gap.is_some_and(|gap| self.fill(&gap));
            for (kind, body) in frames {
                let body = if filled && kind == Kind::Gap { filled_gap(body) } else { body };
                if self.send(kind, 0, &body).is_err() {
                    return;
                }
            }
        }
    }

    /// Returns the frames of the next event, and the gap if it is one that the archive may fill.
    fn next(&mut self) -> (Sends, Option<Gap>) {
        let (session, gateway) = (&*self.session, &*self.gateway);
        let mut translator =
            Translator { session, gateway, state: &mut self.state, logs: self.logs.as_mut(), frames: Vec::new() };
        let mut lost = None;
        match self.reader.next_batch(IDLE) {
            None => {}
            Some(BatchEvent::Batch(batch)) => translator.batch(&batch),
            Some(BatchEvent::Sample(sample)) => translator.sample(&sample),
            Some(BatchEvent::Gap(gap)) => {
                translator.gap(&gap);
                lost = (!translator.frames.is_empty()).then_some(gap);
            }
            Some(BatchEvent::Source(change)) => translator.source(&change),
        }
        (translator.frames, lost)
    }

    fn send(&self, kind: Kind, flags: u8, body: &[u8]) -> Result<(), Closed> {
        let wanted = || !self.subscription.is_stopped();
        self.session.outgoing.send_in_window(kind, flags, self.id, body, wanted)?;
        if kind == Kind::Data {
            self.subscription.spend(body.len());
        }
        Ok(())
    }

    /// Sends a batch from the archive when there is credit. Returns whether more are wanted.
    fn send_archived(&self, body: &[u8]) -> bool {
        while !self.subscription.await_credit(IDLE) {
            if self.subscription.is_stopped() {
                return false;
            }
        }
        self.send(Kind::Data, FLAG_ARCHIVED, body).is_ok()
    }

    /// Sends the records of a gap from the archive. Returns whether it had them all.
    fn fill(&mut self, gap: &Gap) -> bool {
        let query = Resource::Service("log/query".to_owned());
        if !self.gateway.access.permits(&self.session.principal, Verb::Query, &query) {
            return false;
        }
        let Some(mut logs) = self.logs.take() else { return false };
        let filled = logs.fill(&self.gateway.participant, gap, &mut |body| self.send_archived(&body));
        self.logs = Some(logs);
        filled
    }
}

/// Notes in the body of a GAP that the archive had the records.
fn filled_gap(body: Vec<u8>) -> Vec<u8> {
    let Ok(gap) = serde_json::from_slice::<GapInfo>(&body) else { return body };
    serde_json::to_vec(&GapInfo { filled: true, ..gap }).unwrap_or(body)
}

/// Makes frames of what a reader returns.
struct Translator<'a> {
    session: &'a Session,
    gateway: &'a GatewayShared,
    state: &'a mut Announced,
    logs: Option<&'a mut LogState>,
    frames: Sends,
}

impl Translator<'_> {
    fn json(&mut self, kind: Kind, body: &impl serde::Serialize) {
        if let Ok(body) = serde_json::to_vec(body) {
            self.frames.push((kind, body));
        }
    }

    /// Announces a stream before its first frame. Returns whether the client may read it.
    fn announce(&mut self, stream: &StreamInfo) -> bool {
        let key = (stream.incarnation, stream.stream);
        if let Some(known) = self.state.streams.get(&key) {
            return *known;
        }
        let topic = stream.topic.as_str();
        let may = self.state.topics.check(self.session, self.gateway, topic, Resource::Topic);
        self.state.streams.insert(key, may);
        if may {
            self.state.sources.insert(stream.incarnation);
            let body = StreamBody {
                incarnation: stream.incarnation,
                stream: stream.stream,
                source: stream.source.to_string(),
                topic: topic.to_owned(),
                partition: stream.partition.names().map(str::to_owned).collect(),
                type_id: stream.type_tag.id,
                version: stream.type_tag.version,
            };
            self.json(Kind::Stream, &body);
        }
        may
    }

    fn batch(&mut self, batch: &WholeBatch<'_>) {
        if !self.announce(batch.stream) {
            return;
        }
        if batch.bytes.len() > self.session.frame_limit {
            return self.lost(batch.stream, batch.first, Some(batch.next), "too long");
        }
        let passed = self.logs.as_mut().map_or(Passed::Unchanged, |logs| logs.pass(batch.stream, batch.bytes));
        let mut body = match passed {
            Passed::Unchanged => batch.bytes.to_vec(),
            Passed::Changed(body) => body,
            Passed::Nothing => return,
        };
        // Flags are for readers on the bus.
        BatchHeader::clear_flags(&mut body);
        self.frames.push((Kind::Data, body));
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        if !self.announce(sample.stream) {
            return;
        }
        let (stream, next) = (sample.stream, sample.sequence + 1);
        if sample.payload.len() + 1024 > self.session.frame_limit {
            return self.lost(stream, sample.sequence, Some(next), "too long");
        }
        let header = sample.header(self.gateway.participant.domain());
        let mut body = Vec::new();
        let length = 4 + sample.payload.len().next_multiple_of(4);
        header.encode(length as u32, &mut body);
        match sample.payload.with(|bytes| put_sample(&mut body, bytes)) {
            Ok(()) => match self.logs.as_mut().map_or(Passed::Unchanged, |logs| logs.pass(stream, &body)) {
                Passed::Unchanged => self.frames.push((Kind::Data, body)),
                Passed::Changed(body) => self.frames.push((Kind::Data, body)),
                Passed::Nothing => {}
            },
            // The writer took its memory back.
            Err(_) => self.lost(stream, sample.sequence, Some(next), "evicted"),
        }
    }

    fn gap(&mut self, gap: &Gap) {
        if self.announce(&gap.stream) {
            self.lost(&gap.stream, gap.from, gap.to, super::words::loss(gap.why));
        }
    }

    fn lost(&mut self, stream: &StreamInfo, from: u64, to: Option<u64>, why: &str) {
        let body = GapInfo {
            incarnation: stream.incarnation,
            stream: stream.stream,
            from: Big(from),
            to: to.map(Big),
            why: why.to_owned(),
            filled: false,
        };
        self.json(Kind::Gap, &body);
    }

    fn source(&mut self, change: &SourceChange) {
        let ends = matches!(change.state, SourceState::Left | SourceState::Died);
        // A process whose streams are all hidden from the client is hidden as well.
        let hidden = |((incarnation, _), may): (&(Incarnation, u32), &bool)| *incarnation == change.incarnation && !may;
        let is_hidden = !self.state.sources.contains(&change.incarnation) && self.state.streams.iter().any(hidden);
        if ends {
            self.state.sources.remove(&change.incarnation);
            self.state.streams.retain(|(incarnation, _), _| *incarnation != change.incarnation);
        }
        if is_hidden {
            return;
        }
        let body = Life {
            source: change.source.to_string(),
            incarnation: change.incarnation,
            state: super::words::state(change.state).to_owned(),
        };
        self.json(Kind::Life, &body);
    }
}

impl Drop for TopicWorker {
    fn drop(&mut self) {
        // After a failure of the worker the client hears that nothing more comes.
        if !self.subscription.is_stopped() && std::thread::panicking() {
            self.subscription.stop();
            self.session.remove(self.id);
            self.session.send_end(self.id, &End::because(Code::Failed, "the subscription's worker failed"));
        }
    }
}
