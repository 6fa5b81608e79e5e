//! The journal of changes, for subscribers. Changes of this process wake them at once; those of other processes are polled.

use std::time::{Duration, Instant};

use rusqlite::params;

use super::{Result, SqliteStore, SqliteTransaction, rows::book_name};
use crate::{
    entry::{Change, EntryRef},
    store::{
        CHANGES_KEPT, Changes, EntryChange,
        book_row::{damaged, json},
    },
};

/// The poll interval for changes of other processes.
const LOOK: Duration = Duration::from_millis(200);
/// Number of changes between two removals of old changes.
const TIDY: i64 = 1024;

impl SqliteTransaction<'_> {
    /// Writes a change of an entry into the journal.
    pub(super) fn journal(&self, book: i64, id: u32, what: Change) -> Result<()> {
        self.db.prepare_cached("INSERT INTO change(book, id, what) VALUES (?1, ?2, ?3)")?.execute(params![
            book,
            id,
            json(&what)?
        ])?;
        let number = self.db.last_insert_rowid();
        if number % TIDY == 0 {
            self.db.prepare_cached("DELETE FROM change WHERE number <= ?1")?.execute([number - CHANGES_KEPT as i64])?;
        }
        Ok(())
    }
}

impl SqliteStore {
    /// Wakes the threads that wait for changes.
    pub(super) fn notify_commit(&self) {
        *self.commits.0.lock() += 1;
        self.commits.1.notify_all();
    }
}

impl Changes for SqliteStore {
    fn last_change(&self) -> Result<u64> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT coalesce(max(number), 0) FROM change")?;
            Ok(query.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
        })
    }

    fn changes(&self, after: u64, most: usize) -> Result<Vec<EntryChange>> {
        self.read(|db| {
            let sql = "SELECT number, book, id, what FROM change WHERE number > ?1 ORDER BY number LIMIT ?2";
            let mut query = db.prepare_cached(sql)?;
            let mut rows = query.query(params![after as i64, most as i64])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let at = EntryRef { book: book_name(db, row.get(1)?)?, id: row.get(2)? };
                let what = serde_json::from_str(row.get_ref(3)?.as_str().unwrap_or_default());
                let what = what.map_err(|error| damaged(&at.book, at.id, error))?;
                found.push(EntryChange { number: row.get::<_, i64>(0)?.unsigned_abs(), at, what });
            }
            Ok(found)
        })
    }

    fn wait_for_change(&self, after: u64, time: Duration) -> Result<u64> {
        let until = Instant::now() + time;
        loop {
            let seen = *self.commits.0.lock();
            let last = self.last_change()?;
            let left = until.saturating_duration_since(Instant::now());
            if last > after || left.is_zero() {
                return Ok(last);
            }
            let mut state = self.commits.0.lock();
            self.commits.1.wait_while_for(&mut state, |now| *now == seen, left.min(LOOK));
        }
    }
}
