//! Directory of receivers on the bus: receivers announce themselves; senders follow the announcements and connect to
//! matching receivers.
//!
//! A receiver's declaration (type 8, JSON) names its stream, its flows and its address. It contains the token, so every
//! process that may read the topic may connect. A sender and a receiver may have different flows. Flows of the same
//! name are connected, and the others are reported ([`Following::unmatched`]). Senders report their transfers on a
//! separate topic (type 9), for accounts of transfers.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tampu_bus::{
    Alarm, BusError, Event, History, Participant, Qos, Reader, ReaderQos, SourceState, Subject, TypeTag, WriteError, Writer,
    access::{Denied, Principal, Resource, Verb},
    engine::Guard,
};
use tampu_types::{Incarnation, Partition, PartitionFilter, TopicFilter, TopicName};

pub use crate::{declared_flow::DeclaredFlow, note::TransferNote};
use crate::{
    handler::Peer,
    name::Name,
    open::{OpenError, spawn},
    passes::{self, PassOffice},
    receiver::Receiver,
    sender::Sender,
    target::Target,
};

/// The topic of receivers' announcements.
pub const RECEIVERS: &str = "bulk-receivers";
/// The topic of senders' reports about transfers.
pub const TRANSFERS: &str = "bulk-transfers";

/// A receiver's declaration.
pub const DECLARATION: TypeTag = TypeTag { id: 8, version: 1 };
/// The type of reports about transfers.
pub const TRANSFER: TypeTag = TypeTag { id: 9, version: 1 };

/// Longest sample that is read as one of these, in bytes.
const SAMPLE_LIMIT: usize = 256 << 10;
/// The longest sleep of a follower while nothing happens.
const IDLE: Duration = Duration::from_millis(250);

/// Announcement of a receiver. The last one of an incarnation and number is valid; one without flows withdraws the
/// receiver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Number of the receiver within its process.
    pub receiver: u32,
    /// The name of the stream.
    pub stream: Name,
    /// The address of the receiver, and the token that admits senders.
    pub target: Target,
    /// Flows that the receiver accepts.
    pub flows: Vec<DeclaredFlow>,
}

/// Flow that only one of sender and receiver has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unmatched {
    /// The name of the receiver.
    pub receiver: String,
    /// The name of the flow.
    pub flow: Name,
    /// True if the sender lacks the flow, false if the receiver does.
    pub at_sender: bool,
}

/// Reporter of transfers on the bus.
pub struct Teller {
    writer: Writer,
}

impl Teller {
    /// Opens a reporter for this process.
    pub fn open(participant: &Participant) -> Result<Teller, BusError> {
        Ok(Teller { writer: writer(participant, TRANSFERS, TRANSFER)? })
    }

    /// Reports a transfer.
    pub fn tell(&self, note: &TransferNote<'_>) -> Result<(), WriteError> {
        self.writer.write_urgent(&note.encode()).map(drop)
    }
}

fn writer(participant: &Participant, topic: &str, tag: TypeTag) -> Result<Writer, BusError> {
    let topic = TopicName::new(topic)?;
    participant.writer_for(&Subject::new(&topic, &Partition::everybody()), tag, default_qos())
}

/// Returns the quality of service of declarations and transfers where settings of the topics are silent.
pub fn default_qos() -> Qos {
    // A new participant reads the current declarations; it must not delay a sender or receiver.
    Qos { max_wait: Duration::from_millis(5), ..Qos::default() }
}

/// Announced receiver; dropping it withdraws the announcement.
pub struct Announced {
    writer: Writer,
    declaration: Declaration,
    /// The bus that the receiver asks about its senders.
    asked: Arc<Mutex<Option<Participant>>>,
    /// The service that gives passes to senders.
    _giving: Guard,
}

