//! Levels of records: ACS's ten levels with ACS's numbers.
//!
//! The numbers are not contiguous. 7 was never defined, and ACS's Python reads it as Error. [`Level::from_acs`] does
//! the same and keeps the original. 12 and above are not levels; 99 (`Off`) is a threshold for settings, never a
//! record's level. Source: `facts` of ACS's `logging` IDL. OpenTelemetry's numbers are those of its log data model,
//! appendix B.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// A record's level; ordered by gravity. The names are ACS's, and those of the XML elements.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    #[repr(u8)]
    #[allow(missing_docs)]
    pub enum Level {
        Trace = 1 => "Trace",
        Delouse = 2 => "Delouse",
        Debug = 3 => "Debug",
        #[default]
        Info = 4 => "Info",
        Notice = 5 => "Notice",
        Warning = 6 => "Warning",
        Error = 8 => "Error",
        Critical = 9 => "Critical",
        Alert = 10 => "Alert",
        Emergency = 11 => "Emergency",
    }
}

/// Error of a number or a word that is not a level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a level (levels are Trace, Delouse, Debug, Info, Notice, Warning, Error, Critical, Alert, Emergency, or 1 to 11)"
)]
pub struct UnknownLevel(pub String);

/// Names of levels in other systems.
const SYNONYMS: [(&str, Level); 9] = [
    ("warn", Level::Warning),
    ("err", Level::Error),
    ("crit", Level::Critical),
    ("fatal", Level::Critical),
    ("severe", Level::Error),
    ("emerg", Level::Emergency),
    ("panic", Level::Emergency),
    ("information", Level::Info),
    ("informational", Level::Info),
];

impl Level {
    /// Returns the level of a name, of ACS's number, or of a name in other systems, in any case.
    pub fn of_word(text: &str) -> Option<Level> {
        let text = text.trim();
        let synonym = || SYNONYMS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        text.parse().ok().or_else(|| synonym().map(|(_, level)| *level))
    }

    /// ACS's number, 1 to 11 without 7.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Position among the ten, 0 to 9: ACS's channel ordinal.
    pub const fn ordinal(self) -> usize {
        let number = self as usize;
        if number > 7 { number - 2 } else { number - 1 }
    }

    /// The level of exactly this number.
    pub const fn from_number(number: u8) -> Option<Level> {
        Some(match number {
            1 => Level::Trace,
            2 => Level::Delouse,
            3 => Level::Debug,
            4 => Level::Info,
            5 => Level::Notice,
            6 => Level::Warning,
            8 => Level::Error,
            9 => Level::Critical,
            10 => Level::Alert,
            11 => Level::Emergency,
            _ => return None,
        })
    }

    /// Returns the level that ACS's readers assign to this number: 7 is read as Error (the caller keeps the 7 as the
    /// record's priority).
    pub const fn from_acs(number: u8) -> Option<Level> {
        if number == 7 { Some(Level::Error) } else { Level::from_number(number) }
    }

    /// SeverityNumber of OpenTelemetry.
    pub const fn otel_severity(self) -> u8 {
        match self {
            Level::Trace => 1,
            Level::Delouse => 2,
            Level::Debug => 5,
            Level::Info => 9,
            Level::Notice => 10,
            Level::Warning => 13,
            Level::Error => 17,
            Level::Critical => 18,
            Level::Alert => 19,
            Level::Emergency => 21,
        }
    }

    /// Returns the most severe level with an OpenTelemetry number not above `severity` (1 to 24).
    pub fn from_otel_severity(severity: u8) -> Option<Level> {
        if severity > 24 {
            return None;
        }
        Level::ALL.into_iter().rev().find(|level| level.otel_severity() <= severity)
    }
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Level, UnknownLevel> {
        let by_number = || text.parse().ok().and_then(Level::from_number);
        Level::from_name(text).or_else(by_number).ok_or_else(|| UnknownLevel(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back_to_the_level() {
        for (ordinal, level) in Level::ALL.into_iter().enumerate() {
            assert_eq!(level.ordinal(), ordinal);
            assert_eq!(Level::from_number(level.number()), Some(level));
            assert_eq!(level.name().to_uppercase().parse(), Ok(level));
            assert_eq!(level.number().to_string().parse(), Ok(level));
            assert_eq!(Level::from_otel_severity(level.otel_severity()), Some(level));
        }
    }

    #[test]
    fn seven_is_error_for_readers_only_and_twelve_is_nothing() {
        assert_eq!(Level::from_number(7), None);
        assert_eq!(Level::from_acs(7), Some(Level::Error));
        assert_eq!(Level::from_acs(12), None);
        assert_eq!(Level::from_acs(0), None);
        assert!("12".parse::<Level>().unwrap_err().to_string().contains("'12'"));
    }
}
