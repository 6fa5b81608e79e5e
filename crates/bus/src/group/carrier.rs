//! The carrier of one group at a node: sockets, threads, and the keys that nodes give one another.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};
use tampu_types::{
    Domain, TopicName,
    name::{escape, unescape},
};
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    asked::Asked,
    datagram::{Content, Key, head},
    hearing::Hearing,
    incoming::{Arrived, Incoming},
    outgoing::{Asking, Outgoing},
    settings::GroupSettings,
    socket::Socket,
    table::GroupTableWriter,
};
use crate::{
    access::{HostTopics, Verb},
    clock::Clock,
    engine::{Answer, Class, Engine, EngineError, Guard, Question, UNPROVED},
    host,
    wire::keys::Keys,
};

/// Datagrams sent at once.
const AT_ONCE: usize = 44;
/// Longest sleep of a thread.
const SLEEP: Duration = Duration::from_millis(100);
/// Sleep of the receiving thread while reports are due soon.
const NAP: Duration = Duration::from_millis(2);
/// Time between two looks at the members.
const LOOK: Duration = Duration::from_millis(200);
/// Time that a question may take.
const ANSWER: Duration = Duration::from_secs(2);
/// Time in ns after which a member that does not hear the group is told.
const UNREACHED: u64 = 5_000_000_000;

/// Question of a member for the key of a source.
#[derive(Serialize, Deserialize)]
struct KeyRequest {
    group: SocketAddr,
    boot: u32,
    life: u64,
    /// Number of the node, the same in its next life. Earlier releases send none.
    #[serde(default)]
    node: u64,
}

/// Answer of a source.
#[derive(Serialize, Deserialize)]
struct KeyAnswer {
    #[serde(flatten)]
    key: Key,
    member: u16,
    /// Number of the node, the same in its next life. Earlier releases send none.
    #[serde(default)]
    node: u64,
    /// Host chunk of its keys. All nodes of one machine get a question to it. Earlier releases send none.
    #[serde(default)]
    host: String,
}

/// Parts of a node that a carrier uses.
pub struct NodeParts<'a> {
    pub engine: Arc<dyn Engine>,
    pub domain: &'a Domain,
    /// The domain's part of the run-time directory.
    pub directory: &'a Path,
    pub table: Arc<GroupTableWriter>,
}

/// Counters of a group since its node joined it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    /// Address and port of the group.
    pub group: SocketAddr,
    /// Other hosts that hear this host in it.
    pub hosts: usize,
    /// Datagrams that did not open: damaged, forged or foreign ones.
    pub refused: u64,
    /// Messages of this host that were dropped because too many waited, or because no member heard them.
    pub dropped: u64,
    /// Datagrams that this host sent again.
    pub repeated: u64,
}

