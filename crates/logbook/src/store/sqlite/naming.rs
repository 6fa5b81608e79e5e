//! Names of books, and the records that name them, in SQLite.

use rusqlite::{Connection, params};

use super::{Result, SqliteTransaction, rows::hidden_row};
use crate::{
    book::Book,
    store::{
        book_row::{BookRow, json},
        naming::NameTables,
    },
};

fn pairs<T: rusqlite::types::FromSql>(db: &Connection, sql: &str, values: impl rusqlite::Params) -> Result<Vec<(T, String)>> {
    let mut query = db.prepare(sql)?;
    Ok(query.query_map(values, |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?)
}

impl NameTables for SqliteTransaction<'_> {
    fn lock_names(&mut self) -> Result<()> {
        // One transaction writes at a time.
        Ok(())
    }

    fn name_book(&mut self, num: i64, book: &Book) -> Result<()> {
        let sql = "UPDATE book SET name = ?2, folded = ?3, settings = ?4 WHERE num = ?1";
        self.db.execute(sql, params![num, book.name, book.name.to_lowercase(), json(book)?])?;
        Ok(())
    }

    fn hidden_row(&mut self, num: i64) -> Result<Option<BookRow>> {
        hidden_row(&self.db, num)
    }

    fn all_ids(&mut self, num: i64) -> Result<Vec<u32>> {
        let sql = "SELECT id FROM entry WHERE book = ?1 UNION SELECT id FROM revision WHERE book = ?1 \
                   UNION SELECT id FROM tombstone WHERE book = ?1 ORDER BY id";
        let mut query = self.db.prepare(sql)?;
        Ok(query.query_map([num], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    fn texts_of(&mut self, kind: &str) -> Result<Vec<(String, String)>> {
        pairs(&self.db, "SELECT name, value FROM record WHERE kind = ?1 ORDER BY name", [kind])
    }

    fn write_text(&mut self, kind: &str, name: &str, text: &str) -> Result<()> {
        let sql = "INSERT INTO record VALUES (?1, ?2, 1, ?3) \
                   ON CONFLICT (kind, name) DO UPDATE SET version = version + 1, value = excluded.value";
        self.db.execute(sql, [kind, name, text])?;
        Ok(())
    }

    fn remove_text(&mut self, kind: &str, name: &str) -> Result<()> {
        self.db.execute("DELETE FROM record WHERE kind = ?1 AND name = ?2", [kind, name])?;
        Ok(())
    }

    fn draft_texts(&mut self) -> Result<Vec<(i64, String)>> {
        pairs(&self.db, "SELECT number, draft FROM draft", [])
    }

    fn set_draft_text(&mut self, number: i64, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => self.db.execute("UPDATE draft SET draft = ?2 WHERE number = ?1", params![number, text])?,
            None => self.db.execute("DELETE FROM draft WHERE number = ?1", [number])?,
        };
        Ok(())
    }

    fn queries(&mut self) -> Result<Vec<[String; 3]>> {
        let mut query = self.db.prepare("SELECT owner, name, query FROM saved_search")?;
        Ok(query.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?.collect::<rusqlite::Result<_>>()?)
    }

    fn set_query(&mut self, [owner, name, query]: &[String; 3]) -> Result<()> {
        self.db.execute("UPDATE saved_search SET query = ?3 WHERE owner = ?1 AND name = ?2", [owner, name, query])?;
        Ok(())
    }
}
