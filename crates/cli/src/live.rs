//! Records as they are logged: readers of the log topics, decoded and filtered.
//!
//! Only the topics of the levels asked for are subscribed to, and only the partitions of the audiences, so that what nobody
//! looks at does not travel. Each reader has a thread, because a reader waits for one topic pattern.

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

use tampu_bus::{Event, Gap, History, Participant, ReaderQos, Sample, SourceChange};
use tampu_log::{
    logger::{LOG_BATCH, attach::attached_topic_of, topic_of},
    query::{Matcher, Query},
};
use tampu_types::{Level, LogRecord, PartitionFilter, TopicFilter, log_batch::LogBatchView};

use crate::failure::Failure;

/// What is told live.
pub enum News {
    /// Records of one packet.
    Records(Vec<LogRecord>),
    /// Packets that will not come.
    Gap(Gap),
    /// A writer came, went, fell silent, came back.
    Source(SourceChange),
    /// Something that is not a log batch, or a record in one that cannot be read.
    Unreadable(String),
}

/// How much may wait between the readers and the screen: packets. Beyond it the readers stop taking, and what then
/// does not fit their queue is healed from the writers' caches or told as lost.
const CHANNEL: usize = 256;
/// How soon the threads notice that nobody listens any more.
const LOOK: Duration = Duration::from_millis(100);

/// Live records.
pub struct Live {
    news: Receiver<News>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    sources_seen: HashSet<(tampu_types::Incarnation, u8)>,
}

/// What to follow.
pub struct Wanted<'a> {
    pub query: &'a Query,
    pub levels: &'a [Level],
    pub audiences: &'a [String],
    pub history: History,
    pub reliable: bool,
    /// Also what is published for attached readers.
    pub attached: bool,
}

impl Live {
    /// Subscribes.
    pub fn follow(participant: &Participant, wanted: &Wanted<'_>) -> Result<Live, Failure> {
        let partitions = match wanted.audiences {
            [] => PartitionFilter::All,
            names => PartitionFilter::any(names.iter().map(String::as_str)),
        };
        let mut topics = Vec::new();
        let bad = |error: tampu_types::name::BadTopic| Failure::Failed(error.to_string());
        if wanted.levels.len() == Level::ALL.len() {
            topics.push(TopicFilter::new("log/*").map_err(bad)?);
        } else {
            for level in wanted.levels {
                topics.push(TopicFilter::new(topic_of(*level).map_err(bad)?.as_str()).map_err(bad)?);
            }
        }
        let all = wanted.levels.iter();
        for level in all.filter(|_| wanted.attached) {
            topics.push(TopicFilter::new(attached_topic_of(*level).map_err(bad)?.as_str()).map_err(bad)?);
        }
        let (tell, news) = sync_channel(CHANNEL);
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for topic in topics {
            let qos = ReaderQos { history: wanted.history, reliable: wanted.reliable, ..ReaderQos::default() };
            let mut reader =
                participant.reader(&topic, &partitions, qos).map_err(|error| Failure::Unreachable(error.to_string()))?;
            let matcher = wanted.query.compile().map_err(|error| Failure::Usage(error.to_string()))?;
            let (tell, over) = (tell.clone(), over.clone());
            threads.push(std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let Some(news) = reader.next(LOOK).and_then(|event| digest(event, &matcher)) else { continue };
                    if !hand_over(&tell, news, &over) {
                        return;
                    }
                }
            }));
        }
        Ok(Live { news, over, threads, sources_seen: HashSet::new() })
    }

    /// The next news; `None` within the timeout if there is none.
    pub fn next(&mut self, timeout: Duration) -> Option<News> {
        loop {
            match self.news.recv_timeout(timeout) {
                // Several readers hear of one source's fate; it is told once.
                Ok(News::Source(change)) if !self.sources_seen.insert((change.incarnation, change.state as u8)) => {}
                Ok(news) => return Some(news),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

/// Waits for room, unless nobody wants it any more.
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

fn digest(event: Event<'_>, matcher: &Matcher) -> Option<News> {
    match event {
        Event::Sample(sample) => decode(&sample, matcher),
        Event::Gap(gap) => Some(News::Gap(gap)),
        Event::Source(change) => Some(News::Source(change)),
    }
}

fn decode(sample: &Sample<'_>, matcher: &Matcher) -> Option<News> {
    let trouble = |why: String| {
        Some(News::Unreadable(format!("{} of {}, sample {}: {why}", sample.stream.topic, sample.stream.source, sample.sequence)))
    };
    let tag = sample.stream.type_tag;
    if tag.id != LOG_BATCH.id {
        return trouble(format!("type {} is no log batch", tag.id));
    }
    let read = sample.payload.with(|bytes| {
        let view = LogBatchView::parse(bytes).map_err(|error| error.to_string())?;
        let mut records = Vec::new();
        for record in view.records() {
            let record = record.map_err(|error| error.to_string())?;
            if matcher.wants(&record) {
                let mut owned = record.to_record();
                owned.received = Some(sample.received);
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
            // A reader thread that panicked has printed why.
            let _ = thread.join();
        }
    }
}
