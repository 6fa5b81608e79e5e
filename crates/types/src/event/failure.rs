//! An error as a value: the reason for a missing reading, innermost cause first, as in Tango's error stacks.

use serde::{Deserialize, Serialize};

/// Severity of an error. The numbers are Tango's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Severity {
    /// To be known.
    Warning = 0,
    /// The operation failed.
    #[default]
    Error = 1,
    /// The source cannot continue.
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
    /// A word for comparisons by programs, as `Cryo_NotConnected`.
    pub reason: String,
    /// Description for people.
    pub description: String,
    /// Place in the program.
    pub origin: String,
    /// Severity of the error.
    pub severity: Severity,
}

impl Failure {
    /// An error of this reason.
    pub fn new(reason: impl Into<String>, description: impl Into<String>) -> Failure {
        Failure { reason: reason.into(), description: description.into(), ..Failure::default() }
    }
}

/// Largest number of elements of a stack.
pub const STACK_LIMIT: usize = 100;
/// The longest text in one, in bytes.
pub const TEXT_LIMIT: usize = 65_536;
