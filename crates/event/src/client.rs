//! The subscribing side.
//!
//! ```text
//! subscribe -> commands -> the book (reads event-names: who has what) -> orders -> feeds (read streams) -> sinks
//! ```
//! Subscribing puts a wish into a queue and returns. The book's worker finds who has the attributes now and later, and has a
//! feed for each server bind them; feeds ask for current values, which come through the stream, at their place among the updates.
//! Events are handed over on the feed's worker with no lock held that a subscription, another feed or a server needs, so a
//! callback may subscribe, unsubscribe and push. One that takes long delays events of the same server to this process only (and
//! those of a server that takes over from it), and the writers' caches keep what waits.
//!
//! A thread a server, and not one for all, because the bus's readers wait each for their own; beyond
//! [`ClientSettings::max_feeds`] all further servers share two.

use std::{
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_bus::{
    Alarm, BusError, Event as BusEvent, History, Participant, Reader, ReaderQos, SourceInfo, SourceState, clock::Clock,
};
use tampu_types::{
    PartitionFilter, TopicFilter,
    event::{AttributeName, Declaration, Reason},
};

use self::{
    book::Book,
    feed::{Feed, FeedKey},
    sink::{Latest, Queue, Sink},
    subscription::Sub,
};
pub use self::{
    book::Known,
    event::{AttributeInfo, Event, Update},
    filter::Filter,
    subscription::{EventStream, LatestValues, Subscription, SubscriptionStats, Wish},
};
use crate::{
    ask,
    server::{Workers, lock},
    topics,
};

mod binding;
mod book;
mod early;
mod event;
mod feed;
mod filter;
mod lives;
mod route;
mod sink;
mod subscription;

/// How a client works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// Who works.
    pub workers: Workers,
    /// The most readers, each with a worker; attributes beyond share two that read everybody's streams.
    pub max_feeds: usize,
}

impl Default for ClientSettings {
    fn default() -> ClientSettings {
        ClientSettings { workers: Workers::Own, max_feeds: 64 }
    }
}

enum Command {
    Subscribe(Arc<Sub>),
    Unsubscribe(Arc<Sub>),
}

struct Shared {
    participant: Participant,
    clock: Arc<dyn Clock>,
    settings: ClientSettings,
    commands: Mutex<Vec<Command>>,
    /// Wakes the book's worker.
    alarm: OnceLock<Alarm>,
    book: Mutex<Book>,
    next_id: AtomicU64,
    stop: AtomicBool,
    /// Declarations that could not be read.
    refused: AtomicU64,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// With [`Workers::Caller`]: the feeds the caller turns.
    turned: Mutex<Vec<(FeedKey, Arc<Mutex<Feed>>)>>,
    running: AtomicUsize,
}

/// A process's subscriptions. They end when it is dropped.
pub struct Client {
    shared: Arc<Shared>,
    /// With [`Workers::Caller`]: what the caller turns.
    names: Option<Mutex<Names>>,
}

/// The reader of declarations.
struct Names {
    shared: Arc<Shared>,
    reader: Reader,
}

/// How long workers sleep when nothing happens.
const IDLE: Duration = Duration::from_millis(250);
/// How many declarations are taken before commands are looked at.
const AT_ONCE: usize = 4096;

impl Client {
    /// Begins to listen to what servers declare.
    pub fn start(participant: Participant, settings: ClientSettings) -> Result<Client, BusError> {
        let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
        let reader = participant.reader(&TopicFilter::new(topics::NAMES)?, &PartitionFilter::All, qos)?;
        let own_workers = settings.workers == Workers::Own;
        let shared = Arc::new(Shared {
            clock: participant.clock(),
            commands: Mutex::default(),
            alarm: OnceLock::new(),
            book: Mutex::new(Book::new(settings.max_feeds)),
            next_id: AtomicU64::new(1),
            stop: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            workers: Mutex::default(),
            turned: Mutex::default(),
            running: AtomicUsize::new(0),
            participant,
            settings,
        });
        // Set once, here.
        let _ = shared.alarm.set(reader.alarm());
        let mut names = Names { shared: shared.clone(), reader };
        if !own_workers {
            return Ok(Client { shared, names: Some(Mutex::new(names)) });
        }
        shared.work("event names", move || {
            while !names.shared.stop.load(Ordering::Acquire) {
                names.turn(IDLE);
            }
        });
        Ok(Client { shared, names: None })
    }

    fn subscribed(&self, wish: Wish, sink: Sink) -> Subscription {
        let shared = &self.shared;
        let sub = Arc::new(Sub {
            id: shared.next_id.fetch_add(1, Ordering::Relaxed),
            wish,
            sink,
            active: AtomicBool::new(true),
            created: shared.clock.utc().0,
            delivered: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            bound: AtomicUsize::new(0),
        });
        shared.command(Command::Subscribe(sub.clone()));
        Subscription { sub, shared: Arc::downgrade(shared) }
    }

