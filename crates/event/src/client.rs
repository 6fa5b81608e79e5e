//! The subscribing side.
//!
//! ```text
//! subscribe -> commands -> directory (reads event-names: the owners) -> commands -> stream workers (read streams) -> sinks
//! ```
//! A call to subscribe puts a command into a queue and returns. The directory's worker finds the present and later
//! owners of the attributes, and sends each stream worker the bindings of its server. Stream workers request current
//! values, which arrive through the stream, at their place among the updates.
//!
//! A stream worker delivers events without a lock that a subscription, another worker or a server needs. So a callback
//! may subscribe, unsubscribe and push. A slow callback delays only this process's events of the same server, and of a
//! server that takes over from it. The writers' caches keep the events that wait.
//!
//! There is one thread for each server, because each reader of the bus waits for its own samples. Beyond
//! [`ClientSettings::max_stream_workers`] all further servers share two threads. A subscription whose callback may wait has
//! threads of its own ([`SubscribeOptions::alone`]).

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use tampu_bus::{BusError, Event as BusEvent, Participant, SourceInfo, SourceState, clock::Clock};
use tampu_types::event::{AttributeName, AttributePattern, Declaration, Reason};
use tampu_workers::WorkerThread;

use self::{
    commands::{Command, SubscriptionCommands},
    directory::Directory,
    sink::{Latest, Queue, Sink},
    stream_command::StreamKey,
    stream_worker::StreamWorker,
    subscriber::SubscriptionState,
};
pub use self::{
    directory::AttributeOwner,
    dropped::DroppedEvents,
    event::{AttributeInfo, Event, Update},
    options::SubscribeOptions,
    subscription::{EventStream, LatestValues, Subscription, SubscriptionStats},
};
pub use crate::filter::{BadCondition, Condition, Filter};
use crate::{
    ask,
    names_reader::{Families, NamesReader},
    server::Workers,
};

mod binding;
mod by_incarnation;
mod commands;
mod directory;
mod dropped;
mod early;
mod event;
mod options;
mod route;
mod sink;
mod stream_command;
mod stream_worker;
mod subscriber;
mod subscription;
mod undecided;

/// Settings of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// Threads for the client's work.
    pub workers: Workers,
    /// Most readers, each with a worker. Further servers share two: of all servers' streams for this
    /// host, and of all attributes' own streams.
    pub max_stream_workers: usize,
}

impl Default for ClientSettings {
    fn default() -> ClientSettings {
        ClientSettings { workers: Workers::Own, max_stream_workers: 64 }
    }
}

struct ClientState {
    participant: Participant,
    clock: Arc<dyn Clock>,
    settings: ClientSettings,
    commands: Arc<SubscriptionCommands>,
    directory: Mutex<Directory>,
    next_id: AtomicU64,
    stop: AtomicBool,
    /// Number of declarations that could not be read.
    refused: AtomicU64,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Stream workers that [`Client::turn`] runs, with [`Workers::Caller`].
    turned: Mutex<Vec<(StreamKey, Arc<Mutex<StreamWorker>>)>>,
    running: AtomicUsize,
}

/// Subscriptions of a process. They end when the client is dropped.
pub struct Client {
    shared: Arc<ClientState>,
    /// Reader that [`Client::turn`] runs, with [`Workers::Caller`].
    declarations: Option<Mutex<DeclarationReader>>,
}

/// Reader of declarations, with its state.
struct DeclarationReader {
    shared: Arc<ClientState>,
    reader: NamesReader,
}

/// Longest sleep of a worker without an event.
const IDLE: Duration = Duration::from_millis(250);
/// Longest sleep of a worker of a single subscription. A command wakes it.
const IDLE_ALONE: Duration = Duration::from_secs(60);
/// Pause before a worker starts again after a panic.
const RESTART_PAUSE: Duration = Duration::from_millis(100);
/// Most declarations read in one turn before commands are handled.
const AT_ONCE: usize = 4096;

