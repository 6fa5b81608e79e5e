//! Imports of entries with their ids. New entries are written in bulk, as in the import of a whole site.

use std::collections::{HashMap, HashSet};

use super::{
    PostgresStore,
    rows::{kept, number},
    tables::{IndexData, PostgresTransaction},
};
use crate::{
    attachment::{Upload, stored_name::names as stored_names},
    entry::{Change, Entry, EntryRef, MAX_ID, check_zone},
    query::candidates::MAX_ENDINGS,
    store::{
        ImportOutcome, Imported, Imports, Result, StoreError,
        book_row::{BookRow, first_row, json, last_of_second},
        import::Import,
        index::Tables,
        now,
        write::canonical,
    },
};

/// The table of entries with the columns that an import writes.
const ENTRY: &str = "entry(row, book, id, date, zone, changed, revision, parent, thread, encoding, posted_by, attributes, attachments, \
    links, text)";
/// The settings of an importing connection: the index's new numbers wait in a longer list.
const IMPORTING: &str =
    "SET LOCAL gin_pending_list_limit = '16MB'; SET LOCAL work_mem = '64MB'; SET LOCAL synchronous_commit = on";

impl Imports for PostgresStore {
    fn import(&self, book: &str, entries: Vec<Imported>, mut uploads: Vec<Upload>, by: &str) -> Result<Vec<ImportOutcome>> {
        self.write(|writing| {
            writing.session.batch(IMPORTING)?;
            for imported in &entries {
                writing.place_blobs(&uploads, &imported.entry.content)?;
            }
            let mut book_row = writing.book_row(book)?;
            let known = writing.known_ids(&book_row, &entries)?;
            let mut threads = writing.threads(&book_row, &entries)?;
            let mut outcomes = Vec::with_capacity(entries.len());
            let (mut new, mut seen) = (Vec::new(), HashSet::new());
            for imported in entries {
                let is_plain = !known.contains(&imported.id) && seen.insert(imported.id) && is_plain(&imported, &threads);
                if is_plain {
                    outcomes.push(ImportOutcome::New);
                    threads.insert(imported.id, Some(imported.thread));
                    new.push(imported);
                } else {
                    // The entry may refer to one of the new entries before it.
                    writing.add_all(&mut book_row, std::mem::take(&mut new), by)?;
                    threads.insert(imported.id, None);
                    outcomes.push(Import::take_over(writing, &mut book_row, imported, &mut uploads, by)?);
                }
            }
            writing.add_all(&mut book_row, new, by)?;
            writing.set_next_id(book_row.num, book_row.next_id)?;
            writing.drop_unwanted()?;
            Ok(outcomes)
        })
    }

    fn imported(&self) -> Result<()> {
        let session = self.0.writers.get()?;
        session.execute("SELECT gin_clean_pending_list('word_words')", &[])?;
        // The visibility map, which VACUUM updates, makes counting along an index cheap.
        for table in ["entry", "word", "sorting", "thread", "term", "ending"] {
            session.batch(&format!("VACUUM (ANALYZE) {table}"))?;
        }
        Ok(())
    }

    fn digests(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        self.read(|session| {
            let book_row = super::rows::book_row(session, book)?;
            let sql = "SELECT id, digest FROM imported AS known WHERE book = $1 AND NOT EXISTS \
                       (SELECT 1 FROM tombstone AS gone WHERE gone.book = known.book AND gone.id = known.id) ORDER BY id";
            let rows = session.query(sql, &[&book_row.num])?;
            rows.iter().map(|row| digest_of(book, row)).collect()
        })
    }

    fn all_imports(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        self.read(|session| {
            let book_row = super::rows::book_row(session, book)?;
            let rows = session.query("SELECT id, digest FROM imported WHERE book = $1 ORDER BY id", &[&book_row.num])?;
            rows.iter().map(|row| digest_of(book, row)).collect()
        })
    }
}

/// Returns an entry's number and its digest.
fn digest_of(book: &str, row: &postgres::Row) -> Result<(u32, [u8; 16])> {
    let id: u32 = number(row, 0)?;
    let digest = row.try_get::<_, &[u8]>(1)?.try_into();
    Ok((id, digest.map_err(|_| StoreError::Damaged(format!("entry {book}/{id}: its digest is invalid")))?))
}

/// Returns whether an entry only needs to be written: its parent is here as in the source, and it has no other ties.
fn is_plain(imported: &Imported, threads: &HashMap<u32, Option<u32>>) -> bool {
    let Imported { id, entry, thread, draft, .. } = imported;
    let whole = match entry.parent {
        None => thread == id,
        Some(parent) if parent == *id => false,
        Some(parent) => match threads.get(&parent) {
            // The parent is missing, or comes later.
            None => true,
            // The parent is in a thread; or it was deleted, or must be checked first.
            Some(known) => *known == Some(*thread),
        },
    };
    whole && draft.is_none() && (1..=MAX_ID).contains(id) && check_zone(entry.zone).is_ok()
}

