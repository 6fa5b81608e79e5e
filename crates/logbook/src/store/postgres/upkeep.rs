//! Maintenance: the check of all data against each other.

use std::{collections::HashMap, io::Read, path::Path};

use sha2::{Digest, Sha256};

use super::{
    PostgresStore,
    rows::{all_book_rows, known_number, load, number},
    session::Session,
    sha,
    tables::PostgresTransaction,
    tokens::of_tag,
};
use crate::{
    attachment::{Sha, hex},
    entry::{Entry, EntryRef},
    query::candidates::UNLEARNED,
    store::{
        Attachments, Maintenance, Progress, Result, StoreError,
        book_row::{BookRow, book_of, first_row, rows_of},
        naming::DeletedBook,
        purge::{Purge, Purged},
        quota::{Quota, UsedSpace},
    },
};

/// Maximum number of reported faults.
const MAX_FAULTS: usize = 1000;
/// Entries that are checked at a time.
const TOGETHER: i64 = 500;

impl Maintenance for PostgresStore {
    fn check(&self, progress: Progress<'_>) -> Result<Vec<String>> {
        let session = self.0.searchers.get()?;
        session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let found = self.faults(&session, progress);
        let _ = session.batch("ROLLBACK");
        found
    }

    fn purge(&self, at: &EntryRef, purge: &Purge, by: &str) -> Result<Purged> {
        self.purge_entry(at, purge, by)
    }

    fn purge_book(&self, number: u32, reason: &str, by: &str) -> Result<DeletedBook> {
        self.purge_whole_book(number, reason, by)
    }

    fn set_quota(&self, quota: Quota) {
        *self.0.quota.lock() = quota;
    }

    fn used_space(&self) -> Result<Vec<UsedSpace>> {
        self.used_by_all()
    }

    fn backup(&self, to: &Path, progress: Progress<'_>) -> Result<()> {
        self.copy_to(to, progress)
    }
}

impl PostgresStore {
    fn faults(&self, session: &Session, progress: Progress<'_>) -> Result<Vec<String>> {
        let mut faults = Vec::new();
        let book_rows = all_book_rows(session)?;
        let blobs = session.query("SELECT sha, size FROM blob ORDER BY sha", &[])?;
        let total = book_rows.iter().map(|book_row| book_row.entries).sum::<u64>() + blobs.len() as u64;
        let mut done = 0;
        for book_row in &book_rows {
            self.check_book(session, book_row, &mut faults, &mut |so_far| progress(done + so_far, total))?;
            done += book_row.entries;
        }
        let counts = session.one("SELECT (SELECT count(*) FROM word), (SELECT count(*) FROM entry)", &[])?;
        if let Some(row) = counts {
            let (indexed, entries): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
            if indexed != entries {
                faults.push(format!("index: it has {indexed} entries, there are {entries}"));
            }
        }
        let sql = "SELECT book, by, count(*), sum(size)::bigint FROM attached GROUP BY book, by EXCEPT SELECT book, by, files, bytes FROM used LIMIT 1";
        if session.one(sql, &[])?.is_some() {
            faults.push("the space of files: the sums by logbook and user are not those of the files".to_owned());
        }
        for row in session.query("SELECT DISTINCT sha FROM attached EXCEPT SELECT sha FROM blob", &[])? {
            faults.push(format!("attachment {}: its bytes are not there", row.try_get::<_, String>(0)?));
        }
        for row in session.query("SELECT sha FROM blob EXCEPT SELECT sha FROM attached", &[])? {
            faults.push(format!("attachment {}: no entry has it", row.try_get::<_, String>(0)?));
        }
        for row in &blobs {
            let (sha, size) = (sha(row.try_get(0)?)?, number(row, 1)?);
            if !self.is_whole(&sha, size)? {
                faults.push(format!("attachment {}: its bytes do not match its SHA-256", sha.as_str()));
            }
            done += 1;
            if !progress(done, total.max(done)) {
                break;
            }
        }
        faults.truncate(MAX_FAULTS);
        Ok(faults)
    }

    /// Returns whether a blob's bytes match the SHA-256 that is its name.
    fn is_whole(&self, sha: &Sha, size: u64) -> Result<bool> {
        let (mut from, mut hash, mut piece) = (self.attachment(sha)?, Sha256::new(), vec![0; 1 << 20]);
        let mut read_in_all = 0;
        loop {
            match from.read(&mut piece) {
                Ok(0) => return Ok(read_in_all == size && hex(&hash.finalize()) == sha.as_str()),
                Ok(read) => {
                    hash.update(&piece[..read]);
                    read_in_all += read as u64;
                }
                // A missing or short piece is a fault of the attachment; a lost server is not.
                Err(error) => match error.downcast::<StoreError>() {
                    Ok(lost @ StoreError::Lost(_)) => return Err(lost),
                    _ => return Ok(false),
                },
            }
        }
    }

