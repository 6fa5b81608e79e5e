//! Writes a directory with the contents of another store, row by row. The directory is complete or has no database.

use std::{
    collections::HashSet,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, TransactionBehavior, params, params_from_iter, types::Value};

use super::{Result, SqliteTransaction, StoreError, connect, migrate};
use crate::{
    attachment::{Blobs, Sha},
    entry::Entry,
    signature::keys::SigningKeys,
    store::{
        book_row::{BookRow, json},
        quota::Quota,
    },
};

/// KiB of the database's cache while the directory is written.
const CACHE: i64 = 64 * 1024;

/// The tables that both databases have with the same columns of numbers, texts and bytes.
pub const TABLES: [(&str, &str); 11] = [
    ("attribute", "num, folded"),
    ("tombstone", "book, id, gone, by, to_book, to_id"),
    ("revision", "book, id, number, at, by, what, content, note"),
    ("attached", "sha, book, id, by, size"),
    ("lock", "book, id, by, host, since, until"),
    ("draft", "number, owner, saved, draft"),
    ("saved_search", "owner, name, query"),
    ("look", "book, id, day, looks"),
    ("imported", "book, id, digest, revision"),
    ("record", "kind, name, version, value"),
    ("signature", "chain, number, book, id, record"),
];

/// Creates a directory for a copy and opens its attachments, unless a process uses it.
fn free_attachments(dir: &Path) -> Result<Blobs> {
    let io = |error| StoreError::Io { path: dir.to_owned(), error };
    fs::create_dir_all(dir).map_err(io)?;
    let blobs = Blobs::open(&dir.join("attachments"), |_| Ok(true)).map_err(io)?;
    if !blobs.is_alone() {
        let why = "it is in use: a process has these logbooks open";
        return Err(StoreError::Directory { path: dir.to_owned(), why: why.to_owned() });
    }
    Ok(blobs)
}

/// A directory that is being written.
pub struct DirectoryWriter {
    dir: PathBuf,
    partial: PathBuf,
    db: Connection,
    known: HashSet<Box<str>>,
    blobs: Blobs,
    /// No key: a copy has the signatures of its source.
    keys: SigningKeys,
}

impl DirectoryWriter {
    /// Begins a directory, and removes the remains of a failed attempt.
    pub fn begin(dir: &Path) -> Result<DirectoryWriter> {
        let blobs = free_attachments(dir)?;
        let partial = dir.join("book.db.partial");
        for end in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(dir.join(format!("book.db.partial{end}")));
        }
        let mut db = connect(&partial, CACHE, true)?;
        migrate(&mut db, dir)?;
        Ok(DirectoryWriter { dir: dir.to_owned(), partial, db, known: HashSet::new(), blobs, keys: SigningKeys::default() })
    }

    /// Writes a book's row.
    pub fn book(&self, book_row: &BookRow) -> Result<()> {
        let sql = "INSERT INTO book(num, name, folded, settings, next_id, entries) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let (name, settings) = (&book_row.book.name, json(&book_row.book)?);
        self.db.execute(
            sql,
            params![book_row.num, name, name.to_lowercase(), settings, book_row.next_id, book_row.entries as i64],
        )?;
        Ok(())
    }

    /// Writes entries of a book, with their index.
    pub fn entries(&mut self, book_row: &BookRow, entries: &[(i64, Entry)]) -> Result<()> {
        let db = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut writing = SqliteTransaction {
            db,
            known: &mut self.known,
            blobs: &self.blobs,
            marks: Vec::new(),
            unused: Vec::new(),
            quota: Quota::default(),
            keys: &self.keys,
        };
        for (row, entry) in entries {
            writing.write_entry(book_row, *row, entry)?;
        }
        writing.db.commit()?;
        Ok(())
    }

    /// Writes rows of one of [`TABLES`].
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

    /// Writes a blob, unless it exists.
    pub fn blob(&self, sha: &Sha, from: &mut dyn Read) -> Result<()> {
        let path = self.blobs.path(sha);
        if path.exists() {
            return Ok(());
        }
        self.blobs.keep(sha, from).map_err(|error| StoreError::Io { path, error })
    }

    /// Completes the directory, so that it can be opened.
    pub fn finish(self) -> Result<()> {
        self.db.execute_batch("INSERT INTO words(words) VALUES ('optimize'); ANALYZE; PRAGMA wal_checkpoint(TRUNCATE)")?;
        self.db.close().map_err(|(_, error)| error)?;
        // After a crash, these files of the old database may remain; SQLite would use them for the new one.
        for rest in ["book.db-wal", "book.db-shm"] {
            let _ = fs::remove_file(self.dir.join(rest));
        }
        let target = self.dir.join("book.db");
        fs::rename(&self.partial, &target).map_err(|error| StoreError::Io { path: target, error })
    }
}
