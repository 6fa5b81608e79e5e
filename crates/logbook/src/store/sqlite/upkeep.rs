//! Maintenance: the check of all data against each other, and the backup during writes.

use std::{collections::HashSet, fs, path::Path};

use rusqlite::{Connection, backup::Backup, backup::StepResult};

use super::{
    Result, SqliteStore, StoreError, migrate,
    rows::{all_book_rows, load},
};
use crate::{
    attachment::{Blobs, Sha},
    entry::EntryRef,
    query::candidates::id_tag,
    store::{
        Maintenance, Progress,
        book_row::{BookRow, book_of, first_row},
        naming::DeletedBook,
        purge::{Purge, Purged},
        quota::{Quota, UsedSpace},
    },
};

/// Maximum number of reported faults.
const MAX_FAULTS: usize = 1000;
/// Pages copied at a time.
const PAGES: i32 = 1000;

impl SqliteStore {
    /// Returns whether a blob exists to which no entry refers. During writes, a blob may be newer than the snapshot, or
    /// part of an open transaction. Such a blob is marked until its transaction is committed, so the mark is checked
    /// first.
    fn belongs_to_nobody(&self, sha: &Sha) -> Result<bool> {
        if self.blobs.is_marked(sha).map_err(|error| self.io(error))? {
            return Ok(false);
        }
        let referred =
            self.read(|db| Ok(db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1")?.exists([sha.as_str()])?))?;
        Ok(!referred && self.blobs.path(sha).exists())
    }

    /// Opens the attachments of a copy's directory, unless a process uses it.
    fn target_of_copy(&self, to: &Path) -> Result<Blobs> {
        let io = |error| StoreError::Io { path: to.to_owned(), error };
        let refuse = |why: &str| Err(StoreError::Directory { path: to.to_owned(), why: why.to_owned() });
        fs::create_dir_all(to).map_err(io)?;
        let (own, target) = (fs::canonicalize(&self.dir).map_err(io)?, fs::canonicalize(to).map_err(io)?);
        if target.starts_with(&own) {
            return refuse("it is the logbooks' own directory, or in it; a backup goes elsewhere");
        }
        let blobs = Blobs::open(&to.join("attachments"), |_| Ok(true)).map_err(io)?;
        if !blobs.is_alone() {
            return refuse("it is in use: a process has these logbooks open");
        }
        Ok(blobs)
    }
}

impl Maintenance for SqliteStore {
    fn check(&self, progress: Progress<'_>) -> Result<Vec<String>> {
        let reader = self.searchers.get()?;
        let db = reader.unchecked_transaction()?;
        let mut faults: Vec<String> = Vec::new();
        {
            let mut check = db.prepare("PRAGMA integrity_check")?;
            let lines = check.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
            faults.extend(lines.into_iter().filter(|line| line != "ok").map(|line| format!("database: {line}")));
        }
        let book_rows = all_book_rows(&db)?;
        let total = book_rows.iter().map(|book_row| book_row.entries).sum::<u64>() * 2;
        let mut done = 0;
        for book_row in &book_rows {
            check_book(&db, book_row, &mut faults, &mut |so_far| progress(done + so_far, total))?;
            done += book_row.entries;
        }
        let indexed: i64 = db.query_row("SELECT count(*) FROM words_docsize", [], |row| row.get(0))?;
        let entries: i64 = db.query_row("SELECT count(*) FROM entry", [], |row| row.get(0))?;
        if indexed != entries {
            faults.push(format!("index: it has {indexed} entries, there are {entries}"));
        }
        let sql =
            "SELECT book, by, count(*), sum(size) FROM attached GROUP BY book, by EXCEPT SELECT book, by, files, bytes FROM used";
        if db.prepare(sql)?.exists([])? {
            faults.push("the space of files: the sums by logbook and user are not those of the files".to_owned());
        }
        let mut query = db.prepare("SELECT DISTINCT sha FROM attached")?;
        let referred = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<HashSet<_>>>()?;
        let there = self.blobs.list().map_err(|error| self.io(error))?;
        for sha in &there {
            if !referred.contains(sha.as_str()) && self.belongs_to_nobody(sha)? {
                faults.push(format!("attachment {}: no entry has it", sha.as_str()));
            }
        }
        let there: HashSet<&str> = there.iter().map(Sha::as_str).collect();
        for sha in &referred {
            match Sha::try_from(sha.clone()) {
                Ok(sha) if there.contains(sha.as_str()) => {
                    if !self.blobs.is_whole(&sha).map_err(|error| self.io(error))? {
                        faults.push(format!("attachment {}: its bytes do not match its SHA-256", sha.as_str()));
                    }
                }
                _ => faults.push(format!("attachment {sha}: its file is not there")),
            }
            done += 1;
            if !progress(done, total.max(done)) {
                break;
            }
        }
        faults.truncate(MAX_FAULTS);
        Ok(faults)
    }

    fn purge(&self, at: &EntryRef, purge: &Purge, by: &str) -> Result<Purged> {
        self.purge_entry(at, purge, by)
    }

    fn purge_book(&self, number: u32, reason: &str, by: &str) -> Result<DeletedBook> {
        self.purge_whole_book(number, reason, by)
    }

    fn set_quota(&self, quota: Quota) {
        *self.quota.lock() = quota;
    }

    fn used_space(&self) -> Result<Vec<UsedSpace>> {
        self.used_by_all()
    }

    fn backup(&self, to: &Path, progress: Progress<'_>) -> Result<()> {
        let io = |path: &Path, error| StoreError::Io { path: path.to_owned(), error };
        let target = self.target_of_copy(to)?;
        let (final_name, partial) = (to.join("book.db"), to.join("book.db.partial"));
        // The database first: only a purge removes blobs, so the others it refers to still exist afterwards.
        let reader = self.searchers.get()?;
        let _ = fs::remove_file(&partial);
        let mut copy = Connection::open(&partial)?;
        {
            let backup = Backup::new(&reader, &mut copy)?;
            // One snapshot from beginning to end, so that a writer does not restart it.
            let snapshot = reader.unchecked_transaction()?;
            snapshot.query_row("SELECT count(*) FROM book", [], |_| Ok(()))?;
            while backup.step(PAGES)? != StepResult::Done {
                let now = backup.progress();
                let (all, left) = (now.pagecount.max(0) as u64, now.remaining.max(0) as u64);
                if !progress(all - left.min(all), all * 2) {
                    drop(fs::remove_file(&partial));
                    return Err(StoreError::Full("the backup was ended before it was complete".to_owned()));
                }
            }
        }
        migrate(&mut copy, to)?;
        let mut query = copy.prepare("SELECT DISTINCT sha FROM attached")?;
        let referred = query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
        drop(query);
        let total = referred.len() as u64;
        for (at, sha) in referred.into_iter().enumerate() {
            let sha = Sha::try_from(sha).map_err(|error| StoreError::Damaged(error.to_string()))?;
            self.blobs.copy(&sha, &target).map_err(|error| io(&self.blobs.path(&sha), error))?;
            if !progress(total + at as u64, total * 2) {
                return Err(StoreError::Full("the backup was ended before it was complete".to_owned()));
            }
        }
        copy.close().map_err(|(_, error)| error)?;
        self.keys.copy_public(to)?;
        // After a crash, these files of the old database may remain; SQLite would use them for the new one.
        for rest in ["book.db-wal", "book.db-shm"] {
            match fs::remove_file(to.join(rest)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(&to.join(rest), error)),
                _ => {}
            }
        }
        fs::rename(&partial, &final_name).map_err(|error| io(&final_name, error))
    }
}

fn check_book(db: &Connection, book_row: &BookRow, faults: &mut Vec<String>, go_on: &mut dyn FnMut(u64) -> bool) -> Result<()> {
    let name = &book_row.book.name;
    let mut rows = db.prepare("SELECT row FROM entry WHERE book = ?1 ORDER BY row")?;
    let rows = rows.query_map([book_row.num], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    if rows.len() as u64 != book_row.entries {
        faults.push(format!("logbook '{name}': it has {} entries, and counts {}", rows.len(), book_row.entries));
    }
    let mut indexed = db.prepare("SELECT 1 FROM words WHERE rowid = ?1 AND words MATCH ?2")?;
    let mut sorted = db.prepare("SELECT count(*) FROM sorting WHERE attribute = ?1 AND book = ?2")?;
    let mut parent = db.prepare("SELECT thread FROM entry WHERE book = ?1 AND id = ?2")?;
    for attribute in &book_row.book.attributes {
        let number = super::index::known_number(db, &attribute.name.to_lowercase())?;
        let keys: i64 = sorted.query_row(rusqlite::params![number, book_row.num], |row| row.get(0))?;
        if keys as u64 != rows.len() as u64 {
            faults.push(format!("logbook '{name}': the order by '{}' has {keys} entries, not {}", attribute.name, rows.len()));
        }
    }
    let sql = "SELECT count(*) FROM (SELECT thread AS head, max(row) AS newest FROM entry WHERE book = ?1 GROUP BY thread) AS real \
               LEFT JOIN thread ON thread.book = ?1 AND thread.head = real.head WHERE thread.newest IS NOT real.newest";
    let wrong: i64 = db.query_row(sql, [book_row.num], |row| row.get(0))?;
    if wrong > 0 {
        faults.push(format!("logbook '{name}': the order of threads has {wrong} of them at the wrong place"));
    }
    for (at, &row) in rows.iter().enumerate() {
        let entry = match load(db, name, row, true) {
            Ok(Some(entry)) => entry,
            Ok(None) => continue,
            Err(error) => {
                faults.push(error.to_string());
                continue;
            }
        };
        if book_of(row) != book_row.num || row < first_row(book_row.num, entry.date) {
            faults.push(format!("entry {}: it is not at the place of its date", entry.at));
        }
        if entry.at.id >= book_row.next_id {
            faults.push(format!("entry {}: its id could be used again", entry.at));
        }
        if !indexed.exists(rusqlite::params![row, format!("tags : \"{}\"", id_tag(entry.at.id))])? {
            faults.push(format!("entry {}: the index does not have it", entry.at));
        }
        if let Some(up) = entry.parent {
            let thread = parent.query_map(rusqlite::params![book_row.num, up], |row| row.get::<_, u32>(0))?.next().transpose()?;
            if thread != Some(entry.thread) {
                faults.push(format!("entry {}: its parent, {up}, is not in its thread", entry.at));
            }
        }
        if faults.len() >= MAX_FAULTS || at % 100 == 0 && !go_on(at as u64) {
            break;
        }
    }
    Ok(())
}
