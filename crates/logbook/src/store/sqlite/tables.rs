//! The tables of SQLite, for writers.

use rusqlite::{OptionalExtension, params};
use tampu_types::Time;

use super::{
    Result, SqliteTransaction, StoreError, now,
    rows::{book_row, load, lock_of, row_of, tombstone},
};
use crate::{
    attachment::{Attachment, Upload},
    book::{
        AttributeKind, Book,
        change::{BookChange, MAX_CHANGES},
    },
    entry::{Change, Content, Draft, Entry, Lock, Tombstone},
    store::{
        ImportOutcome, MAX_DRAFTS,
        book_changes::{BOOK_CHANGE, change_name, change_number},
        book_row::{BookRow, MAX_BOOKS, json},
        index::Tables,
    },
};

impl Tables for SqliteTransaction<'_> {
    fn book_row(&mut self, name: &str) -> Result<BookRow> {
        book_row(&self.db, name)
    }

    fn two_book_rows(&mut self, one: &str, other: &str) -> Result<(BookRow, BookRow)> {
        Ok((book_row(&self.db, one)?, book_row(&self.db, other)?))
    }

    fn new_book(&mut self, book: &Book) -> Result<()> {
        let num: i64 = self.db.query_row("SELECT coalesce(max(num), 0) + 1 FROM book", [], |row| row.get(0))?;
        if num >= MAX_BOOKS {
            return Err(StoreError::Full(format!("a store has at most {MAX_BOOKS} logbooks")));
        }
        let sql = "INSERT INTO book(num, name, folded, settings) VALUES (?1, ?2, ?3, ?4)";
        self.db.execute(sql, params![num, book.name, book.name.to_lowercase(), json(book)?])?;
        Ok(())
    }

    fn set_book(&mut self, num: i64, book: &Book) -> Result<()> {
        self.db.execute("UPDATE book SET name = ?2, settings = ?3 WHERE num = ?1", params![num, book.name, json(book)?])?;
        Ok(())
    }

    fn last_book_change(&mut self, num: i64) -> Result<u32> {
        let sql = "SELECT name FROM record WHERE kind = ?1 AND name >= ?2 AND name < ?3 ORDER BY name DESC LIMIT 1";
        let names = params![BOOK_CHANGE, change_name(num, 0), change_name(num + 1, 0)];
        let last: Option<String> = self.db.query_row(sql, names, |row| row.get(0)).optional()?;
        last.map_or(Ok(0), |name| change_number(&name))
    }

    fn keep_book_change(&mut self, num: i64, change: &BookChange) -> Result<()> {
        let name = change_name(num, change.number);
        self.db.execute("INSERT INTO record VALUES (?1, ?2, 1, ?3)", params![BOOK_CHANGE, name, json(change)?])?;
        let sql = "DELETE FROM record WHERE kind = ?1 AND name >= ?2 AND name <= ?3";
        let old = [change_name(num, 0), change_name(num, change.number.saturating_sub(MAX_CHANGES))];
        self.db.execute(sql, params![BOOK_CHANGE, old[0], old[1]])?;
        Ok(())
    }

    fn reorder(&mut self, book_row: &BookRow, name: &str, kind: Option<AttributeKind>) -> Result<()> {
        self.write_order(book_row, name, kind)
    }

    fn set_next_id(&mut self, num: i64, next: u32) -> Result<()> {
        self.db.prepare_cached("UPDATE book SET next_id = max(next_id, ?2) WHERE num = ?1")?.execute(params![num, next])?;
        Ok(())
    }

    fn count(&mut self, num: i64, change: i64) -> Result<()> {
        self.db.prepare_cached("UPDATE book SET entries = entries + ?2 WHERE num = ?1")?.execute([num, change])?;
        Ok(())
    }

    fn row_of(&mut self, num: i64, id: u32) -> Result<Option<i64>> {
        row_of(&self.db, num, id)
    }

    fn last_row(&mut self, first: i64, last: i64) -> Result<Option<i64>> {
        let mut query = self.db.prepare_cached("SELECT max(row) FROM entry WHERE row BETWEEN ?1 AND ?2")?;
        Ok(query.query_row([first, last], |row| row.get(0))?)
    }

    fn files_between(&mut self, first: i64, last: i64) -> Result<Vec<Attachment>> {
        let sql = "SELECT attachments FROM entry WHERE row BETWEEN ?1 AND ?2 AND attachments <> '[]'";
        let mut query = self.db.prepare_cached(sql)?;
        let (mut rows, mut found) = (query.query([first, last])?, Vec::new());
        while let Some(row) = rows.next()? {
            let files: Vec<Attachment> = serde_json::from_str(row.get_ref(0)?.as_str().unwrap_or_default())
                .map_err(|error| StoreError::Damaged(format!("attachments: {error}")))?;
            found.extend(files);
        }
        Ok(found)
    }

    fn tombstone(&mut self, book_row: &BookRow, id: u32) -> Result<Option<Tombstone>> {
        tombstone(&self.db, book_row, id)
    }

    fn load(&mut self, book_row: &BookRow, row: i64) -> Result<Option<Entry>> {
        load(&self.db, &book_row.book.name, row, true)
    }

    fn put(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()> {
        self.write_entry(book_row, row, entry)
    }

    fn take(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()> {
        self.take_entry(book_row, row, entry)
    }

    fn children(&mut self, num: i64, id: u32) -> Result<Vec<u32>> {
        let mut query = self.db.prepare_cached("SELECT id FROM entry WHERE book = ?1 AND parent = ?2 ORDER BY row")?;
        Ok(query.query_map(params![num, id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    fn revise(&mut self, book_row: &BookRow, id: u32, number: u32, at: Time, by: &str, what: Change) -> Result<()> {
        let sql = "INSERT INTO revision(book, id, number, at, by, what) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.db.prepare_cached(sql)?.execute(params![book_row.num, id, number, at.0, by, json(&what)?])?;
        self.journal(book_row.num, id, what)
    }

    fn keep(&mut self, book_row: &BookRow, entry: &Entry) -> Result<bool> {
        let sql = "UPDATE revision SET content = ?4 WHERE book = ?1 AND id = ?2 AND number = ?3";
        let parameters = params![book_row.num, entry.at.id, entry.revision, json(&entry.content)?];
        Ok(self.db.prepare_cached(sql)?.execute(parameters)? == 1)
    }

    fn carry(&mut self, from: (i64, u32), to: (i64, u32)) -> Result<()> {
        let sql = "UPDATE revision SET book = ?3, id = ?4 WHERE book = ?1 AND id = ?2";
        self.db.execute(sql, params![from.0, from.1, to.0, to.1])?;
        let sql = "INSERT OR IGNORE INTO attached SELECT sha, ?3, ?4, by, size FROM attached WHERE book = ?1 AND id = ?2";
        self.db.execute(sql, params![from.0, from.1, to.0, to.1])?;
        self.db.execute("DELETE FROM attached WHERE book = ?1 AND id = ?2", params![from.0, from.1])?;
        let sql = "UPDATE look SET book = ?3, id = ?4 WHERE book = ?1 AND id = ?2";
        self.db.execute(sql, params![from.0, from.1, to.0, to.1])?;
        let sql = "UPDATE signature SET book = ?3, id = ?4 WHERE book = ?1 AND id = ?2";
        self.db.execute(sql, params![from.0, from.1, to.0, to.1])?;
        Ok(())
    }

    fn bury(&mut self, num: i64, id: u32, by: &str, to: Option<(i64, u32)>) -> Result<()> {
        let (book, new) = to.unzip();
        let sql = "INSERT INTO tombstone VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        self.db.prepare_cached(sql)?.execute(params![num, id, now().0, by, book, new])?;
        self.db.prepare_cached("DELETE FROM lock WHERE book = ?1 AND id = ?2")?.execute(params![num, id])?;
        if to.is_some() {
            self.journal(num, id, Change::Moved)?;
        }
        Ok(())
    }

    fn lock_of(&mut self, num: i64, id: u32, at: Time) -> Result<Option<Lock>> {
        lock_of(&self.db, num, id, at)
    }

    fn place(&mut self, content: &Content, uploads: &mut [Upload]) -> Result<()> {
        for Attachment { name, sha, .. } in &content.attachments {
            let Some(sha) = sha else { continue };
            if self.marks.iter().any(|mark| mark.sha == *sha) {
                continue;
            }
            match uploads.iter_mut().find(|upload| upload.sha() == sha) {
                Some(upload) => {
                    let mark = self.blobs.place(upload);
                    self.marks.push(mark.map_err(|error| StoreError::Io { path: self.blobs.path(sha), error })?);
                }
                None => {
                    let mut query = self.db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1")?;
                    if !query.exists([sha.as_str()])? {
                        return Err(StoreError::NoBlob(name.clone()));
                    }
                }
            }
        }
        Ok(())
    }

    fn imported_as(&mut self, num: i64, id: u32) -> Result<Option<(Vec<u8>, i64)>> {
        let mut query = self.db.prepare_cached("SELECT digest, revision FROM imported WHERE book = ?1 AND id = ?2")?;
        Ok(query.query_row(params![num, id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    fn set_imported(&mut self, num: i64, id: u32, digest: &[u8; 16], revision: i64) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO imported VALUES (?1, ?2, ?3, ?4)";
        self.db.prepare_cached(sql)?.execute(params![num, id, &digest[..], revision])?;
        Ok(())
    }

    fn lift_tombstone(&mut self, num: i64, id: u32) -> Result<u32> {
        self.db.prepare_cached("DELETE FROM tombstone WHERE book = ?1 AND id = ?2")?.execute(params![num, id])?;
        let sql = "UPDATE revision SET content = ?3 WHERE book = ?1 AND id = ?2 AND content IS NULL";
        self.db.prepare_cached(sql)?.execute(params![num, id, json(&Content::default())?])?;
        let sql = "SELECT coalesce(max(number) + 1, 0) FROM revision WHERE book = ?1 AND id = ?2";
        Ok(self.db.prepare_cached(sql)?.query_row(params![num, id], |row| row.get(0))?)
    }

    fn take_draft(&mut self, draft: &Draft, number: Option<i64>) -> Result<(ImportOutcome, i64)> {
        // A user who saves a draft writes it without the mark.
        let mut marked = serde_json::to_value(draft).map_err(|error| StoreError::Damaged(error.to_string()))?;
        marked["elog"] = true.into();
        let text = marked.to_string();
        if let Some(number) = number {
            let sql = "UPDATE draft SET saved = ?2, draft = ?3 WHERE number = ?1 AND json_extract(draft, '$.elog')";
            if self.db.prepare_cached(sql)?.execute(params![number, draft.saved.0, text])? == 1 {
                return Ok((ImportOutcome::Changed, number));
            }
            let is_there = self.db.prepare_cached("SELECT 1 FROM draft WHERE number = ?1")?.exists([number])?;
            return Ok((if is_there { ImportOutcome::Conflict } else { ImportOutcome::Gone }, number));
        }
        let mut count = self.db.prepare_cached("SELECT count(*) FROM draft WHERE owner = ?1")?;
        if count.query_row([&draft.owner], |row| row.get::<_, i64>(0))? >= MAX_DRAFTS {
            return Ok((ImportOutcome::Full, 0));
        }
        let sql = "INSERT INTO draft(owner, saved, draft) VALUES (?1, ?2, ?3) RETURNING number";
        let number = self.db.prepare_cached(sql)?.query_row(params![draft.owner, draft.saved.0, text], |row| row.get(0))?;
        Ok((ImportOutcome::New, number))
    }

    fn drop_taken_draft(&mut self, number: i64) -> Result<()> {
        let sql = "DELETE FROM draft WHERE number = ?1 AND json_extract(draft, '$.elog')";
        self.db.prepare_cached(sql)?.execute([number])?;
        Ok(())
    }
}
