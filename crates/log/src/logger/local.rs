//! Local output: records as text on standard error, standard output or in a file, for the user of a program or of its
//! host.
//!
//! Decision: the backend writes a record's line directly after rendering it, beside the record's packet if there is
//! one. Rejected: reading the packet again. A record that is only printed would be encoded for nothing, and printing
//! cost more than everything else together. Rejected: printing at the call, because a scrolling terminal would block
//! the instrument.
//!
//! Lines gather in one buffer. The backend writes it at the end of each pass over the rings, or earlier at [`WRITE_AT`]
//! bytes. Bounds: the buffer holds that many bytes and one record. Output that fails (a full disk, a closed terminal)
//! is counted ([`LoggerStats::unprinted`](crate::logger::LoggerStats)). The log reports it when it begins, when it
//! ends, and when the process ends; no call waits for it.
//!
//! | part | module |
//! |-|-|
//! | destination of lines | `sink` |
//! | a record as a line for people | `line` |
//! | a record for other programs: JSON, ACS XML | `whole` |

pub(crate) mod colour;
mod line;
pub(crate) mod output;
mod sink;
#[cfg(test)]
mod tests;
mod whole;

use std::{io::IsTerminal, time::Instant};

use tampu_types::{Incarnation, Level, LogRecord};

use crate::logger::{
    fields::LoggerFields,
    local::{line::Lines, sink::Sink, whole::Whole},
    packet::Called,
};

pub use self::{
    colour::{END_OF_COLOUR, colour_of},
    output::{BadLocal, Format, Output},
};

/// Bytes of text that are written at once.
pub(crate) const WRITE_AT: usize = 128 << 10;

enum Style {
    Lines(Lines),
    Whole(Box<Whole>),
}

/// Records missing from the local output since the last report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unprinted {
    pub records: u64,
    pub to: String,
    pub why: String,
}

/// Writes records of one process.
pub(crate) struct Printer {
    style: Style,
    sink: Sink,
    text: String,
    /// Number of records in the text.
    records: u64,
    /// Number of lost lines that the log has not reported yet.
    untold: u64,
    /// The log knows that nothing can be written just now.
    announced: bool,
    why: Option<String>,
}

impl Printer {
    pub fn new(output: &Output, format: Format, life: Incarnation) -> Printer {
        let terminal = match output {
            Output::Stderr => std::io::stderr().is_terminal(),
            Output::Stdout => std::io::stdout().is_terminal(),
            Output::File(_) => false,
        };
        let style = match format {
            Format::Auto => Style::Lines(Lines::new(terminal && colour_is_welcome(|name| std::env::var_os(name)))),
            Format::Plain => Style::Lines(Lines::new(false)),
            Format::Colour => Style::Lines(Lines::new(true)),
            Format::Json => Style::Whole(Box::new(Whole::json(life))),
            Format::Xml => Style::Whole(Box::new(Whole::xml(life))),
        };
        Printer {
            style,
            sink: Sink::new(output.clone()),
            text: String::new(),
            records: 0,
            untold: 0,
            announced: false,
            why: None,
        }
    }

    /// Makes the part between time and text that all lines of this logger and level share; the caller passes it back
    /// with each record.
    pub fn lead(&self, level: Level, fields: &LoggerFields) -> Box<str> {
        match &self.style {
            Style::Lines(lines) => lines.lead(level, &fields.source_object, &fields.logger).into(),
            Style::Whole(_) => Box::default(),
        }
    }

    /// Adds the record of a log statement.
    #[inline]
    pub fn call(&mut self, called: &Called<'_>, lead: &str) {
        match &mut self.style {
            Style::Lines(lines) => {
                lines.put(&mut self.text, called.time, lead, called.rendered.message(), called.rendered.values());
            }
            Style::Whole(whole) => whole.call(&mut self.text, called),
        }
        self.added();
    }

    /// Adds a record made by hand.
    pub fn record(&mut self, record: &LogRecord) {
        match &mut self.style {
            Style::Lines(lines) => {
                let lead = lines.lead(record.level, &record.source_object, &record.logger);
                let data = record.data.iter().map(|datum| (datum.name.as_str(), datum.value.as_str()));
                lines.put(&mut self.text, record.time, &lead, &record.message, data);
            }
            Style::Whole(whole) => whole.record(&mut self.text, record),
        }
        self.added();
    }

    #[inline]
    fn added(&mut self) {
        self.records += 1;
        if self.text.len() >= WRITE_AT {
            self.write();
        }
    }

    /// Writes the gathered lines. Returns the number of records that failed.
    #[inline]
    pub fn flush(&mut self) -> u64 {
        if self.records == 0 { 0 } else { self.write() }
    }

    #[inline(never)]
    fn write(&mut self) -> u64 {
        let records = std::mem::take(&mut self.records);
        let written = self.sink.write(self.text.as_bytes(), Instant::now());
        self.text.clear();
        // One long record must not keep its memory for ever.
        self.text.shrink_to(2 * WRITE_AT);
        match written {
            Ok(()) => {
                self.announced = false;
                0
            }
            Err(error) => {
                self.untold += records;
                self.why = Some(error.to_string());
                records
            }
        }
    }

    /// Takes the count of records that could not be written: at the first failure, after the recovery, or at the end.
    pub fn take_unprinted(&mut self, at_last: bool) -> Option<Unprinted> {
        if self.untold == 0 || self.announced && !at_last {
            return None;
        }
        self.announced = !self.sink.is_well();
        let why = self.why.clone().unwrap_or_default();
        Some(Unprinted { records: std::mem::take(&mut self.untold), to: self.sink.to().to_string(), why })
    }
}

/// Returns whether the environment allows colours on terminals.
fn colour_is_welcome(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = variable("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb
}
