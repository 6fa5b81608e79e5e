//! A directory that is filled with what another store has, row by row; nothing of it is there before all of it is.

use std::{
    collections::HashSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, TransactionBehavior, params, params_from_iter, types::Value};

use super::{Result, StoreError, Writing, connect, migrate};
use crate::{
    attachment::{Blobs, Sha},
    entry::Entry,
    store::shelf::{Shelf, json},
};

/// KiB of the database that are kept in memory meanwhile.
const CACHE: i64 = 64 * 1024;

/// What both databases have, with the same columns: numbers, texts, bytes.
pub const TABLES: [(&str, &str); 9] = [
    ("attribute", "num, folded"),
    ("tombstone", "book, id, gone, by, to_book, to_id"),
    ("revision", "book, id, number, at, by, what, content"),
    ("attached", "sha, book, id"),
    ("lock", "book, id, by, host, since, until"),
    ("draft", "number, owner, saved, draft"),
    ("saved_search", "owner, name, query"),
    ("imported", "book, id, digest, revision"),
    ("record", "kind, name, version, value"),
];

/// Makes a directory for a copy and opens its attachments, if nobody uses it.
fn free_attachments(dir: &Path) -> Result<Blobs> {
    let io = |error| StoreError::Io { path: dir.to_owned(), error };
    fs::create_dir_all(dir).map_err(io)?;
    let blobs = Blobs::open(&dir.join("attachments"), |_| Ok(true)).map_err(io)?;
    if !blobs.is_alone() {
        let why = "it is in use: a process has these logbooks open; a backup would take them away under it";
        return Err(StoreError::Directory { path: dir.to_owned(), why: why.to_owned() });
    }
    Ok(blobs)
}

/// The directory.
pub struct Fill {
    dir: PathBuf,
    partial: PathBuf,
    db: Connection,
    known: HashSet<Box<str>>,
    blobs: Blobs,
}

impl Fill {
    /// Begins; what a broken attempt left goes.
    pub fn begin(dir: &Path) -> Result<Fill> {
        let blobs = free_attachments(dir)?;
        let partial = dir.join("book.db.partial");
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(dir.join(format!("book.db.partial{end}")));
        }
        let mut db = connect(&partial, CACHE, true)?;
        migrate(&mut db, dir)?;
        Ok(Fill { dir: dir.to_owned(), partial, db, known: HashSet::new(), blobs })
    }

    /// A book.
    pub fn book(&self, shelf: &Shelf) -> Result<()> {
        let sql = "INSERT INTO book(num, name, folded, settings, next_id, entries) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (name, settings) = (&shelf.book.name, json(&shelf.book)?);
        self.db.execute(sql, params![shelf.num, name, name.to_lowercase(), settings, shelf.next_id, shelf.entries as i64])?;
        Ok(())
    }

    /// Entries of a book, with their index.
    pub fn entries(&mut self, shelf: &Shelf, entries: &[(i64, Entry)]) -> Result<()> {
        let db = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut writing = Writing { db, known: &mut self.known, blobs: &self.blobs, marks: Vec::new() };
        for (row, entry) in entries {
            writing.write_entry(shelf, *row, entry)?;
        }
        writing.db.commit()?;
        Ok(())
    }

    /// Rows of one of [`TABLES`].
    pub fn rows(&mut self, table: &str, columns: &str, rows: Vec<Vec<Value>>) -> Result<()> {
        let places = vec!["?"; columns.split(',').count()].join(", ");
        let db = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = db.prepare_cached(&format!("INSERT OR IGNORE INTO {table}({columns}) VALUES ({places})"))?;
            for row in rows {
                insert.execute(params_from_iter(row))?;
            }
        }
        db.commit()?;
        Ok(())
    }

    /// A blob, unless it is there.
    pub fn blob(&self, sha: &Sha, from: &mut dyn Read) -> Result<()> {
        let path = self.blobs.path(sha);
        if path.exists() {
            return Ok(());
        }
        self.blobs.keep(sha, from).map_err(|error| StoreError::Io { path, error })
    }

    /// All is there: the directory is one that can be opened.
    pub fn finish(self) -> Result<()> {
        self.db.execute_batch("INSERT INTO words(words) VALUES ('optimize'); ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
        self.db.close().map_err(|(_, error)| error)?;
        // What an end without notice left of the database that was there would be taken for the new one's.
        for rest in ["book.db-wal", "book.db-shm"] {
            let _ = fs::remove_file(self.dir.join(rest));
        }
        let target = self.dir.join("book.db");
        fs::rename(&self.partial, &target).map_err(|error| StoreError::Io { path: target, error })
    }
}
