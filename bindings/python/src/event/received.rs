//! One event, as Python gets it.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use pyo3::{
    IntoPyObjectExt,
    exceptions::PyAttributeError,
    prelude::*,
    types::{PyDict, PyTuple},
};
use tampu_event::client::Update;
use tampu_types::event::{EventView, Missed, Quality};

use crate::{
    event::{
        holds::HeldValue,
        in_place::Arrived,
        value::{layout, objects},
    },
    failure::raised,
};

/// An event of a subscription. Its parts are read when they are asked for.
#[pyclass(frozen, name = "Event", module = "tampu._native")]
pub struct ReceivedEvent {
    update: Arc<Update>,
    /// The reading, if it is in its server's memory.
    held: Option<Arc<HeldValue>>,
    value: OnceLock<Py<PyAny>>,
}

impl ReceivedEvent {
    /// Makes the object of an event.
    pub fn of(Arrived { update, held }: Arrived) -> ReceivedEvent {
        ReceivedEvent { update: Arc::new(update), held, value: OnceLock::new() }
    }

    /// Makes the object of an event that has its own memory.
    pub fn of_copy(update: Update) -> ReceivedEvent {
        ReceivedEvent::of(Arrived { update, held: None })
    }

    fn reading(&self) -> Option<EventView<'_>> {
        self.update.reading()
    }
}

#[pymethods]
impl ReceivedEvent {
    /// Name of the attribute.
    #[getter]
    fn name(&self) -> &str {
        self.update.attribute.config.name.as_str()
    }

    /// The value: a number, text or bool; an array of numpy (a list without numpy); None without a reading.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(value) = self.value.get() {
            return Ok(value.bind(py).clone());
        }
        if let Some(held) = &self.held {
            let copy = in_server(py, held)?.call_method0("copy")?;
            if !held.is_whole() {
                return Err(raised("the server has used the memory of this value again, so it is lost"));
            }
            return Ok(self.value.get_or_init(|| copy.unbind()).bind(py).clone());
        }
        let Some(reading) = self.reading() else { return Ok(py.None().into_bound(py)) };
        let Some(value) = &reading.value else { return Ok(py.None().into_bound(py)) };
        let made = match layout(value, reading.shape) {
            Some(_) => match py.import("numpy") {
                Ok(numpy) => numpy.call_method1("asarray", (Elements { of: ElementsOf::Update(self.update.clone()) },))?,
                Err(_) => objects(py, value, reading.shape, &[])?,
            },
            None => objects(py, value, reading.shape, &self.update.attribute.config.labels)?,
        };
        Ok(self.value.get_or_init(|| made.unbind()).bind(py).clone())
    }

    /// Returns a view of the value for a `with` block.
    fn view(of: Py<ReceivedEvent>) -> EventArray {
        EventArray { event: of, is_open: AtomicBool::new(true), is_valid: AtomicBool::new(true) }
    }

    /// Quality of the value: valid, invalid, alarm, changing or warning; None without a reading.
    #[getter]
    fn quality(&self) -> Option<&'static str> {
        let quality = self.held.as_ref().map(|held| held.quality);
        quality.or_else(|| self.reading().map(|reading| reading.quality)).map(Quality::name)
    }

    /// Kinds of the event, as "change,archive".
    #[getter]
    fn kinds(&self) -> String {
        self.update.kinds.to_string()
    }

    /// Reason of the delivery, as "first", "update" or "source died".
    #[getter]
    fn reason(&self) -> &'static str {
        self.update.reason.name()
    }

    /// Number of the event among those of its attribute.
    #[getter]
    fn number(&self) -> u64 {
        self.update.number
    }

    /// Missing events before this one: None, the pair of the first number and the one behind the last, or "unknown".
    #[getter]
    fn missed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.update.missed {
            Missed::Nothing => Ok(py.None().into_bound(py)),
            Missed::Exactly(from, to) => (from, to).into_bound_py_any(py),
            Missed::Unknown => "unknown".into_bound_py_any(py),
        }
    }

    /// Time of the reading in nanoseconds since 1970, UTC; that of the report without a reading.
    #[getter]
    fn time(&self) -> i64 {
        let time = self.held.as_ref().map(|held| held.time);
        time.or_else(|| self.reading().map(|reading| reading.time.0)).unwrap_or(self.update.received.0)
    }

    /// Time of arrival in nanoseconds since 1970, UTC.
    #[getter]
    fn received(&self) -> i64 {
        self.update.received.0
    }

    /// Name of the process that has the attribute.
    #[getter]
    fn source(&self) -> &str {
        self.update.source.source.as_str()
    }

    /// Unit of the attribute.
    #[getter]
    fn unit(&self) -> &str {
        &self.update.attribute.config.unit
    }

    /// Errors because of which there is no value: triples of reason, description and origin.
    #[getter]
    fn errors<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let errors = self.reading().map(|reading| reading.errors).unwrap_or_default();
        PyTuple::new(py, errors.into_iter().map(|error| (error.reason, error.description, error.origin)))
    }

    /// The configuration of the attribute as JSON.
    #[getter]
    fn config(&self) -> PyResult<String> {
        serde_json::to_string(&self.update.attribute.config).map_err(raised)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Event {} {} = {}>", self.name(), self.reason(), self.value(py)?.repr()?))
    }
}

