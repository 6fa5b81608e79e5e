//! Destination and format of local output.

use std::{path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};

/// Destination of local output.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Output {
    /// Standard error, descriptor 2.
    #[default]
    Stderr,
    /// Standard output, descriptor 1.
    Stdout,
    /// The end of this file, which is made if need be. When it is moved away, it is made again within a second.
    File(PathBuf),
}

/// Format of printed records.
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

/// Error of a text that names no output or no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum BadLocal {
    #[error("invalid place for local output '{0}' (stderr, stdout, or a file's path with a slash in it, as ./program.log)")]
    Output(String),
    #[error("invalid format of local output '{0}' (auto, plain, colour, json, xml)")]
    Format(String),
}

impl FromStr for Output {
    type Err = BadLocal;

    fn from_str(text: &str) -> Result<Output, BadLocal> {
        match text {
            "stderr" => Ok(Output::Stderr),
            "stdout" => Ok(Output::Stdout),
            // A misspelt `stdout` or `stderr` must not become a file of that name.
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
