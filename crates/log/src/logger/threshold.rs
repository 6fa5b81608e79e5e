//! Thresholds: the lowest level that passes.

use serde::{Deserialize, Serialize};
use tampu_types::Level;

/// Lowest level of records that count. ACS's `Off` (99) is a threshold without being a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Threshold {
    /// This level and all more severe ones.
    From(Level),
    /// No level at all.
    Off,
}

impl Threshold {
    /// A number to compare levels' numbers with.
    pub(crate) fn number(self) -> u8 {
        match self {
            Threshold::From(level) => level.number(),
            Threshold::Off => 99,
        }
    }

    /// Returns whether a record of this level reaches the threshold.
    pub fn passes(self, level: Level) -> bool {
        level.number() >= self.number()
    }
}

impl std::str::FromStr for Threshold {
    type Err = tampu_types::level::UnknownLevel;

    fn from_str(text: &str) -> Result<Threshold, Self::Err> {
        if text.eq_ignore_ascii_case("off") || text == "99" {
            return Ok(Threshold::Off);
        }
        // ACS spells "everything" as level 0.
        if text == "0" { Ok(Threshold::From(Level::Trace)) } else { text.parse().map(Threshold::From) }
    }
}

impl TryFrom<String> for Threshold {
    type Error = tampu_types::level::UnknownLevel;

    fn try_from(text: String) -> Result<Threshold, Self::Error> {
        text.parse()
    }
}

impl From<Threshold> for String {
    fn from(threshold: Threshold) -> String {
        match threshold {
            Threshold::From(level) => level.name().to_owned(),
            Threshold::Off => "Off".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_read_as_acs_writes_them() {
        assert_eq!("0".parse(), Ok(Threshold::From(Level::Trace)));
        assert_eq!("info".parse(), Ok(Threshold::From(Level::Info)));
        assert_eq!("OFF".parse(), Ok(Threshold::Off));
        assert_eq!("99".parse(), Ok(Threshold::Off));
        assert!("loud".parse::<Threshold>().is_err());
        assert!(!Threshold::Off.passes(Level::Emergency));
        assert!(Threshold::From(Level::Info).passes(Level::Info));
    }
}
