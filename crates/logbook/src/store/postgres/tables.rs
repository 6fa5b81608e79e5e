//! The tables of PostgreSQL, for writers.

use std::collections::{HashMap, HashSet};

use tampu_types::Time;

use super::{
    database::Database,
    rows::{kept, known_number, load, load_one, locked_book_row, number, row_of, tombstone},
    session::{ALONE_TO_TELL as ALONE, Session},
    tokens,
};
use crate::{
    attachment::{Attachment, Sha, Upload, stored_name::names},
    book::{
        AttributeKind, Book,
        change::{BookChange, MAX_CHANGES},
    },
    entry::{Change, Content, Draft, Entry, Lock, Tombstone},
    query::candidates::{MAX_ENDINGS, UNLEARNED},
    store::{
        ImportOutcome, MAX_DRAFTS, Result, StoreError,
        book_changes::{BOOK_CHANGE, change_name, change_number},
        book_row::{BookRow, MAX_BOOKS, json, rows_of, sort_key},
        index::Tables,
        now,
    },
};

/// Entries of a book that are read at a time while an order is written.
const TOGETHER: i64 = 1000;
/// Writes lines of histories.
const LINES: &str = "WITH lines AS (INSERT INTO revision(book, id, number, at, by, what) SELECT * FROM \
    unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[]))";

/// A transaction that writes.
pub struct PostgresTransaction<'a> {
    pub session: &'a Session,
    pub inner: &'a Database,
    /// Changes of books, written at the end of the transaction: the number of new entries and the next id.
    books: HashMap<i64, (i64, i64)>,
    /// The changes of entries for the journal.
    pub changes: Vec<(i64, u32, Change)>,
    /// Blobs that are in the database, or in this transaction.
    pub placed: HashSet<Sha>,
    /// Those of them that this transaction added.
    pub brought: Vec<Sha>,
    /// Words that are new in the vocabulary.
    pub learned: Vec<Box<str>>,
    /// Lines of histories that are written with the next statement.
    revisions: Vec<Line>,
}

/// A line of an entry's history: book, id, number, time, user and change.
struct Line {
    of: [i64; 4],
    by: String,
    what: String,
}

/// An entry in the form of the tables.
pub struct IndexData {
    pub words: Vec<i64>,
    pub known: Vec<Box<str>>,
    /// The numbers of the book's attributes, and the keys of the entry in their orders.
    pub keys: (Vec<i64>, Vec<String>),
    /// The digests and the sizes of its files.
    pub files: (Vec<String>, Vec<i64>),
}

impl<'a> PostgresTransaction<'a> {
    pub fn new(session: &'a Session, inner: &'a Database) -> PostgresTransaction<'a> {
        PostgresTransaction {
            session,
            inner,
            books: HashMap::new(),
            changes: Vec::new(),
            placed: HashSet::new(),
            brought: Vec::new(),
            learned: Vec::new(),
            revisions: Vec::new(),
        }
    }

    /// Does the remaining work before the commit. Each statement is a round trip to the server while others wait for
    /// the book. So the last statements are sent together, with the lock that the journal of changes needs.
    pub fn finish(&mut self) -> Result<()> {
        self.write_revisions(true)?;
        self.write_changes()
    }

    /// Writes the waiting lines of histories, and at the end of the transaction the changes of books.
    pub fn write_revisions(&mut self, at_end: bool) -> Result<()> {
        let lines = std::mem::take(&mut self.revisions);
        if lines.is_empty() && !at_end {
            return Ok(());
        }
        let column = |nth: usize| lines.iter().map(|line| line.of[nth]).collect::<Vec<i64>>();
        let (books, ids, numbers, times) = (column(0), column(1), column(2), column(3));
        let (by, what): (Vec<&str>, Vec<&str>) = lines.iter().map(|line| (line.by.as_str(), line.what.as_str())).unzip();
        if !at_end {
            let sql = format!("{LINES} SELECT 1");
            self.session.execute(&sql, &[&books, &ids, &numbers, &times, &by, &what])?;
            return Ok(());
        }
        let (mut nums, mut more, mut next) = (Vec::new(), Vec::new(), Vec::new());
        for (num, (entries, next_id)) in self.books.drain() {
            nums.push(num);
            more.push(entries);
            next.push(next_id);
        }
        if lines.is_empty() && nums.is_empty() && self.changes.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "{LINES}, counted AS (UPDATE book SET entries = entries + more, next_id = greatest(book.next_id, said.next_id) \
             FROM unnest($7::bigint[], $8::bigint[], $9::bigint[]) AS said(num, more, next_id) WHERE book.num = said.num) {ALONE}"
        );
        self.session.execute(&sql, &[&books, &ids, &numbers, &times, &by, &what, &nums, &more, &next])?;
        Ok(())
    }

    /// Returns a book with the changes of this transaction that are not written yet.
    fn up_to_date(&self, mut book_row: BookRow) -> BookRow {
        if let Some((entries, next_id)) = self.books.get(&book_row.num) {
            book_row.entries = book_row.entries.saturating_add_signed(*entries);
            book_row.next_id = book_row.next_id.max(u32::try_from(*next_id).unwrap_or(u32::MAX));
        }
        book_row
    }

    /// Returns the index data of an entry, beside its row.
    pub fn written(&self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<IndexData> {
        let content = &entry.content;
        let numbers = content.attributes.iter().map(|said| self.inner.number_of(&said.name)).collect::<Result<Vec<u32>>>()?;
        let (words, known) = tokens::of(row, entry, &numbers);
        let mut keys = (Vec::new(), Vec::new());
        for attribute in &book_row.book.attributes {
            let values = content.attribute(&attribute.name).map_or(&[][..], |said| &said.values);
            keys.0.push(i64::from(self.inner.number_of(&attribute.name)?));
            keys.1.push(sort_key(attribute.kind, values));
        }
        Ok(IndexData { words, known, keys, files: files_of(content) })
    }
}

