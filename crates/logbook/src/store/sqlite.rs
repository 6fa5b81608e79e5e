//! The store built in: one SQLite database in WAL mode, and a directory of blobs beside it.
//!
//! ```text
//! book.db, book.db-wal, book.db-shm       entries, history, index
//! attachments/                            attachment.rs
//! ```
//! Words, phrases and tags are in an FTS5 index whose row numbers are places by date (`rows.rs`), so that the newest twenty of a
//! hundred thousand are as near as those of twenty, and a page is a range. The vocabulary is a table of its own: a word's endings, to find what is
//! inside words. The trigram tokenizer was rejected for that: at a million entries the lists of common trigrams are most of the
//! index, and intersecting them takes longer than a search may.
//!
//! One connection writes; [`SEARCHERS`] search and [`READERS`] read, each a snapshot of its own, so that a search never waits for a
//! post, nor an entry for a search. A post and its index are one transaction.

use std::{
    collections::HashSet,
    fs,
    ops::DerefMut,
    path::{Path, PathBuf},
    sync::{Condvar, Mutex},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::{
    Result, StoreError, now,
    pool::{Health, Pool, lock},
};
use crate::attachment::Blobs;

mod api;
mod desk;
pub(super) mod fill;
mod find;
mod import;
mod index;
mod journal;
pub(super) mod pour;
mod read;
mod records;
mod rows;
mod tables;
mod upkeep;

/// Connections that search at the same time: two a processor, this many at most. Further searches wait, who came first goes first.
pub const SEARCHERS: usize = 8;
/// Connections that read entries and lists at the same time, apart from those, so that nobody waits for a search to read one entry.
pub const READERS: usize = 4;
/// KiB of the database each reader keeps in memory, and the writer.
const READER_CACHE: i64 = 6 * 1024;
const WRITER_CACHE: i64 = 24 * 1024;
/// KiB of it while entries are imported.
const IMPORT_CACHE: i64 = 64 * 1024;
/// How long a writer waits for one of another process.
const BUSY: Duration = Duration::from_secs(30);
/// Words the writer remembers to be in the vocabulary; after that it forgets them all.
const KNOWN_WORDS: usize = 200_000;
/// The database's layout is changed by these, in order; `user_version` says how many have been done.
const MIGRATIONS: [&str; 3] =
    [include_str!("sqlite/schema.sql"), include_str!("sqlite/records.sql"), include_str!("sqlite/late.sql")];

/// Logbooks in a directory.
#[derive(Debug)]
pub struct SqliteStore {
    dir: PathBuf,
    blobs: Blobs,
    writer: Mutex<Writer>,
    readers: Pool<Connection>,
    searchers: Pool<Connection>,
    /// How often something was committed, and whoever waits for it.
    commits: (Mutex<u64>, Condvar),
}

#[derive(Debug)]
struct Writer {
    db: Connection,
    known: HashSet<Box<str>>,
}

fn connect(file: &Path, cache: i64, writes: bool) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
    let db = Connection::open_with_flags(file, flags)?;
    db.busy_timeout(BUSY)?;
    db.set_prepared_statement_cache_capacity(128);
    db.pragma_update(None, "cache_size", -cache)?;
    db.pragma_update(None, "temp_store", "MEMORY")?;
    if writes {
        db.pragma_update(None, "journal_mode", "WAL")?;
        // A post that was answered survives the loss of power.
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    } else {
        db.pragma_update(None, "query_only", true)?;
    }
    Ok(db)
}

impl SqliteStore {
    /// Opens the logbooks of a directory, and makes them where there are none.
    pub fn open(dir: &Path) -> Result<SqliteStore> {
        let io = |error| StoreError::Io { path: dir.to_owned(), error };
        fs::create_dir_all(dir).map_err(io)?;
        if let Some(kind) = network_file_system(dir) {
            let why = format!(
                "it is on {kind}, where processes do not surely share memory and locks, which SQLite's write-ahead log needs; \
                 use a local disk, and back up to where this is"
            );
            return Err(StoreError::Directory { path: dir.to_owned(), why });
        }
        let file = dir.join("book.db");
        let mut db = connect(&file, WRITER_CACHE, true)?;
        migrate(&mut db, dir)?;
        let referred = |sha: &crate::attachment::Sha| {
            let found =
                db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1").and_then(|mut query| query.exists([sha.as_str()]));
            found.map_err(std::io::Error::other)
        };
        let blobs = Blobs::open(&dir.join("attachments"), referred).map_err(io)?;
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let pool = |most| {
            let file = file.clone();
            Pool::new(most, move || connect(&file, READER_CACHE, false), |_| Health::Good)
        };
        let (searchers, readers) = (pool((2 * processors).min(SEARCHERS)), pool(READERS));
        let writer = Mutex::new(Writer { db, known: HashSet::new() });
        Ok(SqliteStore { dir: dir.to_owned(), blobs, writer, readers, searchers, commits: Default::default() })
    }

