//! Reads the usual `LogRecord` and writes it, without a line of Python.

use std::{cell::Cell, collections::HashSet, ffi::CString};

use pyo3::{
    intern,
    prelude::*,
    types::{PyDict, PyList, PyString, PyTuple},
};
use tampu_text::ARGUMENTS_MAX;

use crate::log::{
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
    /// The attributes of every record, in their order.
    standard: Vec<Py<PyString>>,
    /// The same, and those that formatters add.
    known: HashSet<String>,
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
        RecordHandler { writer, filters, slow, record_class, standard, known, context, trace, variables }
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
        let attributes = attributes.cast::<PyDict>()?;
        let unusual = |name| attributes.get_item(name).map(|value| value.is_none_or(|value| !value.is_none()));
        if unusual(intern!(py, "exc_info"))? || unusual(intern!(py, "stack_info"))? {
            return Ok(false);
        }
        let Some(levelno) = attributes.get_item(intern!(py, "levelno"))? else { return Ok(false) };
        let level = level_of(levelno.extract()?);
        let context = self.context.bind(py).call0()?;
        let context = if context.is_none() { None } else { Some(context.cast_into::<PyTuple>()?) };
        let path = match &context {
            Some(context) => Some(context.get_item(0)?.cast_into::<PyString>()?),
            None => None,
        };
        let (Some(name), writer) = (text(attributes, intern!(py, "name"))?, self.writer.get()) else { return Ok(false) };
        let (number, true) = writer.wants(level, &name, path.as_ref())? else { return Ok(true) };
        let (Some(file), Some(function), Some(message)) =
            (text(attributes, intern!(py, "pathname"))?, text(attributes, intern!(py, "funcName"))?, self.message(attributes)?)
        else {
            return Ok(false);
        };
        let line = attributes.get_item(intern!(py, "lineno"))?.and_then(|line| line.extract().ok()).unwrap_or(0);
        let mut data = Vec::new();
        self.extras(attributes, &mut data)?;
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
        name_thread(attributes)?;
        let call = Call { level, name, path: file, line, function, text: message, data, context: path };
        let trace = match &self.trace {
            Some((modules, trace)) if modules.bind(py).contains(intern!(py, "opentelemetry.trace"))? => {
                trace.bind(py).call0()?.extract::<Option<([u8; 16], [u8; 8])>>()?
            }
            _ => None,
        };
        let is_plain = trace.is_none() && call.data.len() < ARGUMENTS_MAX;
        if !(is_plain && number.is_some_and(|number| writer.write_call(number, &call))) {
            let thread = text(attributes, intern!(py, "threadName"))?;
            let thread = thread.map(|thread| thread.to_string_lossy().into_owned()).unwrap_or_default();
            writer.write_whole(&call, WholeParts { thread, trace, ..WholeParts::default() });
        }
        Ok(true)
    }

    /// Returns the text of a record: `str(msg) % args`.
    fn message<'py>(&self, attributes: &Bound<'py, PyDict>) -> PyResult<Option<Bound<'py, PyString>>> {
        let py = attributes.py();
        let Some(message) = attributes.get_item(intern!(py, "msg"))? else { return Ok(None) };
        let message = match message.cast_into_exact::<PyString>() {
            Ok(text) => text,
            Err(other) => other.into_inner().str()?,
        };
        match attributes.get_item(intern!(py, "args"))? {
            Some(arguments) if arguments.is_truthy()? => Ok(Some(message.rem(arguments)?.cast_into::<PyString>()?)),
            _ => Ok(Some(message)),
        }
    }

    /// Reads the attributes that the program gave a record with `extra=`.
    fn extras<'py>(&self, attributes: &Bound<'py, PyDict>, data: &mut Vec<(Bound<'py, PyString>, Value<'py>)>) -> PyResult<()> {
        if attributes.len() == self.standard.len() {
            return Ok(());
        }
        for (at, (name, value)) in attributes.iter().enumerate() {
            // The attributes of every record come first, so most are recognised by their address.
            if self.standard.get(at).is_some_and(|known| known.as_ptr() == name.as_ptr()) {
                continue;
            }
            let name = name.cast_into::<PyString>()?;
            if !self.known.contains(&*name.to_string_lossy()) {
                data.push((name, Value::of(&value)?));
            }
        }
        Ok(())
    }
}

/// Gives this thread its name in the kernel, where the ring finds it. Python does so from 3.14 on. The main thread keeps
/// its name, which is the one of the process.
fn name_thread(attributes: &Bound<'_, PyDict>) -> PyResult<()> {
    thread_local! {
        static IS_NAMED: Cell<bool> = const { Cell::new(false) };
    }
    if IS_NAMED.replace(true) || rustix::thread::gettid() == rustix::process::getpid() {
        return Ok(());
    }
    if let Some(name) = text(attributes, intern!(attributes.py(), "threadName"))? {
        let bytes: Vec<u8> = name.to_string_lossy().bytes().filter(|byte| *byte != 0).take(KERNEL_NAME).collect();
        // A system that refuses this leaves the thread its old name.
        let _ = CString::new(bytes).map(|name| rustix::thread::set_name(&name));
    }
    Ok(())
}

/// Returns an attribute that is a text, or an empty one for None.
fn text<'py>(attributes: &Bound<'py, PyDict>, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyString>>> {
    let Some(value) = attributes.get_item(name)? else { return Ok(None) };
    if value.is_none() {
        return Ok(Some(intern!(value.py(), "").clone()));
    }
    Ok(Some(value.cast_into::<PyString>()?))
}