impl PostgresTransaction<'_> {
    /// Returns the threads of these entries' parents; none for a parent that is gone.
    fn threads(&self, book_row: &BookRow, entries: &[Imported]) -> Result<HashMap<u32, Option<u32>>> {
        let parents: Vec<i64> = entries.iter().filter_map(|imported| imported.entry.parent).map(i64::from).collect();
        let sql = "SELECT id, thread FROM entry WHERE book = $1 AND id = ANY($2) \
                   UNION ALL SELECT id, NULL FROM tombstone WHERE book = $1 AND id = ANY($2)";
        let rows = self.session.query(sql, &[&book_row.num, &parents])?;
        let one = |row: &postgres::Row| {
            let thread: Option<i64> = row.try_get(1)?;
            Ok((number(row, 0)?, thread.and_then(|thread| u32::try_from(thread).ok())))
        };
        rows.iter().map(one).collect()
    }

    /// Returns those of these ids that exist or existed.
    fn known_ids(&self, book_row: &BookRow, entries: &[Imported]) -> Result<HashSet<u32>> {
        let ids: Vec<i64> = entries.iter().map(|imported| i64::from(imported.id)).collect();
        let sql = "SELECT id FROM entry WHERE book = $1 AND id = ANY($2) UNION SELECT id FROM tombstone WHERE book = $1 AND id = ANY($2) \
                   UNION SELECT id FROM imported WHERE book = $1 AND id = ANY($2)";
        self.session.query(sql, &[&book_row.num, &ids])?.iter().map(|row| number(row, 0)).collect()
    }

    /// Returns the last used row of each of these seconds. A second is given by its first row.
    fn last_rows(&self, seconds: &[i64]) -> Result<HashMap<i64, i64>> {
        let sql = "SELECT first, last FROM unnest($1::bigint[]) AS seconds(first), \
                   LATERAL (SELECT max(row) AS last FROM entry WHERE row BETWEEN first AND first | 4095) AS taken WHERE last IS NOT NULL";
        let rows = self.session.query(sql, &[&seconds])?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Writes entries that are not there.
    fn add_all(&mut self, book_row: &mut BookRow, entries: Vec<Imported>, by: &str) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let now = now();
        let date = |imported: &Imported| imported.entry.date.unwrap_or(now);
        let seconds: Vec<i64> = entries.iter().map(|imported| first_row(book_row.num, date(imported))).collect();
        let mut taken = self.last_rows(&seconds)?;
        let (mut rows, mut words, mut orders): (Copy, Copy, Copy) = Default::default();
        let (mut revisions, mut imports, mut names): (Copy, Copy, Copy) = Default::default();
        let (mut known, mut shas, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sizes, mut authors): (Vec<i64>, Vec<String>) = Default::default();
        let (mut heads, mut newest): (Vec<i64>, Vec<i64>) = Default::default();
        let count = entries.len() as i64;
        for (imported, mut first) in entries.into_iter().zip(seconds) {
            let date = date(&imported);
            let Imported { id, entry: new, thread, digest, author, .. } = imported;
            let author = author.unwrap_or_else(|| by.to_owned());
            new.content.check()?;
            book_row.next_id = book_row.next_id.max(id + 1);
            let row = loop {
                match taken.get(&first) {
                    None => break first,
                    Some(row) if *row < last_of_second(first) => break row + 1,
                    Some(_) => {
                        first = last_of_second(first) + 1;
                        if !taken.contains_key(&first) {
                            taken.extend(self.last_rows(&[first])?);
                        }
                    }
                }
            };
            taken.insert(first, row);
            heads.push(thread.into());
            newest.push(row);
            let content = canonical(&book_row.book, new.content);
            self.see_blobs(&content)?;
            let at = EntryRef::new(&book_row.book.name, id);
            let entry = Entry {
                at,
                date,
                zone: new.zone,
                by: author.clone(),
                revision: 0,
                changed: date,
                parent: new.parent,
                thread,
                content,
                signatures: vec![],
            };
            let mut written: IndexData = self.written(book_row, row, &entry)?;
            if written.known.iter().map(|word| word.len()).sum::<usize>() > MAX_ENDINGS {
                self.know(std::mem::take(&mut written.known), &mut written.words)?;
            }
            rows.number(row)
                .number(book_row.num)
                .number(id.into())
                .number(date.0)
                .number(entry.zone.into())
                .number(date.0)
                .number(0);
            match entry.parent {
                Some(parent) => rows.number(parent.into()),
                None => rows.nothing(),
            };
            rows.number(thread.into()).text(entry.content.encoding.name()).text(&author).text(&json(&entry.content.attributes)?);
            rows.text(&json(&entry.content.attachments)?)
                .text(&json(&entry.content.links)?)
                .text(&kept(&entry.content.text)?)
                .end();
            words.number(row).numbers(&written.words).end();
            for (attribute, key) in written.keys.0.iter().zip(&written.keys.1) {
                orders.number(*attribute).number(book_row.num).text(key).number(row).end();
            }
            revisions
                .number(book_row.num)
                .number(id.into())
                .number(0)
                .number(now.0)
                .text(by)
                .text(&json(&Change::Imported)?)
                .nothing()
                .nothing()
                .end();
            imports.number(book_row.num).number(id.into()).bytes(&digest).number(0).end();
            for name in stored_names(&entry.content.attachments) {
                names.number(book_row.num).text(&name).number(id.into()).end();
            }
            owners.extend(written.files.0.iter().map(|_| i64::from(id)));
            authors.extend(written.files.0.iter().map(|_| author.clone()));
            shas.extend(written.files.0);
            sizes.extend(written.files.1);
            known.extend(written.known);
            self.changes.push((book_row.num, id, Change::Imported));
        }
        self.learned.extend(self.inner.learn(known, usize::MAX)?.0);
        for (table, lines) in [
            (ENTRY, rows),
            ("word", words),
            ("sorting", orders),
            ("revision", revisions),
            ("imported", imports),
            ("stored_name", names),
        ] {
            self.session.copy_in(&format!("COPY {table} FROM STDIN"), &lines.0)?;
        }
        let sql = "INSERT INTO attached SELECT sha, $3, id, author, size \
                   FROM unnest($1::text[], $2::bigint[], $4::text[], $5::bigint[]) AS new(sha, id, author, size) \
                   ON CONFLICT DO NOTHING";
        self.session.execute(sql, &[&shas, &owners, &book_row.num, &authors, &sizes])?;
        let sql = "INSERT INTO thread SELECT $1, head, max(row) FROM unnest($2::bigint[], $3::bigint[]) AS new(head, row) GROUP BY head \
                   ON CONFLICT (book, head) DO UPDATE SET newest = greatest(thread.newest, excluded.newest)";
        self.session.execute(sql, &[&book_row.num, &heads, &newest])?;
        self.count(book_row.num, count)
    }
}

