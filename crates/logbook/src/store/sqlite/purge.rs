//! Purges in SQLite: they also remove what SQLite leaves behind in free space, in the index and in the write-ahead log.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rusqlite::{Connection, OptionalExtension, params};

use super::{Result, SqliteStore, SqliteTransaction, StoreError, connect};
use crate::{
    attachment::{Mark, Sha},
    entry::{Content, Draft, EntryRef},
    query::candidates::{ATTACHMENTS, BY, LINKS, tag},
    store::{
        book_row::{damaged, json},
        naming::{DeletedBook, Naming},
        purge::{Purge, PurgeEntry, PurgeTables, Purged},
    },
};

/// Cache of the connection that overwrites free space, in KiB.
const CACHE: i64 = 64 * 1024;
/// Longest wait for searches and other readers that began before a purge, because the write-ahead log is kept for them.
const READERS: Duration = Duration::from_secs(60);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

impl SqliteStore {
    /// Purges an entry or a part of it.
    pub(super) fn purge_entry(&self, at: &EntryRef, purge: &Purge, by: &str) -> Result<Purged> {
        self.purge_with(|writing| PurgeEntry::purge(writing, at, purge, by))
    }

    /// Runs a purge, and removes what it leaves in the files.
    fn purge_with<T>(&self, act: impl FnOnce(&mut SqliteTransaction<'_>) -> Result<T>) -> Result<T> {
        let (purged, unused) = self.write(|writing| {
            let purged = act(writing)?;
            let mut unused = Vec::new();
            for sha in std::mem::take(&mut writing.unused) {
                // A start after a crash removes a marked file that no entry has.
                unused.push(self.blobs.mark(&sha).map_err(|error| self.io(error))?);
            }
            Ok((purged, unused))
        })?;
        self.drop_unused(unused)?;
        self.overwrite()?;
        Ok(purged)
    }

    /// Purges a deleted book.
    pub(super) fn purge_whole_book(&self, number: u32, reason: &str, by: &str) -> Result<DeletedBook> {
        self.purge_with(|writing| Naming::purge_book(writing, number, reason, by))
    }

    /// Removes the files that no entry has, while no post can begin to use them.
    fn drop_unused(&self, unused: Vec<Mark>) -> Result<()> {
        if unused.is_empty() {
            return Ok(());
        }
        self.write(|writing| {
            for mark in unused {
                let is_used = writing.db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1")?.exists([mark.sha.as_str()])?;
                self.blobs.take_back(mark.of_unused(), is_used);
            }
            Ok(())
        })
    }

    /// Writes the index and the database anew without what was deleted, and empties the write-ahead log.
    fn overwrite(&self) -> Result<()> {
        let db = connect(&self.dir.join("book.db"), CACHE, true)?;
        // The copy of the database that SQLite makes meanwhile does not fit into memory.
        db.pragma_update(None, "temp_store", "FILE")?;
        db.execute_batch("INSERT INTO words(words) VALUES ('optimize'); VACUUM")?;
        let until = Instant::now() + READERS;
        while !is_log_empty(&db)? {
            if Instant::now() >= until {
                return Err(StoreError::Full(format!(
                    "the entry is purged, but {} still has its text for searches that began before; purge it again later",
                    self.dir.join("book.db-wal").display()
                )));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

/// Empties the write-ahead log; returns whether that was possible.
fn is_log_empty(db: &Connection) -> Result<bool> {
    Ok(db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))? == 0)
}

impl PurgeTables for SqliteTransaction<'_> {
    fn lock_all(&mut self) -> Result<()> {
        // One transaction writes at a time.
        Ok(())
    }

    fn revision_numbers(&mut self, num: i64, id: u32) -> Result<Vec<u32>> {
        let mut query = self.db.prepare_cached("SELECT number FROM revision WHERE book = ?1 AND id = ?2 ORDER BY number")?;
        Ok(query.query_map(params![num, id], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
    }

    fn stored_content(&mut self, num: i64, id: u32, number: u32) -> Result<Option<Content>> {
        let sql = "SELECT content FROM revision WHERE book = ?1 AND id = ?2 AND number = ?3";
        let found = self.db.prepare_cached(sql)?.query_row(params![num, id, number], |row| row.get::<_, Option<String>>(0));
        let text = found.optional()?.flatten();
        text.map(|text| serde_json::from_str(&text).map_err(|error| damaged("", id, error))).transpose()
    }

    fn set_content(&mut self, num: i64, id: u32, number: u32, content: &Content) -> Result<()> {
        let sql = "UPDATE revision SET content = ?4 WHERE book = ?1 AND id = ?2 AND number = ?3";
        self.db.prepare_cached(sql)?.execute(params![num, id, number, json(content)?])?;
        Ok(())
    }

    fn add_note(&mut self, num: i64, id: u32, number: u32, note: &str) -> Result<()> {
        let sql = "UPDATE revision SET note = coalesce(note || '; ', '') || ?4 WHERE book = ?1 AND id = ?2 AND number = ?3";
        self.db.prepare_cached(sql)?.execute(params![num, id, number, note])?;
        Ok(())
    }

    fn drafts_about(&mut self, id: u32) -> Result<Vec<Draft>> {
        let sql = "SELECT number, draft FROM draft WHERE draft LIKE ?1 OR draft LIKE ?2";
        let mut query = self.db.prepare_cached(sql)?;
        let (mut rows, mut found) = (query.query([format!("%\"edits\":{id}%"), format!("%\"parent\":{id}%")])?, Vec::new());
        while let Some(row) = rows.next()? {
            let number: i64 = row.get(0)?;
            let draft: Draft = serde_json::from_str(row.get_ref(1)?.as_str().unwrap_or_default())
                .map_err(|error| StoreError::Damaged(format!("draft {number}: {error}")))?;
            found.push(Draft { number, ..draft });
        }
        Ok(found)
    }

    fn change_draft(&mut self, number: i64, draft: Option<&Draft>) -> Result<()> {
        match draft {
            Some(draft) => self.db.execute("UPDATE draft SET draft = ?2 WHERE number = ?1", params![number, json(draft)?])?,
            None => self.db.execute("DELETE FROM draft WHERE number = ?1", [number])?,
        };
        Ok(())
    }

    fn unlearn(&mut self, words: &HashSet<Box<str>>) -> Result<()> {
        let mut scopes = vec![BY, ATTACHMENTS, LINKS];
        let mut query = self.db.prepare("SELECT num FROM attribute")?;
        scopes.extend(query.query_map([], |row| row.get::<_, u32>(0))?.collect::<rusqlite::Result<Vec<_>>>()?);
        let mut has = self.db.prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1")?;
        let mut term = self.db.prepare_cached("DELETE FROM term WHERE term = ?1")?;
        let mut ending = self.db.prepare_cached("DELETE FROM ending WHERE ending = ?1 AND term = ?2")?;
        for word in words {
            // Most words stand in the text of another entry, too.
            if has.exists([format!("{{text heads}} : \"{word}\"")])? {
                continue;
            }
            let tags: Vec<String> = scopes.iter().map(|scope| format!("tags : \"{}\"", tag(*scope, word))).collect();
            if has.exists([tags.join(" OR ")])? {
                continue;
            }
            self.known.remove(word);
            term.execute([word])?;
            for (at, _) in word.char_indices().skip(1) {
                ending.execute([&word[at..], word])?;
            }
        }
        Ok(())
    }

    fn unattach(&mut self, num: i64, id: u32, shas: &HashSet<Sha>) -> Result<Vec<Sha>> {
        // An entry that was moved is counted at its former places, too.
        let sql = "WITH RECURSIVE place(book, id) AS (VALUES (?1, ?2) UNION \
                   SELECT tombstone.book, tombstone.id FROM tombstone JOIN place ON to_book = place.book AND to_id = place.id) \
                   DELETE FROM attached WHERE sha = ?3 AND (book, id) IN (SELECT book, id FROM place)";
        let mut delete = self.db.prepare_cached(sql)?;
        let mut used = self.db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1")?;
        for sha in shas {
            delete.execute(params![num, id, sha.as_str()])?;
            if !used.exists([sha.as_str()])? {
                self.unused.push(sha.clone());
            }
        }
        Ok(self.unused.clone())
    }
}
