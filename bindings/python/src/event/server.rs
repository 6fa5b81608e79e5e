//! Servers and their attributes.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use pyo3::{exceptions::PyValueError, prelude::*, types::PyList};
use tampu_event::{
    Server,
    criteria::Reading,
    server::{AttributeOptions, Delivery, PendingRead, PushError, Pushed, ServerSettings},
};
use tampu_types::{
    Time,
    event::{AttributeConfig, DataType, Failure, Format, Quality, Value},
};

use crate::{
    buffer::Buffer,
    event::{
        client::{kinds_of, seconds},
        inbox::Inbox,
        join,
        value::with_value,
    },
    failure::raised,
};

/// Most due polls and reads that wait; an attribute is in the queue once at a time, unless its reads are slow.
const DUE_MAX: usize = 65_536;

/// Attributes of this process.
#[pyclass(frozen, module = "tampu._native")]
pub struct EventServer {
    server: Mutex<Option<Arc<Server>>>,
    /// Callbacks of Python that are due, by the number that Python gave them.
    due: Arc<Inbox<u64>>,
    /// Reads that wait for these callbacks.
    reads: Arc<Mutex<HashMap<u64, PendingRead>>>,
}

fn of_push(error: PushError) -> PyErr {
    match error {
        PushError::Wrong(_) | PushError::Value(_) => PyValueError::new_err(error.to_string()),
        _ => raised(error),
    }
}

#[pymethods]
impl EventServer {
    #[new]
    #[pyo3(signature = (source, *, domain = None))]
    fn open(py: Python<'_>, source: &str, domain: Option<&str>) -> PyResult<EventServer> {
        let participant = join(py, source, domain)?;
        let server = py.detach(|| Server::start(participant, ServerSettings::default())).map_err(raised)?;
        Ok(EventServer {
            server: Mutex::new(Some(Arc::new(server))),
            due: Arc::new(Inbox::bounded(DUE_MAX).map_err(raised)?),
            reads: Arc::default(),
        })
    }

