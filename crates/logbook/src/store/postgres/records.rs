//! Records: values under a kind and a name, beside the logbooks.

use postgres::Row;
use serde_json::Value;

use super::{PostgresStore, rows::number};
use crate::store::{Record, Records, Result, StoreError, book_row::json};

fn record_of(kind: &str, name: &str, version: i64, value: &str) -> Result<Record> {
    let value = serde_json::from_str(value).map_err(|error| StoreError::Damaged(format!("{kind} '{name}': {error}")))?;
    Ok(Record { version: version.unsigned_abs(), value })
}

impl Records for PostgresStore {
    fn record(&self, kind: &str, name: &str) -> Result<Option<Record>> {
        let sql = "SELECT version, value FROM record WHERE kind = $1 AND name = $2";
        self.read_once(|session| {
            let found = session.one(sql, &[&kind, &name])?;
            found.map(|row| record_of(kind, name, row.try_get(0)?, row.try_get(1)?)).transpose()
        })
    }

    fn records(&self, kind: &str) -> Result<Vec<(String, Record)>> {
        let sql = "SELECT name, version, value FROM record WHERE kind = $1 ORDER BY name";
        self.read_once(|session| {
            let one = |row: &Row| {
                let name: String = row.try_get(0)?;
                let record = record_of(kind, &name, row.try_get(1)?, row.try_get(2)?)?;
                Ok((name, record))
            };
            session.query(sql, &[&kind])?.iter().map(one).collect()
        })
    }

    fn put_record(&self, kind: &str, name: &str, value: &Value, expected: Option<u64>) -> Result<u64> {
        let text = json(value)?;
        self.write(|writing| {
            // A row that does not exist cannot be locked.
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

    fn drop_record(&self, kind: &str, name: &str) -> Result<bool> {
        let sql = "DELETE FROM record WHERE kind = $1 AND name = $2";
        self.write(|writing| Ok(writing.session.execute(sql, &[&kind, &name])? == 1))
    }
}
