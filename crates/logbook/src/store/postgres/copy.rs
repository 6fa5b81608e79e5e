//! Backups: a snapshot of the database, written into a directory that the built-in store opens.

use std::path::Path;

use postgres::{Row, types::Type};
use rusqlite::types::Value;

use super::{
    PostgresStore,
    rows::{all_book_rows, load},
    session::Session,
    sha,
};
use crate::store::{
    Attachments, Progress, Result, StoreError,
    book_row::rows_of,
    sqlite::restore::{DirectoryWriter, TABLES},
};

/// Entries, and rows of other tables, that are copied at a time.
const TOGETHER: i64 = 500;

impl PostgresStore {
    pub(super) fn copy_to(&self, to: &Path, progress: Progress<'_>) -> Result<()> {
        let mut writer = DirectoryWriter::begin(to)?;
        let session = self.0.searchers.get()?;
        session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let copied = self.copy_all(&session, &mut writer, progress);
        let _ = session.batch("ROLLBACK");
        copied?;
        self.0.keys.copy_public(to)?;
        writer.finish()
    }

    fn copy_all(&self, session: &Session, writer: &mut DirectoryWriter, progress: Progress<'_>) -> Result<()> {
        let book_rows = all_book_rows(session)?;
        let blobs = session.query("SELECT sha FROM blob ORDER BY sha", &[])?;
        let total = book_rows.iter().map(|book_row| book_row.entries).sum::<u64>() + (TABLES.len() + blobs.len()) as u64;
        let mut done = 0;
        let mut step = |more: u64| {
            done += more;
            let go_on = progress(done, total);
            if go_on { Ok(()) } else { Err(StoreError::Full("the backup was ended before it was complete".to_owned())) }
        };
        for (table, columns) in TABLES {
            session.batch(&format!("DECLARE copied NO SCROLL CURSOR FOR SELECT {columns} FROM {table}"))?;
            loop {
                let rows = session.query(&format!("FETCH {TOGETHER} FROM copied"), &[])?;
                if rows.is_empty() {
                    break;
                }
                writer.rows(table, columns, rows.iter().map(values).collect::<Result<_>>()?)?;
            }
            session.batch("CLOSE copied")?;
            // The next cursor has the columns of another table.
            session.forget();
            step(1)?;
        }
        for book_row in &book_rows {
            writer.book(book_row)?;
            let [mut first, end] = rows_of(book_row.num);
            loop {
                let sql = "SELECT row FROM entry WHERE row >= $1 AND row < $2 ORDER BY row LIMIT $3";
                let rows = session.query(sql, &[&first, &end, &TOGETHER])?;
                let rows = rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<Vec<i64>, _>>()?;
                let Some(last) = rows.last() else { break };
                first = last + 1;
                writer.entries(book_row, &load(session, &book_row.book.name, &rows, true)?)?;
                step(rows.len() as u64)?;
            }
        }
        for row in &blobs {
            // Blobs are never removed, so a blob that is read later is the same.
            let sha = sha(row.try_get(0)?)?;
            writer.blob(&sha, &mut self.attachment(&sha)?)?;
            step(1)?;
        }
        Ok(())
    }
}

/// Converts a row into values of SQLite.
fn values(row: &Row) -> Result<Vec<Value>> {
    let one = |(at, column): (usize, &postgres::Column)| {
        Ok(match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map_or(Value::Null, Value::Integer),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map_or(Value::Null, Value::Blob),
            _ => row.try_get::<_, Option<String>>(at)?.map_or(Value::Null, Value::Text),
        })
    };
    row.columns().iter().enumerate().map(one).collect()
}
