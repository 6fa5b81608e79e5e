//! Books and entries read from their rows.

use std::{borrow::Cow, collections::HashMap};

use postgres::Row;
use tampu_types::Time;

use super::session::Session;
use crate::{
    entry::{Content, Entry, EntryRef, Lock, Tombstone},
    query::{candidates::FIRST_ATTRIBUTE, eval::StoredEntry},
    signature::Signature,
    store::{
        Result, StoreError,
        book_row::{BookRow, damaged},
        index::{EachEntry, SearchEnd},
        naming::is_hidden,
        signing::record_of,
    },
};

/// The columns of an entry, for [`entry_of`]; `row` and `text` come first.
const ENTRY: &str =
    "id, date, zone, changed, revision, parent, thread, encoding, posted_by, attributes, attachments, links, signed";

/// A number that is never negative.
pub fn number<T: TryFrom<i64>>(row: &Row, at: usize) -> Result<T> {
    let value: i64 = row.try_get(at)?;
    T::try_from(value).map_err(|_| StoreError::Damaged(format!("invalid number {value} in a column")))
}

/// Returns the book of this name.
pub fn book_row(session: &Session, name: &str) -> Result<BookRow> {
    if is_hidden(name) {
        return Err(StoreError::NoBook(name.to_owned()));
    }
    let found =
        session.one("SELECT num, settings, entries, next_id, rewrites FROM book WHERE folded = $1", &[&name.to_lowercase()])?;
    book_row_of(&found.ok_or_else(|| StoreError::NoBook(name.to_owned()))?)
}

/// Returns the row of a book, for [`book_row_of`], and the text of the snapshot that it is read in. Two snapshots of one
/// text have the same content, because the text names all transactions that are not in it.
pub fn row_of_book(session: &Session, name: &str) -> Result<(Row, String)> {
    let sql = "SELECT num, settings, entries, next_id, rewrites, txid_current_snapshot()::text FROM book WHERE folded = $1";
    let found = if is_hidden(name) { None } else { session.one(sql, &[&name.to_lowercase()])? };
    let row = found.ok_or_else(|| StoreError::NoBook(name.to_owned()))?;
    let snapshot = row.try_get(5)?;
    Ok((row, snapshot))
}

/// Returns the book of this name, which no other transaction can change, and the number of purges so far.
pub fn locked_book_row(session: &Session, name: &str) -> Result<(BookRow, i64)> {
    let sql = "SELECT num, settings, entries, next_id, rewrites, purges FROM book WHERE folded = $1 FOR UPDATE";
    let found = if is_hidden(name) { None } else { session.one(sql, &[&name.to_lowercase()])? };
    let row = found.ok_or_else(|| StoreError::NoBook(name.to_owned()))?;
    Ok((book_row_of(&row)?, row.try_get(5)?))
}

/// The deleted book of this number, which no other transaction can change.
pub fn hidden_row(session: &Session, num: i64) -> Result<Option<BookRow>> {
    let sql = "SELECT num, settings, entries, next_id, rewrites FROM book WHERE num = $1 AND name LIKE '/%' FOR UPDATE";
    session.one(sql, &[&num])?.as_ref().map(book_row_of).transpose()
}

/// All books that are not deleted, by name.
pub fn book_rows(session: &Session) -> Result<Vec<BookRow>> {
    let all = all_book_rows(session)?.into_iter();
    Ok(all.filter(|book_row| !is_hidden(&book_row.book.name)).collect())
}

/// All books, by name, with those that are deleted.
pub fn all_book_rows(session: &Session) -> Result<Vec<BookRow>> {
    session
        .query("SELECT num, settings, entries, next_id, rewrites FROM book ORDER BY folded", &[])?
        .iter()
        .map(book_row_of)
        .collect()
}

