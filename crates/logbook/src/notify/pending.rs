//! Entries that wait for a digest or for the end of quiet hours, by user.

use serde::{Deserialize, Serialize};

use crate::{
    entry::EntryRef,
    store::{Records, StoreError},
};

/// The kind of the store's records, which are named by the login.
pub const KIND: &str = "notify-due";
/// Entries that wait for one user; of more, the mail says how many they are.
pub const WAITING: usize = 500;

/// An entry that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingEntry {
    #[serde(flatten)]
    pub at: EntryRef,
    /// The rule that means it.
    pub rule: String,
    /// The time of its mail, in Unix nanoseconds.
    pub due: i64,
}

/// Entries that wait for the mails of one user.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Waiting {
    /// The entries, in the order of their posts.
    pub entries: Vec<WaitingEntry>,
    /// Further entries, which are only counted.
    pub more: u64,
}

impl Waiting {
    /// Adds an entry, unless it waits already.
    pub fn add(&mut self, entry: WaitingEntry) {
        if self.entries.iter().any(|known| known.at == entry.at && known.rule == entry.rule) {
            return;
        }
        if self.entries.len() < WAITING { self.entries.push(entry) } else { self.more += 1 }
    }

    /// Returns the time of the next mail.
    pub fn due(&self) -> Option<i64> {
        self.entries.iter().map(|entry| entry.due).min()
    }

    /// Takes the entries whose mail is due, and the number of those that were only counted.
    pub fn take_due(&mut self, now: i64) -> (Vec<WaitingEntry>, u64) {
        let (due, left) = std::mem::take(&mut self.entries).into_iter().partition(|entry| entry.due <= now);
        self.entries = left;
        (due, std::mem::take(&mut self.more))
    }
}

/// Reads what waits, by login.
pub fn read_all(store: &dyn Records) -> Result<Vec<(String, Waiting)>, StoreError> {
    let records = store.records(KIND)?.into_iter();
    Ok(records.map(|(login, record)| (login, serde_json::from_value(record.value).unwrap_or_default())).collect())
}

/// Writes what waits for a user.
pub fn write(store: &dyn Records, login: &str, waiting: &Waiting) -> Result<(), StoreError> {
    if waiting.entries.is_empty() {
        return store.drop_record(KIND, login).map(drop);
    }
    let value = serde_json::to_value(waiting).unwrap_or_default();
    store.put_record(KIND, login, &value, None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_entries_are_bounded_and_taken_when_they_are_due() {
        let entry = |id: u32, due: i64| WaitingEntry { at: EntryRef::new("Shift", id), rule: "r".to_owned(), due };
        let mut waiting = Waiting::default();
        (1..=3).for_each(|id| waiting.add(entry(id, i64::from(id))));
        waiting.add(entry(1, 9));
        assert_eq!(waiting.due(), Some(1));
        let (due, _) = waiting.take_due(2);
        assert_eq!((due.len(), waiting.entries.len()), (2, 1));
        (10..10 + WAITING as u32).for_each(|id| waiting.add(entry(id, 3)));
        assert_eq!((waiting.entries.len(), waiting.more), (WAITING, 1));
    }
}
