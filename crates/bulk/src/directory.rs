//! Who receives what, on the bus: receivers announce themselves, senders follow them and connect to those that match.
//!
//! A receiver's declaration (type 8, JSON) names its stream, its flows and where it is reached; whoever may read the topic may
//! connect, because the token is in it. A sender and a receiver may have different flows: those of one name are connected, the
//! others are told ([`Following::unmatched`]). Senders say what becomes of their transfers on a topic of its own (type 9), for whoever
//! keeps an account of them.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tampu_bus::{Alarm, BusError, Event, History, Participant, Qos, Reader, ReaderQos, SourceState, TypeTag, WriteError, Writer};
use tampu_types::{Incarnation, Partition, PartitionFilter, TopicFilter, TopicName};

pub use crate::note::TransferNote;
use crate::{
    handler::Peer,
    message::Transport,
    name::Name,
    receiver::{OpenError, Receiver, lock, spawn},
    sender::Sender,
    target::Target,
};

/// Where receivers announce themselves.
pub const RECEIVERS: &str = "bulk-receivers";
/// Where senders tell of their transfers.
pub const TRANSFERS: &str = "bulk-transfers";

/// A receiver's declaration.
pub const DECLARATION: TypeTag = TypeTag { id: 8, version: 1 };
/// What became of a transfer.
pub const TRANSFER: TypeTag = TypeTag { id: 9, version: 1 };

/// The longest sample that is read as one of these, bytes.
const SAMPLE_LIMIT: usize = 256 << 10;
/// How often those who follow look up when nothing happens.
const IDLE: Duration = Duration::from_millis(250);

/// A flow, as its receiver declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredFlow {
    /// Its name.
    pub name: Name,
    /// Which ways data may come. What this release does not know is left out.
    #[serde(default, deserialize_with = "known")]
    pub transports: Vec<Transport>,
}

fn known<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Transport>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let all = [Transport::Tcp, Transport::Shm, Transport::Udp, Transport::Multicast];
    Ok(names.iter().filter_map(|name| all.into_iter().find(|way| way.name() == name)).collect())
}

/// A receiver's word about itself. The last one of a life and number holds; one without flows takes it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Counts the receivers of one process.
    pub receiver: u32,
    /// Its stream.
    pub stream: Name,
    /// Where it is reached, and what lets in.
    pub target: Target,
    /// What it takes.
    pub flows: Vec<DeclaredFlow>,
}

/// A flow of a receiver's that this sender does not have, or the other way round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// The receiver.
    pub receiver: String,
    /// The flow.
    pub flow: Name,
    /// Whether it is the sender that does not have it.
    pub at_sender: bool,
}

/// Tells of transfers.
pub struct Teller {
    writer: Writer,
}

impl Teller {
    /// One for this process.
    pub fn open(participant: &Participant) -> Result<Teller, BusError> {
        Ok(Teller { writer: writer(participant, TRANSFERS, TRANSFER)? })
    }

    /// Tells.
    pub fn tell(&self, note: &TransferNote<'_>) -> Result<(), WriteError> {
        self.writer.write_urgent(&note.encode()).map(drop)
    }
}

fn writer(participant: &Participant, topic: &str, tag: TypeTag) -> Result<Writer, BusError> {
    let topic = TopicName::new(topic)?;
    // Everybody who comes reads what holds; nobody may hold a sender or receiver up for it.
    let default = Qos { max_wait: Duration::from_millis(5), ..Qos::default() };
    participant.writer(&topic, &Partition::everybody(), tag, participant.qos_over(default, &topic))
}

/// A receiver that is announced; dropping it takes the announcement back.
pub struct Announced {
    writer: Writer,
    declaration: Declaration,
}

/// Announces a receiver for as long as the answer is held.
pub fn announce(participant: &Participant, receiver: &Receiver) -> Result<Announced, AnnounceError> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    let flows = receiver.flows().map(|flow| DeclaredFlow { name: flow.name.clone(), transports: flow.transports.clone() });
    let declaration = Declaration {
        receiver: NEXT.fetch_add(1, Ordering::Relaxed),
        stream: receiver.stream().clone(),
        target: receiver.target(),
        flows: flows.collect(),
    };
    let announced = Announced { writer: writer(participant, RECEIVERS, DECLARATION)?, declaration };
    announced.tell()?;
    Ok(announced)
}

