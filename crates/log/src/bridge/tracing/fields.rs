//! The fields of an event or a span, in order, as values that can be formatted.

use std::{error::Error, fmt};

use tampu_types::{Level, LogRecord};
use tracing_core::{
    Event, Metadata,
    field::{Field, Visit},
};

use crate::bridge::said::{Place, Said};

/// Calls back with the name and the value of each field that has a value.
pub(super) fn each_field<F: FnMut(&'static str, fmt::Arguments<'_>)>(call: F) -> impl Visit {
    EachField(call)
}

struct EachField<F>(F);

impl<F: FnMut(&'static str, fmt::Arguments<'_>)> EachField<F> {
    fn call(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        (self.0)(field.name(), value);
    }
}

impl<F: FnMut(&'static str, fmt::Arguments<'_>)> Visit for EachField<F> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.call(field, format_args!("{value}"));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.call(field, format_args!("{}", Causes(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.call(field, format_args!("{value:?}"));
    }
}

/// An error with its chain of causes.
struct Causes<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

/// Origin of a record of the `log` crate that arrived as an event, from its fields.
#[derive(Default)]
pub(super) struct FromLog {
    target: String,
    file: String,
    module: String,
    line: u32,
    said: Option<Said<'static>>,
}

impl FromLog {
    /// Returns whether `tracing-log` made this event.
    pub fn is(metadata: &Metadata<'_>) -> bool {
        metadata.target() == "log" && metadata.fields().field("log.target").is_some()
    }

    /// Reads the fields of such an event.
    pub fn of(event: &Event<'_>) -> FromLog {
        let (mut found, mut said) = (FromLog::default(), Said::new());
        event.record(&mut each_field(|name, value| match name {
            "message" => said.message(value),
            "log.target" => found.target = value.to_string(),
            "log.file" => found.file = value.to_string(),
            "log.module_path" => found.module = value.to_string(),
            "log.line" => found.line = value.to_string().parse().unwrap_or(0),
            _ => said.value(name, value),
        }));
        FromLog { said: Some(said), ..found }
    }

    /// Returns the target of the `log` crate.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Makes a record of this level.
    pub fn record(self, level: Level) -> LogRecord {
        let place = Place { level, file: &self.file, line: self.line, module: &self.module };
        self.said.unwrap_or_else(Said::new).record(&place, &self.target, "")
    }
}