struct Shared {
    number: u32,
    group: SocketAddr,
    boot: u32,
    /// Number of this life of the node.
    life: u64,
    /// Number of this node, the same in its next life.
    node: u64,
    engine: Arc<dyn Engine>,
    clock: Arc<dyn Clock>,
    keys: Keys,
    topics: HostTopics,
    table: Arc<GroupTableWriter>,
    source: Socket,
    members: Socket,
    room: u32,
    outgoing: Mutex<Outgoing>,
    news: Condvar,
    incoming: Mutex<Incoming>,
    /// Nodes by boot and host chunk. One machine may have several, also beside this one.
    nodes: Mutex<HashMap<(u32, String), Asked>>,
    trouble: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

/// A group that this node has joined. Dropping it leaves the group.
pub struct Carrier {
    shared: Arc<Shared>,
    guards: Vec<Guard>,
    threads: Vec<JoinHandle<()>>,
}

fn service() -> TopicName {
    // A constant that is a valid name.
    TopicName::new("site/group").unwrap_or_else(|_| unreachable!("'site/group' is a name"))
}

fn worker(name: &'static str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    WorkerThread::named(name).spawn(OnPanic::ReportOnly, work)
}

impl Carrier {
    /// Joins the group.
    pub fn open(number: u32, settings: &GroupSettings, parts: &NodeParts<'_>) -> io::Result<Carrier> {
        let (members, room) = Socket::of_members(settings)?;
        let outgoing = Outgoing::new(Socket::datagram(settings.address)).ok_or(io::ErrorKind::Other)?;
        let life = Key::random().ok_or(io::ErrorKind::Other)?.epoch;
        let shared = Arc::new(Shared {
            number,
            group: SocketAddr::new(settings.address, settings.port),
            boot: host::boot(),
            life,
            node: number_of(parts.directory)?,
            clock: parts.engine.clock(),
            engine: parts.engine.clone(),
            keys: Keys::new(parts.domain),
            topics: HostTopics::in_directory(parts.directory, parts.domain),
            table: parts.table.clone(),
            source: Socket::of_source(settings)?,
            members,
            room,
            outgoing: Mutex::new(outgoing),
            news: Condvar::new(),
            incoming: Mutex::default(),
            nodes: Mutex::default(),
            trouble: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let guards = shared.declare().map_err(io::Error::other)?;
        let mut carrier = Carrier { shared: shared.clone(), guards, threads: Vec::new() };
        let (reports, members, looks) = (shared.clone(), shared.clone(), shared.clone());
        carrier.threads.push(worker("tampu-group-send", move || shared.send())?);
        carrier.threads.push(worker("tampu-group-reports", move || reports.hear_reports())?);
        carrier.threads.push(worker("tampu-group-hear", move || members.hear())?);
        carrier.threads.push(worker("tampu-group-look", move || looks.look())?);
        Ok(carrier)
    }

    /// Returns the counters.
    pub fn report(&self) -> GroupReport {
        let shared = &self.shared;
        let refused = shared.incoming.lock().refused;
        let outgoing = shared.outgoing.lock();
        let hosts = outgoing.reached(shared.clock.monotonic()).len();
        GroupReport { group: shared.group, hosts, refused, dropped: outgoing.dropped, repeated: outgoing.sending.repeated }
    }

    /// Returns what does not work at present.
    pub fn trouble(&self) -> Vec<String> {
        self.shared.trouble.lock().clone()
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.news.notify_all();
        self.guards.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn declare(self: &Arc<Shared>) -> Result<Vec<Guard>, EngineError> {
        let (sender, answerer, watcher) = (Arc::downgrade(self), Arc::downgrade(self), Arc::downgrade(self));
        let with = |weak: &Weak<Shared>| weak.upgrade();
        let sent = self.engine.subscribe(
            &self.keys.group_sent(self.boot, self.number),
            Arc::new(move |bytes, key| {
                if let Some(shared) = with(&sender) {
                    shared.put(&bytes, key);
                }
            }),
        )?;
        let questions = self.keys.node_questions(self.boot, &service());
        let answers = self.engine.answer(
            &questions,
            Arc::new(move |question| {
                if let Some(shared) = with(&answerer) {
                    shared.answer(&*question);
                }
            }),
        )?;
        let seen = self.engine.watch(
            &self.keys.nodes(),
            Arc::new(move |seen| {
                let Some(shared) = with(&watcher) else { return };
                let (Some(boot), Some(host)) = (shared.keys.parse_node(&seen.key), shared.keys.host_of(&seen.key)) else {
                    return;
                };
                let of = (boot, host.to_owned());
                if seen.here {
                    shared.nodes.lock().insert(of, Asked::default());
                } else {
                    shared.nodes.lock().remove(&of);
                }
            }),
            None,
        )?;
        Ok(vec![sent, answers, seen])
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Takes a batch of a process of this host.
    fn put(&self, batch: &Bytes, key: &str) {
        let Some(place) = self.keys.group_place(key) else { return };
        let mut outgoing = self.outgoing.lock();
        if self.topics.has_rules() {
            // A host with the key can read everything that is sent.
            let Some(topic) = topic_of(place) else { return };
            if !outgoing.holders().iter().all(|host| self.topics.may(host, Verb::Read, &topic)) {
                return;
            }
        }
        if outgoing.put(place, batch, self.clock.monotonic()) {
            self.news.notify_all();
        }
    }

    /// Gives a member the key.
    fn answer(&self, question: &dyn Question) {
        let Ok(request) = serde_json::from_slice::<KeyRequest>(question.payload()) else { return };
        let chunk = self.keys.host_of(question.key()).unwrap_or(UNPROVED);
        let host = self.engine.host().and(unescape(chunk)).filter(|_| chunk != UNPROVED);
        if request.life == self.life || request.group != self.group || self.engine.host().is_some() && host.is_none() {
            return;
        }
        let mut outgoing = self.outgoing.lock();
        if let Some(host) = host.as_deref().filter(|_| self.topics.has_rules()) {
            let may = |place: &str| topic_of(place).is_some_and(|topic| self.topics.may(host, Verb::Read, &topic));
            outgoing.renew_for(host, self.clock.monotonic(), may);
        }
        let asking = Asking { boot: request.boot, node: request.node, life: request.life, host };
        let Some(member) = outgoing.admit(asking, self.clock.monotonic()) else { return };
        let own = self.engine.host().map_or_else(|| UNPROVED.to_owned(), |name| escape(&name));
        let answer = KeyAnswer { key: outgoing.key(), member, node: self.node, host: own };
        drop(outgoing);
        self.news.notify_all();
        if let Ok(answer) = serde_json::to_vec(&answer) {
            // A member without an answer asks again.
            let _ = question.reply(Bytes::from(answer));
        }
    }

    fn send(&self) {
        let mut datagrams = Vec::new();
        while !self.is_over() {
            let mut outgoing = self.outgoing.lock();
            let now = self.clock.monotonic();
            let next = outgoing.take(&mut datagrams, AT_ONCE, now);
            if datagrams.is_empty() {
                let pause = Duration::from_nanos(next.saturating_sub(now)).min(SLEEP);
                self.news.wait_for(&mut outgoing, pause);
                continue;
            }
            drop(outgoing);
            if let Some(length) = self.source.send_all(&datagrams, self.group) {
                self.outgoing.lock().is_too_long(length);
            }
            datagrams.clear();
        }
    }

    fn hear_reports(&self) {
        let mut buffer = Vec::new();
        self.source.wait_at_most(SLEEP);
        while !self.is_over() {
            let seal = self.outgoing.lock().seal();
            let took = self.source.take(&mut buffer, |datagram, _| {
                let Ok((_, epoch, number)) = head(datagram) else { return };
                if let Ok(Content::Report(member, report)) = seal.open(datagram) {
                    let mut outgoing = self.outgoing.lock();
                    // The key may be another one by now, with other members.
                    if outgoing.key().epoch == epoch {
                        outgoing.reported(member, number, &report, self.clock.monotonic());
                    }
                    self.news.notify_all();
                }
            });
            self.pause_after(&took);
        }
    }

    /// A socket whose interface is down reports errors without a pause.
    fn pause_after(&self, took: &io::Result<bool>) {
        if took.is_err() {
            std::thread::sleep(SLEEP);
        }
    }

    fn hear(&self) {
        let (mut buffer, mut arrived, mut naps) = (Vec::new(), Vec::new(), None);
        while !self.is_over() {
            let own = self.outgoing.lock().key().epoch;
            let mut incoming = self.incoming.lock();
            let now = self.clock.monotonic();
            let next = incoming.work(now, &mut arrived, |report, to| {
                // A report that is too long for the interface is lost as any other; the next one is shorter.
                let _ = self.source.send(report, to);
            });
            drop(incoming);
            arrived.drain(..).for_each(|message| self.deliver(&message));
            let is_soon = next < now + SLEEP.as_nanos() as u64;
            if naps != Some(is_soon) {
                self.members.wait_at_most(if is_soon { NAP } else { SLEEP });
                naps = Some(is_soon);
            }
            let took = self.members.take(&mut buffer, |datagram, from| {
                self.incoming.lock().datagram(datagram, from, own, self.clock.monotonic());
            });
            self.pause_after(&took);
        }
    }

    /// Passes a message on to the processes of this host.
    fn deliver(&self, Arrived { host, message }: &Arrived) {
        let Some((length, rest)) = message.split_first_chunk::<2>() else { return };
        let Some((place, batch)) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length))) else { return };
        let Ok(place) = std::str::from_utf8(place) else { return };
        // Samples that the engine drops are fetched again, as everywhere.
        if let Ok(outlet) = self.engine.outlet(&self.keys.group_arrived(host, self.boot, place), Class::Control) {
            let _ = outlet.send(Bytes::copy_from_slice(batch));
        }
    }

    fn look(self: &Arc<Shared>) {
        while !self.is_over() {
            let now = self.clock.monotonic();
            self.topics.refresh();
            let mut outgoing = self.outgoing.lock();
            outgoing.expire(self.engine.host().is_some(), now);
            let (boots, hosts, unreached) = (outgoing.reached(now), outgoing.holders(), outgoing.unreached(UNREACHED, now));
            // Processes cannot tell which of several nodes of this machine another process is at.
            let is_reached_here = outgoing.reaches_all(self.boot, now);
            drop(outgoing);
            let mut trouble: Vec<String> = unreached
                .into_iter()
                .map(|(host, too_long)| match too_long {
                    None => format!("the multicast group {} does not reach the host {host}; it gets samples singly", self.group),
                    Some(length) => format!(
                        "datagrams of {length} bytes to the multicast group {} do not reach the host {host}, and shorter ones do: \
                         a network on the way has a smaller MTU than this host's interface; it gets samples singly",
                        self.group
                    ),
                })
                .collect();
            if let Err(why) = self.table.publish(self.number, if is_reached_here { boots } else { Vec::new() }, hosts) {
                trouble.push(format!("the file of the multicast groups cannot be written: {why}"));
            }
            *self.trouble.lock() = trouble;
            self.ask_nodes(now);
            std::thread::sleep(LOOK);
        }
    }

    /// Asks other nodes for their keys, and asks for them again.
    fn ask_nodes(self: &Arc<Shared>, now: u64) {
        let misses = std::mem::take(&mut self.incoming.lock().misses_keys);
        let mut due = Vec::new();
        for (of, asked) in &mut *self.nodes.lock() {
            if asked.is_due(self.incoming.lock().knows(of.0, &of.1), misses, now) {
                due.push(of.clone());
            }
        }
        let request = KeyRequest { group: self.group, boot: self.boot, life: self.life, node: self.node };
        let Ok(request) = serde_json::to_vec(&request) else { return };
        for (boot, host) in due {
            let shared = Arc::downgrade(self);
            let answers = Box::new(move |answer| {
                if let (Answer::Part(part), Some(shared)) = (answer, shared.upgrade())
                    && let Ok(answer) = serde_json::from_slice::<KeyAnswer>(&part)
                    // Each node of a machine is asked by itself. Under another node's name its samples would count as forged.
                    && (answer.host == host || answer.host.is_empty())
                {
                    let now = shared.clock.monotonic();
                    let hearing = Hearing::new(shared.room, shared.life ^ u64::from(boot), now);
                    shared.incoming.lock().add((boot, answer.node), &host, &answer.key, answer.member, hearing);
                }
            });
            // It is asked again.
            let _ = self.engine.ask(&self.keys.question_to(boot, &service()), Bytes::from(request.clone()), ANSWER, answers);
        }
    }
}

/// Returns a number of the node with this directory: that of the directory itself, which outlives the node.
fn number_of(directory: &Path) -> io::Result<u64> {
    let found = std::fs::metadata(directory)?;
    Ok(found.dev().rotate_left(40) ^ found.ino())
}

/// Returns the topic in the end of a key.
fn topic_of(place: &str) -> Option<TopicName> {
    let (topic, _) = place.rsplit_once('/')?;
    let names = topic.split('/').map(unescape).collect::<Option<Vec<_>>>()?;
    TopicName::new(names.join("/")).ok()
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        net::{IpAddr, Ipv4Addr, UdpSocket},
        time::Instant,
    };

