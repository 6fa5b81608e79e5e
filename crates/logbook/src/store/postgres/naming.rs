//! Names of books, and the records that name them, in PostgreSQL.

use super::{
    rows::{hidden_row, number},
    tables::PostgresTransaction,
};
use crate::{
    book::Book,
    store::{
        Result,
        book_row::{BookRow, json},
        naming::NameTables,
    },
};

impl NameTables for PostgresTransaction<'_> {
    fn lock_names(&mut self) -> Result<()> {
        self.session.alone("new book")
    }

    fn name_book(&mut self, num: i64, book: &Book) -> Result<()> {
        let sql = "UPDATE book SET name = $2, folded = $3, settings = $4 WHERE num = $1";
        self.session.execute(sql, &[&num, &book.name, &book.name.to_lowercase(), &json(book)?])?;
        Ok(())
    }

    fn hidden_row(&mut self, num: i64) -> Result<Option<BookRow>> {
        hidden_row(self.session, num)
    }

    fn all_ids(&mut self, num: i64) -> Result<Vec<u32>> {
        let sql = "SELECT id FROM entry WHERE book = $1 UNION SELECT id FROM revision WHERE book = $1 \
                   UNION SELECT id FROM tombstone WHERE book = $1 ORDER BY id";
        self.session.query(sql, &[&num])?.iter().map(|row| number(row, 0)).collect()
    }

    fn texts_of(&mut self, kind: &str) -> Result<Vec<(String, String)>> {
        let rows = self.session.query("SELECT name, value FROM record WHERE kind = $1 ORDER BY name", &[&kind])?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    fn write_text(&mut self, kind: &str, name: &str, text: &str) -> Result<()> {
        let sql = "INSERT INTO record VALUES ($1, $2, 1, $3) \
                   ON CONFLICT (kind, name) DO UPDATE SET version = record.version + 1, value = excluded.value";
        self.session.execute(sql, &[&kind, &name, &text])?;
        Ok(())
    }

    fn remove_text(&mut self, kind: &str, name: &str) -> Result<()> {
        self.session.execute("DELETE FROM record WHERE kind = $1 AND name = $2", &[&kind, &name])?;
        Ok(())
    }

    fn draft_texts(&mut self) -> Result<Vec<(i64, String)>> {
        let rows = self.session.query("SELECT number, draft FROM draft", &[])?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    fn set_draft_text(&mut self, number: i64, text: Option<&str>) -> Result<()> {
        match text {
            Some(text) => self.session.execute("UPDATE draft SET draft = $2 WHERE number = $1", &[&number, &text])?,
            None => self.session.execute("DELETE FROM draft WHERE number = $1", &[&number])?,
        };
        Ok(())
    }

    fn queries(&mut self) -> Result<Vec<[String; 3]>> {
        let rows = self.session.query("SELECT owner, name, query FROM saved_search", &[])?;
        rows.iter().map(|row| Ok([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?])).collect()
    }

    fn set_query(&mut self, [owner, name, query]: &[String; 3]) -> Result<()> {
        let sql = "UPDATE saved_search SET query = $3 WHERE owner = $1 AND name = $2";
        self.session.execute(sql, &[owner, name, query])?;
        Ok(())
    }
}
