//! The store for several hubs: a PostgreSQL database that all of them use at the same time.
//!
//! Everything is in it, the bytes of attachments too, in a schema of its own for each domain, so that a hub needs no directory and what one
//! posts the others find at once. Ids are given under a lock on the book's row; changes are told by `NOTIFY`.
//!
//! | part | module |
//! |-|-|
//! | connections | `session` |
//! | what the index knows of an entry, and how it is asked | `tokens` |
//! | what a search asks | `find` |
//! | what writing does with the tables | `tables` |
//! | searches that are ended from outside | `watch` |
//!
//! The tables are those of the store built in (`sqlite/schema.sql`), with another index. TLS is not built in: a server elsewhere is reached
//! through a tunnel or a network that is one's own.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, RwLock, atomic::AtomicBool},
    time::Duration,
};

use postgres::{Config, config::SslMode};
use sha2::{Digest, Sha256};

use super::{
    Result, StoreError,
    pool::{Pool, lock},
};
use crate::attachment::{Sha, hex};

mod api;
mod blobs;
mod copy;
mod desk;
mod find;
mod import;
mod journal;
mod read;
mod restore;
mod rows;
mod session;
mod tables;
mod tokens;
mod upkeep;
mod watch;

use session::Session;
use tables::Writing;
use watch::Watch;

/// Connections that search at the same time; further searches wait, who came first goes first.
pub const SEARCHERS: usize = 8;
/// Connections that read entries and lists, apart from those.
pub const READERS: usize = 4;
/// Connections that write. Who writes to the same book waits for the other.
pub const WRITERS: usize = 4;
/// How long a server may take to answer a new connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Words a store remembers to be in the vocabulary; after that it forgets them all.
const KNOWN_WORDS: usize = 200_000;
/// The database's layout is changed by these, in order; the table `layout` says how many have been done.
const MIGRATIONS: [&str; 1] = [include_str!("postgres/schema.sql")];
/// What searches set: every table is asked by an index, and a plan is made once.
const SEARCHING: &str = "SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan; SET work_mem = '16MB'";
/// What writers set. New numbers wait in a short list until there are enough to go into the index together; a search looks through it.
const WRITING: &str = "SET gin_pending_list_limit = '512kB'; SET work_mem = '16MB'";
/// What the one who learns words sets: it does not wait for the disk, since the post that follows does.
const LEARNING: &str = "SET synchronous_commit = off";

/// Logbooks in a schema of a database.
pub struct PostgresStore(Arc<Inner>);