impl Client {
    /// Starts the client. It reads the declarations of the families that its subscriptions choose.
    pub fn start(participant: Participant, settings: ClientSettings) -> Result<Client, BusError> {
        let reader = NamesReader::open(&participant, Families::none())?;
        let own_workers = settings.workers == Workers::Own;
        let shared = Arc::new(ClientState {
            clock: participant.clock(),
            commands: Arc::new(SubscriptionCommands::new(reader.alarm())),
            directory: Mutex::new(Directory::new(settings.max_stream_workers, participant.incarnation().boot)),
            next_id: AtomicU64::new(1),
            stop: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            workers: Mutex::default(),
            turned: Mutex::default(),
            running: AtomicUsize::new(0),
            participant,
            settings,
        });
        let mut declarations = DeclarationReader { shared: shared.clone(), reader };
        if !own_workers {
            return Ok(Client { shared, declarations: Some(Mutex::new(declarations)) });
        }
        shared.work("event directory", move || {
            while !declarations.shared.stop.load(Ordering::Acquire) {
                declarations.turn(IDLE);
            }
        });
        Ok(Client { shared, declarations: None })
    }

    fn subscribed(&self, options: SubscribeOptions, sink: Sink) -> Subscription {
        let shared = &self.shared;
        let sub = Arc::new(SubscriptionState {
            id: shared.next_id.fetch_add(1, Ordering::Relaxed),
            options,
            sink,
            active: AtomicBool::new(true),
            created: shared.clock.utc().0,
            created_at: shared.clock.monotonic(),
            delivered: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            held_back: AtomicU64::new(0),
            panicked: AtomicU64::new(0),
            bound: AtomicUsize::new(0),
            positions: Mutex::default(),
        });
        shared.commands.send(Command::Subscribe(sub.clone()));
        Subscription { sub, commands: Arc::downgrade(&shared.commands) }
    }

    /// Subscribes with a callback, which runs on the worker that received the event.
    pub fn subscribe(&self, options: SubscribeOptions, call: impl FnMut(&Event<'_>) + Send + 'static) -> Subscription {
        self.subscribed(options, Sink::Call(Mutex::new(Box::new(call))))
    }

    /// Subscribes with a queue of at most `bound` events.
    pub fn stream(&self, options: SubscribeOptions, bound: usize) -> EventStream {
        EventStream { subscription: self.subscribed(options, Sink::Queue(Queue::bounded(bound))) }
    }

    /// Subscribes with a table of the latest event of each attribute.
    pub fn latest(&self, options: SubscribeOptions) -> LatestValues {
        LatestValues { subscription: self.subscribed(options, Sink::Latest(Latest::default())) }
    }

    /// Reads the declarations of all attributes that may match one of these patterns from now on, as a subscription to them does.
    /// [`Client::owners`] and [`Client::attributes`] know them as they arrive.
    pub fn know<'a>(&self, patterns: impl IntoIterator<Item = &'a AttributePattern>) {
        self.shared.commands.send(Command::Know(Families::of_patterns(patterns)));
    }

    /// Reads all declarations from now on.
    pub fn know_all(&self) {
        self.shared.commands.send(Command::Know(Families::all()));
    }

    /// Returns the processes known to own this attribute; more than one if they are redundant or in conflict.
    pub fn owners(&self, name: &AttributeName) -> Vec<AttributeOwner> {
        self.shared.directory.lock().owners(name)
    }

    /// Returns every attribute that this process knows: those of the families of its subscriptions, and of [`Client::know`].
    pub fn attributes(&self) -> Vec<Arc<AttributeInfo>> {
        self.shared.directory.lock().attributes()
    }

    /// Returns the number of unreadable declarations, which are malformed or of a later release.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Returns the client's participant.
    pub fn participant(&self) -> &Participant {
        &self.shared.participant
    }

    /// Does one round of the workers' work. For [`Workers::Caller`].
    pub fn turn(&self) {
        if let Some(declarations) = &self.declarations {
            declarations.lock().turn(Duration::ZERO);
        }
        let workers: Vec<_> = self.shared.turned.lock().iter().map(|(_, worker)| worker.clone()).collect();
        for worker in workers {
            worker.lock().turn(Duration::ZERO);
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.commands.wake();
        self.shared.directory.lock().workers.values().for_each(|commands| commands.notify());
        self.shared.turned.lock().clear();
        let this = std::thread::current().id();
        let workers = std::mem::take(&mut *self.shared.workers.lock());
        // A callback may drop the client. Then its own worker and those that wait to call it end by themselves.
        if workers.iter().all(|worker| worker.thread().id() != this) {
            for worker in workers {
                let _ = worker.join();
            }
        }
    }
}

impl ClientState {
    fn work(&self, name: &str, work: impl FnMut() + Send + 'static) {
        let begun = WorkerThread::named(name).stack_size(512 << 10).spawn_restarting(RESTART_PAUSE, work);
        let mut workers = self.workers.lock();
        workers.retain(|worker| !worker.is_finished());
        workers.extend(begun);
    }

