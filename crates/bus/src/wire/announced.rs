//! Announced keys that a node passes on to the processes of its host: all of them, or changes since a number.
//!
//! The layout is in `spec/wire/announced.md`.

use super::cursor::{BadMessage, Cursor, put_text};

const MAGIC: [u8; 3] = [b'T', b'K', 1];
const WHOLE: u8 = 1;

/// Changes that a node keeps for processes that have missed some. Others get all keys.
pub(crate) const KEPT: usize = 16_384;

/// Message of a node about announced keys.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnouncedKeys {
    /// Number of the node's table, another one for each start of a node.
    pub table: u64,
    /// Number of the first change; for all keys, the number of changes that they include.
    pub from: u64,
    /// True if these are all announced keys, and no changes.
    pub is_whole: bool,
    /// Announced and withdrawn keys, in this order.
    pub changes: Vec<KeyChange>,
}

/// Announcement or withdrawal of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    /// Key without the part that all keys of the domain begin with.
    pub key: String,
    /// True if it was announced, false if it was withdrawn.
    pub here: bool,
}

/// Question of a process for changes that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AskForKeys {
    /// Number of the table that it knows; 0 if it knows none.
    pub table: u64,
    /// Number of changes that it has.
    pub has: u64,
}

impl AnnouncedKeys {
    /// Returns the number of changes that a process has afterwards.
    pub fn until(&self) -> u64 {
        self.from.saturating_add(if self.is_whole { 0 } else { self.changes.len() as u64 })
    }

    /// Returns the encoded message.
    pub fn encode(&self) -> Vec<u8> {
        encode(self.table, self.from, self.is_whole, self.changes.iter().map(|change| (change.key.as_str(), change.here)))
    }

    /// Reads a message.
    pub fn decode(bytes: &[u8]) -> Result<AnnouncedKeys, BadMessage> {
        let mut cursor = Cursor::new(bytes);
        if cursor.bytes(MAGIC.len(), "mark")? != MAGIC {
            return Err(BadMessage::Senseless("mark"));
        }
        let is_whole = cursor.u8("flags")? & WHOLE != 0;
        let (table, from) = (cursor.u64("table")?, cursor.u64("number")?);
        let mut changes = Vec::new();
        for _ in 0..cursor.u32("count")? {
            let here = cursor.u8("kind of a change")? != 0;
            changes.push(KeyChange { key: cursor.text("key")?.to_owned(), here });
        }
        Ok(AnnouncedKeys { table, from, is_whole, changes })
    }
}

/// Returns a message with these keys and whether each is announced.
pub(crate) fn encode<'a>(table: u64, from: u64, is_whole: bool, changes: impl Iterator<Item = (&'a str, bool)>) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.push(if is_whole { WHOLE } else { 0 });
    out.extend_from_slice(&table.to_le_bytes());
    out.extend_from_slice(&from.to_le_bytes());
    let (count_at, mut count) = (out.len(), 0_u32);
    out.extend_from_slice(&count.to_le_bytes());
    for (key, here) in changes {
        count += 1;
        out.push(u8::from(here));
        put_text(&mut out, key);
    }
    out[count_at..count_at + 4].copy_from_slice(&count.to_le_bytes());
    out
}

impl AskForKeys {
    /// Returns the encoded question.
    pub fn encode(self) -> Vec<u8> {
        [self.table.to_le_bytes(), self.has.to_le_bytes()].concat()
    }

    /// Reads a question.
    pub fn decode(bytes: &[u8]) -> Result<AskForKeys, BadMessage> {
        let mut cursor = Cursor::new(bytes);
        Ok(AskForKeys { table: cursor.u64("table")?, has: cursor.u64("number")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_messages_are_refused() {
        let change = |key: &str, here| KeyChange { key: key.to_owned(), here };
        let changes = vec![change("p/-/1-2-3/61", true), change("n/-/7", false)];
        let message = AnnouncedKeys { table: 7, from: 40, is_whole: false, changes };
        let bytes = message.encode();
        assert_eq!(AnnouncedKeys::decode(&bytes), Ok(message.clone()));
        assert_eq!(message.until(), 42);
        assert_eq!(AnnouncedKeys { is_whole: true, ..message }.until(), 40);
        for length in 0..bytes.len() {
            assert!(AnnouncedKeys::decode(&bytes[..length]).is_err(), "{length}");
        }
        let mut later = bytes.clone();
        later.push(1);
        assert!(AnnouncedKeys::decode(&later).is_ok(), "a field of a later release");
        let mut other = bytes;
        other[2] = 2;
        assert_eq!(AnnouncedKeys::decode(&other), Err(BadMessage::Senseless("mark")));
        let asked = AskForKeys { table: 7, has: 40 };
        assert_eq!(AskForKeys::decode(&asked.encode()), Ok(asked));
        assert!(AskForKeys::decode(&asked.encode()[1..]).is_err());
    }
}
