//! Books and entries read from their rows.

use rusqlite::{Connection, OptionalExtension, Row, params};
use tampu_types::Time;

use super::{Result, StoreError};
use crate::{
    entry::{Content, Entry, EntryRef, Lock, Tombstone},
    query::eval::StoredEntry,
    store::{
        book_row::{BookRow, book_of, damaged},
        index::{EachEntry, SearchEnd},
        naming::is_hidden,
        signing::record_of,
    },
};

/// The book of this name.
pub fn book_row(db: &Connection, name: &str) -> Result<BookRow> {
    if is_hidden(name) {
        return Err(StoreError::NoBook(name.to_owned()));
    }
    let mut query = db.prepare_cached("SELECT num, settings, entries, next_id, rewrites FROM book WHERE folded = ?1")?;
    let found = query.query_row([name.to_lowercase()], book_row_of).optional()?;
    found.ok_or_else(|| StoreError::NoBook(name.to_owned()))?
}

/// The deleted book of this number.
pub fn hidden_row(db: &Connection, num: i64) -> Result<Option<BookRow>> {
    let mut query =
        db.prepare_cached("SELECT num, settings, entries, next_id, rewrites FROM book WHERE num = ?1 AND name LIKE '/%'")?;
    query.query_row([num], book_row_of).optional()?.transpose()
}

/// All books that are not deleted, by name.
pub fn book_rows(db: &Connection) -> Result<Vec<BookRow>> {
    let all = all_book_rows(db)?.into_iter();
    Ok(all.filter(|book_row| !is_hidden(&book_row.book.name)).collect())
}

/// All books, by name, with those that are deleted.
pub fn all_book_rows(db: &Connection) -> Result<Vec<BookRow>> {
    let mut query = db.prepare_cached("SELECT num, settings, entries, next_id, rewrites FROM book ORDER BY folded")?;
    let rows = query.query_map([], book_row_of)?;
    rows.map(|row| row?).collect()
}

fn book_row_of(row: &Row<'_>) -> rusqlite::Result<Result<BookRow>> {
    let (num, settings): (i64, String) = (row.get(0)?, row.get(1)?);
    let (entries, next_id, rewrites) = (row.get::<_, i64>(2)?.max(0) as u64, row.get(3)?, row.get::<_, i64>(4)?.unsigned_abs());
    let book = serde_json::from_str(&settings).map_err(|error| StoreError::Damaged(format!("book {num}: {error}")));
    Ok(book.map(|book| BookRow { num, book, entries, next_id, rewrites }))
}

/// The name of a book by its number.
pub fn book_name(db: &Connection, num: i64) -> Result<String> {
    Ok(db.prepare_cached("SELECT name FROM book WHERE num = ?1")?.query_row([num], |row| row.get(0))?)
}

/// Returns the row of an entry, or the error that says where it went.
pub fn find(db: &Connection, book_row: &BookRow, id: u32) -> Result<i64> {
    if let Some(row) = row_of(db, book_row.num, id)? {
        return Ok(row);
    }
    let at = EntryRef::new(&book_row.book.name, id);
    match tombstone(db, book_row, id)? {
        Some(tombstone) => Err(StoreError::Gone(Box::new(tombstone))),
        None => Err(StoreError::NoEntry(at)),
    }
}

/// The row of an entry.
pub fn row_of(db: &Connection, book: i64, id: u32) -> Result<Option<i64>> {
    let mut query = db.prepare_cached("SELECT row FROM entry WHERE book = ?1 AND id = ?2")?;
    Ok(query.query_row(params![book, id], |row| row.get(0)).optional()?)
}

/// Returns the tombstone of an entry that was deleted or moved.
pub fn tombstone(db: &Connection, book_row: &BookRow, id: u32) -> Result<Option<Tombstone>> {
    let mut query = db.prepare_cached("SELECT gone, by, to_book, to_id FROM tombstone WHERE book = ?1 AND id = ?2")?;
    let found = query.query_row(params![book_row.num, id], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?, row.get::<_, Option<u32>>(3)?))
    });
    let Some((gone, by, to_book, to_id)) = found.optional()? else { return Ok(None) };
    let moved_to = match (to_book, to_id) {
        (Some(book), Some(id)) => Some(EntryRef { book: book_name(db, book)?, id }),
        _ => None,
    };
    Ok(Some(Tombstone { at: EntryRef::new(&book_row.book.name, id), gone: Time(gone), by, moved_to }))
}

/// Reads an entry, with its text where that is wanted.
pub fn load(db: &Connection, book: &str, row: i64, text: bool) -> Result<Option<Entry>> {
    Ok(load_all(db, book, &[row], text)?.pop().map(|(_, entry)| entry))
}

