//! Books, entries, threads, histories and attachments.

use std::{io::Read, time::Duration};

use rusqlite::{OptionalExtension, params};
use tampu_types::Time;

use super::{
    Result, SqliteStore, StoreError, now,
    rows::{book_row, book_rows, find, load, row_of, tombstone},
};
use crate::{
    attachment::{Attachment, Bytes, Sha, Upload, stored_name::is_named},
    book::{
        Book,
        change::{BookChange, BookEdit},
    },
    entry::{Content, Entry, EntryRef, NewEntry, Revision},
    search::{Page, Search, Stop, cost::measured},
    store::{
        Attachments, BookInfo, Entries, EntryEdit, HistoryPage, PagePart, PageStart, ThreadPage, Transactions,
        book_changes::{BOOK_CHANGE, change_name, change_of},
        book_row::{BookRow, damaged, rows_of},
        naming::{DeletedBook, Naming},
        part::Room,
        write::Write,
    },
};

impl Entries for SqliteStore {
    fn books(&self) -> Result<Vec<BookInfo>> {
        self.read(|db| {
            let mut newest =
                db.prepare_cached("SELECT date FROM entry WHERE row >= ?1 AND row < ?2 ORDER BY row DESC LIMIT 1")?;
            let info = |book_row: BookRow| {
                let newest = newest.query_map(rows_of(book_row.num), |row| row.get(0).map(Time))?.next().transpose()?;
                Ok(BookInfo { book: book_row.book, entries: book_row.entries, newest })
            };
            book_rows(db)?.into_iter().map(info).collect()
        })
    }

    fn book(&self, name: &str) -> Result<Book> {
        self.read(|db| Ok(book_row(db, name)?.book))
    }

    fn put_book(&self, book: &Book) -> Result<()> {
        self.change_book(BookEdit::of(book, "")).map(drop)
    }

    fn post(&self, new: NewEntry, uploads: Vec<Upload>, by: &str) -> Result<EntryRef> {
        self.write(|writing| writing.post(new, uploads, by))
    }

    fn entry(&self, at: &EntryRef) -> Result<Entry> {
        self.read(|db| {
            let book_row = book_row(db, &at.book)?;
            let row = find(db, &book_row, at.id)?;
            load(db, &book_row.book.name, row, true)?.ok_or_else(|| StoreError::NoEntry(at.clone()))
        })
    }

    fn edit(&self, at: &EntryRef, content: Content, uploads: Vec<Upload>, by: &str, expected: Option<u32>) -> Result<u32> {
        self.write(|writing| writing.edit(at, content, uploads, by, expected))
    }

    fn edit_all(&self, changes: Vec<EntryEdit>, by: &str) -> Result<Vec<u32>> {
        self.write(|writing| writing.edit_all(changes, by))
    }

    fn delete(&self, at: &EntryRef, by: &str, replies: bool) -> Result<u64> {
        self.write(|writing| writing.delete(at, by, replies, None))
    }

    fn copy(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef> {
        self.write(|writing| writing.copy(at, to, by, replies, false))
    }

    fn move_to(&self, at: &EntryRef, to: &str, by: &str, replies: bool) -> Result<EntryRef> {
        self.write(|writing| writing.move_to(at, to, by, replies, None))
    }

    fn history_page(&self, at: &EntryRef, part: PagePart) -> Result<HistoryPage> {
        self.read(|db| {
            let book_row = book_row(db, &at.book)?;
            let current = row_of(db, book_row.num, at.id)?;
            if current.is_none() && tombstone(db, &book_row, at.id)?.is_none() {
                return Err(StoreError::NoEntry(at.clone()));
            }
            // The last revision has no content of its own: its content is the entry's.
            let content = || -> Result<Content> {
                match current {
                    Some(row) => Ok(load(db, &book_row.book.name, row, true)?.map(|entry| entry.content).unwrap_or_default()),
                    None => Ok(Content::default()),
                }
            };
            let sql =
                "SELECT number, at, by, what, content, note FROM revision WHERE book = ?1 AND id = ?2 AND number > ?3 ORDER BY number";
            let mut query = db.prepare_cached(sql)?;
            let mut rows = query.query(params![book_row.num, at.id, part.after.unwrap_or(-1)])?;
            let (mut page, mut room) = (HistoryPage::default(), Room::new(part));
            while let Some(row) = rows.next()? {
                if room.is_full() {
                    page.next = page.revisions.last().map(|last: &Revision| i64::from(last.number));
                    break;
                }
                let bad = |error| damaged(&at.book, at.id, error);
                let revision = Revision {
                    number: row.get(0)?,
                    at: Time(row.get(1)?),
                    by: row.get(2)?,
                    what: serde_json::from_str(row.get_ref(3)?.as_str().unwrap_or_default()).map_err(bad)?,
                    content: match row.get_ref(4)?.as_str_or_null().map_err(rusqlite::Error::from)? {
                        Some(text) => serde_json::from_str(text).map_err(bad)?,
                        None => content()?,
                    },
                    note: row.get(5)?,
                };
                room.take(revision.content.bytes());
                page.revisions.push(revision);
            }
            Ok(page)
        })
    }

    fn first_revision(&self, at: &EntryRef) -> Result<Option<Time>> {
        self.read(|db| {
            let sql = "SELECT at FROM revision WHERE book = ?1 AND id = ?2 ORDER BY number LIMIT 1";
            let book_row = book_row(db, &at.book)?;
            Ok(db.prepare_cached(sql)?.query_row(params![book_row.num, at.id], |row| row.get(0).map(Time)).optional()?)
        })
    }

    fn thread_page(&self, at: &EntryRef, part: PagePart, text: bool) -> Result<ThreadPage> {
        self.read(|db| {
            let book_row = book_row(db, &at.book)?;
            let row = find(db, &book_row, at.id)?;
            let sql = "SELECT row FROM entry WHERE book = ?1 AND thread = (SELECT thread FROM entry WHERE row = ?2) AND row > ?3 ORDER BY row";
            let mut query = db.prepare_cached(sql)?;
            let mut rows = query.query(params![book_row.num, row, part.after.unwrap_or(i64::MIN)])?;
            let (mut page, mut room, mut last) = (ThreadPage::default(), Room::new(part), None);
            while let Some(row) = rows.next()? {
                if room.is_full() {
                    page.next = last;
                    break;
                }
                let row: i64 = row.get(0)?;
                let Some(entry) = load(db, &book_row.book.name, row, text)? else { continue };
                room.take(entry.content.bytes());
                page.entries.push(entry);
                last = Some(row);
            }
            Ok(page)
        })
    }

    fn search(&self, search: &Search, stop: &Stop) -> Result<Page> {
        measured(search, || self.find_page(search, stop))
    }
}

impl Transactions for SqliteStore {
    fn page_of(&self, search: &Search, at: &EntryRef, stop: &Stop) -> Result<Option<PageStart>> {
        let mut start = None;
        measured(search, || {
            start = self.find_page_of(search, at, stop)?;
            Ok::<_, StoreError>(Page::default())
        })?;
        Ok(start)
    }