/// Why a receiver could not be announced, or its receivers be followed.
#[derive(Debug, thiserror::Error)]
pub enum AnnounceError {
    /// The bus says no.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The declaration is too long: too many flows.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A worker could not be started.
    #[error(transparent)]
    Open(#[from] OpenError),
}

impl Announced {
    fn tell(&self) -> Result<(), WriteError> {
        let text = serde_json::to_vec(&self.declaration).unwrap_or_default();
        self.writer.write_urgent(&text).map(drop)
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.declaration.flows.clear();
        // Who does not hear it sees the process leave, or that nobody answers.
        let _ = self.tell();
    }
}

/// Reads a declaration. `None`: what it is nobody knows, or it is too long.
pub fn parse(bytes: &[u8]) -> Option<Declaration> {
    if bytes.len() > SAMPLE_LIMIT { None } else { serde_json::from_slice(bytes).ok() }
}

/// What a sender makes of the declarations.
struct Follower {
    sender: Arc<Sender>,
    /// What each receiver has declared for this stream, by life and number.
    here: HashMap<(Incarnation, u32), (String, Declaration)>,
    unmatched: Arc<Mutex<Vec<Unmatched>>>,
}

impl Follower {
    fn key(incarnation: Incarnation, declaration: &Declaration) -> String {
        format!("{incarnation}/{}", declaration.receiver)
    }

    fn declared(&mut self, incarnation: Incarnation, source: &str, declaration: Declaration) {
        if declaration.stream != *self.sender.stream() {
            return;
        }
        let key = Follower::key(incarnation, &declaration);
        let id = (incarnation, declaration.receiver);
        if declaration.flows.is_empty() {
            if let Some((_, before)) = self.here.remove(&id) {
                before.flows.iter().for_each(|flow| self.sender.remove(&flow.name, &key));
            }
        } else {
            let address = declaration.target.address.clone();
            let peer = Peer { source: source.to_owned(), incarnation, address };
            for flow in &declaration.flows {
                // A worker that cannot be started now is tried again with the next declaration.
                let _ = self.sender.add(&flow.name, &key, &peer, &declaration.target, &flow.transports);
            }
            self.here.insert(id, (source.to_owned(), declaration));
        }
        self.tell_unmatched();
    }

    fn gone(&mut self, incarnation: Incarnation) {
        let sender = self.sender.clone();
        self.here.retain(|(life, _), (_, declaration)| {
            if *life != incarnation {
                return true;
            }
            let key = Follower::key(incarnation, declaration);
            declaration.flows.iter().for_each(|flow| sender.remove(&flow.name, &key));
            false
        });
        self.tell_unmatched();
    }

    fn tell_unmatched(&self) {
        let mut all = BTreeMap::new();
        for (source, declaration) in self.here.values() {
            for flow in declaration.flows.iter().filter(|flow| self.sender.flow(&flow.name).is_none()) {
                let one = Unmatched { receiver: source.clone(), flow: flow.name.clone(), at_sender: true };
                all.insert((source.clone(), flow.name.to_string()), one);
            }
            for flow in self.sender.flows() {
                if !declaration.flows.iter().any(|declared| declared.name == *flow.name()) {
                    let one = Unmatched { receiver: source.clone(), flow: flow.name().clone(), at_sender: false };
                    all.insert((source.clone(), flow.name().to_string()), one);
                }
            }
        }
        *lock(&self.unmatched) = all.into_values().collect();
    }
}

/// A sender that follows the declarations; dropping it stops that, connections stay.
pub struct Following {
    closing: Arc<AtomicBool>,
    alarm: Alarm,
    worker: Option<JoinHandle<()>>,
    unmatched: Arc<Mutex<Vec<Unmatched>>>,
}

/// Connects a sender to every receiver of its stream that announces itself, now and later, and lets go of those that leave.
pub fn follow(participant: &Participant, sender: &Arc<Sender>) -> Result<Following, AnnounceError> {
    let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
    let filter = TopicFilter::new(RECEIVERS).map_err(BusError::from)?;
    let reader = participant.reader(&filter, &PartitionFilter::All, qos)?;
    let unmatched = Arc::new(Mutex::new(Vec::new()));
    let follower = Follower { sender: sender.clone(), here: HashMap::new(), unmatched: unmatched.clone() };
    let (closing, alarm) = (Arc::new(AtomicBool::new(false)), reader.alarm());
    let told = closing.clone();
    let worker = spawn("bulk-follow", move || read(reader, follower, &told))?;
    Ok(Following { closing, alarm, worker: Some(worker), unmatched })
}

fn read(mut reader: Reader, mut follower: Follower, closing: &AtomicBool) {
    while !closing.load(Ordering::Acquire) {
        match reader.next(IDLE) {
            Some(Event::Sample(sample)) if sample.stream.type_tag.id == DECLARATION.id => {
                if let Ok(Some(declaration)) = sample.payload.with(parse) {
                    let (incarnation, source) = (sample.stream.incarnation, sample.stream.source.as_str().to_owned());
                    follower.declared(incarnation, &source, declaration);
                }
            }
            Some(Event::Source(change)) if matches!(change.state, SourceState::Left | SourceState::Died) => {
                follower.gone(change.incarnation);
            }
            // A gap in the declarations is made good by the connection itself: whoever is not known is connected to when it says so again.
            _ => {}
        }
    }
}

impl Following {
    /// Flows that only one of both ends has.
    pub fn unmatched(&self) -> Vec<Unmatched> {
        lock(&self.unmatched).clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.alarm.ring();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
