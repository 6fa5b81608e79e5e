//! An error as a value: why an attribute has no reading, innermost cause first, as Tango's error stacks are.

use serde::{Deserialize, Serialize};

/// How bad it is. The numbers are Tango's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Severity {
    /// To be known.
    Warning = 0,
    /// It failed.
    #[default]
    Error = 1,
    /// It cannot go on.
    Panic = 2,
}

impl Severity {
    /// The severity of this number; one of a later release reads as an error.
    pub fn from_number(number: u8) -> Severity {
        match number {
            0 => Severity::Warning,
            2 => Severity::Panic,
            _ => Severity::Error,
        }
    }
}

/// One element of a stack of errors.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Failure {
    /// A word a program can compare, as `Cryo_NotConnected`.
    pub reason: String,
    /// What happened, for people.
    pub description: String,
    /// Where in the program.
    pub origin: String,
    /// How bad it is.
    pub severity: Severity,
}

impl Failure {
    /// An error of this reason.
    pub fn new(reason: impl Into<String>, description: impl Into<String>) -> Failure {
        Failure { reason: reason.into(), description: description.into(), ..Failure::default() }
    }
}

/// How many elements a stack can have.
pub const STACK_LIMIT: usize = 100;
/// The longest text in one, in bytes.
pub const TEXT_LIMIT: usize = 65_536;
