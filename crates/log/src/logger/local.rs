//! Local output: records as text on standard error, standard output or in a file, for whoever runs a program or looks at its host.
//!
//! Decision: the backend writes a record's line from what it has just rendered, beside the packet it goes into, if it goes into
//! one. Rejected: reading the packet again (a record that only is printed was encoded for nothing, and printing cost more than
//! everything else together), and printing at the call (a terminal that scrolls would hold up the instrument).
//!
//! Lines gather in one buffer, which is written at the end of each pass over the rings, or earlier at [`WRITE_AT`] bytes. Bounds:
//! the buffer holds that and one record. What cannot be written (a full disk, a closed terminal) is counted
//! ([`LoggerStats::unprinted`](crate::logger::LoggerStats)) and told in the log when that begins, when it
//! ends, and when the process does; nobody waits for it.
//!
//! | part | module |
//! |-|-|
//! | where lines go | `sink` |
//! | a record as a line for people | `line` |
//! | the same for other programs: JSON, ACS XML | `whole` |

mod line;
mod sink;
#[cfg(test)]
mod tests;
mod whole;

use std::{io::IsTerminal, path::PathBuf, str::FromStr, time::Instant};

use serde::{Deserialize, Serialize};
use tampu_types::{Incarnation, Level, LogRecord};

use crate::logger::{
    local::{line::Lines, sink::Sink, whole::Whole},
    packet::Called,
    voice::Identity,
};

/// Bytes of text that are written at once.
pub(crate) const WRITE_AT: usize = 128 << 10;

/// Where local output goes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Output {
    /// Standard error.
    #[default]
    Stderr,
    /// Standard output.
    Stdout,
    /// The end of this file, which is made if need be. When it is moved away, it is made again within a second.
    File(PathBuf),
}

/// What a record looks like there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Format {
    /// A line for people, coloured on a terminal unless `NO_COLOR` is set or `TERM` is `dumb`.
    #[default]
    Auto,
    /// A line for people.
    Plain,
    /// The same with colours, wherever it goes.
    Colour,
    /// A JSON object a line: `spec/wire/json-lines.md`.
    Json,
    /// An ACS XML element a line, as ACS's `loggingClient` prints: `spec/wire/acs-xml.md`.
    Xml,
}

/// Why a text is no output or no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadLocal {
    #[error("'{0}' is no place for local output (stderr, stdout, or a file's path with a slash in it, as ./program.log)")]
    Output(String),
    #[error("'{0}' is no format of local output (auto, plain, colour, json, xml)")]
    Format(String),
}

impl FromStr for Output {
    type Err = BadLocal;

    fn from_str(text: &str) -> Result<Output, BadLocal> {
        match text {
            "stderr" => Ok(Output::Stderr),
            "stdout" => Ok(Output::Stdout),
            // A slip in one of the two words shall be no file of that name.
            path if path.contains('/') => Ok(Output::File(path.into())),
            other => Err(BadLocal::Output(other.to_owned())),
        }
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Output::Stderr => f.write_str("stderr"),
            Output::Stdout => f.write_str("stdout"),
            Output::File(path) => path.display().fmt(f),
        }
    }
}

impl Format {
    const NAMED: [(&str, Format); 5] = [
        ("auto", Format::Auto),
        ("plain", Format::Plain),
        ("colour", Format::Colour),
        ("json", Format::Json),
        ("xml", Format::Xml),
    ];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        Format::NAMED.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }
}

impl FromStr for Format {
    type Err = BadLocal;

    fn from_str(text: &str) -> Result<Format, BadLocal> {
        let spelt = if text == "color" { "colour" } else { text };
        let known = Format::NAMED.into_iter().find(|(name, _)| *name == spelt);
        known.map(|(_, format)| format).ok_or_else(|| BadLocal::Format(text.to_owned()))
    }
}

impl TryFrom<String> for Output {
    type Error = BadLocal;

    fn try_from(text: String) -> Result<Output, BadLocal> {
        text.parse()
    }
}

impl From<Output> for String {
    fn from(output: Output) -> String {
        output.to_string()
    }
}

impl TryFrom<String> for Format {
    type Error = BadLocal;

    fn try_from(text: String) -> Result<Format, BadLocal> {
        text.parse()
    }
}

impl From<Format> for String {
    fn from(format: Format) -> String {
        format.name().to_owned()
    }
}

/// The colour of a level: what a terminal is sent before its text; [`END_OF_COLOUR`] ends it.
pub fn colour_of(level: Level) -> &'static str {
    match level {
        Level::Trace | Level::Delouse => "\x1b[90m",
        Level::Debug => "\x1b[36m",
        Level::Info => "\x1b[32m",
        Level::Notice => "\x1b[94m",
        Level::Warning => "\x1b[33m",
        Level::Error => "\x1b[31m",
        Level::Critical => "\x1b[1;31m",
        Level::Alert => "\x1b[1;35m",
        Level::Emergency => "\x1b[1;97;41m",
    }
}

/// Ends any colour.
pub const END_OF_COLOUR: &str = "\x1b[0m";

enum Style {
    Lines(Lines),
    Whole(Box<Whole>),
}

/// What is missing in the local output since it was last told.
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
    /// How many records the text holds.
    records: u64,
    /// Of which nothing is known in the log yet.
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

    /// What stands between time and text in every line of this speaker and level; to be given back with each of its calls.
    pub fn lead(&self, level: Level, identity: &Identity) -> Box<str> {
        match &self.style {
            Style::Lines(lines) => lines.lead(level, &identity.source_object, &identity.logger).into(),
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

    /// Writes what has gathered. Returns how many records could not be.
    #[inline]
    pub fn flush(&mut self) -> u64 {
        if self.records == 0 { 0 } else { self.write() }
    }

    #[inline(never)]
    fn write(&mut self) -> u64 {
        let records = std::mem::take(&mut self.records);
        let written = self.sink.write(self.text.as_bytes(), Instant::now());
        self.text.clear();
        // One long record does not hold its memory for ever.
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

    /// What could not be written: as soon as that happens, then once it can be again, or at last.
    pub fn take_unprinted(&mut self, at_last: bool) -> Option<Unprinted> {
        if self.untold == 0 || self.announced && !at_last {
            return None;
        }
        self.announced = !self.sink.is_well();
        let why = self.why.clone().unwrap_or_default();
        Some(Unprinted { records: std::mem::take(&mut self.untold), to: self.sink.to().to_string(), why })
    }
}

/// Whether the environment lets terminals be coloured.
fn colour_is_welcome(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = variable("TERM").is_some_and(|term| term == "dumb");
    !refused && !dumb
}
