//! Reading books, entries, threads and histories.

use tampu_types::Time;

use super::{
    PostgresStore,
    rows::{find, load, load_one, number, row_of, shelf, shelves, tombstone},
};
use crate::{
    entry::{Content, Entry, EntryRef, Revision},
    store::{
        BookInfo, Result, StoreError,
        shelf::{Shelf, damaged, rows_of},
    },
};

impl PostgresStore {
    pub(super) fn all_books(&self) -> Result<Vec<BookInfo>> {
        self.read(|session| {
            let sql = "SELECT date FROM entry WHERE row >= $1 AND row < $2 ORDER BY row DESC LIMIT 1";
            let info = |shelf: Shelf| {
                let [first, end] = rows_of(shelf.num);
                let newest = session.one(sql, &[&first, &end])?.map(|row| row.try_get(0).map(Time)).transpose()?;
                Ok(BookInfo { book: shelf.book, entries: shelf.entries, newest })
            };
            shelves(session)?.into_iter().map(info).collect()
        })
    }

    pub(super) fn one_entry(&self, at: &EntryRef) -> Result<Entry> {
        self.read(|session| {
            let shelf = shelf(session, &at.book, false)?;
            let row = find(session, &shelf, at.id)?;
            load_one(session, &shelf.book.name, row)?.ok_or_else(|| StoreError::NoEntry(at.clone()))
        })
    }

    pub(super) fn whole_thread(&self, at: &EntryRef) -> Result<Vec<Entry>> {
        self.read(|session| {
            let shelf = shelf(session, &at.book, false)?;
            let row = find(session, &shelf, at.id)?;
            let sql = "SELECT row FROM entry WHERE book = $1 AND thread = (SELECT thread FROM entry WHERE row = $2) ORDER BY row";
            let rows = session.query(sql, &[&shelf.num, &row])?;
            let rows = rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<Vec<i64>, _>>()?;
            Ok(load(session, &shelf.book.name, &rows, true)?.into_iter().map(|(_, entry)| entry).collect())
        })
    }

    pub(super) fn answers_to(&self, book: &str, to: &[u32]) -> Result<Vec<(u32, u32)>> {
        self.read(|session| {
            let shelf = shelf(session, book, false)?;
            let to: Vec<i64> = to.iter().copied().map(i64::from).collect();
            let sql = "SELECT parent, id FROM entry WHERE book = $1 AND parent = ANY($2) ORDER BY row";
            session.query(sql, &[&shelf.num, &to])?.iter().map(|row| Ok((number(row, 0)?, number(row, 1)?))).collect()
        })
    }

    pub(super) fn whole_history(&self, at: &EntryRef) -> Result<Vec<Revision>> {
        self.read(|session| {
            let shelf = shelf(session, &at.book, false)?;
            let current = match row_of(session, shelf.num, at.id)? {
                Some(row) => load_one(session, &shelf.book.name, row)?.map(|entry| entry.content),
                None => None,
            };
            if current.is_none() && tombstone(session, &shelf, at.id)?.is_none() {
                return Err(StoreError::NoEntry(at.clone()));
            }
            let sql = "SELECT number, at, by, what, content FROM revision WHERE book = $1 AND id = $2 ORDER BY number";
            let mut history = Vec::new();
            for row in &session.query(sql, &[&shelf.num, &i64::from(at.id)])? {
                let bad = |error| damaged(&at.book, at.id, error);
                let content: Option<&str> = row.try_get(4)?;
                history.push(Revision {
                    number: number(row, 0)?,
                    at: Time(row.try_get(1)?),
                    by: row.try_get(2)?,
                    what: serde_json::from_str(row.try_get(3)?).map_err(bad)?,
                    content: match content {
                        Some(text) => serde_json::from_str(text).map_err(bad)?,
                        None => current.clone().unwrap_or_else(Content::default),
                    },
                });
            }
            Ok(history)
        })
    }
}
