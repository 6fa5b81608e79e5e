//! A snapshot of a directory, row by row, for another store to restore.

use rusqlite::{Connection, types::Value};

use super::{
    Result, SqliteStore,
    rows::{all_book_rows, load},
};
use crate::{
    attachment::Sha,
    entry::Entry,
    store::{
        StoreError,
        book_row::{BookRow, rows_of},
    },
};

/// A snapshot of a directory.
pub struct DirectorySnapshot<'a>(&'a Connection);

/// A callback for rows that were read together.
pub type EachChunk<'a, T> = &'a mut dyn FnMut(Vec<T>) -> Result<()>;

impl SqliteStore {
    /// Runs an action on a snapshot.
    pub(in crate::store) fn snapshot<T>(&self, act: impl FnOnce(&DirectorySnapshot<'_>) -> Result<T>) -> Result<T> {
        let reader = self.searchers.get()?;
        let snapshot = reader.unchecked_transaction()?;
        act(&DirectorySnapshot(&snapshot))
    }
}

impl DirectorySnapshot<'_> {
    /// Returns all books.
    pub fn book_rows(&self) -> Result<Vec<BookRow>> {
        all_book_rows(self.0)
    }

    /// Reads the rows of a table, a fixed number at a time.
    pub fn rows(&self, table: &str, columns: &str, together: usize, take: EachChunk<'_, Vec<Value>>) -> Result<()> {
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

    /// Reads the entries of a book with their rows, a fixed number at a time.
    pub fn entries(&self, book_row: &BookRow, together: usize, take: EachChunk<'_, (i64, Entry)>) -> Result<()> {
        let [first, end] = rows_of(book_row.num);
        let mut query = self.0.prepare("SELECT row FROM entry WHERE row >= ?1 AND row < ?2 ORDER BY row")?;
        let rows = query.query_map([first, end], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        for rows in rows.chunks(together) {
            let one = |row: &i64| load(self.0, &book_row.book.name, *row, true).map(|entry| entry.map(|entry| (*row, entry)));
            take(rows.iter().filter_map(|row| one(row).transpose()).collect::<Result<_>>()?)?;
        }
        Ok(())
    }

    /// Returns the blobs of all entries and of their histories.
    pub fn blobs(&self) -> Result<Vec<Sha>> {
        let mut query = self.0.prepare("SELECT DISTINCT sha FROM attached ORDER BY sha")?;
        let found = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        found.into_iter().map(|sha| Sha::try_from(sha).map_err(|error| StoreError::Damaged(error.to_string()))).collect()
    }
}
