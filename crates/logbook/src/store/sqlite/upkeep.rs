//! Checking everything against itself, and copying it while others write.

use std::{collections::HashSet, fs, path::Path};

use rusqlite::{Connection, backup::Backup, backup::StepResult};

use super::{
    Result, SqliteStore, StoreError, migrate,
    rows::{load, shelves},
};
use crate::{
    attachment::{Blobs, Sha},
    query::candidates::id_tag,
    store::{
        Progress,
        shelf::{Shelf, book_of, first_row},
    },
};

/// Faults that are told one by one.
const MAX_FAULTS: usize = 1000;
/// Pages copied at a time.
const PAGES: i32 = 1000;

impl SqliteStore {
    pub(super) fn find_faults(&self, progress: Progress<'_>) -> Result<Vec<String>> {
        let reader = self.searchers.get()?;
        let db = reader.unchecked_transaction()?;
        let mut faults: Vec<String> = Vec::new();
        {
            let mut check = db.prepare("PRAGMA integrity_check")?;
            let lines = check.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
            faults.extend(lines.into_iter().filter(|line| line != "ok").map(|line| format!("database: {line}")));
        }
        let shelves = shelves(&db)?;
        let total = shelves.iter().map(|shelf| shelf.entries).sum::<u64>() * 2;
        let mut done = 0;
        for shelf in &shelves {
            check_book(&db, shelf, &mut faults, &mut |so_far| progress(done + so_far, total))?;
            done += shelf.entries;
        }
        let indexed: i64 = db.query_row("SELECT count(*) FROM words_docsize", [], |row| row.get(0))?;
        let entries: i64 = db.query_row("SELECT count(*) FROM entry", [], |row| row.get(0))?;
        if indexed != entries {
            faults.push(format!("index: it has {indexed} entries, there are {entries}"));
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
                        faults.push(format!("attachment {}: its bytes are not what its name says", sha.as_str()));
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

    /// Whether a blob is still there though nobody refers to it. Others write meanwhile: it may have come after the snapshot, or may be about
    /// to be referred to. It is marked until its transaction is committed, so that the mark is looked at first.
    fn belongs_to_nobody(&self, sha: &Sha) -> Result<bool> {
        if self.blobs.is_marked(sha).map_err(|error| self.io(error))? {
            return Ok(false);
        }
        let referred =
            self.read(|db| Ok(db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1")?.exists([sha.as_str()])?))?;
        Ok(!referred && self.blobs.path(sha).exists())
    }

    /// Opens the attachments of a directory that a copy goes to, if nobody uses it.
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
            return refuse("it is in use: a process has these logbooks open; a backup would take them away under it");
        }
        Ok(blobs)
    }

    pub(super) fn copy_to(&self, to: &Path, progress: Progress<'_>) -> Result<()> {
        let io = |path: &Path, error| StoreError::Io { path: path.to_owned(), error };
        let target = self.target_of_copy(to)?;
        let (final_name, partial) = (to.join("book.db"), to.join("book.db.partial"));
        // The database first: blobs never go, so all it refers to is still there afterwards.
        let reader = self.searchers.get()?;
        let _ = fs::remove_file(&partial);
        let mut copy = Connection::open(&partial)?;
        {
            let backup = Backup::new(&reader, &mut copy)?;
            // One snapshot from beginning to end, so that a writer does not make it begin again.
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
        // What an end without notice left of the database that was there would be taken for the new one's.
        for rest in ["book.db-wal", "book.db-shm"] {
            match fs::remove_file(to.join(rest)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(io(&to.join(rest), error)),
                _ => {}
            }
        }
        fs::rename(&partial, &final_name).map_err(|error| io(&final_name, error))
    }
}

fn check_book(db: &Connection, shelf: &Shelf, faults: &mut Vec<String>, go_on: &mut dyn FnMut(u64) -> bool) -> Result<()> {
    let name = &shelf.book.name;
    let mut rows = db.prepare("SELECT row FROM entry WHERE book = ?1 ORDER BY row")?;
    let rows = rows.query_map([shelf.num], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    if rows.len() as u64 != shelf.entries {
        faults.push(format!("logbook '{name}': it has {} entries, and counts {}", rows.len(), shelf.entries));
    }
    let mut indexed = db.prepare("SELECT 1 FROM words WHERE rowid = ?1 AND words MATCH ?2")?;
    let mut sorted = db.prepare("SELECT count(*) FROM sorting WHERE attribute = ?1 AND book = ?2")?;
    let mut parent = db.prepare("SELECT thread FROM entry WHERE book = ?1 AND id = ?2")?;
    for attribute in &shelf.book.attributes {
        let number = super::index::known_number(db, &attribute.name.to_lowercase())?;
        let keys: i64 = sorted.query_row(rusqlite::params![number, shelf.num], |row| row.get(0))?;
        if keys as u64 != rows.len() as u64 {
            faults.push(format!("logbook '{name}': the order by '{}' has {keys} entries, not {}", attribute.name, rows.len()));
        }
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
        if book_of(row) != shelf.num || row < first_row(shelf.num, entry.date) {
            faults.push(format!("entry {}: it is not at the place of its date", entry.at));
        }
        if entry.at.id >= shelf.next_id {
            faults.push(format!("entry {}: its id could be given once more", entry.at));
        }
        if !indexed.exists(rusqlite::params![row, format!("tags : \"{}\"", id_tag(entry.at.id))])? {
            faults.push(format!("entry {}: the index does not have it", entry.at));
        }
        if let Some(up) = entry.parent {
            let thread = parent.query_map(rusqlite::params![shelf.num, up], |row| row.get::<_, u32>(0))?.next().transpose()?;
            if thread != Some(entry.thread) {
                faults.push(format!("entry {}: what it answers, {up}, is not in its thread", entry.at));
            }
        }
        if faults.len() >= MAX_FAULTS || at % 100 == 0 && !go_on(at as u64) {
            break;
        }
    }
    Ok(())
}