    /// Has events handed to a callback, on the worker that received them.
    pub fn subscribe(&self, wish: Wish, call: impl FnMut(&Event<'_>) + Send + 'static) -> Subscription {
        self.subscribed(wish, Sink::Call(Mutex::new(Box::new(call))))
    }

    /// Has events wait to be pulled, at most `bound` of them.
    pub fn stream(&self, wish: Wish, bound: usize) -> EventStream {
        EventStream { subscription: self.subscribed(wish, Sink::Queue(Queue::bounded(bound))) }
    }

    /// Keeps the latest of each attribute.
    pub fn latest(&self, wish: Wish) -> LatestValues {
        LatestValues { subscription: self.subscribed(wish, Sink::Latest(Latest::default())) }
    }

    /// Who has this attribute, as far as this process has heard; more than one where they are redundant or in conflict.
    pub fn known(&self, name: &AttributeName) -> Vec<Known> {
        lock(&self.shared.book).known(name)
    }

    /// Every attribute somebody has, as far as this process has heard.
    pub fn attributes(&self) -> Vec<Arc<AttributeInfo>> {
        lock(&self.shared.book).attributes()
    }

    /// Declarations that could not be read: of a later release, or hostile.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// The participant it listens by.
    pub fn participant(&self) -> &Participant {
        &self.shared.participant
    }

    /// Does what the workers would. For [`Workers::Caller`].
    pub fn turn(&self) {
        if let Some(names) = &self.names {
            lock(names).turn(Duration::ZERO);
        }
        let feeds: Vec<_> = lock(&self.shared.turned).iter().map(|(_, feed)| feed.clone()).collect();
        for feed in feeds {
            lock(&feed).turn(Duration::ZERO);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        if let Some(alarm) = self.shared.alarm.get() {
            alarm.ring();
        }
        lock(&self.shared.book).feeds.values().for_each(|inlet| inlet.ring());
        lock(&self.shared.turned).clear();
        let this = std::thread::current().id();
        let workers = std::mem::take(&mut *lock(&self.shared.workers));
        // A callback may drop the client. Then its own worker and those that wait to call it end by themselves.
        if workers.iter().all(|worker| worker.thread().id() != this) {
            for worker in workers {
                let _ = worker.join();
            }
        }
    }
}

impl Shared {
    fn work(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        let begun = std::thread::Builder::new().name(name.to_owned()).stack_size(512 << 10).spawn(work);
        let mut workers = lock(&self.workers);
        workers.retain(|worker| !worker.is_finished());
        workers.extend(begun);
    }

    fn command(&self, command: Command) {
        let mut commands = lock(&self.commands);
        let first = commands.is_empty();
        commands.push(command);
        drop(commands);
        if first && let Some(alarm) = self.alarm.get() {
            alarm.ring();
        }
    }

    /// Opens the feeds that are wanted; outside the book's lock, as the engine may take a moment.
    fn open_feeds(self: &Arc<Shared>) {
        let wanted: Vec<_> = {
            let mut book = lock(&self.book);
            let wanted = std::mem::take(&mut book.wanted);
            wanted.into_iter().filter_map(|key| Some((book.feeds.get(&key)?.clone(), key))).collect()
        };
        for (inlet, key) in wanted {
            let number = self.running.fetch_add(1, Ordering::Relaxed) as u64;
            // Differs between feeds and processes, which is all it has to.
            let token = self.participant.incarnation().start.rotate_left(17) ^ u64::from(std::process::id()) ^ number << 40;
            let Ok(feed) = Feed::open(&self.participant, &key, inlet, token) else {
                // The engine refuses for now; its orders stay.
                lock(&self.book).wanted.push(key);
                continue;
            };
            if self.settings.workers == Workers::Caller {
                lock(&self.turned).push((key, Arc::new(Mutex::new(feed))));
            } else {
                let shared = self.clone();
                self.work("event feed", move || shared.run(feed, &key));
            }
        }
    }

    fn run(&self, mut feed: Feed, key: &FeedKey) {
        let mut idle = 0;
        while !self.stop.load(Ordering::Acquire) {
            let came = feed.turn(IDLE);
            idle = if came || !feed.is_idle() { 0 } else { idle + 1 };
            // Kept for a while, because who unsubscribes often subscribes again.
            if idle > 40 && lock(&self.book).close(key) {
                return;
            }
        }
    }
}

impl Names {
    fn turn(&mut self, timeout: Duration) {
        let Names { shared, reader } = self;
        let commands = std::mem::take(&mut *lock(&shared.commands));
        let mut wait = if commands.is_empty() { timeout } else { Duration::ZERO };
        {
            let mut book = lock(&shared.book);
            for command in commands {
                match command {
                    Command::Subscribe(sub) => book.subscribe(&sub),
                    Command::Unsubscribe(sub) => book.unsubscribe(&sub),
                }
            }
            book.ring();
        }
        shared.open_feeds();
        for _ in 0..AT_ONCE {
            let Some(event) = reader.next(wait) else { break };
            wait = Duration::ZERO;
            let mut book = lock(&shared.book);
            match event {
                BusEvent::Sample(sample) => {
                    let stream = sample.stream;
                    let source = SourceInfo { source: stream.source.clone(), incarnation: stream.incarnation };
                    match sample.payload.with(Declaration::parse) {
                        Ok(Ok(declaration)) => book.declared(&source, declaration, sample.sent),
                        _ => {
                            shared.refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
                BusEvent::Source(change) => match change.state {
                    SourceState::Died => book.gone(change.incarnation, Reason::SourceDied),
                    SourceState::Left => book.gone(change.incarnation, Reason::SourceLeft),
                    SourceState::Silent => book.silent(change.incarnation, true),
                    SourceState::Returned => book.silent(change.incarnation, false),
                    _ => {}
                },
                BusEvent::Gap(gap) => ask::for_names(&shared.participant, gap.stream.incarnation),
            }
        }
        lock(&shared.book).ring();
        shared.open_feeds();
        // Orders for feeds that were opened just now were given before they had an alarm.
        let book = lock(&shared.book);
        book.feeds.values().filter(|inlet| inlet.is_new()).for_each(|inlet| inlet.ring());
    }
}
