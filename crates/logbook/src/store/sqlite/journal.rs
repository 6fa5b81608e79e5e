//! The last changes of entries, for whoever waits for them: those of this process are told at once, those of others are looked for.

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use rusqlite::params;

use super::{Result, SqliteStore, Writing, lock, rows::book_name};
use crate::{
    entry::{Change, EntryRef},
    store::{
        CHANGES_KEPT, EntryChange,
        shelf::{damaged, json},
    },
};

/// How often changes of other processes are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// Changes between two times that old ones go.
const TIDY: i64 = 1024;

impl Writing<'_> {
    /// Tells a change of an entry to whoever waits.
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
    pub(super) fn number_of_last_change(&self) -> Result<u64> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT coalesce(max(number), 0) FROM change")?;
            Ok(query.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
        })
    }

    pub(super) fn changes_after(&self, after: u64, most: usize) -> Result<Vec<EntryChange>> {
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

    pub(super) fn wait_for_next_change(&self, after: u64, time: Duration) -> Result<u64> {
        let until = Instant::now() + time;
        loop {
            let seen = *lock(&self.commits.0);
            let last = self.number_of_last_change()?;
            let left = until.saturating_duration_since(Instant::now());
            if last > after || left.is_zero() {
                return Ok(last);
            }
            let state = lock(&self.commits.0);
            let wait = self.commits.1.wait_timeout_while(state, left.min(LOOK), |now| *now == seen);
            drop(wait.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Something was committed.
    pub(super) fn tell_commit(&self) {
        *lock(&self.commits.0) += 1;
        self.commits.1.notify_all();
    }
}