    fn check_book(
        &self,
        session: &Session,
        book_row: &BookRow,
        faults: &mut Vec<String>,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<()> {
        let name = &book_row.book.name;
        let [mut first, end] = rows_of(book_row.num);
        let count = session.one("SELECT count(*) FROM entry WHERE book = $1", &[&book_row.num])?;
        let count: u64 = count.map_or(Ok(0), |row| number(&row, 0))?;
        if count != book_row.entries {
            faults.push(format!("logbook '{name}': it has {count} entries, and counts {}", book_row.entries));
        }
        for attribute in &book_row.book.attributes {
            let number_of = known_number(session, &attribute.name.to_lowercase())?.map(i64::from);
            let sql = "SELECT count(*) FROM sorting WHERE attribute = $1 AND book = $2";
            let keys = session.one(sql, &[&number_of, &book_row.num])?;
            let keys: u64 = keys.map_or(Ok(0), |row| number(&row, 0))?;
            if keys != count {
                faults.push(format!("logbook '{name}': the order by '{}' has {keys} entries, not {count}", attribute.name));
            }
        }
        let sql = "SELECT count(*) FROM (SELECT thread AS head, max(row) AS newest FROM entry WHERE book = $1 GROUP BY thread) AS real \
                   LEFT JOIN thread ON thread.book = $1 AND thread.head = real.head WHERE thread.newest IS DISTINCT FROM real.newest";
        let wrong: i64 = session.one(sql, &[&book_row.num])?.map_or(Ok(0), |row| row.try_get(0))?;
        if wrong > 0 {
            faults.push(format!("logbook '{name}': the order of threads has {wrong} of them at the wrong place"));
        }
        let mut looked = 0;
        loop {
            let sql = "SELECT row FROM entry WHERE row >= $1 AND row < $2 ORDER BY row LIMIT $3";
            let rows = session.query(sql, &[&first, &end, &TOGETHER])?;
            let rows = rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<Vec<i64>, _>>()?;
            let Some(last) = rows.last() else { return Ok(()) };
            first = last + 1;
            match load(session, name, &rows, true) {
                Ok(entries) => self.check_entries(session, book_row, &entries, faults)?,
                // One of the rows cannot be read: reads them one by one to find it.
                Err(StoreError::Damaged(_)) => {
                    for row in &rows {
                        match load(session, name, &[*row], true) {
                            Ok(entries) => self.check_entries(session, book_row, &entries, faults)?,
                            Err(StoreError::Damaged(why)) => faults.push(why),
                            Err(error) => return Err(error),
                        }
                    }
                }
                Err(error) => return Err(error),
            }
            looked += rows.len() as u64;
            if faults.len() >= MAX_FAULTS || !go_on(looked) {
                return Ok(());
            }
        }
    }

    fn check_entries(
        &self,
        session: &Session,
        book_row: &BookRow,
        entries: &[(i64, Entry)],
        faults: &mut Vec<String>,
    ) -> Result<()> {
        let rows: Vec<i64> = entries.iter().map(|(row, _)| *row).collect();
        let mut indexed: HashMap<i64, Vec<i64>> = HashMap::new();
        for row in session.query("SELECT row, words FROM word WHERE row = ANY($1)", &[&rows])? {
            indexed.insert(row.try_get(0)?, row.try_get(1)?);
        }
        let sql = "SELECT child.id FROM entry AS child LEFT JOIN entry AS parent ON parent.book = child.book AND parent.id = child.parent \
                   WHERE child.row = ANY($1) AND child.parent IS NOT NULL AND parent.thread IS DISTINCT FROM child.thread";
        for row in session.query(sql, &[&rows])? {
            let id: u32 = number(&row, 0)?;
            faults.push(format!("entry {}/{id}: its parent is not in its thread", book_row.book.name));
        }
        let (writing, unlearned) = (PostgresTransaction::new(session, &self.0), of_tag(UNLEARNED));
        let mut words: Vec<Box<str>> = Vec::new();
        for (row, entry) in entries {
            if book_of(*row) != book_row.num || *row < first_row(book_row.num, entry.date) {
                faults.push(format!("entry {}: it is not at the place of its date", entry.at));
            }
            if entry.at.id >= book_row.next_id {
                faults.push(format!("entry {}: its id could be used again", entry.at));
            }
            let written = writing.written(book_row, *row, entry)?;
            // An entry with too many words is marked, and its words need not be in the vocabulary.
            let mut has = indexed.remove(row).unwrap_or_default();
            let before = has.len();
            has.retain(|number| *number != unlearned);
            if has != written.words {
                faults.push(format!("entry {}: the index does not have it as it is", entry.at));
            }
            if has.len() == before {
                words.extend(written.known);
            }
        }
        words.sort_unstable();
        words.dedup();
        let words: Vec<&str> = words.iter().map(|word| &**word).collect();
        for row in session.query("SELECT word FROM unnest($1::text[]) AS said(word) EXCEPT SELECT term FROM term", &[&words])? {
            faults.push(format!("index: the vocabulary does not have '{}'", row.try_get::<_, String>(0)?));
        }
        Ok(())
    }
}
