//! Entries taken over with the ids they have: those that are new all at once, as an import of a whole site is.

use std::collections::{HashMap, HashSet};

use super::{
    PostgresStore,
    rows::{kept, number},
    tables::{Writing, Written},
};
use crate::{
    attachment::Upload,
    elog::entries::MAX_ID,
    entry::{Change, Entry, EntryRef, check_zone},
    query::candidates::MAX_ENDINGS,
    store::{
        ImportOutcome, Imported, Result, StoreError,
        import::Import,
        index::Tables,
        now,
        shelf::{Shelf, first_row, json, last_of_second},
        write::canonical,
    },
};

/// What a connection sets that imports: the index's new numbers wait in a longer list.
const IMPORTING: &str =
    "SET LOCAL gin_pending_list_limit = '16MB'; SET LOCAL work_mem = '64MB'; SET LOCAL synchronous_commit = on";

impl PostgresStore {
    pub(super) fn take_over(
        &self,
        book: &str,
        entries: Vec<Imported>,
        mut uploads: Vec<Upload>,
        by: &str,
    ) -> Result<Vec<ImportOutcome>> {
        self.write(|writing| {
            writing.session.batch(IMPORTING)?;
            for imported in &entries {
                writing.place_blobs(&uploads, &imported.entry.content)?;
            }
            let mut shelf = writing.shelf(book)?;
            let known = writing.known_ids(&shelf, &entries)?;
            let mut threads = writing.threads(&shelf, &entries)?;
            let mut outcomes = Vec::with_capacity(entries.len());
            let (mut new, mut seen) = (Vec::new(), HashSet::new());
            for imported in entries {
                let is_plain = !known.contains(&imported.id) && seen.insert(imported.id) && is_plain(&imported, &threads);
                if is_plain {
                    outcomes.push(ImportOutcome::New);
                    threads.insert(imported.id, Some(imported.thread));
                    new.push(imported);
                } else {
                    // It may speak of one of those that are new here.
                    writing.add_all(&mut shelf, std::mem::take(&mut new), by)?;
                    threads.insert(imported.id, None);
                    outcomes.push(Import::take_over(writing, &mut shelf, imported, &mut uploads, by)?);
                }
            }
            writing.add_all(&mut shelf, new, by)?;
            writing.set_next_id(shelf.num, shelf.next_id)?;
            writing.drop_unwanted()?;
            Ok(outcomes)
        })
    }

    pub(super) fn settle_index(&self) -> Result<()> {
        let session = self.0.writers.get()?;
        session.execute("SELECT gin_clean_pending_list('word_words')", &[])?;
        // The map of pages that all may see makes counting along an index cheap.
        for table in ["entry", "word", "sorting", "term", "ending"] {
            session.batch(&format!("VACUUM (ANALYZE) {table}"))?;
        }
        Ok(())
    }

    pub(super) fn all_digests(&self, book: &str) -> Result<Vec<(u32, [u8; 16])>> {
        self.read(|session| {
            let shelf = super::rows::shelf(session, book, false)?;
            let sql = "SELECT id, digest FROM imported AS known WHERE book = $1 AND NOT EXISTS \
                       (SELECT 1 FROM tombstone AS gone WHERE gone.book = known.book AND gone.id = known.id) ORDER BY id";
            let rows = session.query(sql, &[&shelf.num])?;
            let one = |row: &postgres::Row| {
                let id: u32 = number(row, 0)?;
                let digest = row.try_get::<_, &[u8]>(1)?.try_into();
                Ok((id, digest.map_err(|_| StoreError::Damaged(format!("entry {book}/{id}: its digest is none")))?))
            };
            rows.iter().map(one).collect()
        })
    }
}

/// Whether an entry only has to be written: what it answers is here as it is in the source, and nothing else is to be thought of.
fn is_plain(imported: &Imported, threads: &HashMap<u32, Option<u32>>) -> bool {
    let Imported { id, entry, thread, draft, .. } = imported;
    let whole = match entry.parent {
        None => thread == id,
        Some(parent) if parent == *id => false,
        Some(parent) => match threads.get(&parent) {
            // Not here, or not yet.
            None => true,
            // Of a thread; or gone, or one that has to be looked at first.
            Some(known) => *known == Some(*thread),
        },
    };
    whole && draft.is_none() && (1..=MAX_ID).contains(id) && check_zone(entry.zone).is_ok()
}

