//! What lies on somebody's desk: locks, drafts, saved searches.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use tampu_types::Time;

use super::{
    Result, SqliteStore, StoreError, now,
    rows::{find, shelf},
};
use crate::{
    entry::{Draft, EntryRef, Lock},
    store::{MAX_DRAFTS, shelf::json},
};

/// Who has locked an entry at this time.
pub fn lock_of(db: &Connection, book: i64, id: u32, at: Time) -> Result<Option<Lock>> {
    let sql = "SELECT by, host, since, until FROM lock WHERE book = ?1 AND id = ?2 AND until > ?3";
    let found = db.prepare_cached(sql)?.query_row(params![book, id, at.0], |row| {
        Ok(Lock { by: row.get(0)?, host: row.get(1)?, since: Time(row.get(2)?), until: Time(row.get(3)?) })
    });
    Ok(found.optional()?)
}

impl SqliteStore {
    pub(super) fn take_lock(&self, at: &EntryRef, by: &str, host: &str, time: Duration) -> Result<Lock> {
        self.write(|writing| {
            let shelf = shelf(&writing.db, &at.book)?;
            find(&writing.db, &shelf, at.id)?;
            let now = now();
            let before = lock_of(&writing.db, shelf.num, at.id, now)?;
            if let Some(lock) = before.clone().filter(|lock| lock.by != by) {
                return Err(StoreError::Locked { at: at.clone(), lock: Box::new(lock) });
            }
            let since = before.map_or(now, |before| before.since);
            let until = Time(now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)));
            let lock = Lock { by: by.to_owned(), host: host.to_owned(), since, until };
            let sql = "INSERT OR REPLACE INTO lock VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            writing.db.execute(sql, params![shelf.num, at.id, by, host, since.0, until.0])?;
            Ok(lock)
        })
    }

    pub(super) fn give_lock_back(&self, at: &EntryRef, by: &str) -> Result<()> {
        self.write(|writing| {
            let shelf = shelf(&writing.db, &at.book)?;
            writing.db.execute("DELETE FROM lock WHERE book = ?1 AND id = ?2 AND by = ?3", params![shelf.num, at.id, by])?;
            Ok(())
        })
    }

    pub(super) fn make_lock(&self, at: &EntryRef, from: &str, (by, host): (&str, &str), time: Duration) -> Result<bool> {
        self.write(|writing| {
            let (shelf, now) = (shelf(&writing.db, &at.book)?, now());
            let until = now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
            let sql = "UPDATE lock SET by = ?4, host = ?5, since = ?6, until = ?7 WHERE book = ?1 AND id = ?2 AND by = ?3 AND until > ?6";
            Ok(writing.db.execute(sql, params![shelf.num, at.id, from, by, host, now.0, until])? == 1)
        })
    }

    pub(super) fn save(&self, draft: &Draft) -> Result<i64> {
        draft.content.check()?;
        self.write(|writing| {
            let sql = "UPDATE draft SET saved = ?3, draft = ?4 WHERE number = ?1 AND owner = ?2";
            let text = json(draft)?;
            if writing.db.execute(sql, params![draft.number, draft.owner, draft.saved.0, text])? == 1 {
                return Ok(draft.number);
            }
            let count = "SELECT count(*) FROM draft WHERE owner = ?1";
            if writing.db.query_row(count, [&draft.owner], |row| row.get::<_, i64>(0))? >= MAX_DRAFTS {
                return Err(StoreError::Full(format!("{} has {MAX_DRAFTS} drafts; throw some away", draft.owner)));
            }
            let sql = "INSERT INTO draft(owner, saved, draft) VALUES (?1, ?2, ?3) RETURNING number";
            Ok(writing.db.query_row(sql, params![draft.owner, draft.saved.0, text], |row| row.get(0))?)
        })
    }

    pub(super) fn drafts_of(&self, owner: &str) -> Result<Vec<Draft>> {
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

    pub(super) fn save_query(&self, owner: &str, name: &str, query: &str) -> Result<()> {
        self.write(|writing| {
            writing.db.execute("INSERT OR REPLACE INTO saved_search VALUES (?1, ?2, ?3)", [owner, name, query])?;
            Ok(())
        })
    }

    pub(super) fn saved_queries(&self, owner: &str) -> Result<Vec<(String, String)>> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT name, query FROM saved_search WHERE owner = ?1 ORDER BY name")?;
            let rows = query.query_map([owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}
