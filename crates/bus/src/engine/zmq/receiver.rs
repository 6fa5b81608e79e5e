//! The receiving side of a process: one subscriber of all publishers, read by a worker of its own.

use std::{
    collections::HashMap,
    io::{Read, Write},
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use tampu_workers::{OnPanic, WorkerThread};
use zmq::{Context, DONTWAIT, Message, POLLIN, PollItem, Socket};

use super::{super::memory::matches, frame, socket};
use crate::engine::{Deliver, EngineError};

/// Different first frames for which the worker remembers who wants them.
const REMEMBERED: usize = 16_384;

/// Messages up to this length are copied. Longer ones are handed on in libzmq's own memory.
const COPIED: usize = 4096;

/// Orders to the worker, which alone may use its socket.
enum Order {
    Connect(String),
    Disconnect(String),
    Subscribe(Vec<u8>),
    Unsubscribe(Vec<u8>),
    End,
}

struct Subscription {
    number: u64,
    pattern: String,
    deliver: Deliver,
}

/// Those who want the messages with one first frame.
pub struct Route {
    key: String,
    delivers: Vec<Deliver>,
}

impl Route {
    /// Hands a message to all of them.
    pub fn deliver(&self, message: &Bytes) {
        for deliver in &self.delivers {
            deliver(message.clone(), &self.key);
        }
    }
}

/// The subscriptions of a process, and the worker that serves them.
pub struct Receiver {
    subscriptions: RwLock<Vec<Subscription>>,
    /// Changes with the subscriptions.
    version: AtomicU64,
    orders: Mutex<Vec<Order>>,
    /// A byte for the worker's end says that there are orders.
    wake: UnixStream,
}

impl Receiver {
    /// Starts the worker.
    pub fn start(context: &Context, longest: usize) -> Result<Arc<Receiver>, EngineError> {
        let failed = |doing: &str| {
            let doing = doing.to_owned();
            move |why: std::io::Error| EngineError::Refused { engine: socket::NAME, doing, why: why.to_string() }
        };
        let (wake, woken) = UnixStream::pair().map_err(failed("making a pair of sockets"))?;
        for end in [&wake, &woken] {
            end.set_nonblocking(true).map_err(failed("preparing a pair of sockets"))?;
        }
        let socket = socket::open(context, zmq::SUB, longest)?;
        let (subscriptions, version, orders) = Default::default();
        let receiver = Arc::new(Receiver { subscriptions, version, orders, wake });
        let worker = receiver.clone();
        let started = WorkerThread::named("tampu-zmq").spawn(OnPanic::ReportOnly, move || worker.run(&socket, &woken));
        started.map(drop).map_err(failed("starting the worker tampu-zmq"))?;
        Ok(receiver)
    }

    /// Calls `deliver` with all messages whose key matches the pattern. Returns the subscription's number.
    pub fn subscribe(&self, pattern: String, deliver: Deliver) -> u64 {
        let prefix = frame::prefix(&pattern);
        let number = {
            let mut subscriptions = self.subscriptions.write();
            let number = self.version.fetch_add(1, Ordering::AcqRel) + 1;
            subscriptions.push(Subscription { number, pattern, deliver });
            number
        };
        self.order(Order::Subscribe(prefix));
        number
    }

    /// Ends a subscription.
    pub fn unsubscribe(&self, number: u64) {
        let gone = {
            let mut subscriptions = self.subscriptions.write();
            self.version.fetch_add(1, Ordering::AcqRel);
            let at = subscriptions.iter().position(|subscription| subscription.number == number);
            at.map(|at| subscriptions.remove(at))
        };
        if let Some(gone) = gone {
            self.order(Order::Unsubscribe(frame::prefix(&gone.pattern)));
        }
    }

    /// Subscribes at the publishers of a process that has come, or leaves those of one that has gone.
    pub fn follow(&self, addresses: [String; 2], is_here: bool) {
        for address in addresses {
            self.order(if is_here { Order::Connect(address) } else { Order::Disconnect(address) });
        }
    }

    /// Ends the worker.
    pub fn end(&self) {
        self.order(Order::End);
    }

    /// Returns a number that changes with the subscriptions.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns who wants messages with this key.
    pub fn route(&self, key: String) -> Arc<Route> {
        let subscriptions = self.subscriptions.read();
        let wanting = subscriptions.iter().filter(|subscription| matches(&subscription.pattern, &key));
        let delivers = wanting.map(|subscription| subscription.deliver.clone()).collect();
        drop(subscriptions);
        Arc::new(Route { key, delivers })
    }

    fn order(&self, order: Order) {
        self.orders.lock().push(order);
        // It fails only if many bytes wait there already.
        let _ = (&self.wake).write(&[0]);
    }

    fn run(&self, socket: &Socket, woken: &UnixStream) {
        let mut routes = Routes::default();
        loop {
            let mut items = [socket.as_poll_item(POLLIN), PollItem::from_fd(woken.as_raw_fd(), POLLIN)];
            if let Err(why) = zmq::poll(&mut items, -1)
                && why != zmq::Error::EINTR
            {
                return;
            }
            if items[1].is_readable() && !self.obey(socket, woken) {
                return;
            }
            while let Some((topic, message)) = next(socket) {
                routes.deliver(self, &topic, message);
                // Orders do not wait until a fast publisher pauses.
                if !self.orders.lock().is_empty() {
                    break;
                }
            }
        }
    }

    /// Does what was ordered. Returns false at the end.
    fn obey(&self, socket: &Socket, mut woken: &UnixStream) -> bool {
        let mut bytes = [0; 64];
        while woken.read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
        let orders = std::mem::take(&mut *self.orders.lock());
        for order in orders {
            // libzmq refuses only addresses that it cannot read, which nobody can connect to, and a publisher that was left
            // already.
            let _ = match order {
                Order::Connect(address) => socket.connect(&address),
                Order::Disconnect(address) => socket.disconnect(&address),
                Order::Subscribe(prefix) => socket.set_subscribe(&prefix),
                Order::Unsubscribe(prefix) => socket.set_unsubscribe(&prefix),
                Order::End => return false,
            };
        }
        true
    }
}

/// Memory of the worker about first frames.
#[derive(Default)]
struct Routes {
    version: u64,
    by_frame: HashMap<Box<[u8]>, Option<Arc<Route>>>,
}

impl Routes {
    fn deliver(&mut self, receiver: &Receiver, topic: &[u8], message: Message) {
        let version = receiver.version();
        if version != self.version || self.by_frame.len() > REMEMBERED {
            self.by_frame.clear();
            self.version = version;
        }
        if topic.len() > frame::LONGEST {
            return;
        }
        if !self.by_frame.contains_key(topic) {
            let route = frame::to_key(topic)
                .filter(|_| frame::is_sound(topic))
                .map(|key| receiver.route(key))
                .filter(|route| !route.delivers.is_empty());
            self.by_frame.insert(topic.into(), route);
        }
        if let Some(Some(route)) = self.by_frame.get(topic) {
            route.deliver(&into_bytes(message));
        }
    }
}

/// Takes the next message with two frames; others are passed over.
fn next(socket: &Socket) -> Option<(Message, Message)> {
    loop {
        let (mut topic, mut message) = (Message::new(), Message::new());
        socket.recv(&mut topic, DONTWAIT).ok()?;
        if !topic.get_more() {
            continue;
        }
        socket.recv(&mut message, DONTWAIT).ok()?;
        if !message.get_more() {
            return Some((topic, message));
        }
        let mut rest = Message::new();
        while socket.recv(&mut rest, DONTWAIT).is_ok() && rest.get_more() {}
    }
}

/// A message in libzmq's memory.
struct Held(Message);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

fn into_bytes(message: Message) -> Bytes {
    if message.len() <= COPIED { Bytes::copy_from_slice(&message) } else { Bytes::from_owner(Held(message)) }
}
