//! The shared state of an open database: connections, and a cache of its immutable contents.

use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use parking_lot::{Condvar, Mutex, RwLock};

use super::{
    address::DatabaseAddress,
    lists::ListMemory,
    rows::{known_number, new_number},
    session::Session,
    watch::SearchWatch,
};
use crate::{
    signature::keys::SigningKeys,
    store::{Result, memory::SearchMemory, pool::Pool, quota::Quota, report::StoreCounts, verdicts::VerdictMemory},
};

/// Number of vocabulary words that a store caches; then it clears the cache.
const KNOWN_WORDS: usize = 200_000;

/// Regularly spaced rows of a book, by which the row at a given distance is found without a query.
#[derive(Debug)]
pub struct Milestones {
    /// The number of entries that the book had.
    pub entries: u64,
    pub rows: Vec<i64>,
}

/// A snapshot: the number of lost connections before it, because another server may have the same texts, and the text
/// that the server gives it.
pub type SnapshotVersion = (u64, String);

/// The state that the parts of a store share.
pub struct Database {
    pub address: DatabaseAddress,
    /// The schema's name, in quotation marks.
    pub schema: String,
    /// The name of the channel for notifications of changes.
    pub channel: String,
    pub searchers: Pool<Session>,
    pub readers: Pool<Session>,
    pub writers: Pool<Session>,
    /// The connection that adds words to the vocabulary, each time in its own transaction: a word never makes a post
    /// wait for a long transaction.
    pub learner: Pool<Session>,
    pub numbers: RwLock<HashMap<String, u32>>,
    pub known: Mutex<HashSet<Box<str>>>,
    /// The number of purges that each book had when its words were known.
    pub purges: Mutex<HashMap<i64, i64>>,
    pub quota: Mutex<Quota>,
    pub counts: StoreCounts,
    pub milestones: Mutex<HashMap<i64, Arc<Milestones>>>,
    pub memory: Mutex<SearchMemory<SnapshotVersion>>,
    pub verdicts: VerdictMemory,
    pub lists: ListMemory,
    pub watch: SearchWatch,
    /// The number of notifications so far, with a condition for waiting threads.
    pub notified: (Mutex<u64>, Condvar),
    pub listens: AtomicBool,
    /// The directory of attachments that are being received.
    pub receiving: RwLock<PathBuf>,
    pub keys: SigningKeys,
}

impl Database {
    /// Adds new words to the vocabulary and returns them. A word without an entry is harmless, so this is not part of a
    /// post's transaction. It becomes durable with the next durable transaction, and must not be remembered before
    /// that. At most `most` rows, words and their endings, are added; also returns whether the vocabulary has all the
    /// words.
    pub fn learn(&self, words: Vec<Box<str>>, most: usize) -> Result<(Vec<Box<str>>, bool)> {
        let mut fresh: Vec<Box<str>> = {
            let mut known = self.known.lock();
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
        // One statement, which is a transaction: the post waits for it.
        let sql = "WITH new AS (INSERT INTO term SELECT unnest($1::text[]) ON CONFLICT DO NOTHING RETURNING term) \
                   INSERT INTO ending SELECT said.ending, said.term FROM unnest($2::text[], $3::text[]) AS said(ending, term) \
                   JOIN new ON new.term = said.term ON CONFLICT DO NOTHING";
        session.execute(sql, &[&list, &endings, &terms])?;
        Ok((fresh, all))
    }

    /// Forgets the known words if a purge, also of another hub, may have removed some from the vocabulary.
    pub fn forget_words_before(&self, book: i64, purges: i64) {
        let before = self.purges.lock().insert(book, purges);
        if before.unwrap_or_default() != purges {
            self.known.lock().clear();
        }
    }

    /// Returns the number of an attribute's folded name, if it has one.
    pub fn known_number(&self, session: &Session, folded: &str) -> Result<Option<u32>> {
        if let Some(number) = self.numbers.read().get(folded) {
            return Ok(Some(*number));
        }
        let number = known_number(session, folded)?;
        if let Some(number) = number {
            self.numbers.write().insert(folded.to_owned(), number);
        }
        Ok(number)
    }

    /// Returns the number of an attribute's name, and assigns one if there is none yet. Numbers never change, so they
    /// are cached.
    pub fn number_of(&self, name: &str) -> Result<u32> {
        let folded = name.to_lowercase();
        if let Some(number) = self.numbers.read().get(&folded) {
            return Ok(*number);
        }
        let session = self.learner.get()?;
        let number = new_number(&session, &folded)?;
        self.numbers.write().insert(folded, number);
        Ok(number)
    }
}

/// Returns the number of words, from the first, that take at most `most` rows with their endings.
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
