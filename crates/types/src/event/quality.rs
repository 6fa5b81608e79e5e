//! Quality of a value. The numbers are Tango's.

use serde::{Deserialize, Serialize};

use crate::named_enum;

named_enum! {
    /// Quality of a value.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[repr(u8)]
    pub enum Quality("quality") {
        /// The value can be used.
        #[default]
        Valid = 0 => "valid",
        /// There is no value.
        Invalid = 1 => "invalid",
        /// The value is beyond an alarm limit.
        Alarm = 2 => "alarm",
        /// The value is on its way to a set point.
        Changing = 3 => "changing",
        /// The value is beyond a warning limit.
        Warning = 4 => "warning",
    }
}

impl Quality {
    /// The quality of this number; a number from a later release reads as invalid, never as a neighbour.
    pub fn from_number(number: u8) -> Quality {
        Quality::ALL.get(usize::from(number)).copied().unwrap_or(Quality::Invalid)
    }

    /// Returns true if the value is beyond a limit.
    pub fn is_alarming(self) -> bool {
        matches!(self, Quality::Alarm | Quality::Warning)
    }
}
