//! Restores a backup's directory into a database without logbooks, in one transaction.

use std::path::PathBuf;

use rusqlite::types::Value;

use super::{PostgresStore, import::Copy, rows::number, tables::PostgresTransaction};
use crate::{
    attachment::Sha,
    store::{
        Attachments, Imports, Progress, Result, StoreError,
        book_row::{BookRow, json},
        index::Tables,
        sqlite::{SqliteStore, export::DirectorySnapshot, restore::TABLES},
    },
};

/// Number of entries, and of rows of other tables, that are read at a time.
const TOGETHER: usize = 500;
/// The settings of a restoring connection: the index's new numbers wait in a longer list.
const RESTORING: &str = "SET LOCAL gin_pending_list_limit = '16MB'; SET LOCAL work_mem = '64MB'";

impl PostgresStore {
    /// Restores the contents of a directory from one snapshot. It rejects a database with logbooks or users, because
    /// two sites cannot be merged.
    pub fn restore(&self, from: &SqliteStore, progress: Progress<'_>) -> Result<()> {
        from.snapshot(|snapshot| {
            self.know_attributes(snapshot)?;
            self.write(|writing| {
                writing.session.batch(RESTORING)?;
                restore(writing, from, snapshot, progress)
            })
        })?;
        self.imported()
    }

    /// Writes the attributes with their numbers of the backup first: writers of entries read them on another connection.
    fn know_attributes(&self, snapshot: &DirectorySnapshot<'_>) -> Result<()> {
        let session = self.0.writers.get()?;
        snapshot.rows("attribute", "num, folded", TOGETHER, &mut |rows| {
            for row in rows {
                let [Value::Integer(num), Value::Text(folded)] = &row[..] else { continue };
                session.execute("INSERT INTO attribute VALUES ($1, $2) ON CONFLICT DO NOTHING", &[num, folded])?;
                let known = session.one("SELECT 1 FROM attribute WHERE num = $1 AND folded = $2", &[num, folded])?;
                known.ok_or_else(|| refused("it has had logbooks with other attributes"))?;
            }
            Ok(())
        })
    }
}

fn refused(why: &str) -> StoreError {
    let why = format!("{why}; restore a backup into an empty database or for another domain");
    StoreError::Directory { path: PathBuf::from("the database"), why }
}

fn restore(
    writing: &mut PostgresTransaction<'_>,
    from: &SqliteStore,
    snapshot: &DirectorySnapshot<'_>,
    progress: Progress<'_>,
) -> Result<()> {
    writing.session.alone("new book")?;
    let there = "SELECT 1 FROM book UNION ALL SELECT 1 FROM record WHERE kind = 'user' LIMIT 1";
    if writing.session.one(there, &[])?.is_some() {
        return Err(refused("it has logbooks, or users"));
    }
    // Deletes the records that a hub has created for itself in this database.
    writing.session.execute("DELETE FROM record", &[])?;
    let (book_rows, blobs) = (snapshot.book_rows()?, snapshot.blobs()?);
    let total = book_rows.iter().map(|book_row| book_row.entries).sum::<u64>() + blobs.len() as u64;
    let mut done = 0;
    let mut step = |more: usize| {
        done += more as u64;
        let go_on = progress(done, total);
        if go_on { Ok(()) } else { Err(StoreError::Full("it was ended before all was restored".to_owned())) }
    };
    for sha in &blobs {
        blob(writing, from, sha)?;
        step(1)?;
    }
    for (table, columns) in TABLES.iter().filter(|(table, _)| *table != "attribute") {
        snapshot.rows(table, columns, TOGETHER, &mut |rows| {
            let mut lines = Copy::default();
            rows.iter().for_each(|row| line(row, &mut lines));
            writing.session.copy_in(&format!("COPY {table}({columns}) FROM STDIN"), lines.bytes_of_all())
        })?;
    }
    drafts(writing, snapshot)?;
    for book_row in &book_rows {
        book(writing, book_row)?;
        snapshot.entries(book_row, TOGETHER, &mut |entries| {
            let count = entries.len();
            entries.iter().try_for_each(|(row, entry)| writing.put(book_row, *row, entry))?;
            step(count)
        })?;
    }
    Ok(())
}

fn blob(writing: &PostgresTransaction<'_>, from: &SqliteStore, sha: &Sha) -> Result<()> {
    let mut bytes = from.attachment(sha)?;
    let size = bytes.size();
    writing.session.new_blob(sha, size, &mut bytes).map_err(|failed| failed.with_sha(sha)).map(drop)
}

fn book(writing: &PostgresTransaction<'_>, book_row: &BookRow) -> Result<()> {
    let sql = "INSERT INTO book(num, name, folded, settings, next_id, entries) VALUES ($1, $2, $3, $4, $5, $6)";
    let (name, entries) = (&book_row.book.name, i64::try_from(book_row.entries).unwrap_or(i64::MAX));
    let (folded, settings) = (name.to_lowercase(), json(&book_row.book)?);
    writing.session.execute(sql, &[&book_row.num, name, &folded, &settings, &i64::from(book_row.next_id), &entries])?;
    Ok(())
}

/// Restores drafts. ELOG's drafts are marked in their text in the backup, and in a column here; the number of the next
/// draft is a new one.
fn drafts(writing: &PostgresTransaction<'_>, snapshot: &DirectorySnapshot<'_>) -> Result<()> {
    let mut taken = Vec::new();
    snapshot.rows("draft", "number, draft", TOGETHER, &mut |rows| {
        for row in rows {
            if let [Value::Integer(number), Value::Text(text)] = &row[..]
                && serde_json::from_str::<serde_json::Value>(text).is_ok_and(|draft| draft["elog"] == true)
            {
                taken.push(*number);
            }
        }
        Ok(())
    })?;
    writing.session.execute("UPDATE draft SET taken = true WHERE number = ANY($1)", &[&taken])?;
    let last = writing.session.one("SELECT coalesce(max(number), 0) FROM draft", &[])?;
    let last: u32 = last.map_or(Ok(0), |row| number(&row, 0))?;
    if last > 0 {
        writing.session.execute("SELECT setval(pg_get_serial_sequence('draft', 'number'), $1)", &[&i64::from(last)])?;
    }
    Ok(())
}

fn line(row: &[Value], lines: &mut Copy) {
    for value in row {
        match value {
            Value::Null => lines.nothing(),
            Value::Integer(number) => lines.number(*number),
            Value::Text(text) => lines.text(text),
            Value::Blob(bytes) => lines.bytes(bytes),
            // No table has real numbers.
            Value::Real(number) => lines.text(&number.to_string()),
        };
    }
    lines.end();
}