/// The value of an event for the length of a `with` block.
///
/// The memory is the event's own, unless the subscription reads long values in place. Then it is that of the server, which
/// waits for the end of the block, up to its limit. The memory stays mapped as long as an array leads there.
#[pyclass(frozen, name = "View", module = "tampu._native")]
pub struct EventArray {
    event: Py<ReceivedEvent>,
    is_open: AtomicBool,
    /// True if the value was whole at the end of the block.
    is_valid: AtomicBool,
}

/// Returns an array in the memory of its server.
fn in_server<'py>(py: Python<'py>, held: &Arc<HeldValue>) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy").map_err(|_| raised("reading in place needs numpy"))?;
    numpy.call_method1("asarray", (Elements { of: ElementsOf::Held(held.clone()) },))
}

#[pymethods]
impl EventArray {
    /// The value, as that of the event; only within the block.
    #[getter]
    fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.is_open.load(Relaxed) {
            return Err(raised("the view has ended; use it within its `with` block, or copy the array there"));
        }
        match &self.event.get().held {
            Some(held) => in_server(py, held),
            None => self.event.get().value(py),
        }
    }

    /// False if the server has used the memory again before the end of the block: what was read there is to be discarded.
    #[getter]
    fn valid(&self) -> bool {
        match &self.event.get().held {
            Some(held) if self.is_open.load(Relaxed) => held.is_whole(),
            _ => self.is_valid.load(Relaxed),
        }
    }

    fn __enter__(of: Py<EventArray>) -> Py<EventArray> {
        let view = of.get();
        if view.is_open.load(Relaxed)
            && let Some(held) = &view.event.get().held
        {
            held.begin_use();
        }
        of
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _at: &Bound<'_, PyAny>) {
        if self.is_open.swap(false, Relaxed)
            && let Some(held) = &self.event.get().held
        {
            self.is_valid.store(held.is_whole(), Relaxed);
            held.release();
        }
    }
}

/// The elements of an event's array, for numpy.
#[pyclass(frozen, module = "tampu._native")]
pub struct Elements {
    of: ElementsOf,
}

enum ElementsOf {
    /// In the memory of an event, which does not change.
    Update(Arc<Update>),
    /// In the memory of a server.
    Held(Arc<HeldValue>),
}

#[pymethods]
impl Elements {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = match &self.of {
            ElementsOf::Held(held) => Some(held.layout.clone()),
            ElementsOf::Update(update) => {
                update.reading().as_ref().and_then(|reading| layout(reading.value.as_ref()?, reading.shape))
            }
        };
        let found = found.ok_or_else(|| PyAttributeError::new_err("the event has no array"))?;
        let description = PyDict::new(py);
        description.set_item("version", 3)?;
        description.set_item("typestr", found.kind)?;
        description.set_item("shape", PyTuple::new(py, found.dimensions)?)?;
        description.set_item("data", (found.address, true))?;
        Ok(description)
    }
}
