//! The state of a server that its handles, its keeper, its poller and its services share.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tampu_bus::{
    BusError, Participant, Subject, Writer,
    clock::{Clock, Gate},
};
use tampu_types::{
    Partition, TopicName,
    event::{AttributeConfig, AttributeName, Declaration, Kinds, Presence, declaration::BadDeclaration},
    name::BadTopic,
};

use super::{
    conflicts::OtherDeclarations,
    early_events::EarlyBytes,
    host_route::HostRoute,
    host_stream::HostStreams,
    options::{AttributeOptions, Delivery},
    poll::Polls,
    published::{EventWriter, PublishedAttribute},
    questions::QuestionQueue,
    settings::ServerSettings,
    waiting_get::WaitingGet,
};
use crate::{names_reader, topics};

/// Greatest number of attributes of a server in one incarnation.
pub const ATTRIBUTES_LIMIT: u32 = 1 << 20;

/// Longest value in bytes that may go into streams for other hosts. A long one delays the small ones behind it.
const LONGEST_FOR_HOSTS: usize = 1 << 20;

/// Most families of attributes, in the life of a server, whose declarations have a stream of their own. Those of further ones are
/// for everybody.
const FAMILIES: usize = 16;

/// Errors of declaring an attribute.
#[derive(Debug, thiserror::Error)]
pub enum DeclareError {
    /// This server has declared it already.
    #[error("{0} is declared already by this server")]
    Twice(AttributeName),
    /// Another process owns it.
    #[error("{name} belongs to {by}; a second source must be declared redundant by both")]
    Taken {
        /// Name of the attribute.
        name: AttributeName,
        /// Source name of the process that owns it.
        by: String,
    },
    /// The server has too many attributes.
    #[error("a server has at most {ATTRIBUTES_LIMIT} attributes in one life")]
    TooMany,
    /// Its configuration cannot be encoded.
    #[error(transparent)]
    Config(#[from] BadDeclaration),
    /// The bus refused.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The name is invalid.
    #[error(transparent)]
    Topic(#[from] BadTopic),
}

#[derive(Default)]
pub(super) struct AttributeTable {
    pub(super) by_index: Vec<Option<Arc<PublishedAttribute>>>,
    pub(super) by_name: HashMap<Box<str>, u32>,
    /// Bytes of declarations for everybody since all of them were written last.
    pub(super) declared: usize,
    /// The streams of declarations by domain and family, each with its bytes since all of them were written last. `None` for a
    /// family whose declarations are for everybody.
    pub(super) families: HashMap<Box<str>, Option<(Writer, usize)>>,
}

pub(super) struct ServerState {
    pub(super) participant: Participant,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: ServerSettings,
    pub(super) shared_writer: Arc<Writer>,
    /// Declarations for everybody: of a server with many families.
    pub(super) names: Writer,
    /// Streams for other hosts.
    pub(super) hosts: HostStreams,
    pub(super) early: EarlyBytes,
    /// The same of attributes with streams of their own, which would leave others no room.
    pub(super) early_own: EarlyBytes,
    /// Attributes of which an event is held for other hosts, by the time when it is judged again, monotonic ns.
    pub(super) held: Mutex<BTreeSet<(u64, u32)>>,
    pub(super) table: Mutex<AttributeTable>,
    pub(super) others: Mutex<OtherDeclarations>,
    pub(super) services: QuestionQueue,
    pub(super) polls: Polls,
    /// Questions for current values that wait for reads. The limits of the services bound it.
    pub(super) waiting_gets: Mutex<Vec<WaitingGet>>,
    /// Gate that opens when there is work for the keeper.
    pub(super) keeper: Gate,
    pub(super) stop: AtomicBool,
    /// True if attributes that end are not withdrawn.
    pub(super) is_abandoned: AtomicBool,
}

impl ServerState {
    pub(super) fn wait(&self, gate: &Gate, seen: u64, longest: Duration) {
        let until = self.clock.monotonic().saturating_add(longest.as_nanos() as u64);
        self.clock.wait(gate, seen, until);
    }

    /// Reads the declarations of other servers, and updates the attributes of this one that they concern.
    pub(super) fn read_others(&self, others: &mut OtherDeclarations) {
        let table = &self.table;
        let set_other_owner = RefCell::new(Vec::new());
        let all_names = others.read(
            &self.participant,
            |name| {
                let table = table.lock();
                let index = table.by_name.get(name.folded());
                set_other_owner.borrow_mut().extend(index.and_then(|&index| table.by_index.get(index as usize)?.clone()));
            },
            |gone| {
                let table = table.lock();
                let freed = table.by_index.iter().flatten().filter(|inner| inner.is_taken_by(gone));
                set_other_owner.borrow_mut().extend(freed.cloned());
            },
        );
        if all_names {
            set_other_owner.borrow_mut().extend(table.lock().by_index.iter().flatten().cloned());
        }
        // By all known declarations and not by the latest one: after one of several owners has left, another may still
        // have precedence.
        for inner in set_other_owner.into_inner() {
            inner.set_other_owner(others.owner(&inner.name, inner.options.redundant, &self.participant));
        }
    }

    /// Opens or shares the stream of an attribute's events.
    pub(super) fn out(
        &self,
        index: u32,
        config: &AttributeConfig,
        options: AttributeOptions,
    ) -> Result<EventWriter, DeclareError> {
        let longest = longest(config);
        let is_small = longest.is_some_and(|longest| longest < self.settings.large);
        let is_named = || self.participant.topic_settings().names_attribute(config.name.as_str());
        let has_shared_qos = options.delivery == Delivery::Streamed && !options.urgent && !is_named();
        if is_small && has_shared_qos {
            return Ok(EventWriter { writer: self.shared_writer.clone(), own: false, for_hosts: true });
        }
        let topic = TopicName::new(topics::own(self.participant.source(), index))?;
        let mut qos = self.settings.own.clone();
        // Room for a few of the longest; the memory is taken when it is used.
        qos.pool = qos.pool.max(longest.unwrap_or(0).saturating_mul(3));
        qos.urgent |= options.urgent;
        let (partition, attribute) = (Partition::everybody(), Some(config.name.as_str()));
        let subject = Subject { attribute, ..Subject::new(&topic, &partition) };
        let writer = self.participant.writer_for(&subject, topics::EVENT, qos)?;
        let for_hosts = has_shared_qos && longest.is_some_and(|longest| longest <= LONGEST_FOR_HOSTS);
        Ok(EventWriter { writer: Arc::new(writer), own: true, for_hosts })
    }

    /// Writes an event of an attribute into the streams of the hosts that want it; returns the number of processes that read
    /// them. It comes with its kinds, and whether it is a reading.
    #[inline]
    pub(super) fn forward(
        &self,
        index: u32,
        hosts: &mut [HostRoute],
        event: &[u8],
        number: u64,
        (kinds, is_reading): (Kinds, bool),
    ) -> usize {
        let mut readers = 0;
        for host in hosts {
            let forwarded = host.forward(event, number, kinds, is_reading);
            readers += forwarded.readers;
            if let Some(due) = forwarded.held {
                self.hold(due, index);
            }
        }
        readers
    }

    fn hold(&self, due: u64, index: u32) {
        let mut held = self.held.lock();
        held.insert((due, index));
        let is_first = held.first() == Some(&(due, index));
        drop(held);
        if is_first {
            self.keeper.open();
        }
    }

    /// Judges the held events again whose time has come. Returns the time until the next.
    pub(super) fn forward_held(&self) -> Duration {
        loop {
            let now = self.clock.monotonic();
            let index = {
                let mut held = self.held.lock();
                match held.first() {
                    None => return Duration::MAX,
                    Some(&(due, _)) if due > now => return Duration::from_nanos(due - now),
                    Some(&(_, index)) => {
                        held.pop_first();
                        index
                    }
                }
            };
            let inner = self.table.lock().by_index.get(index as usize).cloned().flatten();
            if let Some(due) = inner.and_then(|inner| inner.forward_held()) {
                self.held.lock().insert((due.max(now + 1), index));
            }
        }
    }

    /// Declares an attribute. Called under the table's lock, so that the last declaration is the valid one.
    pub(super) fn declare_again(
        &self,
        table: &mut AttributeTable,
        inner: &PublishedAttribute,
        presence: Presence,
    ) -> Result<(), BadDeclaration> {
        let mut bytes = Vec::new();
        self.declaration(inner, presence).encode(&mut bytes)?;
        let (writer, declared) = self.names_of(table, &inner.name);
        *declared += bytes.len();
        // Declarations are far shorter than any engine's longest message.
        let _ = writer.write(&bytes);
        Ok(())
    }

    /// Returns the stream of declarations of an attribute's family, with its bytes.
    fn names_of<'a>(&'a self, table: &'a mut AttributeTable, name: &AttributeName) -> (&'a Writer, &'a mut usize) {
        let has_room = table.families.len() < FAMILIES;
        let stream = table.families.entry(names_reader::family_name(name)).or_insert_with(|| {
            // A stream that the engine refuses is not tried again: declarations of an attribute come in one stream, in order.
            has_room.then(|| Some((self.names_writer(&names_reader::partition(name)).ok()?, 0))).flatten()
        });
        match stream {
            Some((writer, declared)) => (writer, declared),
            None => (&self.names, &mut table.declared),
        }
    }

    fn names_writer(&self, partition: &Partition) -> Result<Writer, BusError> {
        let topic = TopicName::new(topics::NAMES)?;
        self.participant.writer_for(&Subject::new(&topic, partition), topics::DECLARATION, topics::names_qos())
    }

    pub(super) fn declaration(&self, inner: &PublishedAttribute, presence: Presence) -> Declaration {
        let state = inner.state.lock();
        Declaration {
            attribute: inner.index,
            epoch: state.epoch,
            presence,
            own_stream: inner.out.own,
            for_hosts: inner.out.for_hosts,
            redundant: inner.options.redundant,
            config: AttributeConfig::clone(&state.config),
            unknown: Vec::new(),
        }
    }

    /// Writes the declarations of all streams again that have more than these bytes.
    pub(super) fn declare_all(&self, table: &mut AttributeTable, longer_than: usize) {
        let mut again: HashSet<Box<str>> = HashSet::new();
        for (family, stream) in &mut table.families {
            let declared = stream.as_mut().map_or(&mut table.declared, |(_, declared)| declared);
            if *declared > longer_than {
                again.insert(family.clone());
            }
        }
        if again.is_empty() {
            return;
        }
        let all: Vec<Arc<PublishedAttribute>> = table.by_index.iter().flatten().cloned().collect();
        for inner in all.iter().filter(|inner| again.contains(&names_reader::family_name(&inner.name))) {
            // It was encoded before, so it can be encoded again.
            let _ = self.declare_again(table, inner, Presence::Declared);
        }
        for (_, stream) in table.families.iter_mut().filter(|(family, _)| again.contains(*family)) {
            *stream.as_mut().map_or(&mut table.declared, |(_, declared)| declared) = 0;
        }
    }

    pub(super) fn withdraw(&self, inner: &Arc<PublishedAttribute>) {
        let mut table = self.table.lock();
        if !self.is_abandoned.load(Ordering::Acquire) {
            let _ = self.declare_again(&mut table, inner, Presence::Withdrawn);
        }
        table.by_name.remove(inner.name.folded());
        if let Some(slot) = table.by_index.get_mut(inner.index as usize) {
            *slot = None;
        }
    }

    pub(super) fn matching(&self, wanted: impl Fn(&AttributeName) -> bool) -> Vec<Arc<PublishedAttribute>> {
        self.table.lock().by_index.iter().flatten().filter(|inner| wanted(&inner.name)).cloned().collect()
    }

    /// Changes the configuration of an attribute; name, type and format stay. A change is declared with a new epoch.
    pub(super) fn reconfigure(&self, inner: &Arc<PublishedAttribute>, change: impl FnOnce(&mut AttributeConfig)) {
        let mut table = self.table.lock();
        let polled = {
            let mut state = inner.state.lock();
            let before = state.config.clone();
            let mut config = AttributeConfig::clone(&before);
            change(&mut config);
            // Name, type and format stay, because bound subscriptions rely on them.
            config.name.clone_from(&before.name);
            (config.data_type, config.format) = (before.data_type, before.format);
            if config == *before {
                return;
            }
            let polled = config.polled_ms != before.polled_ms;
            state.config = Arc::new(config);
            state.epoch += 1;
            polled
        };
        // A configuration that is too long to encode is kept here and not declared.
        let _ = self.declare_again(&mut table, inner, Presence::Declared);
        drop(table);
        if polled {
            self.polls.poll_now(inner.index, self.clock.monotonic());
        }
    }
}

/// Returns the longest value of an attribute in bytes; `None` if it has no limit.
fn longest(config: &AttributeConfig) -> Option<usize> {
    use tampu_types::event::{DataType, Format};
    if config.data_type == DataType::Encoded {
        return None;
    }
    // Texts count as 64 bytes; a longer one is sent all the same.
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
