//! Identity of a source, and of one incarnation of it.
//!
//! A *source* has a stable name; each run of it is an *incarnation*. So sequence numbers can begin at 0 without a file
//! to remember them, and a restart is never taken for a gap. The decision is `spec/decisions/0001-identity.md`.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of one installation. It is part of every key, row and token, so that two installations on one network never
/// mix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Domain(String);

/// The stable name of a process that writes, as `CONTROL/DV01/cppContainer`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceName(String);

/// Error of a text that cannot name a domain or a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Nothing is left to call it by.
    #[error("a {0} needs a name of at least one character")]
    Empty(&'static str),
    /// A name that does not fit the one-byte length in a batch header.
    #[error("the {noun} '{start}...' has {length} bytes; {limit} are allowed")]
    Long {
        /// Kind of the thing to be named.
        noun: &'static str,
        /// Beginning of the name.
        start: String,
        /// Its length in bytes of UTF-8.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// Control characters would break tables, keys and terminals.
    #[error("the {noun} {name:?} holds a control character")]
    Control {
        /// Kind of the thing to be named.
        noun: &'static str,
        /// The name as given.
        name: String,
    },
}

const NAME_LIMIT: usize = 200;

fn checked(noun: &'static str, name: String) -> Result<String, BadName> {
    if name.is_empty() {
        Err(BadName::Empty(noun))
    } else if name.len() > NAME_LIMIT {
        let start = name.chars().take(20).collect();
        Err(BadName::Long { noun, start, length: name.len(), limit: NAME_LIMIT })
    } else if name.chars().any(char::is_control) {
        Err(BadName::Control { noun, name })
    } else {
        Ok(name)
    }
}

macro_rules! checked_name {
    ($type:ident, $noun:literal) => {
        impl $type {
            /// Checks the name: 1 to 200 bytes of UTF-8 without control characters.
            pub fn new(name: impl Into<String>) -> Result<$type, BadName> {
                checked($noun, name.into()).map($type)
            }

            /// Returns the name in its original spelling.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = BadName;

            fn from_str(name: &str) -> Result<$type, BadName> {
                $type::new(name)
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;

            fn try_from(name: String) -> Result<$type, BadName> {
                $type::new(name)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.0
            }
        }
    };
}
checked_name!(Domain, "domain");
checked_name!(SourceName, "source");

/// One life of one writer: unique over hosts, reboots and reused process numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Incarnation {
    /// Boot of the host: the first 32 bits of the kernel's boot id.
    pub boot: u32,
    /// Process number on that host; 0 for records from files.
    pub pid: u32,
    /// Start of this incarnation, ns of UTC since 1970; unique within the process.
    pub start: u64,
}

impl Incarnation {
    /// Sixteen bytes, little endian: boot, pid, start.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.boot.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.pid.to_le_bytes());
        bytes[8..].copy_from_slice(&self.start.to_le_bytes());
        bytes
    }

    /// The inverse of [`Incarnation::to_bytes`].
    pub fn from_bytes(bytes: [u8; 16]) -> Incarnation {
        let [b0, b1, b2, b3, p0, p1, p2, p3, start @ ..] = bytes;
        Incarnation {
            boot: u32::from_le_bytes([b0, b1, b2, b3]),
            pid: u32::from_le_bytes([p0, p1, p2, p3]),
            start: u64::from_le_bytes(start),
        }
    }

    /// Returns true if both incarnations belong to one host and the same boot, so that they can share memory.
    pub fn shares_host_with(self, other: Incarnation) -> bool {
        self.boot == other.boot
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{:08x}-{:016x}", self.boot, self.pid, self.start)
    }
}

/// Error of a text that is not an incarnation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an incarnation (8-8-16 hexadecimal digits: boot, process, start)")]
pub struct BadIncarnation(pub String);

impl FromStr for Incarnation {
    type Err = BadIncarnation;

    fn from_str(text: &str) -> Result<Incarnation, BadIncarnation> {
        let parse = || {
            let mut parts = text.splitn(3, '-');
            let mut part = |digits: usize| parts.next().filter(|part| part.len() == digits);
            Some(Incarnation {
                boot: u32::from_str_radix(part(8)?, 16).ok()?,
                pid: u32::from_str_radix(part(8)?, 16).ok()?,
                start: u64::from_str_radix(part(16)?, 16).ok()?,
            })
        };
        parse().ok_or_else(|| BadIncarnation(text.to_owned()))
    }
}

impl Serialize for Incarnation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Incarnation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Incarnation, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Names one record for ever: the archive keeps each id once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct RecordId {
    /// Incarnation of the writer.
    pub incarnation: Incarnation,
    /// Number of the ring (thread) of that incarnation.
    pub ring: u32,
    /// Number of the record in that ring, from 0.
    pub number: u64,
}

/// Error of a text that is not a record's id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a record id (incarnation, ring and number between dots)")]
pub struct BadRecordId(pub String);

impl FromStr for RecordId {
    type Err = BadRecordId;

    fn from_str(text: &str) -> Result<RecordId, BadRecordId> {
        let parse = || {
            let mut parts = text.splitn(3, '.');
            let incarnation = parts.next()?.parse().ok()?;
            Some(RecordId { incarnation, ring: parts.next()?.parse().ok()?, number: parts.next()?.parse().ok()? })
        };
        parse().ok_or_else(|| BadRecordId(text.to_owned()))
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.incarnation, self.ring, self.number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_would_break_keys_are_refused_with_the_reason() {
        assert_eq!(Domain::new(""), Err(BadName::Empty("domain")));
        assert!(Domain::new("a\nb").unwrap_err().to_string().contains("control"));
        assert!(SourceName::new("x".repeat(201)).unwrap_err().to_string().contains("201 bytes"));
        assert_eq!(SourceName::new("CONTROL/DV01").unwrap().as_str(), "CONTROL/DV01");
    }

    proptest! {
        #[test]
        fn incarnations_survive_text_and_bytes(boot: u32, pid: u32, start: u64) {
            let incarnation = Incarnation { boot, pid, start };
            prop_assert_eq!(incarnation.to_string().parse(), Ok(incarnation));
            prop_assert_eq!(Incarnation::from_bytes(incarnation.to_bytes()), incarnation);
            let id = RecordId { incarnation, ring: pid, number: start };
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}