    fn change_book(&self, edit: BookEdit<'_>) -> Result<bool> {
        self.write(|writing| writing.change_book(edit))
    }

    fn book_changes(&self, book: &str, before: Option<u32>, most: usize) -> Result<Vec<BookChange>> {
        self.read(|db| {
            let num = book_row(db, book)?.num;
            let sql = "SELECT value FROM record WHERE kind = ?1 AND name >= ?2 AND name < ?3 ORDER BY name DESC LIMIT ?4";
            let [first, end] = [change_name(num, 0), change_name(num, before.unwrap_or(u32::MAX))];
            let mut query = db.prepare_cached(sql)?;
            let mut rows = query.query(params![BOOK_CHANGE, first, end, most as i64])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.push(change_of(book, row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)?);
            }
            Ok(found)
        })
    }

    fn rename_book(&self, name: &str, to: &str, by: &str) -> Result<Book> {
        self.write(|writing| Naming::rename_book(writing, name, to, by))
    }

    fn delete_book(&self, name: &str, by: &str) -> Result<DeletedBook> {
        self.write(|writing| Naming::delete_book(writing, name, by))
    }

    fn undelete_book(&self, number: u32, to: Option<&str>, by: &str) -> Result<Book> {
        self.write(|writing| Naming::undelete_book(writing, number, to, by))
    }

    fn post_all(&self, new: Vec<(NewEntry, Option<usize>)>, by: &str) -> Result<Vec<EntryRef>> {
        self.write(|writing| writing.post_all(new, by))
    }

    fn delete_seen(&self, at: &EntryRef, by: &str, seen: &[u32]) -> Result<u64> {
        self.write(|writing| writing.delete(at, by, true, Some(seen)))
    }

    fn move_seen(&self, at: &EntryRef, to: &str, by: &str, seen: &[u32]) -> Result<EntryRef> {
        self.write(|writing| writing.move_to(at, to, by, true, Some(seen)))
    }

    fn answers(&self, book: &str, to: &[u32]) -> Result<Vec<(u32, u32)>> {
        self.read(|db| {
            let (book_row, mut found) = (book_row(db, book)?, Vec::new());
            let mut query = db.prepare_cached("SELECT id FROM entry WHERE book = ?1 AND parent = ?2 ORDER BY row")?;
            for &parent in to {
                let mut rows = query.query(params![book_row.num, parent])?;
                while let Some(row) = rows.next()? {
                    found.push((parent, row.get(0)?));
                }
            }
            Ok(found)
        })
    }

    fn attachment_named(&self, book: &str, name: &str) -> Result<Option<Attachment>> {
        self.read(|db| {
            let book_row = book_row(db, book)?;
            let sql = "SELECT id FROM stored_name WHERE book = ?1 AND name = ?2 ORDER BY id DESC LIMIT 1";
            let id: Option<u32> = db.prepare_cached(sql)?.query_row(params![book_row.num, name], |row| row.get(0)).optional()?;
            let Some(row) = id.map(|id| row_of(db, book_row.num, id)).transpose()?.flatten() else { return Ok(None) };
            let entry = load(db, &book_row.book.name, row, false)?;
            Ok(entry.and_then(|entry| entry.content.attachments.into_iter().find(|one| is_named(one, name))))
        })
    }

    fn hand_lock(&self, at: &EntryRef, from: &str, (by, host): (&str, &str), time: Duration) -> Result<bool> {
        self.write(|writing| {
            let (book_row, now) = (book_row(&writing.db, &at.book)?, now());
            let until = now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
            let sql = "UPDATE lock SET by = ?4, host = ?5, since = ?6, until = ?7 WHERE book = ?1 AND id = ?2 AND by = ?3 AND until > ?6";
            Ok(writing.db.execute(sql, params![book_row.num, at.id, from, by, host, now.0, until])? == 1)
        })
    }
}

impl Attachments for SqliteStore {
    fn upload(&self, from: &mut dyn Read, limit: u64) -> Result<Upload> {
        self.blobs.upload(from, limit).map_err(|error| self.io(error))
    }

    fn attachment(&self, sha: &Sha) -> Result<Bytes> {
        let open = || self.blobs.read(sha).and_then(|file| Ok(Bytes::new(file.metadata()?.len(), file)));
        open().map_err(|error| StoreError::Io { path: self.blobs.path(sha), error })
    }
}
