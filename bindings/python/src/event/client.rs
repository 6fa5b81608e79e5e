//! Clients and their subscriptions.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict, PyList},
};
use tampu_event::{
    Client, Kinds,
    client::{ClientSettings, LatestValues, SubscribeOptions, Subscription},
};
use tampu_types::event::{AttributeName, AttributePattern, EventKind};

use crate::{
    event::{
        in_place::{self, Arrived},
        inbox::{Inbox, Queued},
        join,
        received::ReceivedEvent,
    },
    failure::raised,
};

/// Events that are made into objects of Python at once.
const AT_ONCE: usize = 4096;

/// Subscriptions of this process.
#[pyclass(frozen, module = "tampu._native")]
pub struct EventClient {
    client: Mutex<Option<Arc<Client>>>,
    /// True once all declarations are read. Held while they arrive.
    knows_all: Mutex<bool>,
    /// Queues whose stream workers may wait for the program.
    held_by: Mutex<Vec<Weak<Inbox<Arrived>>>>,
}

/// Longest wait for the first declarations, and the pause between two that ends it.
const DECLARATIONS: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(150);

/// Returns the kinds of these names.
pub fn kinds_of(names: &str) -> PyResult<Kinds> {
    let kinds = names.split(',').map(|name| name.trim().parse::<EventKind>());
    kinds.collect::<Result<Kinds, _>>().map_err(raised)
}

fn options(patterns: &[String], kinds: &str, first: bool, reliable: bool) -> PyResult<SubscribeOptions> {
    let patterns = patterns.iter().map(|pattern| pattern.parse::<AttributePattern>().map_err(raised));
    let mut options = SubscribeOptions::of(patterns.collect::<PyResult<Vec<_>>>()?).kinds(kinds_of(kinds)?);
    (options.first, options.reliable) = (first, reliable);
    Ok(options)
}

/// Returns a time of Python, in seconds.
pub fn seconds(timeout: f64) -> Duration {
    Duration::try_from_secs_f64(timeout.max(0.0)).unwrap_or(Duration::MAX)
}

impl EventClient {
    fn client(&self) -> PyResult<Arc<Client>> {
        self.client.lock().clone().ok_or_else(|| raised("the client is closed"))
    }

    /// Ends the waits of stream workers for the program: the client's end waits for them.
    fn let_go(&self) {
        self.held_by.lock().drain(..).filter_map(|inbox| inbox.upgrade()).for_each(|inbox| inbox.let_go());
    }
}

impl Drop for EventClient {
    fn drop(&mut self) {
        self.let_go();
    }
}

#[pymethods]
impl EventClient {
    #[new]
    #[pyo3(signature = (source, *, domain = None))]
    fn open(py: Python<'_>, source: &str, domain: Option<&str>) -> PyResult<EventClient> {
        let participant = join(py, source, domain)?;
        let client = py.detach(|| Client::start(participant, ClientSettings::default())).map_err(raised)?;
        Ok(EventClient { client: Mutex::new(Some(Arc::new(client))), knows_all: Mutex::new(false), held_by: Mutex::default() })
    }

    /// Subscribes with a queue of events.
    fn stream(
        &self,
        patterns: Vec<String>,
        kinds: &str,
        first: bool,
        reliable: bool,
        bound: usize,
        in_place: bool,
    ) -> PyResult<EventStream> {
        let options = options(&patterns, kinds, first, reliable)?;
        let inbox = Arc::new(Inbox::bounded(bound).map_err(raised)?);
        let into = inbox.clone();
        let client = self.client()?;
        let subscription = if in_place {
            let mut held_by = self.held_by.lock();
            held_by.retain(|inbox| inbox.strong_count() > 0);
            held_by.push(Arc::downgrade(&inbox));
            drop(held_by);
            // Its workers wait for the program, so they are its own.
            client.subscribe(options.in_place().alone(), move |event| in_place::put(event, &into))
        } else {
            client.subscribe(options, move |event| into.put(Arrived::copy_of(event)))
        };
        Ok(EventStream { inbox, subscription: Mutex::new(Some(subscription)) })
    }

    /// Subscribes with a queue of numbers.
    fn columns(&self, patterns: Vec<String>, kinds: &str, first: bool, reliable: bool, bound: usize) -> PyResult<EventColumns> {
        let options = options(&patterns, kinds, first, reliable)?;
        let inbox = Arc::new(Inbox::bounded(bound).map_err(raised)?);
        let into = inbox.clone();
        let subscription = self.client()?.subscribe(options, move |event| {
            let (time, value) = match event.reading {
                Some(reading) => (reading.time.0, reading.value.and_then(|value| value.number(0)).unwrap_or(f64::NAN)),
                None => (event.received.0, f64::NAN),
            };
            into.put(Row {
                info: event.attribute.clone(),
                time,
                number: event.number,
                value,
                has_reading: event.reading.is_some(),
            });
        });
        Ok(EventColumns { inbox, subscription: Mutex::new(Some(subscription)) })
    }