    /// The directory it is in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn io(&self, error: std::io::Error) -> StoreError {
        StoreError::Io { path: self.dir.clone(), error }
    }

    /// Does something in one transaction, which is committed if it succeeds.
    fn write<T>(&self, act: impl FnOnce(&mut Writing<'_>) -> Result<T>) -> Result<T> {
        let mut writer = lock(&self.writer);
        let Writer { db, known } = writer.deref_mut();
        if known.len() > KNOWN_WORDS {
            known.clear();
        }
        let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut writing = Writing { db, known, blobs: &self.blobs, marks: Vec::new() };
        match act(&mut writing).and_then(|value| writing.sync().map(|()| value)) {
            Ok(value) => writing.commit().map(|()| value).inspect(|_| self.tell_commit()),
            Err(error) => {
                writing.give_up();
                Err(error)
            }
        }
    }

    /// Reads a snapshot.
    fn read<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let reader = self.readers.get()?;
        let snapshot = reader.unchecked_transaction()?;
        let value = act(&snapshot)?;
        drop(snapshot);
        Ok(value)
    }
}

/// A transaction, what it made known, and the blobs it placed.
struct Writing<'a> {
    db: Transaction<'a>,
    known: &'a mut HashSet<Box<str>>,
    blobs: &'a Blobs,
    marks: Vec<crate::attachment::Mark>,
}

impl Writing<'_> {
    /// What the transaction refers to is durable before the transaction is.
    fn sync(&self) -> Result<()> {
        self.blobs.sync(&self.marks).map_err(|error| StoreError::Io { path: self.blobs.path_of_all().to_owned(), error })
    }

    fn commit(self) -> Result<()> {
        let Writing { db, known, blobs, marks } = self;
        if let Err(error) = db.commit() {
            // Whether it is durable is not known; the marks stay, and the next start looks.
            known.clear();
            return Err(error.into());
        }
        marks.into_iter().for_each(|mark| blobs.settle(mark));
        Ok(())
    }

    fn give_up(mut self) {
        self.known.clear();
        // While the transaction is open nobody else can begin to refer to these blobs.
        let own = std::mem::take(&mut self.marks);
        let _ = self.db.execute_batch("ROLLBACK; BEGIN IMMEDIATE");
        for mark in own {
            let referred = self.db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1");
            // Where it cannot be told, the blob stays and so does the mark, for the next start.
            if let Ok(referred) = referred.and_then(|mut query| query.exists([mark.sha.as_str()])) {
                self.blobs.take_back(mark, referred);
            }
        }
        let _ = self.db.rollback();
    }
}

fn migrate(db: &mut Connection, dir: &Path) -> Result<()> {
    let done: usize = db.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))?.try_into().unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        let why = format!("its database has layout {done}, of a later release; this one knows {}", MIGRATIONS.len());
        return Err(StoreError::Directory { path: dir.to_owned(), why });
    }
    for (at, step) in MIGRATIONS.iter().enumerate().skip(done) {
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have done it while this one waited.
        let is: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if is as usize == at {
            change.execute_batch(step)?;
            change.pragma_update(None, "user_version", at as i64 + 1)?;
            change.commit()?;
        }
    }
    Ok(())
}

/// What a directory is on, if that is no file system of this host alone.
pub(crate) fn network_file_system(dir: &Path) -> Option<&'static str> {
    rustix::fs::statfs(dir).ok().and_then(|found| network_kind(found.f_type as u64 & 0xffff_ffff))
}

/// By the numbers of statfs(2). What a program serves (FUSE) may come from anywhere: sshfs and the like cannot be told from local ones.
fn network_kind(number: u64) -> Option<&'static str> {
    Some(match number {
        0x6969 => "NFS",
        0x517b => "SMB",
        0xff53_4d42 => "CIFS",
        0xfe53_4d42 => "SMB2",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x0bd0_0bd0 => "Lustre",
        0x00c3_6400 => "Ceph",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x0102_1997 => "9P",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x2003_0528 => "OrangeFS",
        0xaad7_aaea => "PanFS",
        0x0116_1970 => "GFS2, which hosts share",
        0x7461_636f => "OCFS2, which hosts share",
        0x786f_4256 => "VirtualBox's shared folders",
        0xbacb_acbc => "VMware's shared folders",
        0x6573_5546 => "FUSE, a file system that a program serves",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        for (number, kind) in [(0x6969, "NFS"), (0xff53_4d42, "CIFS"), (0x0102_1997, "9P"), (0x6573_5546, "FUSE")] {
            assert!(network_kind(number).is_some_and(|known| known.starts_with(kind)), "{kind}");
        }
        for (number, local) in
            [(0xef53, "ext4"), (0x5846_5342, "XFS"), (0x9123_683e, "btrfs"), (0x0102_1994, "tmpfs"), (0x794c_7630, "overlay")]
        {
            assert_eq!(network_kind(number), None, "{local}");
        }
        assert_eq!(network_file_system(Path::new("/proc")), None);
    }

    #[test]
    fn a_database_of_a_later_release_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        drop(SqliteStore::open(dir.path()).unwrap());
        let db = Connection::open(dir.path().join("book.db")).unwrap();
        db.pragma_update(None, "user_version", 99).unwrap();
        let error = SqliteStore::open(dir.path()).unwrap_err();
        assert!(error.to_string().contains("later release"), "{error}");
    }
}
