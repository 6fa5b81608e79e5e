//! What lies on somebody's desk (locks, drafts, saved searches), and what is kept beside the logbooks.

use std::time::Duration;

use postgres::Row;
use serde_json::Value;
use tampu_types::Time;

use super::{
    PostgresStore,
    rows::{find, number},
    session::Session,
};
use crate::{
    entry::{Draft, EntryRef, Lock},
    store::{MAX_DRAFTS, Record, Result, StoreError, index::Tables, now, shelf::json},
};

/// Who has locked an entry at this time.
pub fn lock_of(session: &Session, num: i64, id: u32, at: Time) -> Result<Option<Lock>> {
    let sql = "SELECT by, host, since, until FROM lock WHERE book = $1 AND id = $2 AND until > $3";
    let Some(row) = session.one(sql, &[&num, &i64::from(id), &at.0])? else { return Ok(None) };
    Ok(Some(Lock { by: row.try_get(0)?, host: row.try_get(1)?, since: Time(row.try_get(2)?), until: Time(row.try_get(3)?) }))
}

fn record_of(kind: &str, name: &str, version: i64, value: &str) -> Result<Record> {
    let value = serde_json::from_str(value).map_err(|error| StoreError::Damaged(format!("{kind} '{name}': {error}")))?;
    Ok(Record { version: version.unsigned_abs(), value })
}

