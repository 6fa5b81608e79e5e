//! The built-in store: one SQLite database in WAL mode, and a directory of blobs beside it.
//!
//! ```text
//! book.db, book.db-wal, book.db-shm       entries, history, index
//! attachments/                            attachment.rs
//! signing/                                signature/keys.rs
//! ```
//! Words, phrases and tags are in an FTS5 index. Its row numbers are in the order of dates (`book_row.rs`), so a page
//! is a range of rows. The newest twenty of a hundred thousand entries cost as much as those of twenty. A table holds
//! the vocabulary with the endings of words, to find text inside words. Rejected: the trigram tokenizer. At a million
//! entries, the lists of common trigrams are most of the index, and intersecting them takes longer than a search may.
//!
//! One connection writes, [`SEARCHERS`] search and [`READERS`] read, each in its own snapshot. So a search never waits
//! for a post, and reading an entry never waits for a search. A post and its index are one transaction.

use std::{
    cell::RefCell,
    collections::HashSet,
    fs,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, config::DbConfig, params};

use super::{
    Result, StoreError,
    memory::SearchMemory,
    now,
    pool::{ConnectionHealth, Pool},
    quota::Quota,
    report::StoreCounts,
    verdicts::VerdictMemory,
};
use crate::{
    attachment::{Attachment, Blobs, stored_name::names},
    signature::keys::SigningKeys,
};

mod drafts;
mod entries;
pub(super) mod export;
mod find;
mod import;
mod index;
mod journal;
mod looks;
mod naming;
mod place;
mod purge;
mod quota;
mod rank;
mod records;
mod report;
pub(super) mod restore;
mod rows;
mod signing;
mod tables;
mod upkeep;

pub use place::network_file_system;

/// Connections that search at the same time: two per processor, at most this many. Further searches wait in the order
/// of their arrival.
pub const SEARCHERS: usize = 8;
/// Connections that read entries and lists at the same time. They are separate, so reading an entry never waits for a search.
pub const READERS: usize = 4;
/// Cache of each reader and of the writer, in KiB.
const READER_CACHE: i64 = 6 * 1024;
const WRITER_CACHE: i64 = 24 * 1024;
/// Cache during an import, in KiB.
const IMPORT_CACHE: i64 = 64 * 1024;
/// The time that a writer waits for a writer of another process.
const BUSY: Duration = Duration::from_secs(30);
/// Number of vocabulary words that the writer caches; then it clears the cache.
const KNOWN_WORDS: usize = 200_000;
/// Migrations of the database's layout, in order. `user_version` holds the number of those that are done.
const MIGRATIONS: [&str; 10] = [
    include_str!("sqlite/schema.sql"),
    include_str!("sqlite/records.sql"),
    include_str!("sqlite/late.sql"),
    include_str!("sqlite/names.sql"),
    include_str!("sqlite/notes.sql"),
    include_str!("sqlite/used.sql"),
    include_str!("sqlite/threads.sql"),
    include_str!("sqlite/looks.sql"),
    include_str!("sqlite/signatures.sql"),
    include_str!("sqlite/rewrites.sql"),
];
/// The number of the step that makes the table of names, which is filled from the entries.
const NAMES: usize = 3;
/// The number of the step that makes the sums of files, which are added up from the files that are there.
const USED: usize = 5;

/// Logbooks in a directory.
#[derive(Debug)]
pub struct SqliteStore {
    dir: PathBuf,
    blobs: Blobs,
    writer: Mutex<Writer>,
    readers: Pool<Connection>,
    searchers: Pool<Searcher>,
    /// The number of commits so far, with a condition for waiting threads.
    commits: (Mutex<u64>, Condvar),
    quota: Mutex<Quota>,
    counts: StoreCounts,
    verdicts: VerdictMemory,
    keys: SigningKeys,
}

#[derive(Debug)]
struct Writer {
    db: Connection,
    /// Words that the vocabulary has.
    known: HashSet<Box<str>>,
    /// A number that changes when another connection writes; the words are known from before.
    version: i64,
}

/// A connection for searches, with what its last searches found. The memory is not shared, because the number of a
/// snapshot has a meaning within one connection only.
#[derive(Debug)]
struct Searcher {
    db: Connection,
    memory: RefCell<SearchMemory<i64>>,
}

impl Deref for Searcher {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.db
    }
}

