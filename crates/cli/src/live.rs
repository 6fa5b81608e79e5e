//! Records as they are logged: readers of the log topics, decoded and filtered.
//!
//! Only the topics of the requested levels are subscribed to, and only the partitions of the audiences. So records
//! without a reader do not travel. Each reader has a thread, because a reader waits for one topic pattern.
//!
//! Topics are `log/<level>`; a replay's topic is `log-replay/<name>`, so the two are never confused.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_archive::query::{Matcher, Mode, Query};
use tampu_bus::{Event, Gap, History, Participant, ReaderQos, Sample, SourceChange};
use tampu_log::{
    collector::ask::{Kept, KeptStream},
    logger::{LOG_BATCH, attach::attached_topic_of, topic_of},
};
use tampu_types::{Level, LogRecord, PartitionFilter, TopicFilter, TopicName, log_batch::LogBatchView, name::BadTopic};

use crate::{failure::Failure, seen::Seen};

/// An item of the live log.
pub enum News {
    /// Records of one packet.
    Records(Vec<LogRecord>),
    /// A gap of lost packets.
    Gap(Gap),
    /// A change of a writer: it joined, left, fell silent or returned.
    Source(SourceChange),
    /// Something that is not a log batch, or a record in one that cannot be read.
    Unreadable(String),
}

/// Bound of the queue between the readers and the screen, in packets. Beyond it the readers stop reading, and packets that
/// do not fit their queue are fetched again from the writers' caches, or reported as lost.
const CHANNEL: usize = 256;
/// Time after which the threads notice that their receiver is gone.
const LOOK: Duration = Duration::from_millis(100);

/// A subscription to live records.
pub struct Live {
    news: Receiver<News>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    sources_seen: HashSet<(tampu_types::Incarnation, u8)>,
}

/// Options of a subscription.
pub struct Wanted<'a> {
    /// Conditions on records; levels, audiences and mode also choose the topics and partitions.
    pub query: &'a Query,
    /// The replay of this name instead of live records.
    pub replayed: Option<&'a str>,
    pub from: Begin,
    /// True if missed records are fetched again.
    pub reliable: bool,
    /// True to include records published for attached readers.
    pub attached: bool,
}

/// The beginning of a subscription.
pub enum Begin {
    /// At new records.
    Now,
    /// At everything that writers still hold.
    Held,
    /// After the positions that a collector has kept.
    Kept(Kept),
}

/// Prefix of the topics of replays.
const REPLAY_TOPICS: &str = "log-replay";

/// The topic of a replay.
pub fn replay_topic(name: &str) -> Result<TopicName, BadTopic> {
    TopicName::new(format!("{REPLAY_TOPICS}/{name}"))
}

impl Live {
    /// Subscribes to the topics of a query.
    pub fn follow(participant: &Participant, wanted: Wanted<'_>) -> Result<Live, Failure> {
        let bad = |error: BadTopic| Failure::Usage(error.to_string());
        let query = wanted.query;
        let levels = query.wanted_levels();
        let mut topics = Vec::new();
        if let Some(name) = wanted.replayed {
            // The replay has one topic for everybody; the filter is applied here.
            let topic = replay_topic(name).and_then(|topic| TopicFilter::new(topic.as_str()));
            topics.push((topic.map_err(bad)?, PartitionFilter::All));
        } else if levels.len() == Level::ALL.len() && query.mode == Mode::Engineer {
            topics.push((TopicFilter::new("log/*").map_err(bad)?, partitions(query, None)));
        } else {
            for level in levels {
                let topic = topic_of(level).and_then(|topic| TopicFilter::new(topic.as_str()));
                topics.push((topic.map_err(bad)?, partitions(query, Some(level))));
            }
        }
        for level in query.wanted_levels().into_iter().filter(|_| wanted.attached) {
            let topic = attached_topic_of(level).and_then(|topic| TopicFilter::new(topic.as_str()));
            topics.push((topic.map_err(bad)?, partitions(query, Some(level))));
        }
        let (history, resume) = match wanted.from {
            Begin::Now => (History::None, Vec::new()),
            Begin::Held => (History::All, Vec::new()),
            // If the collector does not report a stream, it has kept nothing of it, and the writer still holds all of it.
            Begin::Kept(kept) => {
                let place = |stream: KeptStream| (stream.incarnation, stream.stream, stream.next);
                (History::All, kept.streams.into_iter().map(place).collect())
            }
        };
        let (tell, news) = sync_channel(CHANNEL);
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (topic, partitions) in topics {
            let qos = ReaderQos { history, resume: resume.clone(), reliable: wanted.reliable, ..ReaderQos::default() };
            let mut reader =
                participant.reader(&topic, &partitions, qos).map_err(|error| Failure::Unreachable(error.to_string()))?;
            let matcher = wanted.query.compile().map_err(|error| Failure::Usage(error.to_string()))?;
            let (tell, over) = (tell.clone(), over.clone());
            threads.push(std::thread::spawn(move || {
                // A repeated record has the same level, so it is on the same topic.
                let mut seen = Seen::default();
                while !over.load(Ordering::Relaxed) {
                    let Some(news) = reader.next(LOOK).and_then(|event| digest(event, &matcher, &mut seen)) else { continue };
                    if !hand_over(&tell, news, &over) {
                        return;
                    }
                }
            }));
        }
        Ok(Live { news, over, threads, sources_seen: HashSet::new() })
    }