/// Decodes the row of a book.
pub fn book_row_of(row: &Row) -> Result<BookRow> {
    let num = row.try_get(0)?;
    let book = serde_json::from_str(row.try_get(1)?).map_err(|error| StoreError::Damaged(format!("book {num}: {error}")))?;
    Ok(BookRow { num, book, entries: number(row, 2)?, next_id: number(row, 3)?, rewrites: number(row, 4)? })
}

/// The name of a book by its number.
pub fn book_name(session: &Session, num: i64) -> Result<String> {
    let found = session.one("SELECT name FROM book WHERE num = $1", &[&num])?;
    Ok(found.ok_or_else(|| StoreError::Damaged(format!("there is no book {num}")))?.try_get(0)?)
}

/// The number of an attribute's folded name.
pub fn known_number(session: &Session, folded: &str) -> Result<Option<u32>> {
    session.one("SELECT num FROM attribute WHERE folded = $1", &[&folded])?.map(|row| number(&row, 0)).transpose()
}

/// Returns the number of an attribute's folded name, and assigns one if there is none yet.
pub fn new_number(session: &Session, folded: &str) -> Result<u32> {
    if let Some(number) = known_number(session, folded)? {
        return Ok(number);
    }
    session.batch("BEGIN")?;
    let sql = "INSERT INTO attribute(num, folded) SELECT coalesce(max(num) + 1, $1), $2 FROM attribute ON CONFLICT DO NOTHING";
    let alone = session.alone("new attribute");
    let done = alone.and_then(|()| session.execute(sql, &[&i64::from(FIRST_ATTRIBUTE), &folded]));
    session.batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    done?;
    known_number(session, folded)?.ok_or_else(|| StoreError::Damaged(format!("the attribute '{folded}' has no number")))
}

/// The row of an entry.
pub fn row_of(session: &Session, num: i64, id: u32) -> Result<Option<i64>> {
    let found = session.one("SELECT row FROM entry WHERE book = $1 AND id = $2", &[&num, &i64::from(id)])?;
    found.map(|row| Ok(row.try_get(0)?)).transpose()
}

/// Returns the row of an entry, or the error that says where it went.
pub fn find(session: &Session, book_row: &BookRow, id: u32) -> Result<i64> {
    if let Some(row) = row_of(session, book_row.num, id)? {
        return Ok(row);
    }
    match tombstone(session, book_row, id)? {
        Some(tombstone) => Err(StoreError::Gone(Box::new(tombstone))),
        None => Err(StoreError::NoEntry(EntryRef::new(&book_row.book.name, id))),
    }
}

/// Returns the tombstone of an entry that was deleted or moved.
pub fn tombstone(session: &Session, book_row: &BookRow, id: u32) -> Result<Option<Tombstone>> {
    let sql = "SELECT gone, by, to_book, to_id FROM tombstone WHERE book = $1 AND id = $2";
    let Some(row) = session.one(sql, &[&book_row.num, &i64::from(id)])? else { return Ok(None) };
    let moved_to = match row.try_get::<_, Option<i64>>(2)? {
        Some(book) => Some(EntryRef { book: book_name(session, book)?, id: number(&row, 3)? }),
        None => None,
    };
    Ok(Some(Tombstone { at: EntryRef::new(&book_row.book.name, id), gone: Time(row.try_get(0)?), by: row.try_get(1)?, moved_to }))
}

/// Reads entries, with their texts on request, in the order of the rows. Missing entries are left out.
pub fn load(session: &Session, book: &str, rows: &[i64], text: bool) -> Result<Vec<(i64, Entry)>> {
    let sql = format!("SELECT row, {}, {ENTRY} FROM entry WHERE row = ANY($1)", if text { "text" } else { "''" });
    let read = session.query(&sql, &[&rows])?;
    let mut by_row: HashMap<i64, &Row> = HashMap::with_capacity(read.len());
    let mut are_signed = Vec::new();
    for row in &read {
        by_row.insert(row.try_get(0)?, row);
        if row.try_get::<_, i64>(14)? > 0 {
            are_signed.push(row.try_get::<_, i64>(0)?);
        }
    }
    let found = rows.iter().filter_map(|row| by_row.get(row).map(|found| entry_of(book, found).map(|entry| (*row, entry))));
    let mut found = found.collect::<Result<Vec<(i64, Entry)>>>()?;
    if !are_signed.is_empty() {
        add_signatures(session, book, &are_signed, &mut found)?;
    }
    Ok(found)
}