impl DerefMut for Searcher {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.db
    }
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
        // An acknowledged post survives a loss of power.
        db.pragma_update(None, "synchronous", "FULL")?;
        db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    } else {
        db.pragma_update(None, "query_only", true)?;
        // Otherwise a statement whose table has statistics is planned anew with each bound value, also those of FTS5.
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    }
    Ok(db)
}

impl SqliteStore {
    /// Locks the logbooks of a directory against processes that open them, without a change there; `None` if none were
    /// ever there. Returns [`std::io::ErrorKind::WouldBlock`] if a process has them open.
    pub fn lock_existing(dir: &Path) -> std::io::Result<Option<std::fs::File>> {
        Blobs::lock_existing(&dir.join("attachments"))
    }

    /// Opens the logbooks of a directory, and creates them if they are missing.
    pub fn open(dir: &Path) -> Result<SqliteStore> {
        let io = |error| StoreError::Io { path: dir.to_owned(), error };
        if let Some(kind) = network_file_system(dir) {
            return Err(StoreError::Directory { path: dir.to_owned(), why: place::refusal(kind) });
        }
        fs::create_dir_all(dir).map_err(io)?;
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
        let searched = file.clone();
        let searcher = move || Ok(Searcher { db: connect(&searched, READER_CACHE, false)?, memory: RefCell::default() });
        let searchers = Pool::new((2 * processors).min(SEARCHERS), searcher, |_| ConnectionHealth::Good);
        let readers = Pool::new(READERS, move || connect(&file, READER_CACHE, false), |_| ConnectionHealth::Good);
        let writer = Mutex::new(Writer { db, known: HashSet::new(), version: 0 });
        Ok(SqliteStore {
            dir: dir.to_owned(),
            blobs,
            writer,
            readers,
            searchers,
            commits: Default::default(),
            quota: Mutex::default(),
            counts: StoreCounts::default(),
            verdicts: VerdictMemory::default(),
            keys: SigningKeys::beside(dir),
        })
    }

