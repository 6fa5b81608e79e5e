//! Locks, drafts and saved searches.

use std::time::Duration;

use postgres::Row;
use tampu_types::Time;

use super::{
    PostgresStore,
    rows::{book_row, find, lock_if_there, lock_of},
};
use crate::{
    entry::{Draft, EntryRef, Lock},
    store::{Drafts, MAX_DRAFTS, Result, StoreError, book_row::json, index::Tables, now},
};

impl Drafts for PostgresStore {
    fn lock(&self, at: &EntryRef, by: &str, host: &str, time: Duration) -> Result<Lock> {
        self.write(|writing| {
            let book_row = writing.book_row(&at.book)?;
            find(writing.session, &book_row, at.id)?;
            let now = now();
            let before = lock_of(writing.session, book_row.num, at.id, now)?;
            if let Some(lock) = before.clone().filter(|lock| lock.by != by) {
                return Err(StoreError::Locked { at: at.clone(), lock: Box::new(lock) });
            }
            let since = before.map_or(now, |before| before.since);
            let until = Time(now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)));
            let lock = Lock { by: by.to_owned(), host: host.to_owned(), since, until };
            let sql = "INSERT INTO lock VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (book, id) DO UPDATE \
                       SET by = excluded.by, host = excluded.host, since = excluded.since, until = excluded.until";
            writing.session.execute(sql, &[&book_row.num, &i64::from(at.id), &by, &host, &since.0, &until.0])?;
            Ok(lock)
        })
    }

    fn unlock(&self, at: &EntryRef, by: &str) -> Result<()> {
        self.write(|writing| {
            let book_row = writing.book_row(&at.book)?;
            let sql = "DELETE FROM lock WHERE book = $1 AND id = $2 AND by = $3";
            writing.session.execute(sql, &[&book_row.num, &i64::from(at.id), &by])?;
            Ok(())
        })
    }

    fn locked(&self, at: &EntryRef) -> Result<Option<Lock>> {
        if let Some(lock) = self.read_once(|session| lock_if_there(session, at, now()))? {
            return Ok(lock);
        }
        // There is no such entry: the reason takes more statements.
        self.read(|session| {
            let book_row = book_row(session, &at.book)?;
            find(session, &book_row, at.id)?;
            lock_of(session, book_row.num, at.id, now())
        })
    }

    fn save_draft(&self, draft: &Draft) -> Result<i64> {
        draft.content.check()?;
        let text = json(draft)?;
        self.write(|writing| {
            let sql = "UPDATE draft SET saved = $3, draft = $4, taken = false WHERE number = $1 AND owner = $2";
            if writing.session.execute(sql, &[&draft.number, &draft.owner, &draft.saved.0, &text])? == 1 {
                return Ok(draft.number);
            }
            let count = writing.session.one("SELECT count(*) FROM draft WHERE owner = $1", &[&draft.owner])?;
            if count.map_or(Ok(0), |row| row.try_get::<_, i64>(0))? >= MAX_DRAFTS {
                return Err(StoreError::Full(format!("{} has {MAX_DRAFTS} drafts; delete some of them", draft.owner)));
            }
            let sql = "INSERT INTO draft(owner, saved, draft) VALUES ($1, $2, $3) RETURNING number";
            let row = writing.session.one(sql, &[&draft.owner, &draft.saved.0, &text])?;
            Ok(row.map_or(Ok(0), |row| row.try_get(0))?)
        })
    }

    fn drafts(&self, owner: &str) -> Result<Vec<Draft>> {
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

    fn drop_draft(&self, owner: &str, number: i64) -> Result<bool> {
        let sql = "DELETE FROM draft WHERE owner = $1 AND number = $2";
        self.write(|writing| Ok(writing.session.execute(sql, &[&owner, &number])? == 1))
    }

    fn save_search(&self, owner: &str, name: &str, query: &str) -> Result<()> {
        let sql = "INSERT INTO saved_search VALUES ($1, $2, $3) ON CONFLICT (owner, name) DO UPDATE SET query = excluded.query";
        self.write(|writing| writing.session.execute(sql, &[&owner, &name, &query]).map(|_| ()))
    }

    fn saved_searches(&self, owner: &str) -> Result<Vec<(String, String)>> {
        let sql = "SELECT name, query FROM saved_search WHERE owner = $1 ORDER BY name";
        self.read(|session| session.query(sql, &[&owner])?.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect())
    }

    fn drop_search(&self, owner: &str, name: &str) -> Result<bool> {
        let sql = "DELETE FROM saved_search WHERE owner = $1 AND name = $2";
        self.write(|writing| Ok(writing.session.execute(sql, &[&owner, &name])? == 1))
    }
}
