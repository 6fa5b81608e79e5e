//! What a directory has, row by row, of one moment, for another store to take.

use rusqlite::{Connection, types::Value};

use super::{
    Result, SqliteStore,
    rows::{load, shelves},
};
use crate::{
    attachment::Sha,
    entry::Entry,
    store::{
        StoreError,
        shelf::{Shelf, rows_of},
    },
};

/// One moment of a directory.
pub struct Moment<'a>(&'a Connection);

/// What is done with rows that were read together.
pub type Taken<'a, T> = &'a mut dyn FnMut(Vec<T>) -> Result<()>;

impl SqliteStore {
    /// Looks at one moment.
    pub(in crate::store) fn moment<T>(&self, act: impl FnOnce(&Moment<'_>) -> Result<T>) -> Result<T> {
        let reader = self.searchers.get()?;
        let snapshot = reader.unchecked_transaction()?;
        act(&Moment(&snapshot))
    }
}

impl Moment<'_> {
    /// The books.
    pub fn shelves(&self) -> Result<Vec<Shelf>> {
        shelves(self.0)
    }

    /// The rows of a table, so many at a time.
    pub fn rows(&self, table: &str, columns: &str, together: usize, take: Taken<'_, Vec<Value>>) -> Result<()> {
        let mut query = self.0.prepare(&format!("SELECT {columns} FROM {table}"))?;
        let count = query.column_count();
        let mut rows = query.query([])?;
        let mut some = Vec::new();
        while let Some(row) = rows.next()? {
            some.push((0..count).map(|at| row.get(at)).collect::<rusqlite::Result<Vec<Value>>>()?);
            if some.len() >= together {
                take(std::mem::take(&mut some))?;
            }
        }
        if some.is_empty() { Ok(()) } else { take(some) }
    }

    /// The entries of a book with their rows, so many at a time.
    pub fn entries(&self, shelf: &Shelf, together: usize, take: Taken<'_, (i64, Entry)>) -> Result<()> {
        let [first, end] = rows_of(shelf.num);
        let mut query = self.0.prepare("SELECT row FROM entry WHERE row >= ?1 AND row < ?2 ORDER BY row")?;
        let rows = query.query_map([first, end], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        for rows in rows.chunks(together) {
            let one = |row: &i64| load(self.0, &shelf.book.name, *row, true).map(|entry| entry.map(|entry| (*row, entry)));
            take(rows.iter().filter_map(|row| one(row).transpose()).collect::<Result<_>>()?)?;
        }
        Ok(())
    }

    /// The blobs that entries have, present and past.
    pub fn blobs(&self) -> Result<Vec<Sha>> {
        let mut query = self.0.prepare("SELECT DISTINCT sha FROM attached ORDER BY sha")?;
        let found = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        found.into_iter().map(|sha| Sha::try_from(sha).map_err(|error| StoreError::Damaged(error.to_string()))).collect()
    }
}