/// What its parts share.
struct Inner {
    config: Config,
    /// In quotation marks.
    schema: String,
    /// The name of the channel on which changes are told.
    channel: String,
    searchers: Pool<Session>,
    readers: Pool<Session>,
    writers: Pool<Session>,
    /// Takes words into the vocabulary, each time in a transaction of its own: nobody waits for a long one because of a word.
    learner: Pool<Session>,
    numbers: RwLock<HashMap<String, u32>>,
    known: Mutex<HashSet<Box<str>>>,
    milestones: Mutex<HashMap<i64, Arc<find::Milestones>>>,
    watch: Watch,
    /// How often something was told, and whoever waits for it.
    told: (Mutex<u64>, Condvar),
    listens: AtomicBool,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("schema", &self.0.schema).finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// Opens the logbooks of a domain in the database of this address (`postgres://user:password@host/database`, or as libpq writes it:
    /// `host=/run/postgresql dbname=book`), and makes them where there are none.
    pub fn open(address: &str, domain: &str) -> Result<PostgresStore> {
        let bad = |why: String| StoreError::Directory { path: PathBuf::from("the database's address"), why };
        let mut config: Config = address.parse().map_err(|error: postgres::Error| bad(super::refusal(&error)))?;
        if config.get_ssl_mode() == SslMode::Require {
            return Err(bad("sslmode=require: TLS is not built in; use a tunnel, or a network of your own".to_owned()));
        }
        config.ssl_mode(SslMode::Disable);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("tampu");
        }
        let name = schema_name(domain);
        let schema = format!("\"{name}\"");
        migrate(&config, &schema)?;
        let losses = Arc::default();
        let pool = |most, settings: &'static str| {
            let (config, schema, losses) = (config.clone(), schema.clone(), Arc::clone(&losses));
            Pool::new(most, move || Session::open(&config, &schema, settings, &losses), Session::health)
        };
        let inner = Inner {
            searchers: pool(SEARCHERS, SEARCHING),
            readers: pool(READERS, ""),
            writers: pool(WRITERS, WRITING),
            learner: pool(1, LEARNING),
            config,
            schema,
            channel: name,
            numbers: RwLock::default(),
            known: Mutex::default(),
            milestones: Mutex::default(),
            watch: Watch::default(),
            told: Default::default(),
            listens: AtomicBool::new(false),
        };
        Ok(PostgresStore(Arc::new(inner)))
    }

    /// Does something in one transaction, which is committed if it succeeds.
    fn write<T>(&self, act: impl FnOnce(&mut Writing<'_>) -> Result<T>) -> Result<T> {
        let session = self.0.writers.get()?;
        session.batch("BEGIN")?;
        let mut writing = Writing::new(&session, &self.0);
        match act(&mut writing).and_then(|value| writing.finish().map(|()| value)) {
            Ok(value) => {
                session.batch("COMMIT")?;
                lock(&self.0.known).extend(writing.learned);
                Ok(value)
            }
            Err(error) => {
                // Where the connection is gone, so is the transaction.
                let _ = session.batch("ROLLBACK");
                Err(error)
            }
        }
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

impl Inner {
    /// Takes words into the vocabulary that are not in it, and returns them. A word without an entry harms nobody, so this is not part of
    /// a post's transaction. It is durable with the next transaction that is, and not to be remembered before that.
    /// The vocabulary takes so many rows at a time, words and their endings; also returns whether it has all the words.
    fn learn(&self, words: Vec<Box<str>>, most: usize) -> Result<(Vec<Box<str>>, bool)> {
        let mut fresh: Vec<Box<str>> = {
            let mut known = lock(&self.known);
            if known.len() > KNOWN_WORDS {
                known.clear();
            }
            words.into_iter().filter(|word| !known.contains(word)).collect()
        };
        if fresh.is_empty() {
            return Ok((fresh, true));
        }
        let session = self.learner.get()?;
        let rest = fresh.split_off(within(&fresh, most));
        let mut all = true;
        if !rest.is_empty() {
            let rest: Vec<&str> = rest.iter().map(|word| &**word).collect();
            let sql =
                "SELECT 1 FROM unnest($1::text[]) AS said(word) WHERE NOT EXISTS (SELECT 1 FROM term WHERE term = word) LIMIT 1";
            all = session.one(sql, &[&rest])?.is_none();
        }
        // In order, so that two hubs that learn the same words wait for one another in one direction only.
        let mut list: Vec<&str> = fresh.iter().map(|word| &**word).collect();
        list.sort_unstable();
        list.dedup();
        let (mut endings, mut terms) = (Vec::new(), Vec::new());
        for word in &list {
            for (at, _) in word.char_indices().skip(1) {
                if word[at..].chars().nth(1).is_some() {
                    endings.push(&word[at..]);
                    terms.push(*word);
                }
            }
        }
        // One statement, which is a transaction: whoever posts waits for it.
        let sql = "WITH new AS (INSERT INTO term SELECT unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING term) \
                   INSERT INTO ending SELECT said.ending, said.term FROM unnest($2::text[], $3::text[]) AS said(ending, term) \
                   JOIN new ON new.term = said.term ON CONFLICT DO NOTHING";
        session.execute(sql, &[&list, &endings, &terms])?;
        Ok((fresh, all))
    }

    /// The number of an attribute's name; a new one where it has none. Numbers are never changed, so they are remembered.
    fn number_of(&self, name: &str) -> Result<u32> {
        let folded = name.to_lowercase();
        if let Some(number) = self.numbers.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(&folded) {
            return Ok(*number);
        }
        let session = self.learner.get()?;
        let number = rows::new_number(&session, &folded)?;
        self.numbers.write().unwrap_or_else(std::sync::PoisonError::into_inner).insert(folded, number);
        Ok(number)
    }
}

/// How many of these words, with their endings, are at most so many rows.
fn within(words: &[Box<str>], most: usize) -> usize {
    let mut rows = 0;
    words
        .iter()
        .take_while(|word| {
            let fits = rows < most;
            rows += word.chars().count();
            fits
        })
        .count()
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

fn migrate(config: &Config, schema: &str) -> Result<()> {
    let session = Session::open(config, schema, "", &Arc::default())?;
    session.batch("BEGIN")?;
    let lock = i64::from_be_bytes(*b"tampu bk");
    // One process at a time; the others find it done.
    session.execute("SELECT pg_advisory_xact_lock($1)", &[&lock])?;
    session.batch(&format!("CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE IF NOT EXISTS layout (done bigint NOT NULL)"))?;
    let done = session.one("SELECT done FROM layout", &[])?.map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
    let done = usize::try_from(done).unwrap_or(usize::MAX);
    if done > MIGRATIONS.len() {
        let why = format!("it has layout {done}, of a later release; this one knows {}", MIGRATIONS.len());
        return Err(StoreError::Directory { path: PathBuf::from(format!("the database's schema {schema}")), why });
    }
    for step in &MIGRATIONS[done..] {
        session.batch(step)?;
    }
    if done < MIGRATIONS.len() {
        session.batch(&format!("DELETE FROM layout; INSERT INTO layout VALUES ({})", MIGRATIONS.len()))?;
    }
    session.batch("COMMIT")
}

/// A SHA-256 as it is kept.
fn sha(text: String) -> Result<Sha> {
    Sha::try_from(text).map_err(|error| StoreError::Damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
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
        for (address, why) in [("postgres://[", "address"), ("postgres://h/d?sslmode=require", "TLS")] {
            let error = PostgresStore::open(address, "demo").unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
    }
}