impl Writing<'_> {
    /// The threads of what these entries answer; none where that is gone.
    fn threads(&self, shelf: &Shelf, entries: &[Imported]) -> Result<HashMap<u32, Option<u32>>> {
        let parents: Vec<i64> = entries.iter().filter_map(|imported| imported.entry.parent).map(i64::from).collect();
        let sql = "SELECT id, thread FROM entry WHERE book = $1 AND id = ANY($2) \
                   UNION ALL SELECT id, NULL FROM tombstone WHERE book = $1 AND id = ANY($2)";
        let rows = self.session.query(sql, &[&shelf.num, &parents])?;
        let one = |row: &postgres::Row| {
            let thread: Option<i64> = row.try_get(1)?;
            Ok((number(row, 0)?, thread.and_then(|thread| u32::try_from(thread).ok())))
        };
        rows.iter().map(one).collect()
    }

    /// The ids among these that are or were given.
    fn known_ids(&self, shelf: &Shelf, entries: &[Imported]) -> Result<HashSet<u32>> {
        let ids: Vec<i64> = entries.iter().map(|imported| i64::from(imported.id)).collect();
        let sql = "SELECT id FROM entry WHERE book = $1 AND id = ANY($2) UNION SELECT id FROM tombstone WHERE book = $1 AND id = ANY($2) \
                   UNION SELECT id FROM imported WHERE book = $1 AND id = ANY($2)";
        self.session.query(sql, &[&shelf.num, &ids])?.iter().map(|row| number(row, 0)).collect()
    }

    /// The last row that is taken in each of these seconds, each given by its first row.
    fn last_rows(&self, seconds: &[i64]) -> Result<HashMap<i64, i64>> {
        let sql = "SELECT first, last FROM unnest($1::bigint[]) AS seconds(first), \
                   LATERAL (SELECT max(row) AS last FROM entry WHERE row BETWEEN first AND first | 4095) AS taken WHERE last IS NOT NULL";
        let rows = self.session.query(sql, &[&seconds])?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Writes entries that are not there.
    fn add_all(&mut self, shelf: &mut Shelf, entries: Vec<Imported>, by: &str) -> Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let now = now();
        let date = |imported: &Imported| imported.entry.date.unwrap_or(now);
        let seconds: Vec<i64> = entries.iter().map(|imported| first_row(shelf.num, date(imported))).collect();
        let mut taken = self.last_rows(&seconds)?;
        let (mut rows, mut words, mut orders, mut revisions, mut imports) =
            (Copy::default(), Copy::default(), Copy::default(), Copy::default(), Copy::default());
        let (mut known, mut shas, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        let count = entries.len() as i64;
        for (imported, mut first) in entries.into_iter().zip(seconds) {
            let date = date(&imported);
            let Imported { id, entry: new, thread, digest, .. } = imported;
            new.content.check()?;
            shelf.next_id = shelf.next_id.max(id + 1);
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
            let content = canonical(&shelf.book, new.content);
            self.see_blobs(&content)?;
            let at = EntryRef::new(&shelf.book.name, id);
            let entry = Entry {
                at,
                date,
                zone: new.zone,
                by: by.to_owned(),
                revision: 0,
                changed: date,
                parent: new.parent,
                thread,
                content,
            };
            let mut written: Written = self.written(shelf, row, &entry)?;
            if written.known.iter().map(|word| word.len()).sum::<usize>() > MAX_ENDINGS {
                self.know(std::mem::take(&mut written.known), &mut written.words)?;
            }
            rows.number(row)
                .number(shelf.num)
                .number(id.into())
                .number(date.0)
                .number(entry.zone.into())
                .number(date.0)
                .number(0);
            match entry.parent {
                Some(parent) => rows.number(parent.into()),
                None => rows.nothing(),
            };
            rows.number(thread.into()).text(entry.content.encoding.name()).text(by).text(&json(&entry.content.attributes)?);
            rows.text(&json(&entry.content.attachments)?)
                .text(&json(&entry.content.links)?)
                .text(&kept(&entry.content.text)?)
                .end();
            words.number(row).numbers(&written.words).end();
            for (attribute, key) in written.keys.0.iter().zip(&written.keys.1) {
                orders.number(*attribute).number(shelf.num).text(key).number(row).end();
            }
            revisions
                .number(shelf.num)
                .number(id.into())
                .number(0)
                .number(now.0)
                .text(by)
                .text(&json(&Change::Imported)?)
                .nothing()
                .end();
            imports.number(shelf.num).number(id.into()).bytes(&digest).number(0).end();
            owners.extend(written.shas.iter().map(|_| i64::from(id)));
            shas.extend(written.shas);
            known.extend(written.known);
            self.changes.push((shelf.num, id, Change::Imported));
        }
        self.learned.extend(self.inner.learn(known, usize::MAX)?.0);
        for (table, lines) in
            [("entry", rows), ("word", words), ("sorting", orders), ("revision", revisions), ("imported", imports)]
        {
            self.session.copy_in(&format!("COPY {table} FROM STDIN"), &lines.0)?;
        }
        let sql = "INSERT INTO attached SELECT sha, $3, id FROM unnest($1::text[], $2::bigint[]) AS new(sha, id) ON CONFLICT DO NOTHING";
        self.session.execute(sql, &[&shas, &owners, &shelf.num])?;
        self.count(shelf.num, count)
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
