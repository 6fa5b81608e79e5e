//! The publishing side: a process that has attributes.
//!
//! ```text
//! push -> criteria -> number, encode -> the server's stream (one for all small attributes) -> the bus
//!                                    |-> the attribute's own stream (large, acknowledged, urgent, or named by a setting)
//!                                    '-> the streams of other hosts whose processes want it
//! keeper: questions (first values, lists, criteria), declarations, conflicts with other servers
//! poller: polls that are due, and reads that a question waits for
//! ```
//! A push takes its attribute's lock and, for the time of a copy, the stream's. With either lock held, only the
//! stream's writer waits for its readers, within its Qos. The keeper answers questions, and polls run on a thread of
//! their own, so a slow poll delays no push and no answer.
//!
//! A server has one stream, and not one for each attribute. A stream costs memory, heartbeats and an entry in the
//! tables of every reader. Ten thousand streams are expensive on any engine, while a reader skips ten thousand unwanted
//! events in a millisecond.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use tampu_bus::{BusError, Participant, Qos, Subject, clock::Gate, engine::Guard};
use tampu_types::{
    Partition, TopicName,
    event::{AttributeConfig, AttributeName, Presence},
};
use tampu_workers::WorkerThread;

use self::{
    attribute::AttributeHandle,
    conflicts::OtherDeclarations,
    early_events::{EarlyBytes, EarlyEvents},
    host_stream::HostStreams,
    poll::Polls,
    published::PublishedAttribute,
    questions::QuestionQueue,
    server_state::ServerState,
};
pub use self::{
    attribute::{Attribute, EventLoan, PushError, PushReceipt, Pushed},
    options::{AttributeOptions, Delivery},
    pending_read::PendingRead,
    server_state::{ATTRIBUTES_LIMIT, DeclareError},
    settings::{ServerSettings, Workers},
};
use crate::topics;

mod attribute;
mod attribute_state;
mod conflicts;
mod early_events;
mod host_route;
mod host_stream;
mod options;
mod pending_read;
mod poll;
mod published;
mod questions;
mod reads;
mod server_state;
mod services;
mod settings;
mod waiting_get;

/// Attributes of a process. Dropping it ends polls and answers. Remaining handles can push, but new subscribers get no
/// first values.
pub struct Server {
    shared: Arc<ServerState>,
    workers: Vec<JoinHandle<()>>,
    _guards: Vec<Guard>,
}

/// Longest sleep of the keeper without an event.
const IDLE: Duration = Duration::from_millis(250);

/// Pause before a worker starts again after a panic.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

impl Server {
    /// Begins to publish under the participant's name.
    pub fn start(participant: Participant, settings: ServerSettings) -> Result<Server, BusError> {
        let writer = |topic: String, tag, qos: &Qos| {
            let topic = TopicName::new(topic)?;
            participant.writer_for(&Subject::new(&topic, &Partition::everybody()), tag, qos.clone())
        };
        let shared_writer = writer(topics::shared(participant.source()), topics::EVENT, &settings.shared)?;
        let names = writer(topics::NAMES.to_owned(), topics::DECLARATION, &topics::names_qos())?;
        let others = OtherDeclarations::watch(&participant)?;
        let shared = Arc::new(ServerState {
            clock: participant.clock(),
            shared_writer: Arc::new(shared_writer),
            names,
            hosts: HostStreams::default(),
            early: EarlyBytes::default(),
            early_own: EarlyBytes::default(),
            held: Mutex::default(),
            table: Mutex::default(),
            others: Mutex::new(others),
            services: QuestionQueue::default(),
            polls: Polls::default(),
            waiting_gets: Mutex::default(),
            keeper: Gate::default(),
            stop: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            settings,
            participant,
        });
        let guards = services::declare(&shared)?;
        let mut server = Server { shared, workers: Vec::new(), _guards: guards };
        if server.shared.settings.workers == Workers::Own {
            server.work("event keeper", |shared| {
                let seen = shared.keeper.openings();
                if !keep(shared) {
                    let pause = IDLE.min(shared.forward_held());
                    shared.wait(&shared.keeper, seen, pause);
                }
            });
            server.work("event poller", |shared| {
                let seen = shared.polls.gate.openings();
                let pause = shared.polls.run(shared.clock.monotonic());
                shared.wait(&shared.polls.gate, seen, pause);
            });
        }
        Ok(server)
    }

    fn work(&mut self, name: &str, round: impl Fn(&Arc<ServerState>) + Send + 'static) {
        let shared = self.shared.clone();
        let begun = WorkerThread::named(name).stack_size(256 << 10).spawn_restarting(RESTART_PAUSE, move || {
            while !shared.stop.load(Ordering::Acquire) {
                round(&shared);
            }
        });
        // Without the worker the caller's `turn` does its work.
        self.workers.extend(begun);
    }