    /// Subscribes with a table of the latest events.
    fn latest(&self, patterns: Vec<String>, kinds: &str, reliable: bool) -> PyResult<LatestEvents> {
        let options = options(&patterns, kinds, true, reliable)?;
        Ok(LatestEvents { values: Mutex::new(Some(self.client()?.latest(options))) })
    }

    /// Returns the configurations of all attributes, as JSON. The first call waits until no more declarations arrive.
    fn attributes(&self, py: Python<'_>) -> PyResult<String> {
        let client = self.client()?;
        py.detach(|| {
            let mut knows_all = self.knows_all.lock();
            if !*knows_all {
                wait_for_declarations(&client);
                *knows_all = true;
            }
        });
        let all = client.attributes();
        let configs: Vec<_> = all.iter().map(|info| &info.config).collect();
        serde_json::to_string(&configs).map_err(raised)
    }

    /// Ends the client and its subscriptions.
    fn close(&self, py: Python<'_>) {
        let client = self.client.lock().take();
        self.let_go();
        py.detach(|| drop(client));
    }
}

/// Reads all declarations, and waits until some came and no more do.
fn wait_for_declarations(client: &Client) {
    let (begun, mut known, mut grown) = (Instant::now(), client.attributes().len(), None);
    client.know_all();
    while begun.elapsed() < DECLARATIONS && grown.is_none_or(|at: Instant| at.elapsed() < PAUSE) {
        std::thread::sleep(PAUSE / 10);
        let now = client.attributes().len();
        if now != known {
            (known, grown) = (now, Some(Instant::now()));
        }
    }
}

/// Subscription with a queue of events.
#[pyclass(frozen, module = "tampu._native")]
pub struct EventStream {
    inbox: Arc<Inbox<Arrived>>,
    subscription: Mutex<Option<Subscription>>,
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.inbox.let_go();
    }
}

impl EventStream {
    /// Takes events. Those that were taken before are released, where no block uses their server's memory.
    fn arrived(&self, take: impl FnOnce() -> PyResult<Option<VecDeque<Arrived>>>) -> PyResult<Option<VecDeque<Arrived>>> {
        let holds = self.inbox.holds();
        holds.release_unused();
        let taken = take()?;
        holds.note_taken(taken.iter().flatten().filter_map(|event| event.held.as_ref()));
        Ok(taken)
    }
}

fn events(py: Python<'_>, arrived: impl IntoIterator<Item = Arrived>) -> PyResult<Bound<'_, PyList>> {
    let events: Vec<_> = arrived.into_iter().map(|event| Py::new(py, ReceivedEvent::of(event))).collect::<PyResult<_>>()?;
    PyList::new(py, events)
}

#[pymethods]
impl EventStream {
    /// Takes events that are there; None at the end. If there are none, `fileno` becomes readable with the next one.
    #[pyo3(signature = (most = AT_ONCE))]
    fn take<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Option<Bound<'py, PyList>>> {
        self.arrived(|| Ok(self.inbox.take_or_arm(most)))?.map(|taken| events(py, taken)).transpose()
    }

    /// Waits for events, at most `timeout` seconds; None at the end.
    #[pyo3(signature = (timeout = None, most = AT_ONCE))]
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<f64>, most: usize) -> PyResult<Option<Bound<'py, PyList>>> {
        let timeout = timeout.map(seconds);
        self.arrived(|| self.inbox.wait(py, most, timeout))?.map(|taken| events(py, taken)).transpose()
    }

    /// Calls `callback` with each event that is there, at most `most`; returns their number, or None at the end.
    fn call(&self, py: Python<'_>, callback: &Bound<'_, PyAny>, most: usize) -> PyResult<Option<usize>> {
        let Some(taken) = self.arrived(|| Ok(self.inbox.take_or_arm(most)))? else { return Ok(None) };
        let count = taken.len();
        for event in taken {
            callback.call1((Py::new(py, ReceivedEvent::of(event))?,))?;
        }
        Ok(Some(count))
    }

    /// Calls `callback` with each event, in this thread, until the subscription is closed or the time is over.
    #[pyo3(signature = (callback, timeout = None))]
    fn run(&self, py: Python<'_>, callback: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<u64> {
        let until = timeout.and_then(|timeout| std::time::Instant::now().checked_add(seconds(timeout)));
        let mut count = 0;
        loop {
            let left = until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
            let Some(taken) = self.arrived(|| self.inbox.wait(py, AT_ONCE, left))? else { return Ok(count) };
            if taken.is_empty() {
                return Ok(count);
            }
            for event in taken {
                callback.call1((Py::new(py, ReceivedEvent::of(event))?,))?;
                count += 1;
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(count);
            }
        }
    }

    fn fileno(&self) -> i32 {
        self.inbox.descriptor()
    }

    /// Counters: bound attributes, delivered events, events dropped because the queue was full.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, self.subscription.lock().as_ref(), self.inbox.dropped())
    }

    fn close(&self, py: Python<'_>) {
        let subscription = self.subscription.lock().take();
        py.detach(|| drop(subscription));
        self.inbox.close();
    }
}

