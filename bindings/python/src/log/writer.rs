//! A process's logger, as Python uses it.

use std::time::Duration;

use parking_lot::Mutex;
use pyo3::{
    prelude::*,
    types::{PyDict, PyString, PyTuple},
};
use tampu_log::{Grade, Level, LogSettings, Logger, Outcome, Threshold};
use tampu_ring::RingStorage;
use tampu_types::{Domain, SourceName};

use crate::{
    failure::raised,
    log::{
        call::{Call, Payload, Value, WholeParts},
        known::{Loggers, Places},
    },
};

/// Returns the level of a number of Python's `logging`: its five levels, and ACS's other five between and above them.
pub fn level_of(number: i64) -> Level {
    match number {
        ..5 => Level::Trace,
        5..10 => Level::Delouse,
        10..20 => Level::Debug,
        20..25 => Level::Info,
        25..30 => Level::Notice,
        30..40 => Level::Warning,
        40..50 => Level::Error,
        50..55 => Level::Critical,
        55..60 => Level::Alert,
        60.. => Level::Emergency,
    }
}

struct State {
    loggers: Loggers,
    places: Places,
}

impl State {
    fn open(settings: LogSettings) -> PyResult<State> {
        Ok(State { loggers: Loggers::of(Logger::open(settings).map_err(raised)?), places: Places::default() })
    }
}

/// Writes records into this process's log rings. `tampu.logging.Handler` is the usual way to one.
///
/// No Python code runs while the lock is held, so a thread that holds it never waits for the interpreter.
#[pyclass(frozen, module = "tampu._native")]
pub struct LogWriter {
    settings: LogSettings,
    state: Mutex<Option<State>>,
}

/// Returns a time of Python, in seconds.
fn seconds(timeout: f64) -> Duration {
    Duration::try_from_secs_f64(timeout.max(0.0)).unwrap_or(Duration::MAX)
}

impl LogWriter {
    /// Returns the number of the logger of a name in a context, and whether it wants this level.
    ///
    /// A record that comes after `close` opens the log again: exit functions of Python run in the reverse order of their
    /// registration, so some log after the log was closed.
    pub fn wants(
        &self,
        level: Level,
        name: &Bound<'_, PyString>,
        context: Option<&Bound<'_, PyString>>,
    ) -> PyResult<(Option<usize>, bool)> {
        let mut state = self.state.lock();
        let loggers = match &mut *state {
            Some(state) => &mut state.loggers,
            closed => &mut closed.insert(State::open(self.settings.clone())?).loggers,
        };
        let found = loggers.find(name, context);
        let logger = found.map_or(loggers.root(), |number| loggers.get(number));
        Ok((found, logger.enabled(level)))
    }

    /// Writes a call whose logger has a number, if it can be one of a statement; returns whether it was.
    pub fn write_call(&self, number: usize, call: &Call<'_>) -> bool {
        let payload = Payload::of(call);
        let mut state = self.state.lock();
        let Some(state) = state.as_mut() else { return true };
        let Some(statement) = state.places.find(call) else { return false };
        // Without room the record is lost; the ring counts it and the log reports it.
        if let Some(mut claim) = state.loggers.get(number).claim(statement, payload.length()) {
            payload.write(claim.bytes());
            claim.commit();
        }
        true
    }

    /// Writes a call as a whole record.
    pub fn write_whole(&self, call: &Call<'_>, parts: WholeParts) {
        let record = call.whole(parts);
        if let Some(state) = self.state.lock().as_ref() {
            state.loggers.root().record(record);
        }
    }

    fn logger(&self) -> PyResult<Logger> {
        let state = self.state.lock();
        state.as_ref().map(|state| state.loggers.root().clone()).ok_or_else(|| raised("the log is closed"))
    }
}

#[pymethods]
impl LogWriter {
    #[new]
    #[pyo3(signature = (source, *, domain = None, process = None))]
    fn open(source: &str, domain: Option<&str>, process: Option<&str>) -> PyResult<LogWriter> {
        let mut settings = LogSettings::from_env(SourceName::new(source).map_err(raised)?).map_err(raised)?;
        if let Some(domain) = domain {
            settings.domain = Domain::new(domain).map_err(raised)?;
            settings.rings = tampu_bus::run_dir::RunDir::from_env().domain(&settings.domain).ok().map(|dir| dir.log_rings());
        }
        if let Some(process) = process {
            settings.process = process.to_owned();
        }
        let state = State::open(settings.clone())?;
        Ok(LogWriter { settings, state: Mutex::new(Some(state)) })
    }