/// Reads entries, with their texts where these are wanted. Missing entries are left out.
pub fn load_all(db: &Connection, book: &str, rows: &[i64], text: bool) -> Result<Vec<(i64, Entry)>> {
    // One statement for both tables: a statement costs as much as the rows that it reads. Rejected: a join, which SQLite
    // plans anew for each row that is bound.
    let mut query = db.prepare_cached(if text {
        "SELECT id, date, zone, changed, revision, parent, thread, encoding, posted_by, attributes, attachments, links, signed, \
         (SELECT text FROM body WHERE body.row = ?1) FROM entry WHERE entry.row = ?1"
    } else {
        "SELECT id, date, zone, changed, revision, parent, thread, encoding, posted_by, attributes, attachments, links, signed \
         FROM entry WHERE row = ?1"
    })?;
    let mut entries = Vec::with_capacity(rows.len());
    for &at in rows {
        let mut found = query.query([at])?;
        let Some(row) = found.next()? else { continue };
        let mut entry = entry_of(book, row)?;
        if text {
            entry.content.text = row.get(13)?;
        }
        if row.get::<_, i64>(12)? > 0 {
            let id = entry.at.id;
            let records = records_of(db, book_of(at), id)?;
            entry.signatures = records.iter().map(|text| record_of(book, id, text)).collect::<Result<_>>()?;
        }
        entries.push((at, entry));
    }
    Ok(entries)
}

/// Calls back for each of these entries as the database has it, with its text on request. Missing entries are left out.
pub fn each_entry(
    db: &Connection,
    book: &str,
    rows: &[i64],
    text: bool,
    act: EachEntry<'_>,
) -> std::result::Result<(), SearchEnd> {
    let failed = |error: rusqlite::Error| SearchEnd::Failed(error.into());
    let sql = if text {
        "SELECT id, thread, parent IS NOT NULL, date, posted_by, encoding, attributes, attachments, links, \
         (SELECT text FROM body WHERE body.row = ?1) FROM entry WHERE entry.row = ?1"
    } else {
        "SELECT id, thread, parent IS NOT NULL, date, posted_by, encoding, attributes, attachments, links, '' \
         FROM entry WHERE row = ?1"
    };
    let mut query = db.prepare_cached(sql).map_err(failed)?;
    for &at in rows {
        let mut found = query.query([at]).map_err(failed)?;
        let Some(row) = found.next().map_err(failed)? else { continue };
        if !act(at, stored_entry(book, row)?)? {
            return Ok(());
        }
    }
    Ok(())
}

fn stored_entry<'a>(book: &str, row: &'a Row<'_>) -> Result<StoredEntry<'a>> {
    let id: u32 = row.get(0)?;
    let text = |at: usize| -> Result<&'a str> { row.get_ref(at)?.as_str().map_err(|error| damaged(book, id, error)) };
    Ok(StoredEntry {
        id,
        thread: row.get(1)?,
        is_reply: row.get(2)?,
        date: Time(row.get(3)?),
        by: text(4)?,
        encoding: text(5)?.parse().map_err(|error| damaged(book, id, error))?,
        attributes: text(6)?,
        attachments: text(7)?,
        links: text(8)?,
        text: text(9)?,
    })
}

fn entry_of(book: &str, row: &Row<'_>) -> Result<Entry> {
    let id: u32 = row.get(0)?;
    let json = |at: usize| -> Result<&str> { row.get_ref(at)?.as_str().map_err(|error| damaged(book, id, error)) };
    let encoding = json(7)?.parse().map_err(|error| damaged(book, id, error))?;
    let attributes = serde_json::from_str(json(9)?).map_err(|error| damaged(book, id, error))?;
    // Most entries have no attachments.
    let attachments = match json(10)? {
        "[]" => Vec::new(),
        text => serde_json::from_str(text).map_err(|error| damaged(book, id, error))?,
    };
    let links = match json(11)? {
        "[]" => Vec::new(),
        text => serde_json::from_str(text).map_err(|error| damaged(book, id, error))?,
    };
    Ok(Entry {
        at: EntryRef::new(book, id),
        date: Time(row.get(1)?),
        zone: row.get(2)?,
        changed: Time(row.get(3)?),
        revision: row.get(4)?,
        parent: row.get(5)?,
        thread: row.get(6)?,
        by: row.get(8)?,
        content: Content { attributes, encoding, text: String::new(), attachments, links },
        signatures: vec![],
    })
}

/// Returns the records of signatures about an entry.
pub fn records_of(db: &Connection, num: i64, id: u32) -> Result<Vec<String>> {
    let sql = "SELECT record FROM signature INDEXED BY signature_entry WHERE book = ?1 AND id = ?2 ORDER BY chain, number";
    let mut query = db.prepare_cached(sql)?;
    Ok(query.query_map(params![num, id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Returns the lock of an entry at this time.
pub fn lock_of(db: &Connection, book: i64, id: u32, at: Time) -> Result<Option<Lock>> {
    let sql = "SELECT by, host, since, until FROM lock WHERE book = ?1 AND id = ?2 AND until > ?3";
    let found = db.prepare_cached(sql)?.query_row(params![book, id, at.0], |row| {
        Ok(Lock { by: row.get(0)?, host: row.get(1)?, since: Time(row.get(2)?), until: Time(row.get(3)?) })
    });
    Ok(found.optional()?)
}
