//! The publishing side: a process that has attributes.
//!
//! ```text
//! push -> criteria -> number, encode -> the server's stream (one for all small attributes) -> the bus
//!                                    \-> the attribute's own stream (large, or acknowledged)
//! keeper: questions (first values, lists, criteria), declarations, who else has our names
//! poller: reads what is polled
//! ```
//! A push takes its attribute's own lock and, for the time of a copy, the stream's. Nobody waits for anything while holding
//! either but the stream's writer for its readers, within its Qos; what readers ask is answered by the keeper, and polls run on a
//! worker of their own, so a slow one delays no push and no answer.
//!
//! One stream a server, and not one an attribute or a topic a device, because a stream costs memory, heartbeats and a place in
//! everybody's tables: ten thousand of them are not cheap on any engine, while a reader steps over ten thousand events it does
//! not want in a millisecond.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_bus::{
    BusError, Participant, Qos, Writer,
    access::Access,
    clock::{Clock, Gate},
    engine::Guard,
};
use tampu_types::{
    Partition, TopicName,
    event::{AttributeConfig, AttributeName, Declaration, Presence, declaration::BadDeclaration},
    name::BadTopic,
};

use crate::topics;
pub use attribute::{Attribute, Lent, PushError, Pushed, Receipt};
use attribute::{Handle, Inner, Out};
use poll::Polls;
use rivals::Rivals;
pub(crate) use rivals::yields;
use services::Services;

mod attribute;
mod poll;
mod rivals;
mod services;
mod state;

/// The most attributes a server can have in one life.
pub const ATTRIBUTES_LIMIT: u32 = 1 << 20;

/// Who does what is to be done beside pushing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Workers {
    /// Threads of our own.
    #[default]
    Own,
    /// The caller, by calling `turn` again and again: tests with a simulated clock, and programs with a loop of their own.
    Caller,
}

/// How a server works.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// Who works.
    pub workers: Workers,
    /// The shared stream; what is configured for the topic goes over it.
    pub shared: Qos,
    /// Streams of single attributes, likewise.
    pub own: Qos,
    /// Attributes whose values can be this long get a stream of their own, bytes.
    pub large: usize,
    /// Who may set criteria.
    pub access: Access,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        ServerSettings {
            workers: Workers::Own,
            shared: topics::shared_qos(),
            own: topics::own_qos(),
            large: 16 << 10,
            access: Access::same_user(),
        }
    }
}

/// How an attribute's events are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// As fast as they come, healed from the cache.
    #[default]
    Streamed,
    /// [`Attribute::push_acknowledged`] tells who got an event; the attribute has a stream of its own, so that its readers are
    /// those who subscribed to it.
    Acknowledged,
}

/// What can be said of an attribute beside its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AttributeOptions {
    /// How events are delivered.
    pub delivery: Delivery,
    /// Another process may have the attribute too, if it says the same: subscribers then get it from one of them.
    pub redundant: bool,
}

