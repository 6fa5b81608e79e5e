//! Reading books, entries, threads and histories.

use rusqlite::params;
use tampu_types::Time;

use super::{
    Result, SqliteStore, StoreError,
    rows::{find, load, row_of, shelf, shelves, tombstone},
};
use crate::{
    entry::{Content, Entry, EntryRef, Revision},
    store::{
        BookInfo,
        shelf::{Shelf, damaged, rows_of},
    },
};

impl SqliteStore {
    pub(super) fn all_books(&self) -> Result<Vec<BookInfo>> {
        self.read(|db| {
            let mut newest =
                db.prepare_cached("SELECT date FROM entry WHERE row >= ?1 AND row < ?2 ORDER BY row DESC LIMIT 1")?;
            let info = |shelf: Shelf| {
                let newest = newest.query_map(rows_of(shelf.num), |row| row.get(0).map(Time))?.next().transpose()?;
                Ok(BookInfo { book: shelf.book, entries: shelf.entries, newest })
            };
            shelves(db)?.into_iter().map(info).collect()
        })
    }

    pub(super) fn one_entry(&self, at: &EntryRef) -> Result<Entry> {
        self.read(|db| {
            let shelf = shelf(db, &at.book)?;
            let row = find(db, &shelf, at.id)?;
            load(db, &shelf.book.name, row, true)?.ok_or_else(|| StoreError::NoEntry(at.clone()))
        })
    }

    pub(super) fn whole_thread(&self, at: &EntryRef) -> Result<Vec<Entry>> {
        self.read(|db| {
            let shelf = shelf(db, &at.book)?;
            let row = find(db, &shelf, at.id)?;
            let sql = "SELECT row FROM entry WHERE book = ?1 AND thread = (SELECT thread FROM entry WHERE row = ?2) ORDER BY row";
            let mut query = db.prepare_cached(sql)?;
            let rows = query.query_map([shelf.num, row], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
            rows.into_iter().filter_map(|row| load(db, &shelf.book.name, row, true).transpose()).collect()
        })
    }

    pub(super) fn answers_to(&self, book: &str, to: &[u32]) -> Result<Vec<(u32, u32)>> {
        self.read(|db| {
            let (shelf, mut found) = (shelf(db, book)?, Vec::new());
            let mut query = db.prepare_cached("SELECT id FROM entry WHERE book = ?1 AND parent = ?2 ORDER BY row")?;
            for &parent in to {
                let mut rows = query.query(params![shelf.num, parent])?;
                while let Some(row) = rows.next()? {
                    found.push((parent, row.get(0)?));
                }
            }
            Ok(found)
        })
    }

    pub(super) fn whole_history(&self, at: &EntryRef) -> Result<Vec<Revision>> {
        self.read(|db| {
            let shelf = shelf(db, &at.book)?;
            let current = match row_of(db, shelf.num, at.id)? {
                Some(row) => load(db, &shelf.book.name, row, true)?.map(|entry| entry.content),
                None => None,
            };
            if current.is_none() && tombstone(db, &shelf, at.id)?.is_none() {
                return Err(StoreError::NoEntry(at.clone()));
            }
            let sql = "SELECT number, at, by, what, content FROM revision WHERE book = ?1 AND id = ?2 ORDER BY number";
            let mut query = db.prepare_cached(sql)?;
            let mut rows = query.query(params![shelf.num, at.id])?;
            let mut history = Vec::new();
            while let Some(row) = rows.next()? {
                let bad = |error| damaged(&at.book, at.id, error);
                let content: Option<String> = row.get(4)?;
                history.push(Revision {
                    number: row.get(0)?,
                    at: Time(row.get(1)?),
                    by: row.get(2)?,
                    what: serde_json::from_str(row.get_ref(3)?.as_str().unwrap_or_default()).map_err(bad)?,
                    content: match content {
                        Some(text) => serde_json::from_str(&text).map_err(bad)?,
                        None => current.clone().unwrap_or_else(Content::default),
                    },
                });
            }
            Ok(history)
        })
    }
}
