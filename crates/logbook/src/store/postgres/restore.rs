//! A backup's directory put into a database that has no logbooks: all in one transaction, so that it is there whole or not at all.

use std::path::PathBuf;

use rusqlite::types::Value;

use super::{PostgresStore, import::Copy, rows::number, tables::Writing};
use crate::{
    attachment::Sha,
    store::{
        Progress, Result, Store, StoreError,
        index::Tables,
        shelf::{Shelf, json},
        sqlite::{SqliteStore, fill::TABLES, pour::Moment},
    },
};

/// Entries, and rows of other tables, that are read at a time.
const TOGETHER: usize = 500;
/// What a connection sets meanwhile: the index's new numbers wait in a longer list.
const RESTORING: &str = "SET LOCAL gin_pending_list_limit = '16MB'; SET LOCAL work_mem = '64MB'";

impl PostgresStore {
    /// Takes all that a directory has, as it is at one moment. Refused where there are logbooks, or users: two sites are not made one.
    pub fn restore(&self, from: &SqliteStore, progress: Progress<'_>) -> Result<()> {
        from.moment(|moment| {
            self.know_attributes(moment)?;
            self.write(|writing| {
                writing.session.batch(RESTORING)?;
                restore(writing, from, moment, progress)
            })
        })?;
        self.settle_index()
    }

    /// Attributes get the numbers they have there, before all else: who writes entries asks for them on another connection.
    fn know_attributes(&self, moment: &Moment<'_>) -> Result<()> {
        let session = self.0.writers.get()?;
        moment.rows("attribute", "num, folded", TOGETHER, &mut |rows| {
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
    let why = format!("{why}: a backup is put where there are no logbooks, as in another database, or for another domain");
    StoreError::Directory { path: PathBuf::from("the database"), why }
}

fn restore(writing: &mut Writing<'_>, from: &SqliteStore, moment: &Moment<'_>, progress: Progress<'_>) -> Result<()> {
    writing.session.alone("new book")?;
    let there = "SELECT 1 FROM book UNION ALL SELECT 1 FROM record WHERE kind = 'user' LIMIT 1";
    if writing.session.one(there, &[])?.is_some() {
        return Err(refused("it has logbooks, or users"));
    }
    // What a hub that was started on it has made for itself.
    writing.session.execute("DELETE FROM record", &[])?;
    let (shelves, blobs) = (moment.shelves()?, moment.blobs()?);
    let total = shelves.iter().map(|shelf| shelf.entries).sum::<u64>() + blobs.len() as u64;
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
        moment.rows(table, columns, TOGETHER, &mut |rows| {
            let mut lines = Copy::default();
            rows.iter().for_each(|row| line(row, &mut lines));
            writing.session.copy_in(&format!("COPY {table}({columns}) FROM STDIN"), lines.bytes_of_all())
        })?;
    }
    drafts(writing, moment)?;
    for shelf in &shelves {
        book(writing, shelf)?;
        moment.entries(shelf, TOGETHER, &mut |entries| {
            let count = entries.len();
            entries.iter().try_for_each(|(row, entry)| writing.put(shelf, *row, entry))?;
            step(count)
        })?;
    }
    Ok(())
}

fn blob(writing: &Writing<'_>, from: &SqliteStore, sha: &Sha) -> Result<()> {
    let mut bytes = from.attachment(sha)?;
    let size = bytes.size();
    writing.session.new_blob(sha, size, &mut bytes).map_err(|failed| failed.told(sha)).map(drop)
}

fn book(writing: &Writing<'_>, shelf: &Shelf) -> Result<()> {
    let sql = "INSERT INTO book(num, name, folded, settings, next_id, entries) VALUES ($1, $2, $3, $4, $5, $6)";
    let (name, entries) = (&shelf.book.name, i64::try_from(shelf.entries).unwrap_or(i64::MAX));
    let (folded, settings) = (name.to_lowercase(), json(&shelf.book)?);
    writing.session.execute(sql, &[&shelf.num, name, &folded, &settings, &i64::from(shelf.next_id), &entries])?;
    Ok(())
}

/// Drafts that are ELOG's are marked in their text there, and in a column here; and the next one's number is a new one.
fn drafts(writing: &Writing<'_>, moment: &Moment<'_>) -> Result<()> {
    let mut taken = Vec::new();
    moment.rows("draft", "number, draft", TOGETHER, &mut |rows| {
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
            // No table has such.
            Value::Real(number) => lines.text(&number.to_string()),
        };
    }
    lines.end();
}