/// Calls back for each of these entries as the database has it, with its text on request, in the order of the rows.
/// Missing entries are left out.
pub fn each_entry(
    session: &Session,
    book: &str,
    rows: &[i64],
    text: bool,
    act: EachEntry<'_>,
) -> std::result::Result<(), SearchEnd> {
    let failed = |error: postgres::Error| SearchEnd::Failed(error.into());
    let sql = format!(
        "SELECT row, id, thread, parent IS NOT NULL, date, posted_by, encoding, attributes, attachments, links, {} \
         FROM entry WHERE row = ANY($1)",
        if text { "text" } else { "''" }
    );
    let read = session.query(&sql, &[&rows])?;
    let mut by_row: HashMap<i64, &Row> = HashMap::with_capacity(read.len());
    for row in &read {
        by_row.insert(row.try_get(0).map_err(failed)?, row);
    }
    for (at, row) in rows.iter().filter_map(|row| Some((*row, *by_row.get(row)?))) {
        let id = number(row, 1)?;
        let bad = |error: &dyn std::fmt::Display| SearchEnd::Failed(damaged(book, id, error));
        let kept = shown(row.try_get(10).map_err(failed)?).map_err(|error| bad(&error))?;
        let stored = StoredEntry {
            id,
            thread: number(row, 2)?,
            is_reply: row.try_get(3).map_err(failed)?,
            date: Time(row.try_get(4).map_err(failed)?),
            by: row.try_get(5).map_err(failed)?,
            encoding: row.try_get::<_, &str>(6).map_err(failed)?.parse().map_err(|error| bad(&error))?,
            attributes: row.try_get(7).map_err(failed)?,
            attachments: row.try_get(8).map_err(failed)?,
            links: row.try_get(9).map_err(failed)?,
            text: &kept,
        };
        if !act(at, stored)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Adds the signatures of those entries that have some.
fn add_signatures(session: &Session, book: &str, rows: &[i64], found: &mut [(i64, Entry)]) -> Result<()> {
    let sql = "SELECT entry.row, record FROM entry JOIN signature ON signature.book = entry.book AND signature.id = entry.id \
               WHERE entry.row = ANY($1) ORDER BY chain, number";
    let mut records: HashMap<i64, Vec<Signature>> = HashMap::new();
    for row in &session.query(sql, &[&rows])? {
        let record = record_of(book, 0, row.try_get(1)?)?;
        records.entry(row.try_get(0)?).or_default().push(record);
    }
    for (row, entry) in found {
        entry.signatures = records.remove(row).unwrap_or_default();
    }
    Ok(())
}

/// Reads one entry with its text.
pub fn load_one(session: &Session, book: &str, row: i64) -> Result<Option<Entry>> {
    Ok(load(session, book, &[row], true)?.pop().map(|(_, entry)| entry))
}

/// Reads an entry with its text by one statement. `None` if the entry or its book is not there, or if it has signatures,
/// which take another statement.
pub fn load_if_there(session: &Session, at: &EntryRef) -> Result<Option<Entry>> {
    if is_hidden(&at.book) {
        return Ok(None);
    }
    let sql = format!(
        "SELECT row, text, {ENTRY}, name FROM book JOIN entry ON entry.book = book.num WHERE book.folded = $1 AND entry.id = $2"
    );
    let found = session.one(&sql, &[&at.book.to_lowercase(), &i64::from(at.id)])?;
    let Some(row) = found else { return Ok(None) };
    if row.try_get::<_, i64>("signed")? > 0 {
        return Ok(None);
    }
    entry_of(row.try_get("name")?, &row).map(Some)
}

fn entry_of(book: &str, row: &Row) -> Result<Entry> {
    let id: u32 = number(row, 2)?;
    let bad = |error: &dyn std::fmt::Display| damaged(book, id, error);
    let encoding = row.try_get::<_, &str>(9)?.parse().map_err(|error| bad(&error))?;
    let attributes = serde_json::from_str(row.try_get(11)?).map_err(|error| bad(&error))?;
    // Most entries have no attachments.
    let attachments = match row.try_get(12)? {
        "[]" => Vec::new(),
        text => serde_json::from_str(text).map_err(|error| bad(&error))?,
    };
    let links = match row.try_get(13)? {
        "[]" => Vec::new(),
        text => serde_json::from_str(text).map_err(|error| bad(&error))?,
    };
    let text = shown(row.try_get(1)?).map_err(|error| bad(&error))?.into_owned();
    let parent: Option<i64> = row.try_get(7)?;
    Ok(Entry {
        at: EntryRef::new(book, id),
        date: Time(row.try_get(3)?),
        zone: i16::try_from(row.try_get::<_, i64>(4)?).map_err(|error| bad(&error))?,
        changed: Time(row.try_get(5)?),
        revision: number(row, 6)?,
        parent: parent.map(u32::try_from).transpose().map_err(|error| bad(&error))?,
        thread: number(row, 8)?,
        by: row.try_get(10)?,
        content: Content { attributes, encoding, text, attachments, links },
        signatures: vec![],
    })
}

/// The first character of a text that is stored as a JSON string.
const ESCAPED: char = '\u{1}';

/// Returns a text in the form that PostgreSQL accepts.
pub fn kept(text: &str) -> Result<Cow<'_, str>> {
    if text.contains('\0') || text.starts_with(ESCAPED) {
        return Ok(format!("{ESCAPED}{}", crate::store::book_row::json(&text)?).into());
    }
    Ok(text.into())
}

/// Returns the original of a stored text.
fn shown(kept: &str) -> serde_json::Result<Cow<'_, str>> {
    match kept.strip_prefix(ESCAPED) {
        Some(json) => serde_json::from_str(json).map(Cow::Owned),
        None => Ok(Cow::Borrowed(kept)),
    }
}