/// Why an attribute cannot be declared.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// This server has it already.
    #[error("{0} is declared already by this server")]
    Twice(AttributeName),
    /// Another process has it.
    #[error("{name} belongs to {by}; a second source must be declared redundant by both")]
    Taken {
        /// The attribute.
        name: AttributeName,
        /// Who has it.
        by: String,
    },
    /// There are too many.
    #[error("a server has at most {ATTRIBUTES_LIMIT} attributes in one life")]
    TooMany,
    /// Its configuration cannot be sent.
    #[error(transparent)]
    Config(#[from] BadDeclaration),
    /// The bus says no.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A name that cannot be one.
    #[error(transparent)]
    Topic(#[from] BadTopic),
}

#[derive(Default)]
struct Table {
    by_index: Vec<Option<Arc<Inner>>>,
    by_name: HashMap<Box<str>, u32>,
    /// Bytes of declarations since all were written last.
    declared: usize,
}

pub(crate) struct Shared {
    participant: Participant,
    clock: Arc<dyn Clock>,
    settings: ServerSettings,
    lane: Arc<Writer>,
    names: Writer,
    table: Mutex<Table>,
    rivals: Mutex<Rivals>,
    services: Services,
    polls: Polls,
    /// Opened when there is something for the keeper.
    keeper: Gate,
    stop: AtomicBool,
}

/// A process's attributes. Dropping it ends their polling and its answers; handles that are left can push, but nobody is told
/// first values any more.
pub struct Server {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    _guards: Vec<Guard>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long the keeper sleeps when nothing happens.
const IDLE: Duration = Duration::from_millis(250);

impl Server {
    /// Begins to publish under the participant's name.
    pub fn start(participant: Participant, settings: ServerSettings) -> Result<Server, BusError> {
        let writer = |topic: String, tag, qos: &Qos| {
            let topic = TopicName::new(topic)?;
            participant.writer(&topic, &Partition::everybody(), tag, participant.qos_over(qos.clone(), &topic))
        };
        let lane = writer(topics::shared(participant.source()), topics::EVENT, &settings.shared)?;
        let names = writer(topics::NAMES.to_owned(), topics::DECLARATION, &topics::names_qos())?;
        let rivals = Rivals::watch(&participant)?;
        let shared = Arc::new(Shared {
            clock: participant.clock(),
            lane: Arc::new(lane),
            names,
            table: Mutex::default(),
            rivals: Mutex::new(rivals),
            services: Services::default(),
            polls: Polls::default(),
            keeper: Gate::default(),
            stop: AtomicBool::new(false),
            settings,
            participant,
        });
        let guards = services::declare(&shared)?;
        let mut server = Server { shared, workers: Vec::new(), _guards: guards };
        if server.shared.settings.workers == Workers::Own {
            server.work("event keeper", |shared| {
                let seen = shared.keeper.openings();
                if !shared.keep() {
                    shared.wait(&shared.keeper, seen, IDLE);
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

    fn work(&mut self, name: &str, round: impl Fn(&Shared) + Send + 'static) {
        let shared = self.shared.clone();
        let begun = std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(move || {
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

    /// Declares an attribute, and how its events go.
    pub fn declare_with(&self, config: AttributeConfig, options: AttributeOptions) -> Result<Attribute, DeclareError> {
        let shared = &self.shared;
        let mut rivals = lock(&shared.rivals);
        // What has come since the keeper looked counts.
        shared.read_rivals(&mut rivals);
        if let Some(by) = rivals.owner(&config.name, options.redundant, &shared.participant) {
            return Err(DeclareError::Taken { name: config.name, by: by.source.to_string() });
        }
        let mut table = lock(&shared.table);
        if table.by_name.contains_key(config.name.folded()) {
            return Err(DeclareError::Twice(config.name));
        }
        let index = u32::try_from(table.by_index.len()).unwrap_or(u32::MAX);
        if index >= ATTRIBUTES_LIMIT {
            return Err(DeclareError::TooMany);
        }
        let out = shared.out(index, &config, options)?;
        let inner = Arc::new(Inner::new(index, config, options, out));
        shared.tell(&mut table, &inner, Presence::Declared)?;
        table.by_name.insert(inner.name.folded().into(), index);
        table.by_index.push(Some(inner.clone()));
        drop(table);
        Ok(Attribute::new(Handle::new(inner, shared.clone())))
    }

    /// Does what the workers would: answers questions, reads what is due. For [`Workers::Caller`].
    pub fn turn(&self) {
        while self.shared.keep() {}
        self.shared.polls.run(self.shared.clock.monotonic());
    }

    /// The names other processes have too, and who; their events are not sent.
    pub fn conflicts(&self) -> Vec<(AttributeName, String)> {
        let all: Vec<Arc<Inner>> = lock(&self.shared.table).by_index.iter().flatten().cloned().collect();
        all.iter().filter_map(|inner| Some((inner.name.clone(), inner.taken_by()?))).collect()
    }

    /// Which participant publishes.
    pub fn participant(&self) -> &Participant {
        &self.shared.participant
    }

    /// Sends what is waiting for company, without waiting for anybody.
    pub fn send_now(&self) {
        self.shared.lane.send_now();
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

impl Shared {
    fn wait(&self, gate: &Gate, seen: u64, longest: Duration) {
        let until = self.clock.monotonic().saturating_add(longest.as_nanos() as u64);
        self.clock.wait(gate, seen, until);
    }

    /// Does the keeper's work once; says whether there may be more at once.
    fn keep(&self) -> bool {
        self.read_rivals(&mut lock(&self.rivals));
        let answered = self.services.answer_one(self);
        let mut table = lock(&self.table);
        if table.declared > topics::NAMES_KEPT / 2 {
            self.tell_all(&mut table);
        }
        answered
    }

    /// Takes what other servers have declared, and sees which of our attributes that concerns.
    fn read_rivals(&self, rivals: &mut Rivals) {
        let table = &self.table;
        let contested = RefCell::new(Vec::new());
        rivals.read(
            &self.participant,
            |name| {
                let table = lock(table);
                let index = table.by_name.get(name.folded());
                contested.borrow_mut().extend(index.and_then(|&index| table.by_index.get(index as usize)?.clone()));
            },
            |gone| {
                let table = lock(table);
                let freed = table.by_index.iter().flatten().filter(|inner| inner.is_taken_by(gone));
                contested.borrow_mut().extend(freed.cloned());
            },
        );
        // By all that is known, not by what came last: when one of several is gone, another may have the name before us.
        for inner in contested.into_inner() {
            inner.contested(rivals.owner(&inner.name, inner.options.redundant, &self.participant));
        }
    }

    /// Where an attribute's events go.
    fn out(&self, index: u32, config: &AttributeConfig, options: AttributeOptions) -> Result<Out, DeclareError> {
        let longest = longest(config);
        if options.delivery == Delivery::Streamed && longest.is_some_and(|longest| longest < self.settings.large) {
            return Ok(Out { writer: self.lane.clone(), own: false });
        }
        let topic = TopicName::new(topics::own(self.participant.source(), index))?;
        let mut qos = self.settings.own.clone();
        // Room for a few of the longest; the memory is taken when it is used.
        qos.pool = qos.pool.max(longest.unwrap_or(0).saturating_mul(3));
        let qos = self.participant.qos_over(qos, &topic);
        let writer = self.participant.writer(&topic, &Partition::everybody(), topics::EVENT, qos)?;
        Ok(Out { writer: Arc::new(writer), own: true })
    }

    /// Tells everybody of an attribute. Under the table's lock, so that the last word is the last.
    fn tell(&self, table: &mut Table, inner: &Inner, presence: Presence) -> Result<(), BadDeclaration> {
        let mut bytes = Vec::new();
        self.declaration(inner, presence).encode(&mut bytes)?;
        table.declared += bytes.len();
        // Declarations are far shorter than any engine's longest message.
        let _ = self.names.write(&bytes);
        Ok(())
    }

    fn declaration(&self, inner: &Inner, presence: Presence) -> Declaration {
        let state = lock(&inner.state);
        Declaration {
            attribute: inner.index,
            epoch: state.epoch,
            presence,
            own_stream: inner.out.own,
            redundant: inner.options.redundant,
            config: AttributeConfig::clone(&state.config),
            unknown: Vec::new(),
        }
    }

    fn tell_all(&self, table: &mut Table) {
        let all: Vec<Arc<Inner>> = table.by_index.iter().flatten().cloned().collect();
        for inner in &all {
            // It was told before, so it can be again.
            let _ = self.tell(table, inner, Presence::Declared);
        }
        table.declared = 0;
    }

    fn withdraw(&self, inner: &Arc<Inner>) {
        let mut table = lock(&self.table);
        let _ = self.tell(&mut table, inner, Presence::Withdrawn);
        table.by_name.remove(inner.name.folded());
        if let Some(slot) = table.by_index.get_mut(inner.index as usize) {
            *slot = None;
        }
    }

    fn matching(&self, wanted: impl Fn(&AttributeName) -> bool) -> Vec<Arc<Inner>> {
        lock(&self.table).by_index.iter().flatten().filter(|inner| wanted(&inner.name)).cloned().collect()
    }
}

/// The longest value an attribute can have, bytes; none where nothing says.
fn longest(config: &AttributeConfig) -> Option<usize> {
    use tampu_types::event::{DataType, Format};
    if config.data_type == DataType::Encoded {
        return None;
    }
    // Texts are taken to be of 64 bytes: one that is longer goes all the same.
    let width = config.data_type.width().unwrap_or(64);
    let count = match config.format {
        Format::Scalar => 1,
        Format::Spectrum if config.max_x == 0 => return None,
        Format::Spectrum => config.max_x as usize,
        Format::Image if config.max_x == 0 || config.max_y == 0 => return None,
        Format::Image => (config.max_x as usize).saturating_mul(config.max_y as usize),
    };
    Some(count.saturating_mul(width))
}