impl PostgresStore {
    pub(super) fn take_lock(&self, at: &EntryRef, by: &str, host: &str, time: Duration) -> Result<Lock> {
        self.write(|writing| {
            let shelf = writing.shelf(&at.book)?;
            find(writing.session, &shelf, at.id)?;
            let now = now();
            let before = lock_of(writing.session, shelf.num, at.id, now)?;
            if let Some(lock) = before.clone().filter(|lock| lock.by != by) {
                return Err(StoreError::Locked { at: at.clone(), lock: Box::new(lock) });
            }
            let since = before.map_or(now, |before| before.since);
            let until = Time(now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)));
            let lock = Lock { by: by.to_owned(), host: host.to_owned(), since, until };
            let sql = "INSERT INTO lock VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (book, id) DO UPDATE \
                       SET by = excluded.by, host = excluded.host, since = excluded.since, until = excluded.until";
            writing.session.execute(sql, &[&shelf.num, &i64::from(at.id), &by, &host, &since.0, &until.0])?;
            Ok(lock)
        })
    }

    pub(super) fn give_lock_back(&self, at: &EntryRef, by: &str) -> Result<()> {
        self.write(|writing| {
            let shelf = writing.shelf(&at.book)?;
            let sql = "DELETE FROM lock WHERE book = $1 AND id = $2 AND by = $3";
            writing.session.execute(sql, &[&shelf.num, &i64::from(at.id), &by])?;
            Ok(())
        })
    }

    pub(super) fn make_lock(&self, at: &EntryRef, from: &str, (by, host): (&str, &str), time: Duration) -> Result<bool> {
        self.write(|writing| {
            let (shelf, now) = (writing.shelf(&at.book)?, now());
            let until = now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
            let sql = "UPDATE lock SET by = $4, host = $5, since = $6, until = $7 WHERE book = $1 AND id = $2 AND by = $3 AND until > $6";
            let changed = writing.session.execute(sql, &[&shelf.num, &i64::from(at.id), &from, &by, &host, &now.0, &until])?;
            Ok(changed == 1)
        })
    }

    pub(super) fn save(&self, draft: &Draft) -> Result<i64> {
        draft.content.check()?;
        let text = json(draft)?;
        self.write(|writing| {
            let sql = "UPDATE draft SET saved = $3, draft = $4, taken = false WHERE number = $1 AND owner = $2";
            if writing.session.execute(sql, &[&draft.number, &draft.owner, &draft.saved.0, &text])? == 1 {
                return Ok(draft.number);
            }
            let count = writing.session.one("SELECT count(*) FROM draft WHERE owner = $1", &[&draft.owner])?;
            if count.map_or(Ok(0), |row| row.try_get::<_, i64>(0))? >= MAX_DRAFTS {
                return Err(StoreError::Full(format!("{} has {MAX_DRAFTS} drafts; throw some away", draft.owner)));
            }
            let sql = "INSERT INTO draft(owner, saved, draft) VALUES ($1, $2, $3) RETURNING number";
            let row = writing.session.one(sql, &[&draft.owner, &draft.saved.0, &text])?;
            Ok(row.map_or(Ok(0), |row| row.try_get(0))?)
        })
    }

    pub(super) fn drafts_of(&self, owner: &str) -> Result<Vec<Draft>> {
        self.read(|session| {
            let sql = "SELECT number, draft FROM draft WHERE owner = $1 ORDER BY saved DESC, number DESC";
            let draft = |row: &Row| {
                let number: i64 = row.try_get(0)?;
                let draft: Draft = serde_json::from_str(row.try_get(1)?)
                    .map_err(|error| StoreError::Damaged(format!("draft {number}: {error}")))?;
                Ok(Draft { number, ..draft })
            };
            session.query(sql, &[&owner])?.iter().map(draft).collect()
        })
    }

    pub(super) fn remove_draft(&self, owner: &str, number: i64) -> Result<bool> {
        let sql = "DELETE FROM draft WHERE owner = $1 AND number = $2";
        self.write(|writing| Ok(writing.session.execute(sql, &[&owner, &number])? == 1))
    }

    pub(super) fn save_query(&self, owner: &str, name: &str, query: &str) -> Result<()> {
        let sql = "INSERT INTO saved_search VALUES ($1, $2, $3) ON CONFLICT (owner, name) DO UPDATE SET query = excluded.query";
        self.write(|writing| writing.session.execute(sql, &[&owner, &name, &query]).map(|_| ()))
    }

    pub(super) fn saved_queries(&self, owner: &str) -> Result<Vec<(String, String)>> {
        let sql = "SELECT name, query FROM saved_search WHERE owner = $1 ORDER BY name";
        self.read(|session| session.query(sql, &[&owner])?.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect())
    }

    pub(super) fn remove_query(&self, owner: &str, name: &str) -> Result<bool> {
        let sql = "DELETE FROM saved_search WHERE owner = $1 AND name = $2";
        self.write(|writing| Ok(writing.session.execute(sql, &[&owner, &name])? == 1))
    }

    pub(super) fn one_record(&self, kind: &str, name: &str) -> Result<Option<Record>> {
        let sql = "SELECT version, value FROM record WHERE kind = $1 AND name = $2";
        self.read(|session| {
            let found = session.one(sql, &[&kind, &name])?;
            found.map(|row| record_of(kind, name, row.try_get(0)?, row.try_get(1)?)).transpose()
        })
    }

    pub(super) fn all_records(&self, kind: &str) -> Result<Vec<(String, Record)>> {
        let sql = "SELECT name, version, value FROM record WHERE kind = $1 ORDER BY name";
        self.read(|session| {
            let one = |row: &Row| {
                let name: String = row.try_get(0)?;
                let record = record_of(kind, &name, row.try_get(1)?, row.try_get(2)?)?;
                Ok((name, record))
            };
            session.query(sql, &[&kind])?.iter().map(one).collect()
        })
    }

    pub(super) fn write_record(&self, kind: &str, name: &str, value: &Value, expected: Option<u64>) -> Result<u64> {
        let text = json(value)?;
        self.write(|writing| {
            // The row alone cannot be locked while it is not there.
            writing.session.alone(&format!("record {kind} {name}"))?;
            let sql = "SELECT version FROM record WHERE kind = $1 AND name = $2";
            let is: u64 = writing.session.one(sql, &[&kind, &name])?.map_or(Ok(0), |row| number(&row, 0))?;
            if let Some(expected) = expected.filter(|expected| *expected != is) {
                return Err(StoreError::RecordChanged { kind: kind.to_owned(), name: name.to_owned(), expected, is });
            }
            let sql = "INSERT INTO record VALUES ($1, $2, $3, $4) \
                       ON CONFLICT (kind, name) DO UPDATE SET version = excluded.version, value = excluded.value";
            writing.session.execute(sql, &[&kind, &name, &((is + 1) as i64), &text])?;
            Ok(is + 1)
        })
    }

    pub(super) fn remove_record(&self, kind: &str, name: &str) -> Result<bool> {
        let sql = "DELETE FROM record WHERE kind = $1 AND name = $2";
        self.write(|writing| Ok(writing.session.execute(sql, &[&kind, &name])? == 1))
    }
}