    /// Opens the stream workers that are needed. It does so outside the directory's lock, as the engine may take a
    /// moment.
    fn open_workers(self: &Arc<ClientState>) {
        let to_open: Vec<_> = {
            let mut directory = self.directory.lock();
            let to_open = std::mem::take(&mut directory.to_open);
            to_open.into_iter().filter_map(|key| Some((directory.workers.get(&key)?.clone(), key))).collect()
        };
        for (commands, key) in to_open {
            let number = self.running.fetch_add(1, Ordering::Relaxed) as u64;
            // The token differs between workers and processes, which is all that is needed.
            let token = self.participant.incarnation().start.rotate_left(17) ^ u64::from(std::process::id()) ^ number << 40;
            let Ok(worker) = StreamWorker::open(&self.participant, &key, commands, token) else {
                // The engine rejected the reader; the commands stay and the next round tries again.
                self.directory.lock().to_open.push(key);
                continue;
            };
            if self.settings.workers == Workers::Caller {
                self.turned.lock().push((key, Arc::new(Mutex::new(worker))));
            } else {
                let shared = self.clone();
                let mut worker = worker;
                self.work("event stream", move || shared.run(&mut worker, &key));
            }
        }
    }

    fn run(&self, worker: &mut StreamWorker, key: &StreamKey) {
        // An idle worker stays for a while, because an unsubscription is often followed by a new subscription. The worker of
        // a single subscription has nothing to wait for, and there may be many of them.
        let stays = if key.alone.is_some() { 0 } else { 40 };
        let mut idle = 0;
        while !self.stop.load(Ordering::Acquire) {
            let rests = key.alone.is_some() && !worker.is_idle();
            let came = worker.turn(if rests { IDLE_ALONE } else { IDLE });
            idle = if came || !worker.is_idle() { 0 } else { idle + 1 };
            if idle > stays && self.directory.lock().close_worker(key) {
                return;
            }
        }
    }
}

impl DeclarationReader {
    fn turn(&mut self, timeout: Duration) {
        let DeclarationReader { shared, reader } = self;
        let commands = shared.commands.take();
        let wait = if commands.is_empty() { timeout } else { Duration::ZERO };
        {
            let mut directory = shared.directory.lock();
            for command in commands {
                match command {
                    Command::Subscribe(sub) => {
                        reader.want(&Families::of_patterns(&sub.options.attributes));
                        directory.subscribe(&sub);
                    }
                    Command::Unsubscribe(sub) => directory.unsubscribe(&sub),
                    Command::Know(families) => reader.want(&families),
                }
            }
            directory.notify_workers();
        }
        if let Some(alarm) = reader.widen() {
            shared.commands.set_alarm(alarm);
        }
        shared.open_workers();
        reader.read(wait, AT_ONCE, |event| {
            let mut directory = shared.directory.lock();
            match event {
                BusEvent::Sample(sample) => {
                    let stream = sample.stream;
                    let source = SourceInfo { source: stream.source.clone(), incarnation: stream.incarnation };
                    match sample.payload.with(Declaration::parse) {
                        Ok(Ok(declaration)) => directory.declared(&source, declaration, sample.sent),
                        _ => {
                            shared.refused.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
                BusEvent::Source(change) => match change.state {
                    SourceState::Died => directory.ended(change.incarnation, Reason::SourceDied),
                    SourceState::Left => directory.ended(change.incarnation, Reason::SourceLeft),
                    SourceState::Silent => directory.silent(change.incarnation, true),
                    SourceState::Returned => directory.silent(change.incarnation, false),
                    _ => {}
                },
                BusEvent::Gap(gap) => ask::for_names(&shared.participant, gap.stream.incarnation),
            }
        });
        shared.directory.lock().notify_workers();
        shared.open_workers();
        // Commands for a worker that was just opened came before it had an alarm.
        let directory = shared.directory.lock();
        directory.workers.values().filter(|commands| commands.needs_notify()).for_each(|commands| commands.notify());
    }
}
