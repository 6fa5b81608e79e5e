//! Forwarding at a node: samples of its host to other hosts, and samples of other hosts to its own.
//!
//! ```text
//!   out:  processes of this host (PUB) --> XSUB | XPUB --> nodes of other hosts        tcp
//!   in:   nodes of other hosts (XPUB) --> XSUB | XPUB --> processes of this host       sockets in the run-time directory
//! ```
//! Each direction exists twice, for ordinary and for urgent samples. Subscriptions go against the samples, so a link
//! carries what somebody on the other host has asked for, once. Samples from other hosts go to processes of this host
//! alone, so none goes round.

use std::{
    collections::{HashMap, HashSet},
    io::{Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tampu_workers::{OnPanic, WorkerThread};
use zmq::{Context, DONTWAIT, Message, POLLIN, PollItem, SNDMORE, Socket};

use super::{
    far::{self, Credentials, FarAddress},
    frame,
    socket::{self, NAME, refused},
};
use crate::engine::EngineError;

/// Messages that one socket forwards before others have their turn.
const TURN: usize = 64;

/// Address at which libzmq asks if somebody may connect.
const DOORKEEPER: &str = "inproc://zeromq.zap.01";

/// Connects to, or leaves, the publishers at two addresses.
#[derive(Debug)]
pub enum Order {
    /// A process of this host.
    Near([String; 2], bool),
    /// A node of another host.
    Far([String; 2], bool),
    End,
}

/// A pair of sockets: samples come at one and leave at the other.
struct Lane {
    from: Socket,
    to: Socket,
}

impl Lane {
    /// Forwards what is there, up to a bound. Returns true if it reached the bound.
    fn forward(&self) -> bool {
        // Subscriptions first: they are few.
        for _ in 0..TURN {
            if !subscribe(&self.to, &self.from) {
                break;
            }
        }
        (0..TURN).all(|_| pass(&self.from, &self.to))
    }
}

/// Passes one message on, with all its frames. Returns false if there is none.
fn pass(from: &Socket, to: &Socket) -> bool {
    loop {
        let mut frame = Message::new();
        if from.recv(&mut frame, DONTWAIT).is_err() {
            return false;
        }
        let more = frame.get_more();
        // A subscriber with a full queue loses it, as any engine may; the layer above repairs that.
        let _ = to.send(frame, if more { SNDMORE | DONTWAIT } else { DONTWAIT });
        if !more {
            return true;
        }
    }
}

/// Passes a subscription, or its end, on. Returns false if there is none.
fn subscribe(from: &Socket, to: &Socket) -> bool {
    let Ok(frames) = from.recv_multipart(DONTWAIT) else { return false };
    if let [subscription] = &frames[..]
        && matches!(subscription.first(), Some(0 | 1))
        && subscription.len() <= frame::LONGEST
    {
        // Nothing bounds the queue of subscriptions, so none is refused.
        let _ = to.send(subscription, DONTWAIT);
    }
    true
}

/// The forwarding worker of a node. Dropping it ends the worker.
pub struct Lanes {
    orders: Arc<Mutex<Vec<Order>>>,
    wake: UnixStream,
    /// Addresses at which it publishes for other hosts.
    pub addresses: Vec<FarAddress>,
}

impl Lanes {
    /// Starts to forward: publishes to this host at the two addresses, and for other hosts at these addresses of this host.
    pub fn start(
        inward: &[String; 2],
        hosts: &[String],
        credentials: &Credentials,
        longest: usize,
    ) -> Result<Lanes, EngineError> {
        let context = Context::new();
        let doorkeeper = context.socket(zmq::REP).map_err(refused("opening a socket"))?;
        doorkeeper.bind(DOORKEEPER).map_err(refused("listening for questions about who may connect"))?;
        let (mut outward, mut ports) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            let to = socket::open(&context, zmq::XPUB, longest)?;
            to.set_plain_server(true).and_then(|()| to.set_zap_domain(NAME)).map_err(refused("asking for a password"))?;
            ports.push(listen(&to, hosts)?);
            outward.push(Lane { from: socket::open(&context, zmq::XSUB, longest)?, to });
        }
        let zipped = hosts.iter().zip(ports[0].iter().zip(&ports[1]));
        let addresses = zipped.map(|(host, (one, other))| FarAddress { host: host.clone(), ports: [*one, *other] }).collect();
        let mut inner = Vec::new();
        for address in inward {
            let from = socket::open(&context, zmq::XSUB, longest)?;
            let named = from.set_plain_username(Some(&credentials.user));
            named.and_then(|()| from.set_plain_password(Some(&credentials.password))).map_err(refused("setting a password"))?;
            let to = socket::open(&context, zmq::XPUB, longest)?;
            to.bind(address).map_err(refused(format!("listening at {address}")))?;
            inner.push(Lane { from, to });
        }
        let failed = |why: std::io::Error| EngineError::Refused {
            engine: NAME,
            doing: "starting to forward".to_owned(),
            why: why.to_string(),
        };
        let (wake, woken) = UnixStream::pair().map_err(failed)?;
        for end in [&wake, &woken] {
            end.set_nonblocking(true).map_err(failed)?;
        }
        let orders = Arc::<Mutex<Vec<Order>>>::default();
        let worker =
            Worker { doorkeeper, credentials: credentials.clone(), outward, inward: inner, orders: orders.clone(), woken };
        WorkerThread::named("tampu-zmq-lanes").spawn(OnPanic::ReportOnly, move || worker.run()).map_err(failed)?;
        Ok(Lanes { orders, wake, addresses })
    }

    /// Orders something of the worker.
    pub fn order(&self, order: Order) {
        self.orders.lock().push(order);
        // It fails only if many bytes wait there already.
        let _ = (&self.wake).write(&[0]);
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.order(Order::End);
    }
}

/// Listens at each of these addresses of this host. Returns the ports.
fn listen(socket: &Socket, hosts: &[String]) -> Result<Vec<u16>, EngineError> {
    let mut ports = Vec::new();
    for host in hosts {
        socket.bind(&format!("tcp://{host}:*")).map_err(refused(format!("listening at {host}")))?;
        let at = socket.get_last_endpoint().map_err(refused("asking for a port"))?.unwrap_or_default();
        ports.push(at.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default());
    }
    Ok(ports)
}

struct Worker {
    doorkeeper: Socket,
    credentials: Credentials,
    /// To other hosts: ordinary samples, urgent ones.
    outward: Vec<Lane>,
    /// From other hosts.
    inward: Vec<Lane>,
    orders: Arc<Mutex<Vec<Order>>>,
    woken: UnixStream,
}

impl Worker {
    fn run(&self) {
        // Urgent samples first.
        let lanes: Vec<&Lane> = [&self.outward[1], &self.inward[1], &self.outward[0], &self.inward[0]].into();
        let (mut is_busy, mut followed) = (false, HashSet::new());
        loop {
            let mut items: Vec<PollItem> =
                vec![PollItem::from_fd(self.woken.as_raw_fd(), POLLIN), self.doorkeeper.as_poll_item(POLLIN)];
            items.extend(lanes.iter().flat_map(|lane| [lane.from.as_poll_item(POLLIN), lane.to.as_poll_item(POLLIN)]));
            if let Err(why) = zmq::poll(&mut items, if is_busy { 0 } else { -1 })
                && why != zmq::Error::EINTR
            {
                return;
            }
            if items[0].is_readable() && !self.obey(&mut followed) {
                return;
            }
            if items[1].is_readable() {
                answer(&self.doorkeeper, &self.credentials);
            }
            is_busy = false;
            for lane in &lanes {
                is_busy |= lane.forward();
            }
        }
    }

    /// Does what was ordered. Returns false at the end. `followed` are the addresses that it is connected to: another
    /// connection to one would bring each sample twice.
    fn obey(&self, followed: &mut HashSet<String>) -> bool {
        let mut bytes = [0; 64];
        while (&self.woken).read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
        let orders = std::mem::take(&mut *self.orders.lock());
        for order in orders {
            let (lanes, addresses, is_here) = match order {
                Order::Near(addresses, is_here) => (&self.outward, addresses, is_here),
                Order::Far(addresses, is_here) => (&self.inward, addresses, is_here),
                Order::End => return false,
            };
            for (lane, address) in lanes.iter().zip(&addresses) {
                // An address that libzmq cannot read has nobody behind it.
                let _ = match is_here {
                    true if followed.insert(address.clone()) => lane.from.connect(address),
                    false if followed.remove(address) => lane.from.disconnect(address),
                    _ => Ok(()),
                };
            }
        }
        true
    }
}

/// Answers libzmq's question if somebody with this user and password may connect (ZeroMQ's RFC 27).
fn answer(socket: &Socket, credentials: &Credentials) {
    let Ok(frames) = socket.recv_multipart(DONTWAIT) else { return };
    let frame = |number: usize| frames.get(number).map(Vec::as_slice).unwrap_or_default();
    let knows = frame(5) == b"PLAIN"
        && frame(6) == credentials.user.as_bytes()
        // Hashes are compared, so the time does not tell how much of a guess is right.
        && Sha256::digest(frame(7)) == Sha256::digest(credentials.password.as_bytes());
    let (code, text) = if knows { ("200", "") } else { ("400", "wrong user or password") };
    let reply = [frame(0), frame(1), code.as_bytes(), text.as_bytes(), b"", b""];
    let _ = socket.send_multipart(reply, DONTWAIT);
}

/// A node of another host.
struct FarNode {
    /// Number of the announcement; a later one has another number.
    number: u64,
    /// Addresses that it announced.
    announced: Vec<FarAddress>,
    since: Instant,
    /// Address at which it answered.
    connected: Option<[String; 2]>,
}

/// Nodes of other hosts, by their announcement.
#[derive(Default)]
pub struct FarNodes {
    followed: Mutex<HashMap<String, FarNode>>,
    numbers: AtomicU64,
}

impl FarNodes {
    /// Connects to a node that has come, at the first of its addresses where it answers. It is asked until it does, or goes.
    pub fn come(self: &Arc<FarNodes>, lanes: &Arc<Lanes>, key: &str, chunk: &str) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let announced = far::from_chunk(chunk);
        let node = FarNode { number, announced: announced.clone(), since: Instant::now(), connected: None };
        let mut followed = self.followed.lock();
        if followed.contains_key(key) {
            return;
        }
        followed.insert(key.to_owned(), node);
        drop(followed);
        let (nodes, lanes, key) = (self.clone(), Arc::downgrade(lanes), key.to_owned());
        // A worker of its own: an address that does not answer takes its time. Without one the node counts as unreachable.
        let _ = WorkerThread::named("tampu-zmq-meet").spawn(OnPanic::ReportOnly, move || {
            loop {
                let found = announced.iter().find(|address| address.answers());
                let Some(lanes) = lanes.upgrade() else { return };
                let mut followed = nodes.followed.lock();
                let Some(node) = followed.get_mut(&key).filter(|node| node.number == number) else { return };
                if let Some(found) = found {
                    let endpoints = found.endpoints();
                    node.connected = Some(endpoints.clone());
                    return lanes.order(Order::Far(endpoints, true));
                }
                drop(followed);
                drop(lanes);
                std::thread::sleep(AGAIN);
            }
        });
    }

    /// Leaves a node that has gone.
    pub fn go(&self, lanes: &Lanes, key: &str) {
        if let Some(FarNode { connected: Some(endpoints), .. }) = self.followed.lock().remove(key) {
            lanes.order(Order::Far(endpoints, false));
        }
    }

    /// Returns the addresses of each node that has not answered for a while.
    pub fn unreached(&self) -> Vec<String> {
        let followed = self.followed.lock();
        let silent = followed.values().filter(|node| node.connected.is_none() && node.since.elapsed() > PATIENCE);
        let address = |one: &FarAddress| format!("{} (ports {} and {})", one.host, one.ports[0], one.ports[1]);
        silent.map(|node| node.announced.iter().map(address).collect::<Vec<_>>().join(", ")).collect()
    }
}

/// Pause before a node that did not answer is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Time after which a node that has not answered is reported.
const PATIENCE: Duration = Duration::from_secs(5);