/// Returns the digests and the sizes of an entry's files.
pub fn files_of(content: &Content) -> (Vec<String>, Vec<i64>) {
    let size = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
    content.attachments.iter().filter_map(|file| Some((String::from(file.sha.clone()?), size(file.size)))).unzip()
}

impl PostgresTransaction<'_> {
    /// Adds the words of an entry to the vocabulary. If there are too many, the entry's numbers record that.
    pub fn know(&mut self, known: Vec<Box<str>>, words: &mut Vec<i64>) -> Result<()> {
        let (learned, all) = self.inner.learn(known, MAX_ENDINGS)?;
        self.learned.extend(learned);
        let unlearned = tokens::of_tag(UNLEARNED);
        if !all && let Err(at) = words.binary_search(&unlearned) {
            words.insert(at, unlearned);
        }
        Ok(())
    }
}

impl Tables for PostgresTransaction<'_> {
    fn book_row(&mut self, name: &str) -> Result<BookRow> {
        let (book_row, purges) = locked_book_row(self.session, name)?;
        self.inner.forget_words_before(book_row.num, purges);
        Ok(self.up_to_date(book_row))
    }

    fn two_book_rows(&mut self, one: &str, other: &str) -> Result<(BookRow, BookRow)> {
        // Always in the same order, so that two writers of the same two books do not deadlock.
        if one.to_lowercase() <= other.to_lowercase() {
            let one = self.book_row(one)?;
            Ok((one, self.book_row(other)?))
        } else {
            let other = self.book_row(other)?;
            Ok((self.book_row(one)?, other))
        }
    }

    fn new_book(&mut self, book: &Book) -> Result<()> {
        self.session.alone("new book")?;
        let folded = book.name.to_lowercase();
        if self.session.one("SELECT 1 FROM book WHERE folded = $1", &[&folded])?.is_some() {
            // Another hub created it at the same time.
            let num = locked_book_row(self.session, &book.name)?.0.num;
            return self.set_book(num, book);
        }
        let row = self.session.one("SELECT coalesce(max(num), 0) + 1 FROM book", &[])?;
        let num: i64 = row.map_or(Ok(1), |row| row.try_get(0))?;
        if num >= MAX_BOOKS {
            return Err(StoreError::Full(format!("a store has at most {MAX_BOOKS} logbooks")));
        }
        let sql = "INSERT INTO book(num, name, folded, settings) VALUES ($1, $2, $3, $4)";
        self.session.execute(sql, &[&num, &book.name, &folded, &json(book)?])?;
        Ok(())
    }

    fn set_book(&mut self, num: i64, book: &Book) -> Result<()> {
        let sql = "UPDATE book SET name = $2, settings = $3 WHERE num = $1";
        self.session.execute(sql, &[&num, &book.name, &json(book)?])?;
        Ok(())
    }

    fn last_book_change(&mut self, num: i64) -> Result<u32> {
        let sql = "SELECT name FROM record WHERE kind = $1 AND name >= $2 AND name < $3 ORDER BY name DESC LIMIT 1";
        let last = self.session.one(sql, &[&BOOK_CHANGE, &change_name(num, 0), &change_name(num + 1, 0)])?;
        last.map_or(Ok(0), |row| change_number(row.try_get(0)?))
    }

    fn keep_book_change(&mut self, num: i64, change: &BookChange) -> Result<()> {
        let sql = "INSERT INTO record VALUES ($1, $2, 1, $3)";
        self.session.execute(sql, &[&BOOK_CHANGE, &change_name(num, change.number), &json(change)?])?;
        let sql = "DELETE FROM record WHERE kind = $1 AND name >= $2 AND name <= $3";
        let old = [change_name(num, 0), change_name(num, change.number.saturating_sub(MAX_CHANGES))];
        self.session.execute(sql, &[&BOOK_CHANGE, &old[0], &old[1]])?;
        Ok(())
    }

    fn reorder(&mut self, book_row: &BookRow, name: &str, kind: Option<AttributeKind>) -> Result<()> {
        let number = match kind {
            Some(_) => Some(self.inner.number_of(name)?),
            None => known_number(self.session, &name.to_lowercase())?,
        };
        let Some(number) = number.map(i64::from) else { return Ok(()) };
        self.session.execute("DELETE FROM sorting WHERE attribute = $1 AND book = $2", &[&number, &book_row.num])?;
        let Some(kind) = kind else { return Ok(()) };
        let [mut first, end] = rows_of(book_row.num);
        loop {
            let sql = "SELECT row FROM entry WHERE row >= $1 AND row < $2 ORDER BY row LIMIT $3";
            let rows = self.session.query(sql, &[&first, &end, &TOGETHER])?;
            let rows = rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<Vec<i64>, _>>()?;
            let Some(last) = rows.last() else { return Ok(()) };
            first = last + 1;
            let entries = load(self.session, &book_row.book.name, &rows, false)?;
            let key = |entry: &Entry| sort_key(kind, entry.content.attribute(name).map_or(&[][..], |said| &said.values));
            let (rows, keys): (Vec<i64>, Vec<String>) = entries.iter().map(|(row, entry)| (*row, key(entry))).unzip();
            let sql = "INSERT INTO sorting SELECT $1, $2, key, row FROM unnest($3::text[], $4::bigint[]) AS new(key, row)";
            self.session.execute(sql, &[&number, &book_row.num, &keys, &rows])?;
        }
    }

    fn set_next_id(&mut self, num: i64, next: u32) -> Result<()> {
        let change = self.books.entry(num).or_default();
        change.1 = change.1.max(i64::from(next));
        Ok(())
    }

    fn count(&mut self, num: i64, change: i64) -> Result<()> {
        self.books.entry(num).or_default().0 += change;
        Ok(())
    }

    fn row_of(&mut self, num: i64, id: u32) -> Result<Option<i64>> {
        row_of(self.session, num, id)
    }

    fn last_row(&mut self, first: i64, last: i64) -> Result<Option<i64>> {
        let found = self.session.one("SELECT max(row) FROM entry WHERE row BETWEEN $1 AND $2", &[&first, &last])?;
        Ok(found.map_or(Ok(None), |row| row.try_get(0))?)
    }

    fn files_between(&mut self, first: i64, last: i64) -> Result<Vec<Attachment>> {
        let sql = "SELECT attachments FROM entry WHERE row BETWEEN $1 AND $2 AND attachments <> '[]'";
        let mut found = Vec::new();
        for row in &self.session.query(sql, &[&first, &last])? {
            let files: Vec<Attachment> =
                serde_json::from_str(row.try_get(0)?).map_err(|error| StoreError::Damaged(format!("attachments: {error}")))?;
            found.extend(files);
        }
        Ok(found)
    }

    fn tombstone(&mut self, book_row: &BookRow, id: u32) -> Result<Option<Tombstone>> {
        tombstone(self.session, book_row, id)
    }

    fn load(&mut self, book_row: &BookRow, row: i64) -> Result<Option<Entry>> {
        load_one(self.session, &book_row.book.name, row)
    }

    fn put(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()> {
        let IndexData { mut words, known, keys, files: (shas, sizes) } = self.written(book_row, row, entry)?;
        self.know(known, &mut words)?;
        let content = &entry.content;
        // One statement: each statement costs a round trip to the server, while others wait for the book.
        let sql = "WITH entry AS (INSERT INTO entry VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $22)), \
                   word AS (INSERT INTO word VALUES ($1, $16)), \
                   attached AS (INSERT INTO attached SELECT sha, $2, $3, $11, size FROM unnest($17::text[], $21::bigint[]) AS new(sha, size) ON CONFLICT DO NOTHING), \
                   threads AS (INSERT INTO thread VALUES ($2, $9, $1) \
                   ON CONFLICT (book, head) DO UPDATE SET newest = greatest(thread.newest, excluded.newest)), \
                   stored AS (INSERT INTO stored_name SELECT $2, name, $3 FROM unnest($20::text[]) AS new(name) ON CONFLICT DO NOTHING) \
                   INSERT INTO sorting SELECT attribute, $2, key, $1 FROM unnest($18::bigint[], $19::text[]) AS new(attribute, key)";
        self.session.execute(
            sql,
            &[
                &row,
                &book_row.num,
                &i64::from(entry.at.id),
                &entry.date.0,
                &i64::from(entry.zone),
                &entry.changed.0,
                &i64::from(entry.revision),
                &entry.parent.map(i64::from),
                &i64::from(entry.thread),
                &content.encoding.name(),
                &entry.by,
                &json(&content.attributes)?,
                &json(&content.attachments)?,
                &json(&content.links)?,
                &&*kept(&content.text)?,
                &words,
                &shas,
                &keys.0,
                &keys.1,
                &names(&content.attachments),
                &sizes,
                &(entry.signatures.len() as i64),
            ],
        )?;
        Ok(())
    }

    fn take(&mut self, book_row: &BookRow, row: i64, entry: &Entry) -> Result<()> {
        let keys = self.written(book_row, row, entry)?.keys;
        let sql = "WITH entry AS (DELETE FROM entry WHERE row = $1), \
                   threads AS (DELETE FROM thread WHERE book = $2 AND head = $7 AND newest = $1), word AS (DELETE FROM word WHERE row = $1), \
                   stored AS (DELETE FROM stored_name WHERE book = $2 AND id = $5 AND name = ANY($6)) \
                   DELETE FROM sorting USING unnest($3::bigint[], $4::text[]) AS old(attribute, key) \
                   WHERE sorting.attribute = old.attribute AND sorting.book = $2 AND sorting.key = old.key AND sorting.row = $1";
        let names = names(&entry.content.attachments);
        self.session
            .execute(sql, &[&row, &book_row.num, &keys.0, &keys.1, &i64::from(entry.at.id), &names, &i64::from(entry.thread)])?;
        let sql = "INSERT INTO thread SELECT book, thread, max(row) FROM entry WHERE book = $1 AND thread = $2 \
                   GROUP BY book, thread ON CONFLICT DO NOTHING";
        self.session.execute(sql, &[&book_row.num, &i64::from(entry.thread)])?;
        Ok(())
    }

    fn children(&mut self, num: i64, id: u32) -> Result<Vec<u32>> {
        let sql = "SELECT id FROM entry WHERE book = $1 AND parent = $2 ORDER BY row";
        self.session.query(sql, &[&num, &i64::from(id)])?.iter().map(|row| number(row, 0)).collect()
    }

    fn revise(&mut self, book_row: &BookRow, id: u32, number: u32, at: Time, by: &str, what: Change) -> Result<()> {
        let of = [book_row.num, i64::from(id), i64::from(number), at.0];
        self.revisions.push(Line { of, by: by.to_owned(), what: json(&what)? });
        self.changes.push((book_row.num, id, what));
        Ok(())
    }

    fn keep(&mut self, book_row: &BookRow, entry: &Entry) -> Result<bool> {
        self.write_revisions(false)?;
        let sql = "UPDATE revision SET content = $4 WHERE book = $1 AND id = $2 AND number = $3";
        let (id, revision) = (i64::from(entry.at.id), i64::from(entry.revision));
        Ok(self.session.execute(sql, &[&book_row.num, &id, &revision, &json(&entry.content)?])? == 1)
    }

    fn carry(&mut self, from: (i64, u32), to: (i64, u32)) -> Result<()> {
        self.write_revisions(false)?;
        let sql = "UPDATE revision SET book = $3, id = $4 WHERE book = $1 AND id = $2";
        let (from_id, to_id) = (i64::from(from.1), i64::from(to.1));
        self.session.execute(sql, &[&from.0, &from_id, &to.0, &to_id])?;
        let sql =
            "INSERT INTO attached SELECT sha, $3, $4, by, size FROM attached WHERE book = $1 AND id = $2 ON CONFLICT DO NOTHING";
        self.session.execute(sql, &[&from.0, &from_id, &to.0, &to_id])?;
        self.session.execute("DELETE FROM attached WHERE book = $1 AND id = $2", &[&from.0, &from_id])?;
        let sql = "UPDATE look SET book = $3, id = $4 WHERE book = $1 AND id = $2";
        self.session.execute(sql, &[&from.0, &from_id, &to.0, &to_id])?;
        let sql = "UPDATE signature SET book = $3, id = $4 WHERE book = $1 AND id = $2";
        self.session.execute(sql, &[&from.0, &from_id, &to.0, &to_id])?;
        Ok(())
    }

    fn bury(&mut self, num: i64, id: u32, by: &str, to: Option<(i64, u32)>) -> Result<()> {
        let (book, new) = to.unzip();
        let sql =
            "WITH lock AS (DELETE FROM lock WHERE book = $1 AND id = $2) INSERT INTO tombstone VALUES ($1, $2, $3, $4, $5, $6)";
        self.session.execute(sql, &[&num, &i64::from(id), &now().0, &by, &book, &new.map(i64::from)])?;
        if to.is_some() {
            self.changes.push((num, id, Change::Moved));
        }
        Ok(())
    }

    fn lock_of(&mut self, num: i64, id: u32, at: Time) -> Result<Option<Lock>> {
        super::rows::lock_of(self.session, num, id, at)
    }

    fn place(&mut self, content: &Content, uploads: &mut [Upload]) -> Result<()> {
        self.place_blobs(uploads, content)?;
        self.see_blobs(content)
    }

    fn imported_as(&mut self, num: i64, id: u32) -> Result<Option<(Vec<u8>, i64)>> {
        let sql = "SELECT digest, revision FROM imported WHERE book = $1 AND id = $2";
        let found = self.session.one(sql, &[&num, &i64::from(id)])?;
        found.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
    }

    fn set_imported(&mut self, num: i64, id: u32, digest: &[u8; 16], revision: i64) -> Result<()> {
        let sql = "INSERT INTO imported VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (book, id) DO UPDATE SET digest = excluded.digest, revision = excluded.revision";
        self.session.execute(sql, &[&num, &i64::from(id), &&digest[..], &revision])?;
        Ok(())
    }

    fn lift_tombstone(&mut self, num: i64, id: u32) -> Result<u32> {
        let id = i64::from(id);
        self.write_revisions(false)?;
        self.session.execute("DELETE FROM tombstone WHERE book = $1 AND id = $2", &[&num, &id])?;
        let sql = "UPDATE revision SET content = $3 WHERE book = $1 AND id = $2 AND content IS NULL";
        self.session.execute(sql, &[&num, &id, &json(&Content::default())?])?;
        let sql = "SELECT coalesce(max(number) + 1, 0) FROM revision WHERE book = $1 AND id = $2";
        self.session.one(sql, &[&num, &id])?.map_or(Ok(0), |row| number(&row, 0))
    }

    fn take_draft(&mut self, draft: &Draft, number: Option<i64>) -> Result<(ImportOutcome, i64)> {
        // The text contains the mark, too, as in the built-in store.
        let mut marked = serde_json::to_value(draft).map_err(|error| StoreError::Damaged(error.to_string()))?;
        marked["elog"] = true.into();
        let text = marked.to_string();
        if let Some(number) = number {
            let sql = "UPDATE draft SET saved = $2, draft = $3 WHERE number = $1 AND taken";
            if self.session.execute(sql, &[&number, &draft.saved.0, &text])? == 1 {
                return Ok((ImportOutcome::Changed, number));
            }
            let is_there = self.session.one("SELECT 1 FROM draft WHERE number = $1", &[&number])?.is_some();
            return Ok((if is_there { ImportOutcome::Conflict } else { ImportOutcome::Gone }, number));
        }
        let count = self.session.one("SELECT count(*) FROM draft WHERE owner = $1", &[&draft.owner])?;
        if count.map_or(Ok(0), |row| row.try_get::<_, i64>(0))? >= MAX_DRAFTS {
            return Ok((ImportOutcome::Full, 0));
        }
        let sql = "INSERT INTO draft(owner, saved, draft, taken) VALUES ($1, $2, $3, true) RETURNING number";
        let row = self.session.one(sql, &[&draft.owner, &draft.saved.0, &text])?;
        Ok((ImportOutcome::New, row.map_or(Ok(0), |row| row.try_get(0))?))
    }

    fn drop_taken_draft(&mut self, number: i64) -> Result<()> {
        self.session.execute("DELETE FROM draft WHERE number = $1 AND taken", &[&number])?;
        Ok(())
    }
}
