//! What the Python side is asked: a line of JSON each, and the bounded queue in which they wait for its standard input.

use std::{
    collections::VecDeque,
    io::Write,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use serde::Serialize;
use tampu_types::event::{AttributeConfig, EventKind, Failure, Quality};

use super::value::LineValue;

/// Bytes of requests that wait to be read. Events beyond that are lost, counted and told; other requests are few and always fit.
pub const WAITING: usize = 64 << 20;

/// A request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask<'a> {
    /// Events of an attribute of Tango.
    Subscribe {
        /// Its address.
        attribute: &'a str,
        /// Which kinds.
        kinds: &'a [EventKind],
    },
    /// No more of them.
    Unsubscribe {
        /// Its address.
        attribute: &'a str,
    },
    /// Which attributes match a pattern.
    List(&'a str),
    /// To be a device server.
    Serve(Serve<'a>),
    /// One attribute more.
    Add(&'a AttributeConfig),
    /// Another label, unit, description, other limits.
    Configure(&'a AttributeConfig),
    /// An event for Tango's clients.
    Push(Push<'a>),
    /// Counters; the answer shows that it lives.
    Counts {},
}

/// A device server.
#[derive(Debug, Serialize)]
pub struct Serve<'a> {
    /// All devices it will have.
    pub devices: Vec<Device<'a>>,
    /// Where it listens, without a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Whether it is registered in the database.
    pub database: bool,
    /// The server's instance name.
    pub instance: &'a str,
}

/// A device.
#[derive(Debug, Serialize)]
pub struct Device<'a> {
    /// Its name.
    pub device: &'a str,
    /// What it has.
    pub attributes: Vec<&'a AttributeConfig>,
}

/// An event.
#[derive(Debug, Serialize)]
pub struct Push<'a> {
    /// Of which attribute.
    pub attribute: &'a str,
    /// As what.
    pub kinds: &'a [EventKind],
    /// When the reading was taken, ns UTC.
    pub time_ns: i64,
    /// How good it is.
    pub quality: Quality,
    /// The reading.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<LineValue>,
    /// Why there is none.
    #[serde(skip_serializing_if = "<[Failure]>::is_empty")]
    pub failures: &'a [Failure],
    /// Of a data ready event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<i32>,
    /// It is told, and not what a reader gets from now on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
}

#[derive(Serialize)]
struct Question<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(flatten)]
    ask: &'a Ask<'a>,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
}

/// Lines that wait for a process. Clones are the same queue.
#[derive(Clone, Default)]
pub struct Asks {
    queue: Arc<(Mutex<Queue>, Condvar)>,
}

impl Asks {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a request into the queue; its answer repeats the id.
    pub fn ask(&self, id: Option<u64>, ask: &Ask<'_>) {
        self.put(id, ask, usize::MAX);
    }

    /// Puts an event into the queue, if there is room; says whether there was. Who is refused owes Tango's clients word of it.
    pub fn push(&self, push: Push<'_>) -> bool {
        self.put(None, &Ask::Push(push), WAITING)
    }

    fn put(&self, id: Option<u64>, ask: &Ask<'_>, bound: usize) -> bool {
        // Everything in a request can be JSON: names of members are texts, and numbers are finite or in base64.
        let Ok(mut line) = serde_json::to_vec(&Question { id, ask }) else { return false };
        line.push(b'\n');
        let mut queue = self.lock();
        if queue.closed || queue.bytes > 0 && queue.bytes + line.len() > bound {
            return false;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line);
        self.queue.1.notify_one();
        true
    }

    /// Whether nothing is taken any more.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// No more: what waits is still written, then the process's standard input ends.
    pub fn close(&self) {
        self.lock().closed = true;
        self.queue.1.notify_all();
    }

    /// Writes what comes, until it is closed or nobody reads any more.
    pub fn write_to(&self, mut input: impl Write) {
        loop {
            let line = {
                let waiting = |queue: &mut Queue| queue.lines.is_empty() && !queue.closed;
                let mut queue = self.queue.1.wait_while(self.lock(), waiting).unwrap_or_else(PoisonError::into_inner);
                let Some(line) = queue.lines.pop_front() else { return };
                queue.bytes -= line.len();
                line
            };
            if input.write_all(&line).is_err() {
                let mut queue = self.lock();
                *queue = Queue { closed: true, ..Queue::default() };
                return;
            }
        }
    }
}
