//! Reads the usual `LogRecord` and writes it, without a line of Python.

use std::{cell::Cell, collections::HashSet, ffi::CString};

use pyo3::{
    intern,
    prelude::*,
    types::{PyDict, PyList, PyString, PyTuple},
};
use tampu_text::ARGUMENTS_MAX;

use crate::log::{
    attributes::{Attributes, Field, RecordLayout},
    call::{Call, Value, WholeParts},
    writer::{LogWriter, level_of},
};

/// Bytes that the kernel keeps of a thread's name.
const KERNEL_NAME: usize = 15;

/// The method `handle` of a `tampu.logging.Handler`.
#[pyclass(frozen, module = "tampu._native")]
pub struct RecordHandler {
    writer: Py<LogWriter>,
    /// Filters of the handler: the list itself, which may change.
    filters: Py<PyList>,
    /// Method for records that are unusual: with filters, exceptions, or something that fails.
    slow: Py<PyAny>,
    record_class: Py<PyAny>,
    layout: RecordLayout,
    /// Returns the context of the call, as (path, names, values), or None.
    context: Py<PyAny>,
    /// The modules that Python has loaded, and the function that returns the identities of a trace and its span, or None. It
    /// is called in programs that use OpenTelemetry.
    trace: Option<(Py<PyDict>, Py<PyAny>)>,
    /// Context variables of the program whose values become data.
    variables: Vec<(Py<PyString>, Py<PyAny>)>,
}

#[pymethods]
impl RecordHandler {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "one call in tampu/logging.py makes it")]
    fn new(
        py: Python<'_>,
        writer: Py<LogWriter>,
        filters: Py<PyList>,
        slow: Py<PyAny>,
        record_class: Py<PyAny>,
        standard: Vec<Py<PyString>>,
        known: HashSet<String>,
        context: Py<PyAny>,
        trace: Option<(Py<PyDict>, Py<PyAny>)>,
        variables: Vec<(Py<PyString>, Py<PyAny>)>,
    ) -> RecordHandler {
        let layout = RecordLayout::new(py, standard, known);
        RecordHandler { writer, filters, slow, record_class, layout, context, trace, variables }
    }

    /// Writes a record. Always True: `logging` asks whether the record passed the filters.
    fn handle(&self, record: &Bound<'_, PyAny>) -> PyResult<bool> {
        match self.usual(record) {
            Ok(true) => Ok(true),
            // An error occurs once more in the slow method, which reports it as `logging` does.
            Ok(false) | Err(_) => self.slow.bind(record.py()).call1((record,))?.is_truthy(),
        }
    }
}

impl RecordHandler {
    /// Writes a usual record; returns false if it is not one.
    fn usual(&self, record: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = record.py();
        if !self.filters.bind(py).is_empty() || !record.get_type().is(&self.record_class) {
            return Ok(false);
        }
        let attributes = record.getattr(intern!(py, "__dict__"))?;
        let Some(mut attributes) = self.layout.read(attributes.cast::<PyDict>()?) else { return Ok(false) };
        if attributes.has(Field::Exception) || attributes.has(Field::Stack) {
            return Ok(false);
        }
        let level = level_of(attributes.take(Field::Level).map_or(Ok(0), |level| level.extract())?);
        let context = self.context.bind(py).call0()?;
        let context = if context.is_none() { None } else { Some(context.cast_into::<PyTuple>()?) };
        let path = match &context {
            Some(context) => Some(context.get_item(0)?.cast_into::<PyString>()?),
            None => None,
        };
        let (Some(name), writer) = (attributes.take_text(Field::Name), self.writer.get()) else { return Ok(false) };
        let (number, true) = writer.wants(level, &name, path.as_ref())? else { return Ok(true) };
        let (Some(file), Some(function), Some(message)) =
            (attributes.take_text(Field::Path), attributes.take_text(Field::Function), message(&mut attributes)?)
        else {
            return Ok(false);
        };
        let line = attributes.take(Field::Line).and_then(|line| line.extract().ok()).unwrap_or(0);
        let mut data = Vec::with_capacity(attributes.extras.len());
        for (name, value) in attributes.extras.drain(..) {
            data.push((name, Value::of(&value)?));
        }
        for (name, variable) in &self.variables {
            let value = variable.bind(py).call1((py.None(),))?;
            if !value.is_none() {
                data.push((name.bind(py).clone(), Value::of(&value)?));
            }
        }
        if let Some(context) = context {
            let names = context.get_item(1)?.cast_into::<PyTuple>()?;
            let values = context.get_item(2)?.cast_into::<PyTuple>()?;
            for (name, value) in names.iter().zip(values.iter()) {
                data.push((name.cast_into::<PyString>()?, Value::of(&value)?));
            }
        }
        let thread = attributes.take_text(Field::Thread);
        name_thread(thread.as_ref());
        let call = Call { level, name, path: file, line, function, text: message, data, context: path };
        let trace = match &self.trace {
            Some((modules, trace)) if modules.bind(py).contains(intern!(py, "opentelemetry.trace"))? => {
                trace.bind(py).call0()?.extract::<Option<([u8; 16], [u8; 8])>>()?
            }
            _ => None,
        };
        let is_plain = trace.is_none() && call.data.len() < ARGUMENTS_MAX;
        if !(is_plain && number.is_some_and(|number| writer.write_call(number, &call))) {
            let thread = thread.map(|thread| thread.to_string_lossy().into_owned()).unwrap_or_default();
            writer.write_whole(&call, WholeParts { thread, trace, ..WholeParts::default() });
        }
        Ok(true)
    }
}

/// Returns the text of a record: `str(msg) % args`.
fn message<'py>(attributes: &mut Attributes<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
    let Some(message) = attributes.take(Field::Message) else { return Ok(None) };
    let message = match message.cast_into_exact::<PyString>() {
        Ok(text) => text,
        Err(other) => other.into_inner().str()?,
    };
    match attributes.take(Field::Arguments) {
        Some(arguments) if arguments.is_truthy()? => Ok(Some(message.rem(arguments)?.cast_into::<PyString>()?)),
        _ => Ok(Some(message)),
    }
}

/// Gives this thread its name in the kernel, where the ring finds it. Python does so from 3.14 on. The main thread keeps
/// its name, which is the one of the process.
fn name_thread(thread: Option<&Bound<'_, PyString>>) {
    thread_local! {
        static IS_NAMED: Cell<bool> = const { Cell::new(false) };
    }
    if IS_NAMED.replace(true) || rustix::thread::gettid() == rustix::process::getpid() {
        return;
    }
    if let Some(name) = thread {
        let bytes: Vec<u8> = name.to_string_lossy().bytes().filter(|byte| *byte != 0).take(KERNEL_NAME).collect();
        // A system that refuses this leaves the thread its old name.
        let _ = CString::new(bytes).map(|name| rustix::thread::set_name(&name));
    }
}
