//! Kinds of events. One sample on the bus may be several kinds at once. For example, a change that is also due for the
//! archive is sent once, with both bits set, and each subscriber checks its own.

use std::{fmt, ops, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::{named::UnknownName, named_enum};

named_enum! {
    /// Kind of an event; the numbers are bits of [`Kinds`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    #[repr(u8)]
    pub enum EventKind {
        /// The value changed by more than its thresholds.
        Change = 0 => "change",
        /// A change of the quality to or from alarm or warning, or the begin or end of an error.
        Alarm = 1 => "alarm",
        /// The value changed by more than the thresholds for the archive, or the archive's period is over.
        Archive = 2 => "archive",
        /// The attribute's period is over.
        Periodic = 3 => "periodic",
        /// The server's code pushed the event; no criteria apply.
        User = 4 => "user",
        /// The attribute's configuration has changed.
        Configuration = 5 => "configuration",
        /// Data can be fetched by other means; the event has a counter and no value.
        DataReady = 6 => "data_ready",
        /// An attribute was added or removed.
        Interface = 7 => "interface",
        /// A kind of the site's own, with a name.
        Generic = 8 => "generic",
    }
}

impl FromStr for EventKind {
    type Err = UnknownName;

    /// Reads a name with `_` or `-`, in any case; Tango's own words are understood as well.
    fn from_str(text: &str) -> Result<EventKind, UnknownName> {
        let wanted = text.to_lowercase().replace('-', "_");
        let wanted = match wanted.as_str() {
            "attr_conf" => "configuration",
            "intr_change" | "interface_change" => "interface",
            other => other,
        };
        let unknown = || UnknownName { noun: "kind of event", text: text.to_owned(), known: EventKind::NAMES };
        EventKind::from_name(wanted).ok_or_else(unknown)
    }
}

/// A set of kinds. Bits of later releases are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kinds(pub u32);

impl Kinds {
    /// The empty set.
    pub const NONE: Kinds = Kinds(0);
    /// The set of [`EventKind::Change`] alone.
    pub const CHANGE: Kinds = Kinds(1);
    /// The set of [`EventKind::Alarm`] alone.
    pub const ALARM: Kinds = Kinds(1 << 1);
    /// The set of [`EventKind::Archive`] alone.
    pub const ARCHIVE: Kinds = Kinds(1 << 2);
    /// The set of [`EventKind::Periodic`] alone.
    pub const PERIODIC: Kinds = Kinds(1 << 3);
    /// The set of [`EventKind::User`] alone.
    pub const USER: Kinds = Kinds(1 << 4);
    /// The set of [`EventKind::Configuration`] alone.
    pub const CONFIGURATION: Kinds = Kinds(1 << 5);
    /// The set of [`EventKind::DataReady`] alone.
    pub const DATA_READY: Kinds = Kinds(1 << 6);
    /// The set of [`EventKind::Interface`] alone.
    pub const INTERFACE: Kinds = Kinds(1 << 7);
    /// The set of [`EventKind::Generic`] alone.
    pub const GENERIC: Kinds = Kinds(1 << 8);
    /// Kinds that carry a value and are decided by criteria or the server's code.
    pub const VALUES: Kinds = Kinds(0b1_1111);
    /// All this release knows.
    pub const KNOWN: Kinds = Kinds(0x1ff);

    /// Returns true if the set has no kind.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the sets have a kind in common.
    pub fn intersects(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the set has this kind.
    pub fn contains(self, kind: EventKind) -> bool {
        self.intersects(kind.into())
    }

    /// The kinds this release knows.
    pub fn known(self) -> Kinds {
        Kinds(self.0 & Kinds::KNOWN.0)
    }

    /// One by one.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL.into_iter().filter(move |&kind| self.contains(kind))
    }
}

impl From<EventKind> for Kinds {
    fn from(kind: EventKind) -> Kinds {
        Kinds(1 << kind as u8)
    }
}

impl ops::BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

impl ops::BitOrAssign for Kinds {
    fn bitor_assign(&mut self, other: Kinds) {
        self.0 |= other.0;
    }
}

impl FromIterator<EventKind> for Kinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Kinds {
        kinds.into_iter().fold(Kinds::NONE, |all, kind| all | kind.into())
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(EventKind::name).collect();
        f.pad(&names.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bits_lead_back() {
        for (bit, kind) in EventKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(Kinds::from(kind), Kinds(1 << bit));
        }
        assert_eq!(EventKind::ALL.into_iter().collect::<Kinds>(), Kinds::KNOWN);
        assert_eq!("ATTR_CONF".parse(), Ok(EventKind::Configuration));
        assert!("changes".parse::<EventKind>().unwrap_err().to_string().contains("'changes'"));
        assert_eq!((Kinds::CHANGE | Kinds(1 << 20)).known(), Kinds::CHANGE);
        assert_eq!((Kinds::ALARM | Kinds::USER).to_string(), "alarm,user");
    }
}
