//! Books, entries, threads and histories.

use std::time::Duration;

use postgres::Row;
use tampu_types::Time;

use super::{
    PostgresStore,
    rows::{book_row, book_rows, find, load, load_if_there, load_one, number, row_of, tombstone},
};
use crate::{
    attachment::{Attachment, Upload, stored_name::is_named},
    book::{
        Book,
        change::{BookChange, BookEdit},
    },
    entry::{Content, Entry, EntryRef, NewEntry, Revision},
    search::{MAX_PAGE, Page, Search, Stop, cost::measured},
    store::{
        BookInfo, Entries, EntryEdit, HistoryPage, PagePart, PageStart, Result, StoreError, ThreadPage, Transactions,
        book_changes::{BOOK_CHANGE, change_name, change_of},
        book_row::{BookRow, damaged, rows_of},
        index::Tables,
        naming::{DeletedBook, Naming},
        now,
        part::Room,
        write::Write,
    },
};

/// Rows whose lengths are read for a page: one more than a page can have.
const AHEAD: i64 = MAX_PAGE as i64 + 1;

/// Returns the place of the last row that fits into a page, and true if there are rows after it. Each row has its place and its bytes.
fn fitting(sizes: &[Row], part: PagePart) -> Result<Option<(i64, bool)>> {
    let (mut room, mut last) = (Room::new(part), None);
    for row in sizes {
        if room.is_full() {
            return Ok(last.map(|last| (last, true)));
        }
        last = Some(row.try_get(0)?);
        let bytes: Option<i64> = row.try_get(1)?;
        room.take(usize::try_from(bytes.unwrap_or_default()).unwrap_or_default());
    }
    Ok(last.map(|last| (last, false)))
}

impl Entries for PostgresStore {
    fn books(&self) -> Result<Vec<BookInfo>> {
        self.read(|session| {
            let sql = "SELECT date FROM entry WHERE row >= $1 AND row < $2 ORDER BY row DESC LIMIT 1";
            let info = |book_row: BookRow| {
                let [first, end] = rows_of(book_row.num);
                let newest = session.one(sql, &[&first, &end])?.map(|row| row.try_get(0).map(Time)).transpose()?;
                Ok(BookInfo { book: book_row.book, entries: book_row.entries, newest })
            };
            book_rows(session)?.into_iter().map(info).collect()
        })
    }

    fn book(&self, name: &str) -> Result<Book> {
        self.read_once(|session| Ok(book_row(session, name)?.book))
    }

    fn put_book(&self, book: &Book) -> Result<()> {
        self.change_book(BookEdit::of(book, "")).map(drop)
    }

    fn post(&self, new: NewEntry, uploads: Vec<Upload>, by: &str) -> Result<EntryRef> {
        self.write(|writing| {
            writing.place_blobs(&uploads, &new.content)?;
            writing.post(new, uploads, by)
        })
    }

    fn entry(&self, at: &EntryRef) -> Result<Entry> {
        if let Some(entry) = self.read_once(|session| load_if_there(session, at))? {
            return Ok(entry);
        }
        // There is no such entry, or it has signatures: these and the reason take more statements.
        self.read(|session| {
            let book_row = book_row(session, &at.book)?;
            let row = find(session, &book_row, at.id)?;
            load_one(session, &book_row.book.name, row)?.ok_or_else(|| StoreError::NoEntry(at.clone()))
        })
    }

    fn edit(&self, at: &EntryRef, content: Content, uploads: Vec<Upload>, by: &str, expected: Option<u32>) -> Result<u32> {
        self.write(|writing| {
            writing.place_blobs(&uploads, &content)?;
            writing.edit(at, content, uploads, by, expected)
        })
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
        self.read(|session| {
            let book_row = book_row(session, &at.book)?;
            let (num, id) = (book_row.num, i64::from(at.id));
            let current = row_of(session, num, at.id)?;
            if current.is_none() && tombstone(session, &book_row, at.id)?.is_none() {
                return Err(StoreError::NoEntry(at.clone()));
            }
            // Lengths come first, because all rows of an answer are in memory at the same time.
            let sql = "SELECT number, octet_length(content)::bigint FROM revision WHERE book = $1 AND id = $2 AND number > $3 ORDER BY number LIMIT $4";
            let sizes = session.query(sql, &[&num, &id, &part.after.unwrap_or(-1), &AHEAD])?;
            let Some((last, next)) = fitting(&sizes, part)? else { return Ok(HistoryPage::default()) };
            // The last revision has no content of its own: its content is the entry's.
            let content = || -> Result<Content> {
                match current {
                Some(row) => Ok(load_one(session, &book_row.book.name, row)?.map(|entry| entry.content).unwrap_or_default()),
                None => Ok(Content::default()),
                }
            };
            let sql = "SELECT number, at, by, what, content, note FROM revision WHERE book = $1 AND id = $2 AND number > $3 AND number <= $4 ORDER BY number";
            let mut page = HistoryPage { revisions: Vec::new(), next: next.then_some(last) };
            for row in &session.query(sql, &[&num, &id, &part.after.unwrap_or(-1), &last])? {
                let bad = |error| damaged(&at.book, at.id, error);
                let text: Option<&str> = row.try_get(4)?;
                page.revisions.push(Revision {
                    number: number(row, 0)?,
                    at: Time(row.try_get(1)?),
                    by: row.try_get(2)?,
                    what: serde_json::from_str(row.try_get(3)?).map_err(bad)?,
                    content: match text {
                        Some(text) => serde_json::from_str(text).map_err(bad)?,
                        None => content()?,
                    },
                    note: row.try_get(5)?,
                });
            }
            Ok(page)
        })
    }