    /// Declares an attribute.
    pub fn declare(&self, config: AttributeConfig) -> Result<Attribute, DeclareError> {
        self.declare_with(config, AttributeOptions::default())
    }

    /// Makes attributes end without a withdrawal from now on. The program that this server stands for is dead, and
    /// subscribers hear that from the end of the participant ([`Participant::die_at_end`]).
    pub fn abandon(&self) {
        self.shared.is_abandoned.store(true, Ordering::Release);
    }

    /// Declares an attribute with options for its events.
    pub fn declare_with(&self, config: AttributeConfig, options: AttributeOptions) -> Result<Attribute, DeclareError> {
        let shared = &self.shared;
        let mut others = shared.others.lock();
        others.want(&config.name);
        // Declarations that arrived since the keeper's last round count.
        shared.read_others(&mut others);
        if let Some(by) = others.owner(&config.name, options.redundant, &shared.participant) {
            return Err(DeclareError::Taken { name: config.name, by: by.source.to_string() });
        }
        let mut table = shared.table.lock();
        if table.by_name.contains_key(config.name.folded()) {
            return Err(DeclareError::Twice(config.name));
        }
        let index = u32::try_from(table.by_index.len()).unwrap_or(u32::MAX);
        if index >= ATTRIBUTES_LIMIT {
            return Err(DeclareError::TooMany);
        }
        let out = shared.out(index, &config, options)?;
        let now = shared.clock.monotonic();
        let early = match (out.own, out.for_hosts) {
            (false, _) => EarlyEvents::since(now, shared.early.clone()),
            (true, true) => EarlyEvents::since(now, shared.early_own.clone()),
            // Readers on other hosts read the same stream.
            (true, false) => EarlyEvents::none(),
        };
        let inner = Arc::new(PublishedAttribute::new(index, config, options, out, early, now));
        shared.declare_again(&mut table, &inner, Presence::Declared)?;
        table.by_name.insert(inner.name.folded().into(), index);
        table.by_index.push(Some(inner.clone()));
        drop(table);
        Ok(Attribute::new(AttributeHandle::new(inner, shared.clone())))
    }

    /// Does one round of the workers' work: answers questions, runs due polls. For [`Workers::Caller`].
    pub fn turn(&self) {
        while keep(&self.shared) {}
        self.shared.forward_held();
        self.shared.polls.run(self.shared.clock.monotonic());
    }

    /// Returns the names that other processes own, each with its owner. Their events are not sent.
    pub fn conflicts(&self) -> Vec<(AttributeName, String)> {
        let all: Vec<Arc<PublishedAttribute>> = self.shared.table.lock().by_index.iter().flatten().cloned().collect();
        all.iter().filter_map(|inner| Some((inner.name.clone(), inner.taken_by()?))).collect()
    }

    /// Returns the participant that publishes the events.
    pub fn participant(&self) -> &Participant {
        &self.shared.participant
    }

    /// Sends the samples that wait for a batch, without blocking.
    pub fn send_now(&self) {
        self.shared.shared_writer.send_now();
        self.shared.hosts.send_now();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.keeper.open();
        self.shared.polls.gate.open();
        let this = std::thread::current().id();
        for worker in self.workers.drain(..) {
            // A poll may hold the last handle of a server.
            if worker.thread().id() != this {
                let _ = worker.join();
            }
        }
    }
}

/// Ends the wishes of processes that are gone, and drops first events whose time is over.
fn look_after_hosts(shared: &ServerState) {
    let now = shared.clock.monotonic();
    let Some(gone) = shared.hosts.look(&shared.participant, now) else { return };
    let has_early = [&shared.early, &shared.early_own].iter().any(|early| early.load(Ordering::Relaxed) > 0);
    if gone.is_empty() && !has_early {
        return;
    }
    let all: Vec<Arc<PublishedAttribute>> = shared.table.lock().by_index.iter().flatten().cloned().collect();
    for inner in all {
        if has_early {
            inner.state.lock().early.expire(now);
        }
        if !gone.is_empty() {
            inner.release(|(process, _)| gone.contains(&process));
        }
    }
}

/// Does the keeper's work once. Returns whether more questions may wait.
fn keep(shared: &Arc<ServerState>) -> bool {
    shared.read_others(&mut shared.others.lock());
    let answered = services::answer_one(shared);
    reads::answer_ready(shared);
    look_after_hosts(shared);
    shared.declare_all(&mut shared.table.lock(), topics::NAMES_KEPT / 2);
    answered
}
