//! The index data of an entry, added with the entry and removed with it.

use rusqlite::params;

use super::{Result, SqliteTransaction};
use crate::{
    attachment::stored_name::names,
    book::AttributeKind,
    entry::{Content, Entry},
    plain::plain,
    query::candidates::{
        ATTACHMENTS, BY, CUT, EVERY, FIRST_ATTRIBUTE, LINKS, MAX_ENDINGS, REPLY, UNLEARNED, id_tag, tag, thread_tag,
    },
    store::{
        book_row::{BookRow, json, rows_of, sort_key},
        quota_tables::QuotaTables,
    },
    text::{MAX_WORD, words},
};

impl SqliteTransaction<'_> {
    /// Writes an entry's row, text and index. The row is free.
    pub(super) fn write_entry(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()> {
        let content = &entry.content;
        self.db
            .prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)")?
            .execute(params![
                row,
                book_row.num,
                entry.at.id,
                entry.date.0,
                entry.zone,
                entry.changed.0,
                entry.revision,
                entry.parent,
                entry.thread,
                content.encoding.name(),
                entry.by,
                json(&content.attributes)?,
                json(&content.attachments)?,
                json(&content.links)?,
                entry.signatures.len() as i64,
            ])?;
        let sql = "INSERT INTO thread VALUES (?1, ?2, ?3) \
                   ON CONFLICT (book, head) DO UPDATE SET newest = max(newest, excluded.newest)";
        self.db.prepare_cached(sql)?.execute(params![book_row.num, entry.thread, row])?;
        self.db.prepare_cached("INSERT INTO body VALUES (?1, ?2)")?.execute(params![row, content.text])?;
        self.charge(book_row.num, entry.at.id, content, &entry.by)?;
        for name in names(&content.attachments) {
            let mut insert = self.db.prepare_cached("INSERT OR IGNORE INTO stored_name VALUES (?1, ?2, ?3)")?;
            insert.execute(params![book_row.num, name, entry.at.id])?;
        }
        let numbers = self.numbers(content)?;
        self.put_words(row, entry, &numbers)?;
        let mut insert = self.db.prepare_cached("INSERT INTO sorting VALUES (?1, ?2, ?3, ?4)")?;
        for attribute in &book_row.book.attributes {
            let number = number_of(&self.db, &attribute.name)?;
            let values = content.attribute(&attribute.name).map_or(&[][..], |said| &said.values);
            insert.execute(params![number, book_row.num, sort_key(attribute.kind, values), row])?;
        }
        Ok(())
    }

    /// Removes an entry's row, text and index.
    pub(super) fn take_entry(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()> {
        for table in ["DELETE FROM entry WHERE row = ?1", "DELETE FROM body WHERE row = ?1", "DELETE FROM words WHERE rowid = ?1"]
        {
            self.db.prepare_cached(table)?.execute([row])?;
        }
        let sql = "DELETE FROM thread WHERE book = ?1 AND head = ?2 AND newest = ?3";
        if self.db.prepare_cached(sql)?.execute(params![book_row.num, entry.thread, row])? == 1 {
            let sql = "INSERT INTO thread SELECT book, thread, max(row) FROM entry WHERE book = ?1 AND thread = ?2 GROUP BY book, thread";
            self.db.prepare_cached(sql)?.execute(params![book_row.num, entry.thread])?;
        }
        for name in names(&entry.content.attachments) {
            let mut delete = self.db.prepare_cached("DELETE FROM stored_name WHERE book = ?1 AND name = ?2 AND id = ?3")?;
            delete.execute(params![book_row.num, name, entry.at.id])?;
        }
        let sql = "DELETE FROM sorting WHERE attribute = ?1 AND book = ?2 AND key = ?3 AND row = ?4";
        let mut delete = self.db.prepare_cached(sql)?;
        for attribute in &book_row.book.attributes {
            let number = number_of(&self.db, &attribute.name)?;
            let values = entry.content.attribute(&attribute.name).map_or(&[][..], |said| &said.values);
            delete.execute(params![number, book_row.num, sort_key(attribute.kind, values), row])?;
        }
        Ok(())
    }

    /// The numbers of an entry's attributes.
    fn numbers(&self, content: &Content) -> Result<Vec<u32>> {
        content.attributes.iter().map(|attribute| number_of(&self.db, &attribute.name)).collect()
    }

    fn put_words(&mut self, row: i64, entry: &Entry, numbers: &[u32]) -> Result<()> {
        let content = &entry.content;
        let (mut text, mut heads, mut tags) = (String::new(), String::new(), String::from(EVERY));
        let (mut fresh, mut cut): (Vec<Box<str>>, bool) = (Vec::new(), false);
        {
            let known = &mut *self.known;
            let mut know = |word: &str| {
                cut |= word.len() >= MAX_WORD && word.chars().nth(MAX_WORD - 1).is_some();
                if !known.contains(word) {
                    known.insert(word.into());
                    fresh.push(word.into());
                }
            };
            words(&plain(content.encoding, &content.text), |_, word| {
                push(&mut text, word);
                know(word);
            });
            let mut value = |number: u32, value: &str, mut head: Option<&mut String>| {
                words(value, |_, word| {
                    push(&mut tags, &tag(number, word));
                    know(word);
                    if let Some(head) = head.as_deref_mut() {
                        push(head, word);
                    }
                });
                push(&mut tags, &tag(number, ""));
                if let Some(head) = head {
                    // Between two values, so that no phrase spans both.
                    push(head, "§");
                }
            };
            let mut group = |number: u32, values: &mut dyn Iterator<Item = &str>, mut head: Option<&mut String>| {
                let mut values = values.filter(|value| !value.is_empty()).peekable();
                if values.peek().is_some() {
                    // A mark before, between and after the values.
                    value(number, "", None);
                    values.for_each(|one| value(number, one, head.as_deref_mut()));
                }
            };
            for (attribute, &number) in content.attributes.iter().zip(numbers) {
                group(number, &mut attribute.values.iter().map(String::as_str), Some(&mut heads));
            }
            let links: Vec<String> = content.links.iter().map(ToString::to_string).collect();
            group(ATTACHMENTS, &mut content.attachments.iter().map(|attachment| attachment.name.as_str()), None);
            group(LINKS, &mut links.iter().map(String::as_str), None);
            group(BY, &mut std::iter::once(entry.by.as_str()), None);
        }
        if entry.parent.is_some() {
            push(&mut tags, REPLY);
        }
        push(&mut tags, &id_tag(entry.at.id));
        push(&mut tags, &thread_tag(entry.thread));
        if cut {
            push(&mut tags, CUT);
        }
        if !self.learn(&fresh)? {
            push(&mut tags, UNLEARNED);
        }
        let mut insert = self.db.prepare_cached("INSERT INTO words(rowid, text, heads, tags) VALUES (?1, ?2, ?3, ?4)")?;
        insert.execute(params![row, text, heads, tags])?;
        Ok(())
    }

    /// Adds words to the vocabulary, as many as [`MAX_ENDINGS`] allows. Returns whether it has all of them.
    fn learn(&mut self, fresh: &[Box<str>]) -> Result<bool> {
        let mut term = self.db.prepare_cached("INSERT OR IGNORE INTO term VALUES (?1)")?;
        let mut there = self.db.prepare_cached("SELECT 1 FROM term WHERE term = ?1")?;
        let mut ending = self.db.prepare_cached("INSERT OR IGNORE INTO ending VALUES (?1, ?2)")?;
        let (mut written, mut all) = (0, true);
        for word in fresh {
            if written >= MAX_ENDINGS {
                if !there.exists([word])? {
                    self.known.remove(word);
                    all = false;
                }
                continue;
            }
            if term.execute([word])? == 0 {
                continue;
            }
            written += 1;
            for (at, _) in word.char_indices().skip(1) {
                if word[at..].chars().nth(1).is_some() {
                    ending.execute([&word[at..], word])?;
                    written += 1;
                }
            }
        }
        Ok(all)
    }

    /// Writes the order of an attribute for all entries of a book, or takes it away.
    pub(super) fn write_order(&self, book_row: &BookRow, name: &str, kind: Option<AttributeKind>) -> Result<()> {
        let number = number_of(&self.db, name)?;
        self.db.execute("DELETE FROM sorting WHERE attribute = ?1 AND book = ?2", params![number, book_row.num])?;
        let Some(kind) = kind else { return Ok(()) };
        let mut rows = self.db.prepare("SELECT row FROM entry WHERE row >= ?1 AND row < ?2")?;
        let rows = rows.query_map(rows_of(book_row.num), |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
        let mut insert = self.db.prepare_cached("INSERT INTO sorting VALUES (?1, ?2, ?3, ?4)")?;
        for row in rows {
            let Some(entry) = super::rows::load(&self.db, &book_row.book.name, row, false)? else { continue };
            let values = entry.content.attribute(name).map_or(&[][..], |said| &said.values);
            insert.execute(params![number, book_row.num, sort_key(kind, values), row])?;
        }
        Ok(())
    }
}

fn push(into: &mut String, word: &str) {
    if !into.is_empty() {
        into.push(' ');
    }
    into.push_str(word);
}

/// Returns the number of an attribute's name, and assigns one if there is none yet.
pub fn number_of(db: &rusqlite::Connection, name: &str) -> Result<u32> {
    let folded = name.to_lowercase();
    if let Some(number) = known_number(db, &folded)? {
        return Ok(number);
    }
    let sql = "INSERT INTO attribute(num, folded) SELECT coalesce(max(num) + 1, ?1), ?2 FROM attribute RETURNING num";
    Ok(db.prepare_cached(sql)?.query_row(params![FIRST_ATTRIBUTE, folded], |row| row.get(0))?)
}

/// The number of an attribute's folded name.
pub fn known_number(db: &rusqlite::Connection, folded: &str) -> Result<Option<u32>> {
    use rusqlite::OptionalExtension;
    let mut query = db.prepare_cached("SELECT num FROM attribute WHERE folded = ?1")?;
    Ok(query.query_row([folded], |row| row.get(0)).optional()?)
}