    fn first_revision(&self, at: &EntryRef) -> Result<Option<Time>> {
        self.read_once(|session| {
            let sql = "SELECT (SELECT at FROM revision WHERE book = num AND id = $2 ORDER BY number LIMIT 1) FROM book WHERE folded = $1";
            let found = session.one(sql, &[&at.book.to_lowercase(), &i64::from(at.id)])?;
            let first: Option<i64> = found.ok_or_else(|| StoreError::NoBook(at.book.clone()))?.try_get(0)?;
            Ok(first.map(Time))
        })
    }

    fn thread_page(&self, at: &EntryRef, part: PagePart, text: bool) -> Result<ThreadPage> {
        self.read(|session| {
            let book_row = book_row(session, &at.book)?;
            let row = find(session, &book_row, at.id)?;
            let bytes = if text { "octet_length(attributes) + octet_length(text)" } else { "octet_length(attributes)" };
            let sql = format!(
                "SELECT row, ({bytes})::bigint FROM entry WHERE book = $1 AND thread = (SELECT thread FROM entry WHERE row = $2) \
                 AND row > $3 ORDER BY row LIMIT $4"
            );
            let sizes = session.query(&sql, &[&book_row.num, &row, &part.after.unwrap_or(i64::MIN), &AHEAD])?;
            let Some((last, next)) = fitting(&sizes, part)? else { return Ok(ThreadPage::default()) };
            let mut rows = Vec::with_capacity(sizes.len());
            for row in &sizes {
                rows.extend(Some(row.try_get::<_, i64>(0)?).filter(|row| *row <= last));
            }
            let entries = load(session, &book_row.book.name, &rows, text)?.into_iter().map(|(_, entry)| entry).collect();
            Ok(ThreadPage { entries, next: next.then_some(last) })
        })
    }

    fn search(&self, search: &Search, stop: &Stop) -> Result<Page> {
        measured(search, || self.find_page(search, stop))
    }
}

impl Transactions for PostgresStore {
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
        self.read(|session| {
            let num = book_row(session, book)?.num;
            let sql = "SELECT value FROM record WHERE kind = $1 AND name >= $2 AND name < $3 ORDER BY name DESC LIMIT $4";
            let [first, end] = [change_name(num, 0), change_name(num, before.unwrap_or(u32::MAX))];
            let rows = session.query(sql, &[&BOOK_CHANGE, &first, &end, &(most as i64)])?;
            rows.iter().map(|row| change_of(book, row.try_get(0)?)).collect()
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
        self.read(|session| {
            let book_row = book_row(session, book)?;
            let to: Vec<i64> = to.iter().copied().map(i64::from).collect();
            let sql = "SELECT parent, id FROM entry WHERE book = $1 AND parent = ANY($2) ORDER BY row";
            session.query(sql, &[&book_row.num, &to])?.iter().map(|row| Ok((number(row, 0)?, number(row, 1)?))).collect()
        })
    }

    fn attachment_named(&self, book: &str, name: &str) -> Result<Option<Attachment>> {
        if name.contains('\0') {
            return Ok(None);
        }
        self.read(|session| {
            let book_row = book_row(session, book)?;
            let sql = "SELECT entry.row FROM stored_name JOIN entry USING (book, id) WHERE stored_name.book = $1 AND stored_name.name = $2 \
                       ORDER BY id DESC LIMIT 1";
            let Some(row) = session.one(sql, &[&book_row.num, &name])? else { return Ok(None) };
            let entry = load(session, &book_row.book.name, &[row.try_get(0)?], false)?.pop();
            Ok(entry.and_then(|(_, entry)| entry.content.attachments.into_iter().find(|one| is_named(one, name))))
        })
    }

    fn hand_lock(&self, at: &EntryRef, from: &str, (by, host): (&str, &str), time: Duration) -> Result<bool> {
        self.write(|writing| {
            let (book_row, now) = (writing.book_row(&at.book)?, now());
            let until = now.0.saturating_add(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX));
            let sql = "UPDATE lock SET by = $4, host = $5, since = $6, until = $7 WHERE book = $1 AND id = $2 AND by = $3 AND until > $6";
            let changed = writing.session.execute(sql, &[&book_row.num, &i64::from(at.id), &from, &by, &host, &now.0, &until])?;
            Ok(changed == 1)
        })
    }
}
