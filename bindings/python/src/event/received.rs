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
    event::value::{layout, objects},
    failure::raised,
};

/// An event of a subscription. Its parts are read when they are asked for.
#[pyclass(frozen, name = "Event", module = "tampu._native")]
pub struct ReceivedEvent {
    update: Arc<Update>,
    value: OnceLock<Py<PyAny>>,
}

impl ReceivedEvent {
    /// Makes the object of an event.
    pub fn of(update: Update) -> ReceivedEvent {
        ReceivedEvent { update: Arc::new(update), value: OnceLock::new() }
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
        let Some(reading) = self.reading() else { return Ok(py.None().into_bound(py)) };
        let Some(value) = &reading.value else { return Ok(py.None().into_bound(py)) };
        let made = match layout(value, reading.shape) {
            Some(_) => match py.import("numpy") {
                Ok(numpy) => numpy.call_method1("asarray", (Elements { update: self.update.clone() },))?,
                Err(_) => objects(py, value, reading.shape, &[])?,
            },
            None => objects(py, value, reading.shape, &self.update.attribute.config.labels)?,
        };
        Ok(self.value.get_or_init(|| made.unbind()).bind(py).clone())
    }

    /// Returns a view of the value for a `with` block.
    fn view(of: Py<ReceivedEvent>) -> EventArray {
        EventArray { event: of, is_open: AtomicBool::new(true) }
    }

    /// Quality of the value: valid, invalid, alarm, changing or warning; None without a reading.
    #[getter]
    fn quality(&self) -> Option<&'static str> {
        self.reading().map(|reading| Quality::name(reading.quality))
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
        self.reading().map_or(self.update.received.0, |reading| reading.time.0)
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
/// The client copies a batch out of shared memory, checks that the copy is whole, and hands it out afterwards. So no
/// writer reaches the memory of an event. A view has no word about its validity, because it could only say yes.
#[pyclass(frozen, name = "View", module = "tampu._native")]
pub struct EventArray {
    event: Py<ReceivedEvent>,
    is_open: AtomicBool,
}

#[pymethods]
impl EventArray {
    /// The value, as that of the event; only within the block.
    #[getter]
    fn array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if !self.is_open.load(Relaxed) {
            return Err(raised("the view has ended; use it within its `with` block, or copy the array there"));
        }
        self.event.get().value(py)
    }

    fn __enter__(of: Py<EventArray>) -> Py<EventArray> {
        of
    }

    fn __exit__(&self, _kind: &Bound<'_, PyAny>, _error: &Bound<'_, PyAny>, _at: &Bound<'_, PyAny>) {
        self.is_open.store(false, Relaxed);
    }
}

/// The elements of an event's array, for numpy. They are in the event's memory, which does not change.
#[pyclass(frozen, module = "tampu._native")]
pub struct Elements {
    update: Arc<Update>,
}

#[pymethods]
impl Elements {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reading = self.update.reading();
        let found = reading.as_ref().and_then(|reading| layout(reading.value.as_ref()?, reading.shape));
        let found = found.ok_or_else(|| PyAttributeError::new_err("the event has no array"))?;
        let description = PyDict::new(py);
        description.set_item("version", 3)?;
        description.set_item("typestr", found.kind)?;
        description.set_item("shape", PyTuple::new(py, found.dimensions)?)?;
        description.set_item("data", (found.address, true))?;
        Ok(description)
    }
}
