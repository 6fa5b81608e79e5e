//! Records: values under a kind and a name, beside the logbooks.

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::{Result, SqliteStore, StoreError};
use crate::store::{Record, Records, book_row::json};

fn read(kind: &str, name: &str, version: i64, value: &str) -> Result<Record> {
    let value = serde_json::from_str(value).map_err(|error| StoreError::Damaged(format!("{kind} '{name}': {error}")))?;
    Ok(Record { version: version.unsigned_abs(), value })
}

impl Records for SqliteStore {
    fn record(&self, kind: &str, name: &str) -> Result<Option<Record>> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT version, value FROM record WHERE kind = ?1 AND name = ?2")?;
            let found = query.query_row([kind, name], |row| Ok(read(kind, name, row.get(0)?, row.get_ref(1)?.as_str()?)));
            found.optional()?.transpose()
        })
    }

    fn records(&self, kind: &str) -> Result<Vec<(String, Record)>> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT name, version, value FROM record WHERE kind = ?1 ORDER BY name")?;
            let mut rows = query.query([kind])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let name: String = row.get(0)?;
                let record = read(kind, &name, row.get(1)?, row.get_ref(2)?.as_str().map_err(rusqlite::Error::from)?)?;
                found.push((name, record));
            }
            Ok(found)
        })
    }

    fn put_record(&self, kind: &str, name: &str, value: &Value, expected: Option<u64>) -> Result<u64> {
        let text = json(value)?;
        self.write(|writing| {
            let mut query = writing.db.prepare_cached("SELECT version FROM record WHERE kind = ?1 AND name = ?2")?;
            let is: Option<i64> = query.query_row([kind, name], |row| row.get(0)).optional()?;
            let is = is.map_or(0, i64::unsigned_abs);
            if let Some(expected) = expected.filter(|expected| *expected != is) {
                return Err(StoreError::RecordChanged { kind: kind.to_owned(), name: name.to_owned(), expected, is });
            }
            let sql = "INSERT OR REPLACE INTO record VALUES (?1, ?2, ?3, ?4)";
            writing.db.prepare_cached(sql)?.execute(params![kind, name, (is + 1) as i64, text])?;
            Ok(is + 1)
        })
    }

    fn drop_record(&self, kind: &str, name: &str) -> Result<bool> {
        self.write(|writing| Ok(writing.db.execute("DELETE FROM record WHERE kind = ?1 AND name = ?2", [kind, name])? == 1))
    }
}