    /// Declares an attribute with this configuration, as JSON.
    fn declare(
        &self,
        py: Python<'_>,
        config: &str,
        acknowledged: bool,
        redundant: bool,
        urgent: bool,
    ) -> PyResult<EventAttribute> {
        let config: AttributeConfig = serde_json::from_str(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let server = self.server.lock().clone().ok_or_else(|| raised("the server is closed"))?;
        let delivery = if acknowledged { Delivery::Acknowledged } else { Delivery::Streamed };
        let options = AttributeOptions { delivery, redundant, urgent };
        let attribute = py.detach(|| server.declare_with(config, options)).map_err(raised)?;
        Ok(EventAttribute { config: py.detach(|| attribute.config()), attribute: Mutex::new(Some(attribute)) })
    }

    /// Puts `number` into the queue of due polls at this period, in ms.
    fn poll(&self, attribute: &EventAttribute, period_ms: u32, number: u64) -> PyResult<()> {
        let due = self.due.clone();
        attribute.attribute()?.poll(period_ms, move |_| due.put(number));
        Ok(())
    }

    /// Puts `number` into the queue when somebody asks for the current value and the last reading is older than this.
    fn on_read(&self, attribute: &EventAttribute, max_age_ms: u32, number: u64) -> PyResult<()> {
        let (due, reads) = (self.due.clone(), self.reads.clone());
        attribute.attribute()?.on_read_asked(Duration::from_millis(max_age_ms.into()), move |read| {
            // The one before, which has timed out, ends without the lock.
            let before = reads.lock().insert(number, read);
            drop(before);
            due.put(number);
        });
        Ok(())
    }

    /// Ends the read of a callback, if there is one; with the reason why it failed.
    #[pyo3(signature = (number, reason = None, description = ""))]
    fn read_ended(&self, number: u64, reason: Option<&str>, description: &str) {
        let read = self.reads.lock().remove(&number);
        match (read, reason) {
            (Some(read), None) => read.done(),
            (Some(read), Some(reason)) => read.fail(Failure::new(reason, description)),
            (None, _) => {}
        }
    }

    /// Takes the numbers of due polls; None at the end. If there are none, `fileno` becomes readable with the next one.
    fn due(&self) -> Option<Vec<u64>> {
        self.due.take_or_arm(DUE_MAX).map(Vec::from)
    }

    /// Waits for due polls, at most `timeout` seconds; None at the end.
    #[pyo3(signature = (timeout = None))]
    fn wait_due(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Vec<u64>>> {
        Ok(self.due.wait(py, DUE_MAX, timeout.map(seconds))?.map(Vec::from))
    }

    fn fileno(&self) -> i32 {
        self.due.descriptor()
    }

    /// Ends the server and its polls.
    fn close(&self, py: Python<'_>) {
        let server = self.server.lock().take();
        py.detach(|| drop(server));
        let left = std::mem::take(&mut *self.reads.lock());
        drop(left);
        self.due.close();
    }
}

/// An attribute of a server.
#[pyclass(frozen, module = "tampu._native")]
pub struct EventAttribute {
    attribute: Mutex<Option<tampu_event::Attribute>>,
    config: Arc<AttributeConfig>,
}

impl EventAttribute {
    fn attribute(&self) -> PyResult<tampu_event::Attribute> {
        let attribute = self.attribute.lock().clone();
        attribute.ok_or_else(|| raised(format_args!("{} was withdrawn", self.config.name)))
    }
}

/// Pushes a value. Where that may wait, other threads of Python run meanwhile: the wait may be for one of them, which has a
/// value of this attribute in its hands. As they may change the value, it is copied before.
fn push_value<R: Send>(
    py: Python<'_>,
    attribute: &tampu_event::Attribute,
    value: Value<'_>,
    push: impl FnOnce(Value<'_>) -> R + Send,
) -> R {
    if !attribute.may_wait(&value) {
        return push(value);
    }
    let (values, shape) = (value.data.to_values(), value.shape);
    py.detach(|| push(Value { data: values.as_data(), shape }))
}

/// Returns the kinds of a pushed event, its number, and the number of readers.
fn told(pushed: Pushed) -> (String, u64, usize) {
    let kinds = if pushed.kinds.is_empty() { String::new() } else { pushed.kinds.to_string() };
    (kinds, pushed.number, pushed.readers)
}

#[pymethods]
impl EventAttribute {
    /// Publishes a reading if a criterion holds.
    #[pyo3(signature = (value, *, quality = None, time = None, kinds = None))]
    fn push(
        &self,
        value: &Bound<'_, PyAny>,
        quality: Option<&str>,
        time: Option<i64>,
        kinds: Option<&str>,
    ) -> PyResult<(String, u64, usize)> {
        let attribute = self.attribute()?;
        let quality = quality.map(|name| name.parse::<Quality>().map_err(raised)).transpose()?.unwrap_or_default();
        let kinds = kinds.map(kinds_of).transpose()?;
        with_value(&self.config, value, |given| {
            let push = |value: Value<'_>| {
                let reading = Reading { quality, ..Reading::of(value) };
                match kinds {
                    Some(kinds) => attribute.push_as(kinds, &reading, time.map(Time)),
                    None => attribute.push_reading(&reading, time.map(Time)),
                }
            };
            push_value(value.py(), &attribute, given, push).map(told).map_err(of_push)
        })
    }

    /// Publishes many scalars in a row, each if a criterion holds; returns the number of events sent.
    fn push_all(&self, values: &Bound<'_, PyAny>) -> PyResult<u64> {
        let py = values.py();
        let attribute = self.attribute()?;
        let mut sent = 0;
        let is_number = (self.config.data_type, self.config.format) == (DataType::Double, Format::Scalar);
        if is_number
            && !values.is_exact_instance_of::<PyList>()
            && let Some(buffer) = Buffer::of(values)
            && let ([_], Some(numbers)) = (buffer.shape(), buffer.elements::<f64>())
        {
            // Other threads of Python may change the array when one of the pushes waits.
            let numbers = numbers.to_vec();
            for number in &numbers {
                let pushed = push_value(py, &attribute, Value::scalar(number), |value| attribute.push(value));
                sent += u64::from(!pushed.map_err(of_push)?.kinds.is_empty());
            }
            return Ok(sent);
        }
        for value in values.try_iter()? {
            let pushed = with_value(&self.config, &value?, |value| {
                push_value(py, &attribute, value, |value| attribute.push(value)).map_err(of_push)
            })?;
            sent += u64::from(!pushed.kinds.is_empty());
        }
        Ok(sent)
    }

    /// Publishes a reading and waits for its receipt: its number, the processes that have it, and those that do not.
    fn push_acknowledged(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        kinds: &str,
        timeout: f64,
    ) -> PyResult<(u64, Vec<String>, Vec<String>)> {
        let (attribute, kinds) = (self.attribute()?, kinds_of(kinds)?);
        // Python runs during the wait, so the value is copied.
        let (values, shape) = with_value(&self.config, value, |value| Ok((value.data.to_values(), value.shape)))?;
        let receipt = py.detach(|| {
            let reading = Reading::of(Value { data: values.as_data(), shape });
            attribute.push_acknowledged(kinds, &reading, seconds(timeout))
        });
        let receipt = receipt.map_err(of_push)?;
        Ok((receipt.number, receipt.got, receipt.missing))
    }

    /// Publishes a failed reading, if the failure is new.
    fn fail(&self, py: Python<'_>, reason: &str, description: &str, origin: &str) -> PyResult<(String, u64, usize)> {
        let attribute = self.attribute()?;
        let failure = Failure { origin: origin.to_owned(), ..Failure::new(reason, description) };
        py.detach(|| attribute.fail(&[failure])).map(told).map_err(of_push)
    }

    /// Publishes that data is ready.
    fn data_ready(&self, py: Python<'_>, counter: i32) -> PyResult<(String, u64, usize)> {
        let attribute = self.attribute()?;
        py.detach(|| attribute.data_ready(counter)).map(told).map_err(of_push)
    }

    /// Number of processes that read its events.
    fn readers(&self, py: Python<'_>) -> PyResult<usize> {
        let attribute = self.attribute()?;
        Ok(py.detach(|| attribute.readers()))
    }

    /// Waits until all readers have the events so far.
    fn flush(&self, py: Python<'_>, timeout: f64) -> PyResult<bool> {
        let attribute = self.attribute()?;
        Ok(py.detach(|| attribute.flush(seconds(timeout))))
    }

    /// The configuration as JSON.
    fn config(&self, py: Python<'_>) -> PyResult<String> {
        let attribute = self.attribute()?;
        serde_json::to_string(&*py.detach(|| attribute.config())).map_err(raised)
    }

    /// Withdraws the attribute.
    fn close(&self, py: Python<'_>) {
        let attribute = self.attribute.lock().take();
        py.detach(|| drop(attribute));
    }
}