    /// Writes a whole record.
    #[pyo3(signature = (level, name, path, line, function, text, data = None, *, context = None, thread = String::new(), stack = String::new(), stack_level = None, trace = None))]
    #[expect(clippy::too_many_arguments, reason = "these are the fields of a record, given by name")]
    fn write(
        &self,
        level: i64,
        name: Bound<'_, PyString>,
        path: Bound<'_, PyString>,
        line: u32,
        function: Bound<'_, PyString>,
        text: Bound<'_, PyString>,
        data: Option<Bound<'_, PyDict>>,
        context: Option<Bound<'_, PyString>>,
        thread: String,
        stack: String,
        stack_level: Option<i32>,
        trace: Option<([u8; 16], [u8; 8])>,
    ) -> PyResult<()> {
        let level = level_of(level);
        let (number, true) = self.wants(level, &name, context.as_ref())? else { return Ok(()) };
        let mut values = Vec::new();
        for (name, value) in data.iter().flatten() {
            values.push((name.str()?, Value::of(&value)?));
        }
        let call = Call { level, name, path, line, function, text, data: values, context };
        let is_plain = stack.is_empty() && trace.is_none() && thread.is_empty() && call.data.len() < tampu_text::ARGUMENTS_MAX;
        if !(is_plain && number.is_some_and(|number| self.write_call(number, &call))) {
            self.write_whole(&call, WholeParts { thread, stack, stack_level, trace });
        }
        Ok(())
    }

    /// Returns whether a record of this level would be published or printed.
    fn enabled(&self, name: &Bound<'_, PyString>, level: i64) -> PyResult<bool> {
        Ok(self.wants(level_of(level), name, None)?.1)
    }

    /// Sets the level from which the logger of this name publishes; None for nothing.
    fn set_level(&self, name: &str, level: Option<i64>) -> PyResult<()> {
        let threshold = level.map_or(Threshold::Off, |level| Threshold::From(level_of(level)));
        self.logger()?.named(name).set_central(threshold);
        Ok(())
    }

    /// Waits until a collector has all earlier records; returns what has become of them.
    #[pyo3(signature = (timeout = 10.0, *, grade = "kept"))]
    fn wait(&self, py: Python<'_>, timeout: f64, grade: &str) -> PyResult<&'static str> {
        let grade = match grade {
            "kept" => Grade::Kept,
            "received" => Grade::Received,
            other => return Err(raised(format_args!("'{other}' is not a grade: 'kept' and 'received' are"))),
        };
        let logger = self.logger()?;
        Ok(match py.detach(|| logger.wait_until(grade, seconds(timeout))) {
            Outcome::Kept => "kept",
            Outcome::Received => "received",
            Outcome::Refused => "refused",
            Outcome::Lost => "lost",
            Outcome::Unconfirmed => "unconfirmed",
        })
    }

    /// Returns whether records survive this process, with the reason if they do not.
    fn survives<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.logger()?.storage() {
            RingStorage::Files { .. } => (true, String::new()).into_pyobject(py),
            RingStorage::Memory { why } => (false, why.to_string()).into_pyobject(py),
        }
    }

    /// Returns the counters of this process's log.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.logger()?.stats();
        let counters = PyDict::new(py);
        counters.set_item("dropped", stats.dropped)?;
        counters.set_item("published", stats.published)?;
        counters.set_item("bytes", stats.bytes)?;
        counters.set_item("waited", stats.waited)?;
        counters.set_item("suppressed", stats.suppressed)?;
        Ok(counters)
    }

    /// Ends the log: waits a moment until all records are sent. Later records are ignored.
    fn close(&self, py: Python<'_>) {
        let state = self.state.lock().take();
        if let Some(State { loggers, places }) = state {
            drop(places);
            // The references to texts are given back here, with the interpreter; the logger ends without it.
            let root = loggers.root().clone();
            drop(loggers);
            py.detach(|| drop(root));
        }
    }
}
