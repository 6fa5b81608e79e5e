//! Locks, drafts and saved searches.

use std::time::Duration;

use rusqlite::params;
use tampu_types::Time;

use super::{
    Result, SqliteStore, StoreError, now,
    rows::{book_row, find, lock_of},
};
use crate::{
    entry::{Draft, EntryRef, Lock},
    store::{Drafts, MAX_DRAFTS, book_row::json},
};

impl Drafts for SqliteStore {
    fn lock(&self, at: &EntryRef, by: &str, host: &str, time: Duration) -> Result<Lock> {
        self.write(|writing| {
            let book_row = book_row(&writing.db, &at.book)?;
            find(&writing.db, &book_row, at.id)?;
            let now = now();
            let before = lock_of(&writing.db, book_row.num, at.id, now)?;
            if let Some(lock) = before.clone().filter(|lock| lock.by != by) {
                return Err(StoreError::Locked { at: at.clone(), lock: Box::new(lock) });
            }
            let since = before.map_or(now, |before| before.since);
            let until = Time(now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)));
            let lock = Lock { by: by.to_owned(), host: host.to_owned(), since, until };
            let sql = "INSERT OR REPLACE INTO lock VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            writing.db.execute(sql, params![book_row.num, at.id, by, host, since.0, until.0])?;
            Ok(lock)
        })
    }

    fn unlock(&self, at: &EntryRef, by: &str) -> Result<()> {
        self.write(|writing| {
            let book_row = book_row(&writing.db, &at.book)?;
            writing.db.execute("DELETE FROM lock WHERE book = ?1 AND id = ?2 AND by = ?3", params![book_row.num, at.id, by])?;
            Ok(())
        })
    }

    fn locked(&self, at: &EntryRef) -> Result<Option<Lock>> {
        self.read(|db| {
            let book_row = book_row(db, &at.book)?;
            find(db, &book_row, at.id)?;
            lock_of(db, book_row.num, at.id, now())
        })
    }

    fn save_draft(&self, draft: &Draft) -> Result<i64> {
        draft.content.check()?;
        self.write(|writing| {
            let sql = "UPDATE draft SET saved = ?3, draft = ?4 WHERE number = ?1 AND owner = ?2";
            let text = json(draft)?;
            if writing.db.execute(sql, params![draft.number, draft.owner, draft.saved.0, text])? == 1 {
                return Ok(draft.number);
            }
            let count = "SELECT count(*) FROM draft WHERE owner = ?1";
            if writing.db.query_row(count, [&draft.owner], |row| row.get::<_, i64>(0))? >= MAX_DRAFTS {
                return Err(StoreError::Full(format!("{} has {MAX_DRAFTS} drafts; delete some of them", draft.owner)));
            }
            let sql = "INSERT INTO draft(owner, saved, draft) VALUES (?1, ?2, ?3) RETURNING number";
            Ok(writing.db.query_row(sql, params![draft.owner, draft.saved.0, text], |row| row.get(0))?)
        })
    }

    fn drafts(&self, owner: &str) -> Result<Vec<Draft>> {
        self.read(|db| {
            let mut query =
                db.prepare_cached("SELECT number, draft FROM draft WHERE owner = ?1 ORDER BY saved DESC, number DESC")?;
            let rows = query.query_map([owner], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
            let draft = |row: rusqlite::Result<(i64, String)>| {
                let (number, text) = row?;
                let draft: Draft =
                    serde_json::from_str(&text).map_err(|error| StoreError::Damaged(format!("draft {number}: {error}")))?;
                Ok(Draft { number, ..draft })
            };
            rows.map(draft).collect()
        })
    }

    fn drop_draft(&self, owner: &str, number: i64) -> Result<bool> {
        self.write(|writing| {
            let sql = "DELETE FROM draft WHERE owner = ?1 AND number = ?2";
            Ok(writing.db.execute(sql, rusqlite::params![owner, number])? == 1)
        })
    }

    fn save_search(&self, owner: &str, name: &str, query: &str) -> Result<()> {
        self.write(|writing| {
            writing.db.execute("INSERT OR REPLACE INTO saved_search VALUES (?1, ?2, ?3)", [owner, name, query])?;
            Ok(())
        })
    }

    fn saved_searches(&self, owner: &str) -> Result<Vec<(String, String)>> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT name, query FROM saved_search WHERE owner = ?1 ORDER BY name")?;
            let rows = query.query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn drop_search(&self, owner: &str, name: &str) -> Result<bool> {
        self.write(|writing| {
            Ok(writing.db.execute("DELETE FROM saved_search WHERE owner = ?1 AND name = ?2", [owner, name])? == 1)
        })
    }
}