/// Returns the lock of an entry at this time.
pub fn lock_of(session: &Session, num: i64, id: u32, at: Time) -> Result<Option<Lock>> {
    let sql = "SELECT by, host, since, until FROM lock WHERE book = $1 AND id = $2 AND until > $3";
    let Some(row) = session.one(sql, &[&num, &i64::from(id), &at.0])? else { return Ok(None) };
    Ok(Some(Lock { by: row.try_get(0)?, host: row.try_get(1)?, since: Time(row.try_get(2)?), until: Time(row.try_get(3)?) }))
}

/// Returns the lock of an entry at this time by one statement; `None` if the entry or its book is not there.
pub fn lock_if_there(session: &Session, at: &EntryRef, now: Time) -> Result<Option<Option<Lock>>> {
    if is_hidden(&at.book) {
        return Ok(None);
    }
    let sql = "SELECT by, host, since, until FROM book JOIN entry ON entry.book = book.num \
               LEFT JOIN lock ON lock.book = book.num AND lock.id = entry.id AND until > $3 \
               WHERE book.folded = $1 AND entry.id = $2";
    let Some(row) = session.one(sql, &[&at.book.to_lowercase(), &i64::from(at.id), &now.0])? else { return Ok(None) };
    let Some(by) = row.try_get(0)? else { return Ok(Some(None)) };
    Ok(Some(Some(Lock { by, host: row.try_get(1)?, since: Time(row.try_get(2)?), until: Time(row.try_get(3)?) })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_they_were() {
        for text in ["", "plain", "a\0b", "\u{1}x", "\u{1}\"x\"", "ä\n"] {
            let kept = kept(text).unwrap();
            assert!(!kept.contains('\0'));
            assert_eq!(shown(&kept).unwrap(), text);
        }
    }
}
