//! Requests to the Python process, one line of JSON each, and the bounded queue in which they wait for its standard input.

use std::{collections::VecDeque, io::Write, sync::Arc};

use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::Serialize;
use tampu_types::event::{AttributeConfig, EventKind, Failure, Quality};

use super::value::LineValue;

/// Bytes of waiting requests. Events beyond that are lost, counted and reported; other requests are few and always fit.
pub const WAITING: usize = 64 << 20;

/// Kinds of events that Tango lets a program push.
pub const PUSHABLE: [EventKind; 4] = [EventKind::Change, EventKind::Alarm, EventKind::Archive, EventKind::User];

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Request<'a> {
    /// Events of an attribute of Tango.
    Subscribe { attribute: &'a str, kinds: &'a [EventKind] },
    /// No more of them.
    Unsubscribe { attribute: &'a str },
    /// Lists the attributes that match a pattern.
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
    /// Host at which it listens without a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The port there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// True if it is registered in the database.
    pub database: bool,
    /// The server's instance name.
    pub instance: &'a str,
}

#[derive(Debug, Serialize)]
pub struct Device<'a> {
    pub device: &'a str,
    /// Configurations of its attributes.
    pub attributes: Vec<&'a AttributeConfig>,
}

#[derive(Debug, Serialize)]
pub struct Push<'a> {
    /// Name of the attribute.
    pub attribute: &'a str,
    /// Kinds of the event.
    pub kinds: &'a [EventKind],
    /// Time of the reading, ns UTC.
    pub time_ns: i64,
    /// Quality of the reading.
    pub quality: Quality,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<LineValue>,
    /// Errors instead of a value, innermost first.
    #[serde(skip_serializing_if = "<[Failure]>::is_empty")]
    pub failures: &'a [Failure],
    /// Of a data ready event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counter: Option<i32>,
    /// True for a notice that does not change the value for later readers.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub passing: bool,
}

#[derive(Serialize)]
struct RequestLine<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(flatten)]
    request: &'a Request<'a>,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    closed: bool,
}

/// Lines that wait for a process. Clones are the same queue.
#[derive(Clone, Default)]
pub struct RequestQueue {
    queue: Arc<(Mutex<Queue>, Condvar)>,
}

impl RequestQueue {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.0.lock()
    }

    /// Puts a request into the queue; its answer repeats the id.
    pub fn send(&self, id: Option<u64>, request: &Request<'_>) {
        self.put(id, request, usize::MAX);
    }

    /// Puts an event into the queue; returns whether there was room. On refusal the caller notifies Tango's clients
    /// later.
    pub fn push(&self, push: Push<'_>) -> bool {
        self.put(None, &Request::Push(push), WAITING)
    }

    fn put(&self, id: Option<u64>, request: &Request<'_>, bound: usize) -> bool {
        // Every request has a JSON: names of members are texts, and numbers are finite or in base64.
        let Ok(mut line) = serde_json::to_vec(&RequestLine { id, request }) else { return false };
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

    /// Returns whether the queue accepts no more requests.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Closes the queue: waiting requests are still written, then the process's standard input ends.
    pub fn close(&self) {
        self.lock().closed = true;
        self.queue.1.notify_all();
    }

    /// Writes requests, until the queue is closed or the reader is gone.
    pub fn write_to(&self, mut input: impl Write) {
        loop {
            let line = {
                let mut queue = self.lock();
                self.queue.1.wait_while(&mut queue, |queue| queue.lines.is_empty() && !queue.closed);
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
