//! The store for several hubs: a PostgreSQL database that all of them use at the same time.
//!
//! The database holds everything, including the bytes of attachments, in one schema for each domain. So a hub's own
//! directory has only attachments that it is receiving, and a post of one hub is visible to the others at once. Ids are assigned under a lock on the book's row.
//! `NOTIFY` announces changes.
//!
//! | part | module |
//! |-|-|
//! | connections | `session` |
//! | addresses, encryption | `address`, `tls` |
//! | the index: an entry's numbers, and queries over them | `tokens` |
//! | searches | `find` |
//! | write operations on the tables | `tables` |
//! | cancellation of searches | `watch` |
//!
//! The tables are those of the built-in store (`sqlite/schema.sql`), with another index.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};

use super::{Result, StoreError, pool::Pool, report::StoreCounts, verdicts::VerdictMemory};
use crate::{
    attachment::{Attachment, Sha, hex, stored_name::names},
    signature::keys::SigningKeys,
};

mod address;
mod blobs;
mod copy;
mod database;
mod drafts;
mod entries;
mod find;
mod import;
mod journal;
mod listed;
mod lists;
mod looks;
mod milestones;
mod naming;
mod purge;
mod quota;
mod rank;
mod records;
mod report;
mod restore;
mod row_sets;
mod rows;
mod session;
mod signing;
mod snapshot;
mod tables;
mod tls;
mod tokens;
mod upkeep;
mod watch;

pub use address::{files_of, has_password};

use address::DatabaseAddress;
use database::Database;
use lists::ListMemory;
use session::Session;
use tables::PostgresTransaction;
use watch::SearchWatch;

/// Connections that search at the same time. Further searches wait in the order of their arrival.
pub const SEARCHERS: usize = 8;
/// Connections that read entries and lists, apart from those.
pub const READERS: usize = 4;
/// Number of connections that write. Two writers of the same book wait for each other.
pub const WRITERS: usize = 4;
/// The time limit for a new connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Migrations of the database's layout, in order. The table `layout` holds the number of those that are done.
const MIGRATIONS: [&str; 8] = [
    include_str!("postgres/schema.sql"),
    include_str!("postgres/names.sql"),
    include_str!("postgres/purges.sql"),
    include_str!("postgres/used.sql"),
    include_str!("postgres/threads.sql"),
    include_str!("postgres/looks.sql"),
    include_str!("postgres/signatures.sql"),
    include_str!("postgres/rewrites.sql"),
];
/// Puts right what a restore or a renamed schema has left, at each opening.
const ADOPT: &str = include_str!("postgres/adopt.sql");
/// The number of the step that makes the table of names, which is filled from the entries.
const NAMES: usize = 1;
/// The settings of searching connections: every table is read by an index, and a plan is made once.
const SEARCHING: &str = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET work_mem = '16MB'";
/// The settings of writing connections. New numbers wait in a short list until they go into the index together; a
/// search scans that list.
const WRITING: &str = "SET gin_pending_list_limit = '512kB'; SET work_mem = '16MB'";
/// The settings of the connection that learns words. It does not wait for the disk, since the post that follows does.
const LEARNING: &str = "SET synchronous_commit = off";