    /// Returns the next news; `None` after the timeout.
    pub fn next(&mut self, timeout: Duration) -> Option<News> {
        loop {
            match self.news.recv_timeout(timeout) {
                // Several readers report the fate of one source; it is shown once.
                Ok(News::Source(change)) if !self.sources_seen.insert((change.incarnation, change.state as u8)) => {}
                Ok(news) => return Some(news),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

/// Returns the partitions that hold the matches of a query at a level, or at any.
fn partitions(query: &Query, level: Option<Level>) -> PartitionFilter {
    match (query.audiences.as_slice(), level.and_then(|level| query.mode.audiences_at(level))) {
        ([], None) => PartitionFilter::All,
        ([], Some(names)) => PartitionFilter::any(names.iter().copied()),
        (names, _) => PartitionFilter::any(names.iter().map(String::as_str)),
    }
}

/// Waits for room, unless the receiver is gone.
fn hand_over(tell: &SyncSender<News>, news: News, over: &AtomicBool) -> bool {
    let mut waiting = news;
    loop {
        match tell.try_send(waiting) {
            Ok(()) => return true,
            Err(std::sync::mpsc::TrySendError::Disconnected(_)) => return false,
            Err(std::sync::mpsc::TrySendError::Full(news)) => {
                if over.load(Ordering::Relaxed) {
                    return false;
                }
                waiting = news;
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

fn digest(event: Event<'_>, matcher: &Matcher, seen: &mut Seen) -> Option<News> {
    match event {
        Event::Sample(sample) => decode(&sample, matcher, seen),
        Event::Gap(gap) => Some(News::Gap(gap)),
        Event::Source(change) => Some(News::Source(change)),
    }
}

fn decode(sample: &Sample<'_>, matcher: &Matcher, seen: &mut Seen) -> Option<News> {
    let trouble = |why: String| {
        Some(News::Unreadable(format!("{} of {}, sample {}: {why}", sample.stream.topic, sample.stream.source, sample.sequence)))
    };
    let tag = sample.stream.type_tag;
    if tag.id != LOG_BATCH.id {
        return trouble(format!("type {} is not a log batch", tag.id));
    }
    let is_replayed = sample.stream.topic.as_str().starts_with(REPLAY_TOPICS);
    let read = sample.payload.with(|bytes| {
        let view = LogBatchView::parse(bytes).map_err(|error| error.to_string())?;
        let mut records = Vec::new();
        for record in view.records() {
            let record = record.map_err(|error| error.to_string())?;
            if matcher.wants(&record) && seen.is_new(record.id()) {
                let mut owned = record.to_record();
                // A replayed record keeps its time of reception, which is not the time of the replay.
                if !is_replayed || owned.received.is_none() {
                    owned.received = Some(sample.received);
                }
                records.push(owned);
            }
        }
        Ok::<_, String>(records)
    });
    match read {
        Ok(Ok(records)) if records.is_empty() => None,
        Ok(Ok(records)) => Some(News::Records(records)),
        Ok(Err(why)) => trouble(why),
        Err(_) => trouble("the writer took its memory back".to_owned()),
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A reader thread that panicked has printed the reason.
            let _ = thread.join();
        }
    }
}