fn counters<'py>(py: Python<'py>, subscription: Option<&Subscription>, dropped: u64) -> PyResult<Bound<'py, PyDict>> {
    let stats = subscription.map(Subscription::stats).unwrap_or_default();
    let counters = PyDict::new(py);
    counters.set_item("bound", stats.bound)?;
    counters.set_item("delivered", stats.delivered)?;
    counters.set_item("dropped", dropped)?;
    Ok(counters)
}

impl Queued for Row {}

struct Row {
    info: Arc<tampu_event::client::AttributeInfo>,
    time: i64,
    number: u64,
    value: f64,
    has_reading: bool,
}

/// Subscription with a queue of numbers: the first element of each reading.
#[pyclass(frozen, module = "tampu._native")]
pub struct EventColumns {
    inbox: Arc<Inbox<Row>>,
    subscription: Mutex<Option<Subscription>>,
}

/// Columns of a batch: names, and for each event the index of its name, time, number and value, as bytes.
type Columns<'py> = (Vec<String>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl EventColumns {
    /// Waits for numbers, at most `timeout` seconds; None at the end. Reports without a reading are left out.
    #[pyo3(signature = (timeout = None, most = 1_000_000))]
    fn wait<'py>(&self, py: Python<'py>, timeout: Option<f64>, most: usize) -> PyResult<Option<Columns<'py>>> {
        let Some(rows) = self.inbox.wait(py, most, timeout.map(seconds))? else { return Ok(None) };
        let (names, indexes, times, numbers, values) = py.detach(|| {
            let mut infos: Vec<Arc<tampu_event::client::AttributeInfo>> = Vec::new();
            let mut known: HashMap<usize, u32> = HashMap::new();
            let column = |width| Vec::with_capacity(width * rows.len());
            let (mut indexes, mut times, mut numbers, mut values) = (column(4), column(8), column(8), column(8));
            // Events of one attribute often follow one another.
            let mut last = (0, 0);
            for row in rows.iter().filter(|row| row.has_reading) {
                let address = Arc::as_ptr(&row.info).addr();
                if address != last.0 {
                    let index = *known.entry(address).or_insert_with(|| {
                        infos.push(row.info.clone());
                        infos.len() as u32 - 1
                    });
                    last = (address, index);
                }
                let index: u32 = last.1;
                indexes.extend_from_slice(&index.to_ne_bytes());
                times.extend_from_slice(&row.time.to_ne_bytes());
                numbers.extend_from_slice(&row.number.to_ne_bytes());
                values.extend_from_slice(&row.value.to_ne_bytes());
            }
            (infos.iter().map(|info| info.config.name.to_string()).collect(), indexes, times, numbers, values)
        });
        let bytes = |of: Vec<u8>| PyBytes::new(py, &of);
        Ok(Some((names, bytes(indexes), bytes(times), bytes(numbers), bytes(values))))
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, self.subscription.lock().as_ref(), self.inbox.dropped())
    }

    fn close(&self, py: Python<'_>) {
        let subscription = self.subscription.lock().take();
        py.detach(|| drop(subscription));
        self.inbox.close();
    }
}

/// Subscription that keeps the latest event of each attribute.
#[pyclass(frozen, module = "tampu._native")]
pub struct LatestEvents {
    values: Mutex<Option<LatestValues>>,
}

#[pymethods]
impl LatestEvents {
    /// Returns the latest event of an attribute, or None.
    fn get(&self, name: &str) -> PyResult<Option<ReceivedEvent>> {
        let name = AttributeName::new(name).map_err(raised)?;
        Ok(self.values.lock().as_ref().and_then(|values| values.get(&name)).map(ReceivedEvent::of_copy))
    }

    /// Returns the latest events of the attributes that changed since the last call.
    fn changed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let changed = self.values.lock().as_ref().map(LatestValues::changed).unwrap_or_default();
        events(py, changed.into_iter().map(|update| Arrived { update, held: None }))
    }

    fn close(&self, py: Python<'_>) {
        let values = self.values.lock().take();
        py.detach(|| drop(values));
    }
}