/// Logbooks in a schema of a database.
pub struct PostgresStore(Arc<Database>);

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.0.schema).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the logbooks of a domain in the database at `address`, and creates them if they are missing. The address
    /// is `postgres://user:password@host/database`, or in libpq's form `host=/run/postgresql dbname=book`.
    pub fn open(address: &str, domain: &str) -> Result<PostgresStore> {
        let bad = |why: String| StoreError::Directory { path: PathBuf::from("the database's address"), why };
        let mut address = DatabaseAddress::parse(address).map_err(bad)?;
        let config = &mut address.config;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("tampu");
        }
        let name = schema_name(domain);
        let schema = format!("\"{name}\"");
        migrate(&address, &schema)?;
        let losses = Arc::default();
        let pool = |most, settings: &'static str| {
            let (address, schema, losses) = (address.clone(), schema.clone(), Arc::clone(&losses));
            Pool::new(most, move || Session::open(&address, &schema, settings, &losses), Session::health)
        };
        let inner = Database {
            searchers: pool(SEARCHERS, SEARCHING),
            readers: pool(READERS, ""),
            writers: pool(WRITERS, WRITING),
            learner: pool(1, LEARNING),
            address,
            schema,
            channel: name,
            numbers: RwLock::default(),
            known: Mutex::default(),
            purges: Mutex::default(),
            quota: Mutex::default(),
            counts: StoreCounts::default(),
            milestones: Mutex::default(),
            memory: Mutex::default(),
            verdicts: VerdictMemory::default(),
            lists: ListMemory::default(),
            watch: SearchWatch::default(),
            notified: Default::default(),
            listens: AtomicBool::new(false),
            receiving: RwLock::new(std::env::temp_dir()),
            keys: SigningKeys::default(),
        };
        Ok(PostgresStore(Arc::new(inner)))
    }

    /// Receives attachments in this directory before they are sent to the database, and not in that of temporary files,
    /// which may be memory. The signing key is in the same directory.
    pub fn receiving_in(self, directory: &Path) -> PostgresStore {
        directory.clone_into(&mut self.0.receiving.write());
        self.0.keys.keep_beside(directory);
        self
    }

    /// Runs an action in one transaction, which is committed if the action succeeds.
    fn write<T>(&self, act: impl FnOnce(&mut PostgresTransaction<'_>) -> Result<T>) -> Result<T> {
        let done = self.transact(act);
        self.0.counts.count(&done);
        done
    }

    fn transact<T>(&self, act: impl FnOnce(&mut PostgresTransaction<'_>) -> Result<T>) -> Result<T> {
        let session = self.0.writers.get()?;
        session.batch("BEGIN")?;
        let mut writing = PostgresTransaction::new(&session, &self.0);
        match act(&mut writing).and_then(|value| writing.finish().map(|()| value)) {
            Ok(value) => {
                session.batch("COMMIT")?;
                self.0.known.lock().extend(writing.learned);
                Ok(value)
            }
            Err(error) => {
                // A lost connection has ended the transaction, too.
                let _ = session.batch("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Reads by one statement. It sees a snapshot of its own, so it needs no transaction, and two round trips less.
    fn read_once<T>(&self, act: impl FnOnce(&Session) -> Result<T>) -> Result<T> {
        act(&*self.0.readers.get()?)
    }

    /// Reads a snapshot.
    fn read<T>(&self, act: impl FnOnce(&Session) -> Result<T>) -> Result<T> {
        let session = self.0.readers.get()?;
        session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let value = act(&session);
        let ended = session.batch("COMMIT");
        let value = value?;
        ended.map(|()| value)
    }
}

/// The schema of a domain; PostgreSQL's names have at most 63 bytes.
fn schema_name(domain: &str) -> String {
    let plain = !domain.is_empty() && domain.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'));
    if plain && domain.len() <= 50 {
        return format!("tampu_book_{domain}");
    }
    let kept: String = domain.chars().filter(char::is_ascii_alphanumeric).take(30).collect();
    format!("tampu_book_{}.{}", kept.to_lowercase(), &hex(&Sha256::digest(domain))[..16])
}

fn migrate(address: &DatabaseAddress, schema: &str) -> Result<()> {
    let session = Session::open(address, schema, "", &Arc::default())?;
    session.batch("BEGIN")?;
    let lock = i64::from_be_bytes(*b"tampu bk");
    // One process runs the steps at a time; the others then find them done.
    session.execute("SELECT pg_advisory_xact_lock($1)", &[&lock])?;
    session.batch(&format!("CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE IF NOT EXISTS layout (done bigint NOT NULL)"))?;
    let done = session.one("SELECT done FROM layout", &[])?.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
    let done = usize::try_from(done).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        let why = format!("it has layout {done} of a later release; this release knows layouts up to {}", MIGRATIONS.len());
        return Err(StoreError::Directory { path: PathBuf::from(format!("the database's schema {schema}")), why });
    }
    for (at, step) in MIGRATIONS.iter().enumerate().skip(done) {
        session.batch(step)?;
        if at == NAMES {
            fill_names(&session)?;
        }
    }
    if done < MIGRATIONS.len() {
        session.batch(&format!("DELETE FROM layout; INSERT INTO layout VALUES ({})", MIGRATIONS.len()))?;
    }
    session.batch(ADOPT)?;
    session.batch("COMMIT")
}

/// Fills the table of names from the entries that are there.
fn fill_names(session: &Session) -> Result<()> {
    for row in &session.query("SELECT book, id, attachments FROM entry WHERE attachments <> '[]'", &[])? {
        let (book, id): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        let files: Vec<Attachment> = serde_json::from_str(row.try_get(2)?)
            .map_err(|error| StoreError::Damaged(format!("attachments of entry {id}: {error}")))?;
        let sql = "INSERT INTO stored_name SELECT $1, name, $2 FROM unnest($3::text[]) AS new(name) ON CONFLICT DO NOTHING";
        session.execute(sql, &[&book, &id, &names(&files)])?;
    }
    Ok(())
}

/// Parses a stored SHA-256.
fn sha(text: String) -> Result<Sha> {
    Sha::try_from(text).map_err(|error| StoreError::Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_domain_has_a_schema_of_its_own() {
        let long = "x".repeat(200);
        let names = ["demo", "Demo", "de mo", "", &long, &long[1..], "dém\"o"].map(schema_name);
        assert_eq!(names[0], "tampu_book_demo");
        assert!(names.iter().all(|name| name.len() <= 63 && !name.contains('"')), "{names:?}");
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    }

    #[test]
    fn an_address_that_is_none_says_why() {
        for (address, why) in [("postgres://[", "address"), ("postgres://db.example.org/d", "sslmode=verify-full")] {
            let error = PostgresStore::open(address, "demo").unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