    use tampu_types::Partition;

    use super::*;
    use crate::{
        engine::{memory::MemoryNet, with_host},
        group::settings::GroupInterface,
    };

    #[test]
    fn each_of_two_nodes_of_one_machine_is_heard_under_its_own_name() {
        let (domain, names) = (Domain::new("lab").unwrap(), ["dish", "mast", "vm"]);
        let net = MemoryNet::new(1);
        net.prove_hosts();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let interface = Some(GroupInterface::Address(Ipv4Addr::LOCALHOST));
        let group = GroupSettings { port, interface, ..GroupSettings::new(IpAddr::from([239, 255, 74, 49])) };
        let (keys, boot) = (Keys::new(&domain), host::boot());
        // All processes of a test have one boot, as those of one machine.
        let nodes: Vec<_> = names
            .map(|name| {
                let (engine, directory) = (net.engine(name), tempfile::tempdir().unwrap());
                let table = GroupTableWriter::new(directory.path().to_owned(), ["**".to_owned()].into_iter()).unwrap();
                let announced = engine.announce(&keys.node(boot)).unwrap();
                let parts = NodeParts { engine: engine.clone(), domain: &domain, directory: directory.path(), table };
                (Carrier::open(0, &group, &parts).unwrap(), announced, engine, directory)
            })
            .into();
        let heard = Arc::new(Mutex::new(BTreeSet::new()));
        let (of_reader, of_keys) = (heard.clone(), keys.clone());
        let deliver = Arc::new(move |bytes: Bytes, key: &str| {
            let host = of_keys.host_of(key).unwrap_or_default().to_owned();
            of_reader.lock().insert((host, String::from_utf8(bytes.to_vec()).unwrap()));
        });
        let _reader = nodes[2].2.subscribe(&format!("{}/g/*/{boot:08x}/in/**", keys.root()), deliver).unwrap();
        let key = keys.group(boot, 0, &TopicName::new("t").unwrap(), &Partition::everybody());
        let (began, all) = (Instant::now(), || heard.lock().iter().map(|(_, said)| said.clone()).collect::<BTreeSet<_>>());
        while all().len() < names.len() {
            assert!(began.elapsed() < Duration::from_secs(100), "heard only {:?}", heard.lock());
            for ((carrier, ..), name) in nodes.iter().zip(names) {
                carrier.shared.put(&Bytes::from(name), &with_host(&key, name));
            }
            net.advance(Duration::from_millis(5));
            std::thread::sleep(Duration::from_millis(5));
        }
        for (host, said) in &*heard.lock() {
            assert_eq!(*host, escape(said), "a reader takes it for forged");
        }
    }
}