/// Announces a receiver until the returned value is dropped.
pub fn announce(participant: &Participant, receiver: &Receiver) -> Result<Announced, AnnounceError> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(1);
    // Every member of the bus reads the token in the announcement. So the rules decide before it is published.
    permit(participant, Verb::Send, receiver.stream())?;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let giving = passes::give(participant, number, receiver.passes())?;
    // Rules change, and each host has its own: the decision about a sender is made when it connects.
    let asked = Arc::new(Mutex::new(Some(participant.clone())));
    let (of_rule, stream, passes) = (asked.clone(), receiver.stream().clone(), receiver.passes().clone());
    receiver.admit_by(move |sender, pass| {
        let participant = of_rule.lock().clone()?;
        // Where nothing proves hosts, nobody asks for passes.
        let Some(principal) = (match participant.host() {
            Some(_) => passes.take(pass, sender.incarnation),
            None => Some(participant.access().others()),
        }) else {
            return Some(
                "it shows no pass of this receiver, so nothing proves its host; a sender that follows the bus gets one"
                    .to_owned(),
            );
        };
        refusal(&participant, &principal, Verb::Send, &stream)
    });
    let flows = receiver.flows().map(|flow| DeclaredFlow {
        name: flow.name.clone(),
        transports: flow.transports.clone(),
        protection: flow.protection,
    });
    let declaration =
        Declaration { receiver: number, stream: receiver.stream().clone(), target: receiver.target(), flows: flows.collect() };
    let announced = Announced { writer: writer(participant, RECEIVERS, DECLARATION)?, declaration, asked, _giving: giving };
    announced.tell()?;
    Ok(announced)
}

/// Checks that the members of the bus may send to or receive from a stream. The bus does not tell one from another.
fn permit(participant: &Participant, verb: Verb, stream: &Name) -> Result<(), AnnounceError> {
    Ok(participant.access().ask(verb, &Resource::Bulk(stream.to_string()))?)
}

/// Returns the reason for which a principal may not send to or receive from a stream.
fn refusal(participant: &Participant, principal: &Principal, verb: Verb, stream: &Name) -> Option<String> {
    participant.access().ask_for(principal, verb, &Resource::Bulk(stream.to_string())).err().map(|denied| denied.to_string())
}

/// The reason for a failed announcement, or for receivers that cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum AnnounceError {
    /// The access rules keep the members of the bus from this stream.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The bus refused.
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
        // If this is lost, the participants see the process leave or get no answer.
        let _ = self.tell();
        // Without an announcement the receiver keeps nobody on the bus.
        let last = self.asked.lock().take();
        drop(last);
    }
}

/// Decodes a declaration. `None` means that it is malformed or too long.
pub fn parse(bytes: &[u8]) -> Option<Declaration> {
    if bytes.len() > SAMPLE_LIMIT { None } else { serde_json::from_slice(bytes).ok() }
}

/// A sender's view of the declarations.
struct Follower {
    sender: Arc<Sender>,
    participant: Participant,
    /// The bus, on which its flows ask for passes.
    asking: Arc<Mutex<Option<Participant>>>,
    /// Declarations of receivers for this stream, by incarnation and number.
    here: HashMap<(Incarnation, u32), (String, Declaration)>,
    /// Places of passes, by the targets of their receivers.
    offices: HashMap<String, PassOffice>,
    unmatched: Arc<Mutex<Vec<Unmatched>>>,
}

impl Follower {
    fn declared(&mut self, incarnation: Incarnation, source: &str, declaration: Declaration) {
        if declaration.stream != *self.sender.stream() {
            return;
        }
        let id = (incarnation, declaration.receiver);
        if declaration.flows.is_empty() {
            if let Some((_, before)) = self.here.remove(&id) {
                self.forget(&before);
            }
        } else {
            let address = declaration.target.address.clone();
            let peer = Peer { source: source.to_owned(), incarnation, address };
            // The target is the receiver's own, with a token that no other has. A receiver behind a gateway gets another
            // incarnation when its hub is restarted, and the connection to it stays.
            let key = declaration.target.to_string();
            let office = || PassOffice::new(&self.asking, incarnation, declaration.receiver);
            let passes = self.offices.entry(key.clone()).or_insert_with(office);
            passes.moved_to(incarnation, declaration.receiver);
            for flow in &declaration.flows {
                // If no worker can be started, the next declaration tries again.
                let _ = self.sender.add(flow, &key, &peer, &declaration.target, passes);
            }
            self.here.insert(id, (source.to_owned(), declaration));
        }
        self.tell_unmatched();
    }