/// Lines in the text form of `COPY`: columns with tabs between them.
#[derive(Default)]
pub struct Copy(Vec<u8>);

impl Copy {
    fn begin(&mut self) {
        if !matches!(self.0.last(), None | Some(b'\n')) {
            self.0.push(b'\t');
        }
    }

    pub fn number(&mut self, number: i64) -> &mut Copy {
        self.begin();
        self.0.extend_from_slice(number.to_string().as_bytes());
        self
    }

    pub fn nothing(&mut self) -> &mut Copy {
        self.begin();
        self.0.extend_from_slice(b"\\N");
        self
    }

    fn numbers(&mut self, numbers: &[i64]) -> &mut Copy {
        self.begin();
        self.0.push(b'{');
        for (nth, number) in numbers.iter().enumerate() {
            if nth > 0 {
                self.0.push(b',');
            }
            self.0.extend_from_slice(number.to_string().as_bytes());
        }
        self.0.push(b'}');
        self
    }

    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Copy {
        self.begin();
        self.0.extend_from_slice(b"\\\\x");
        self.0.extend_from_slice(crate::attachment::hex(bytes).as_bytes());
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Copy {
        self.begin();
        for byte in text.bytes() {
            match byte {
                b'\\' => self.0.extend_from_slice(b"\\\\"),
                b'\n' => self.0.extend_from_slice(b"\\n"),
                b'\r' => self.0.extend_from_slice(b"\\r"),
                b'\t' => self.0.extend_from_slice(b"\\t"),
                byte => self.0.push(byte),
            }
        }
        self
    }

    /// All lines that have ended.
    pub fn bytes_of_all(&self) -> &[u8] {
        &self.0
    }

    pub fn end(&mut self) {
        self.0.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_copy_reads_them() {
        let mut copy = Copy::default();
        copy.number(-7).text("").text("a\tb\\c\nd\r").nothing().numbers(&[1, -2]).bytes(&[0, 255]).end();
        copy.number(1).end();
        assert_eq!(String::from_utf8(copy.0).unwrap(), "-7\t\ta\\tb\\\\c\\nd\\r\t\\N\t{1,-2}\t\\\\x00ff\n1\n");
    }
}
