//! What an event is for. One sample on the bus may be several kinds at once: a change that is also due for the archive is sent
//! once, with both bits set, and each subscriber looks at its own.

use std::{fmt, ops, str::FromStr};

use serde::{Deserialize, Serialize};

/// A kind of event; the numbers are bits of [`Kinds`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum EventKind {
    /// The value changed by more than its thresholds.
    Change = 0,
    /// The quality went to or from alarm or warning, or an error came or went.
    Alarm = 1,
    /// Changed by more than the thresholds for the archive, or the archive's period is over.
    Archive = 2,
    /// The period is over.
    Periodic = 3,
    /// The server's code says so; no criteria.
    User = 4,
    /// The attribute's configuration has changed.
    Configuration = 5,
    /// Data can be had by other ways; no value, but a counter.
    DataReady = 6,
    /// An attribute came or went.
    Interface = 7,
    /// A kind of the site's own, with a name.
    Generic = 8,
}

impl EventKind {
    /// All of them.
    pub const ALL: [EventKind; 9] = [
        EventKind::Change,
        EventKind::Alarm,
        EventKind::Archive,
        EventKind::Periodic,
        EventKind::User,
        EventKind::Configuration,
        EventKind::DataReady,
        EventKind::Interface,
        EventKind::Generic,
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Change => "change",
            EventKind::Alarm => "alarm",
            EventKind::Archive => "archive",
            EventKind::Periodic => "periodic",
            EventKind::User => "user",
            EventKind::Configuration => "configuration",
            EventKind::DataReady => "data_ready",
            EventKind::Interface => "interface",
            EventKind::Generic => "generic",
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No kind has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no kind of event (change, alarm, archive, periodic, user, configuration, data_ready, interface, generic)")]
pub struct UnknownKind(pub String);

impl FromStr for EventKind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<EventKind, UnknownKind> {
        let wanted = text.to_lowercase().replace('-', "_");
        // Tango's own words are understood as well.
        let wanted = match wanted.as_str() {
            "attr_conf" => "configuration",
            "intr_change" | "interface_change" => "interface",
            other => other,
        };
        EventKind::ALL.into_iter().find(|kind| kind.name() == wanted).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// A set of kinds. Bits of later releases are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kinds(pub u32);

impl Kinds {
    /// No kind.
    pub const NONE: Kinds = Kinds(0);
    /// See [`EventKind::Change`].
    pub const CHANGE: Kinds = Kinds(1);
    /// See [`EventKind::Alarm`].
    pub const ALARM: Kinds = Kinds(1 << 1);
    /// See [`EventKind::Archive`].
    pub const ARCHIVE: Kinds = Kinds(1 << 2);
    /// See [`EventKind::Periodic`].
    pub const PERIODIC: Kinds = Kinds(1 << 3);
    /// See [`EventKind::User`].
    pub const USER: Kinds = Kinds(1 << 4);
    /// See [`EventKind::Configuration`].
    pub const CONFIGURATION: Kinds = Kinds(1 << 5);
    /// See [`EventKind::DataReady`].
    pub const DATA_READY: Kinds = Kinds(1 << 6);
    /// See [`EventKind::Interface`].
    pub const INTERFACE: Kinds = Kinds(1 << 7);
    /// See [`EventKind::Generic`].
    pub const GENERIC: Kinds = Kinds(1 << 8);
    /// What carries a value and is decided by criteria or the server's code.
    pub const VALUES: Kinds = Kinds(0b1_1111);
    /// All this release knows.
    pub const KNOWN: Kinds = Kinds(0x1ff);

    /// Whether none is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the sets have a kind in common.
    pub fn intersects(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether this kind is in it.
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