    /// Returns true if a receiver on this proved host may receive the stream. The end of a receiver is always heard.
    fn may_receive(&self, host: Option<&str>, declaration: &Declaration) -> bool {
        if declaration.flows.is_empty() || declaration.stream != *self.sender.stream() {
            return true;
        }
        let principal = self.participant.sender(&self.participant.access(), host);
        refusal(&self.participant, &principal, Verb::Receive, &declaration.stream).is_none()
    }

    fn gone(&mut self, incarnation: Incarnation) {
        let ended: Vec<_> = self.here.extract_if(|(life, _), _| *life == incarnation).collect();
        ended.iter().for_each(|(_, (_, declaration))| self.forget(declaration));
        self.tell_unmatched();
    }

    /// Removes the flows of a receiver that no other declaration has with the same target.
    fn forget(&mut self, ended: &Declaration) {
        let key = ended.target.to_string();
        let same: Vec<_> = self.here.values().filter(|(_, other)| other.target == ended.target).collect();
        let stays = |name: &Name| same.iter().any(|(_, other)| other.flows.iter().any(|flow| flow.name == *name));
        ended.flows.iter().filter(|flow| !stays(&flow.name)).for_each(|flow| self.sender.remove(&flow.name, &key));
        if same.is_empty() {
            self.offices.remove(&key);
        }
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
        *self.unmatched.lock() = all.into_values().collect();
    }
}

/// Sender that follows the declarations. Dropping it stops that. Connections stay; where certificates prove hosts, a
/// broken one is not made again, because the sender gets its passes on the bus.
pub struct Following {
    closing: Arc<AtomicBool>,
    alarm: Alarm,
    worker: Option<JoinHandle<()>>,
    unmatched: Arc<Mutex<Vec<Unmatched>>>,
    asking: Arc<Mutex<Option<Participant>>>,
}

/// Connects a sender to every receiver of its stream that announces itself, at present and later. It disconnects
/// receivers that leave.
pub fn follow(participant: &Participant, sender: &Arc<Sender>) -> Result<Following, AnnounceError> {
    permit(participant, Verb::Receive, sender.stream())?;
    let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
    let filter = TopicFilter::new(RECEIVERS).map_err(BusError::from)?;
    let reader = participant.reader(&filter, &PartitionFilter::All, qos)?;
    let unmatched = Arc::new(Mutex::new(Vec::new()));
    let asking = Arc::new(Mutex::new(Some(participant.clone())));
    let follower = Follower {
        sender: sender.clone(),
        participant: participant.clone(),
        asking: asking.clone(),
        here: HashMap::new(),
        offices: HashMap::new(),
        unmatched: unmatched.clone(),
    };
    let (closing, alarm) = (Arc::new(AtomicBool::new(false)), reader.alarm());
    let told = closing.clone();
    let worker = spawn("bulk-follow", move || read(reader, follower, &told))?;
    Ok(Following { closing, alarm, worker: Some(worker), unmatched, asking })
}

fn read(mut reader: Reader, mut follower: Follower, closing: &AtomicBool) {
    while !closing.load(Ordering::Acquire) {
        match reader.next(IDLE) {
            Some(Event::Sample(sample)) if sample.stream.type_tag.id == DECLARATION.id => {
                if let Ok(Some(declaration)) = sample.payload.with(parse)
                    && follower.may_receive(sample.stream.host.as_deref(), &declaration)
                {
                    let (incarnation, source) = (sample.stream.incarnation, sample.stream.source.as_str().to_owned());
                    follower.declared(incarnation, &source, declaration);
                }
            }
            Some(Event::Source(change)) if matches!(change.state, SourceState::Left | SourceState::Died) => {
                follower.gone(change.incarnation);
            }
            // A gap in the declarations needs no repair: an unknown receiver is connected to at its next declaration.
            _ => {}
        }
    }
}

impl Following {
    /// Returns the flows that only one end has.
    pub fn unmatched(&self) -> Vec<Unmatched> {
        self.unmatched.lock().clone()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        self.alarm.ring();
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
        let last = self.asking.lock().take();
        drop(last);
    }
}
