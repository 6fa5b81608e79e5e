//! How good a value is. The numbers are Tango's.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How good a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Quality {
    /// It can be used.
    #[default]
    Valid = 0,
    /// There is none.
    Invalid = 1,
    /// It is beyond an alarm limit.
    Alarm = 2,
    /// It is on its way to a set point.
    Changing = 3,
    /// It is beyond a warning limit.
    Warning = 4,
}

impl Quality {
    /// All of them.
    pub const ALL: [Quality; 5] = [Quality::Valid, Quality::Invalid, Quality::Alarm, Quality::Changing, Quality::Warning];

    /// The quality of this number; a number from a later release reads as invalid, never as a neighbour.
    pub fn from_number(number: u8) -> Quality {
        Quality::ALL.get(usize::from(number)).copied().unwrap_or(Quality::Invalid)
    }

    /// Whether it is beyond a limit.
    pub fn is_alarming(self) -> bool {
        matches!(self, Quality::Alarm | Quality::Warning)
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Quality::Valid => "valid",
            Quality::Invalid => "invalid",
            Quality::Alarm => "alarm",
            Quality::Changing => "changing",
            Quality::Warning => "warning",
        }
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No quality has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no quality (valid, invalid, alarm, changing, warning)")]
pub struct UnknownQuality(pub String);

impl FromStr for Quality {
    type Err = UnknownQuality;

    fn from_str(text: &str) -> Result<Quality, UnknownQuality> {
        let found = Quality::ALL.into_iter().find(|quality| quality.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| UnknownQuality(text.to_owned()))
    }
}
