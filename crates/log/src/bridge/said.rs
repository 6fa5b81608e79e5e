//! The texts of one call: the message, and the named values beside it.

use std::{borrow::Cow, fmt};

use tampu_text::{Dialect, Payload, Piece, Recorder, Site, Spec, Statement, formatted::Formatted};
use tampu_types::{Datum, Level, LogRecord};

use crate::logger::Logger;

/// Largest number of named values of a call in a ring; a call with more becomes a whole record.
pub const VALUES_MAX: usize = 15;

/// The statements of a bridge have the message as their first argument, and show that.
const MESSAGE: &[Piece] = &[Piece::Argument { index: 0, spec: Spec::PLAIN }];

/// The place in the program where a call stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub level: Level,
    pub file: &'a str,
    /// Line in the file; 0 if unknown.
    pub line: u32,
    pub module: &'a str,
}

impl Place<'_> {
    /// The statement for calls here with these values. It stays for ever, and the caller counts the statements. The
    /// function is unknown; the module, which begins the function's path, replaces it.
    pub fn statement(&self, names: &[&str]) -> &'static Statement {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        Box::leak(Box::new(Statement::of_site(Site {
            level: self.level.number(),
            dialect: Dialect::Rust,
            file: owned(self.file),
            line: self.line,
            module: owned(self.module),
            routine: owned(self.module),
            pieces: Cow::Borrowed(MESSAGE),
            arguments: 1 + names.len() as u16,
            names: names.iter().map(|name| owned(name)).collect(),
        })))
    }
}

/// One call's texts. Nothing of it is allocated in the common case: the texts lie in buffers that the thread keeps.
pub(super) struct Said<'a> {
    names: [&'a str; VALUES_MAX],
    /// The message, then the values in the order of their names.
    texts: [Formatted; VALUES_MAX + 1],
    count: usize,
    /// Values that go into no ring.
    beyond: Vec<Datum>,
}

impl<'a> Said<'a> {
    pub fn new() -> Said<'a> {
        Said { names: [""; VALUES_MAX], texts: [Formatted::EMPTY; VALUES_MAX + 1], count: 0, beyond: Vec::new() }
    }

    pub fn message(&mut self, text: fmt::Arguments<'_>) {
        self.texts[0] = Formatted::new(text);
    }

    /// Adds a value.
    pub fn value(&mut self, name: &'a str, value: fmt::Arguments<'_>) {
        if self.count == VALUES_MAX {
            return self.value_beyond(name, value);
        }
        self.names[self.count] = name;
        self.count += 1;
        self.texts[self.count] = Formatted::new(value);
    }

    /// Adds a value with a temporary name, or for which there is no room.
    #[cold]
    pub fn value_beyond(&mut self, name: &str, value: fmt::Arguments<'_>) {
        self.beyond.push(Datum::new(name, Formatted::new(value).shown()));
    }

    /// The names of the values.
    pub fn names(&self) -> &[&'a str] {
        &self.names[..self.count]
    }

    /// Returns whether a value of this name is present.
    #[cfg(feature = "tracing")]
    pub fn has(&self, name: &str) -> bool {
        self.names().contains(&name) || self.beyond.iter().any(|datum| datum.name == name)
    }

    /// Returns whether the call fits into a ring.
    pub fn fits(&self) -> bool {
        self.beyond.is_empty()
    }

    /// Into the ring, as a call of this statement, which has the same names.
    pub fn call(&self, logger: &Logger, statement: &'static Statement) {
        macro_rules! by_count {
            ($($count:literal)*) => {
                match self.count {
                    $($count => self.call_of::<{ $count + 1 }>(logger, statement),)*
                    _ => unreachable!("there are no more than VALUES_MAX"),
                }
            };
        }
        by_count!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }

    fn call_of<const TEXTS: usize>(&self, logger: &Logger, statement: &'static Statement) {
        let texts: [&Formatted; TEXTS] = std::array::from_fn(|index| &self.texts[index]);
        logger.record_call(statement, Payload::new(texts));
    }

    /// Makes the whole record of the call.
    pub fn record(self, place: &Place<'_>, logger: &str, context: &str) -> LogRecord {
        let mut record = LogRecord::new(place.level, self.texts[0].shown());
        let values = self.texts[1..].iter().map(Formatted::shown);
        record.data = self.names().iter().zip(values).map(|(name, value)| Datum::new(*name, value)).collect();
        record.data.extend(self.beyond);
        record.file = place.file.to_owned();
        record.line = (place.line > 0).then_some(place.line);
        record.routine = place.module.to_owned();
        record.logger = logger.to_owned();
        record.context = context.to_owned();
        record
    }
}