    /// The directory it is in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn io(&self, error: std::io::Error) -> StoreError {
        StoreError::Io { path: self.dir.clone(), error }
    }

    /// Runs an action in one transaction, which is committed if the action succeeds.
    fn write<T>(&self, act: impl FnOnce(&mut SqliteTransaction<'_>) -> Result<T>) -> Result<T> {
        let done = self.transact(act);
        self.counts.count(&done);
        done
    }

    fn transact<T>(&self, act: impl FnOnce(&mut SqliteTransaction<'_>) -> Result<T>) -> Result<T> {
        let mut writer = self.writer.lock();
        let Writer { db, known, version } = writer.deref_mut();
        let db = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have removed words from the vocabulary.
        let is = db.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        if known.len() > KNOWN_WORDS || std::mem::replace(version, is) != is {
            known.clear();
        }
        let mut writing = SqliteTransaction {
            db,
            known,
            blobs: &self.blobs,
            marks: Vec::new(),
            unused: Vec::new(),
            quota: *self.quota.lock(),
            keys: &self.keys,
        };
        match act(&mut writing).and_then(|value| writing.sync().map(|()| value)) {
            Ok(value) => writing.commit().map(|()| value).inspect(|_| self.notify_commit()),
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

/// A transaction, the words that it learned, and the blobs that it placed.
struct SqliteTransaction<'a> {
    db: Transaction<'a>,
    known: &'a mut HashSet<Box<str>>,
    blobs: &'a Blobs,
    marks: Vec<crate::attachment::Mark>,
    quota: Quota,
    keys: &'a SigningKeys,
    /// Files that a purge has left without an entry.
    unused: Vec<crate::attachment::Sha>,
}

impl SqliteTransaction<'_> {
    /// Makes the attachments of the transaction durable before the transaction itself.
    fn sync(&self) -> Result<()> {
        self.blobs.sync(&self.marks).map_err(|error| StoreError::Io { path: self.blobs.path_of_all().to_owned(), error })
    }

    fn commit(self) -> Result<()> {
        let SqliteTransaction { db, known, blobs, marks, .. } = self;
        if let Err(error) = db.commit() {
            // It is unknown whether the transaction is durable. The marks stay, and the next start checks them.
            known.clear();
            return Err(error.into());
        }
        marks.into_iter().for_each(|mark| blobs.settle(mark));
        Ok(())
    }

    fn give_up(mut self) {
        self.known.clear();
        // While the transaction is open, no other writer can begin to refer to these blobs.
        let own = std::mem::take(&mut self.marks);
        let _ = self.db.execute_batch("ROLLBACK; BEGIN IMMEDIATE");
        for mark in own {
            let referred = self.db.prepare_cached("SELECT 1 FROM attached WHERE sha = ?1");
            // If this fails, the blob and its mark stay, for the next start.
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
        let why =
            format!("its database has layout {done} of a later release; this release knows layouts up to {}", MIGRATIONS.len());
        return Err(StoreError::Directory { path: dir.to_owned(), why });
    }
    for (at, step) in MIGRATIONS.iter().enumerate().skip(done) {
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have done it while this one waited.
        let is: i64 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if is as usize == at {
            change.execute_batch(step)?;
            if at == NAMES {
                fill_names(&change)?;
            }
            if at == USED {
                fill_used(&change, &dir.join("attachments"))?;
            }
            change.pragma_update(None, "user_version", at as i64 + 1)?;
            change.commit()?;
        }
    }
    Ok(())
}

/// Adds up the files that are there.
fn fill_used(db: &Connection, attachments: &Path) -> Result<()> {
    let mut query = db.prepare("SELECT DISTINCT sha FROM attached")?;
    let mut update = db.prepare("UPDATE attached SET size = ?2 WHERE sha = ?1")?;
    for sha in query.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()? {
        let (first, rest) = sha.split_at_checked(2).unwrap_or((&sha, ""));
        // A file that is missing takes no space.
        let size = fs::metadata(attachments.join(first).join(rest)).map_or(0, |file| file.len());
        update.execute(params![sha, size as i64])?;
    }
    let first = "SELECT by FROM revision WHERE book = attached.book AND id = attached.id ORDER BY number LIMIT 1";
    db.execute_batch(&format!(
        "UPDATE attached SET by = coalesce(({first}), ''); \
         INSERT INTO used SELECT book, by, count(*), sum(size) FROM attached GROUP BY book, by"
    ))?;
    Ok(())
}

/// Fills the table of names from the entries that are there.
fn fill_names(db: &Connection) -> Result<()> {
    let mut query = db.prepare("SELECT book, id, attachments FROM entry WHERE attachments <> '[]'")?;
    let mut insert = db.prepare("INSERT OR IGNORE INTO stored_name VALUES (?1, ?2, ?3)")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (book, id): (i64, u32) = (row.get(0)?, row.get(1)?);
        let files: Vec<Attachment> = serde_json::from_str(row.get_ref(2)?.as_str().unwrap_or_default())
            .map_err(|error| StoreError::Damaged(format!("attachments of entry {id}: {error}")))?;
        for name in names(&files) {
            insert.execute(params![book, name, id])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_cannot_begin_leaves_its_connection_usable() {
        use crate::search::{Search, Stop};
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        // The connection has a transaction already.
        store.searchers.get().unwrap().execute_batch("BEGIN").unwrap();
        let stop = Stop::default();
        stop.stop();
        assert!(store.find_page(&Search::default(), &stop).is_err());
        let reader = store.searchers.get().unwrap();
        reader.execute_batch("ROLLBACK").unwrap();
        let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT count(*) FROM n";
        assert_eq!(reader.query_row(sql, [], |row| row.get::<_, i64>(0)), Ok(100_000));
    }

    #[test]
    fn an_entry_of_new_words_adds_few_of_them_to_the_vocabulary() {
        use crate::{
            entry::{Content, NewEntry},
            search::{Search, Stop},
            store::Entries,
        };
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        store.put_book(&crate::book::Book::new("b", vec![])).unwrap();
        let words: Vec<String> = (0..20_000).map(|n| format!("begin{n:06}end")).collect();
        let content = Content { text: words.join(" "), ..Content::default() };
        store.post(NewEntry { book: "b".to_owned(), content, ..NewEntry::default() }, vec![], "zoe").unwrap();
        let sql = "SELECT (SELECT count(*) FROM term) + (SELECT count(*) FROM ending)";
        let rows: i64 = store.read(|db| Ok(db.query_row(sql, [], |row| row.get(0))?)).unwrap();
        assert!(rows <= 30_100, "{rows} rows in one transaction");
        // A part of a word that the vocabulary does not have is found all the same.
        for query in ["~019999e", "begin019999end", "~000001e"] {
            let search = Search { query: query.to_owned(), ..Search::default() };
            assert_eq!(store.search(&search, &Stop::default()).unwrap().hits.len(), 1, "{query}");
        }
    }

    /// Takes away what the last layouts have more than the ones before them.
    const LATEST: &str = "DROP TABLE look; DROP TABLE signature; DROP INDEX entry_signed; ALTER TABLE entry DROP COLUMN signed; \
        DROP TRIGGER entry_taken; DROP TRIGGER entry_changed; DROP TRIGGER entry_between; DROP TRIGGER body_changed; \
        ALTER TABLE book DROP COLUMN rewrites";

    #[test]
    fn names_of_attachments_are_filled_in_where_a_release_had_none() {
        use crate::{
            entry::{Content, NewEntry},
            store::{Attachments, Entries, Transactions},
        };
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        store.put_book(&crate::book::Book::new("b", vec![])).unwrap();
        let upload = store.upload(&mut &b"bytes"[..], 100).unwrap();
        let attachments = vec![upload.attachment("a.png", tampu_types::Time::from_unix(1_221_000_000, 0))];
        let new =
            NewEntry { book: "b".to_owned(), content: Content { attachments, ..Content::default() }, ..NewEntry::default() };
        store.post(new, vec![upload], "zoe").unwrap();
        drop(store);
        let db = Connection::open(dir.path().join("book.db")).unwrap();
        let later = "ALTER TABLE revision DROP COLUMN note; DROP TRIGGER attached_more; DROP TRIGGER attached_less; DROP TABLE used; \
                     DROP TABLE thread; ALTER TABLE attached DROP COLUMN by; ALTER TABLE attached DROP COLUMN size";
        db.execute_batch(&format!("DROP TABLE stored_name; {later}; {LATEST}; PRAGMA user_version = {NAMES}")).unwrap();
        drop(db);
        let store = SqliteStore::open(dir.path()).unwrap();
        assert!(store.attachment_named("b", "080909_224000_a.png").unwrap().is_some());
    }

    #[test]
    fn the_space_of_files_is_added_up_where_a_release_did_not() {
        use crate::{
            entry::{Content, NewEntry},
            store::{Attachments, Entries, Maintenance, quota::UsedSpace},
        };
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        store.put_book(&crate::book::Book::new("b", vec![])).unwrap();
        let upload = store.upload(&mut &b"bytes"[..], 100).unwrap();
        let attachments = vec![upload.attachment("a.png", tampu_types::Time(0))];
        let content = Content { attachments, ..Content::default() };
        store.post(NewEntry { book: "b".to_owned(), content, ..NewEntry::default() }, vec![upload], "zoe").unwrap();
        drop(store);
        let db = Connection::open(dir.path().join("book.db")).unwrap();
        let before = "DROP TRIGGER attached_more; DROP TRIGGER attached_less; DROP TABLE used; ALTER TABLE attached DROP COLUMN by; \
                      ALTER TABLE attached DROP COLUMN size; DROP TABLE thread";
        db.execute_batch(&format!("{before}; {LATEST}; PRAGMA user_version = {USED}")).unwrap();
        drop(db);
        let store = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(store.used_space().unwrap(), [UsedSpace { book: "b".to_owned(), by: "zoe".to_owned(), files: 1, bytes: 5 }]);
        assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
    }

    #[test]
    fn threads_get_their_order_where_a_release_had_none() {
        use crate::{
            entry::NewEntry,
            search::{Search, Sort, Stop},
            store::{Entries, Maintenance},
        };
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(dir.path()).unwrap();
        store.put_book(&crate::book::Book::new("b", vec![])).unwrap();
        for parent in [None, None, Some(1)] {
            store.post(NewEntry { book: "b".to_owned(), parent, ..NewEntry::default() }, vec![], "zoe").unwrap();
        }
        drop(store);
        let db = Connection::open(dir.path().join("book.db")).unwrap();
        db.execute_batch(&format!("DROP TABLE thread; {LATEST}; PRAGMA user_version = {}", USED + 1)).unwrap();
        drop(db);
        let store = SqliteStore::open(dir.path()).unwrap();
        let page = store.search(&Search { sort: Sort::Thread, ..Search::default() }, &Stop::default()).unwrap();
        assert_eq!(page.hits.iter().map(|hit| hit.entry.at.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(store.check(&mut |_, _| true).unwrap(), [""; 0]);
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
