//! New matches of a search, pushed to whoever asked for them (server-sent events).
//!
//! One worker waits for changes of the store, whoever makes them, reads each changed entry once, and holds it against what each
//! subscriber wants: no search is repeated. A subscriber's queue is bounded; who does not read it is cut and told, and can go on
//! from the last event it got. Who goes on from long ago catches up a few changes at a time, and nobody else waits for that.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{StatusCode, request::Parts};
use serde::Serialize;
use tampu_log::{Logger, warning};
use tampu_logbook::{
    book::same_name,
    entry::{Change, Entry, EntryRef},
    people::{People, Right},
    plain::plain,
    query::{
        Node,
        eval::Subject,
        marks::{Marked, snippet},
        parse,
    },
    search::Stop,
    store::{CHANGES_KEPT, EntryChange, Store, StoreError},
};
use tokio::sync::mpsc;

use super::{body::Told, now, problem::Problem, reception::Met};

/// Subscribers at a time.
pub const SUBSCRIBERS: usize = 256;
/// Of one login, or of one address for guests.
pub const OF_ONE: usize = 32;
/// Events that wait for one subscriber; with a further one it is cut.
pub const QUEUE: usize = 256;
/// Changes read at a time.
const BATCH: usize = 200;
/// Of these for who is behind, between two looks at what is new.
const BEHIND: usize = 50;
/// How long the worker waits at a time, and how soon it ends.
const LOOK: Duration = Duration::from_millis(500);
/// How long a change is held against what all subscribers want: a regular expression in a long text can take for ever.
const MATCHING: Duration = Duration::from_secs(2);
/// How often a subscriber hears that all is well, and whether it still may listen is looked at.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// What somebody wants to be told of.
pub struct Wanted {
    /// Books; none means all that they may read.
    pub books: Vec<String>,
    /// In the language of queries.
    pub query: String,
    /// After which change; only new ones, if nothing is said.
    pub after: Option<u64>,
    /// Who asks.
    pub met: Met,
}

struct Subscriber {
    wanted: Wanted,
    /// What the `Authorization` header said.
    said: Option<String>,
    node: Node,
    /// The last change it was told of, or need not be.
    at: u64,
    to: mpsc::Sender<Bytes>,
    cut: Arc<AtomicBool>,
}

/// Those who listen, and who tells them.
pub struct Pushes {
    store: Arc<dyn Store>,
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
    stopping: Arc<AtomicBool>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Serialize)]
struct Match<'a> {
    what: Change,
    entry: &'a Entry,
    snippet: Marked,
}

#[derive(Serialize)]
struct Gone<'a> {
    what: Change,
    #[serde(flatten)]
    at: &'a EntryRef,
}

impl Pushes {
    /// Begins to wait for changes.
    pub fn start(store: Arc<dyn Store>, people: Arc<People>, logger: Logger) -> std::io::Result<Pushes> {
        let subscribers = Arc::new(Mutex::new(Vec::new()));
        let stopping = Arc::new(AtomicBool::new(false));
        let teller = Teller { store: store.clone(), people, subscribers: subscribers.clone(), books: HashSet::new() };
        let mut worker = Worker { teller, logger, stopping: stopping.clone() };
        let worker = std::thread::Builder::new().name("book pushes".to_owned()).spawn(move || worker.run())?;
        Ok(Pushes { store, subscribers, stopping, worker: Mutex::new(Some(worker)) })
    }

    /// Tells somebody from now on.
    pub fn subscribe(&self, wanted: Wanted, head: &Parts) -> Result<Told, Problem> {
        let last = self.store.last_change()?;
        let names: Vec<String> =
            self.store.books()?.into_iter().flat_map(|info| info.book.attributes).map(|one| one.name).collect();
        let node = parse(&wanted.query, &names, now()).map_err(StoreError::from)?;
        let (to, from) = mpsc::channel(QUEUE);
        let (cut, mut at) = (Arc::new(AtomicBool::new(false)), wanted.after.unwrap_or(last).min(last));
        let mut first = format!(": events of the logbook\nretry: 2000\nid: {at}\n\n");
        if last - at > CHANGES_KEPT {
            at = last;
            first =
                format!("id: {at}\nevent: reset\ndata: {{\"why\":\"more has changed than is remembered: search again\"}}\n\n");
        }
        // The queue is empty: there is room.
        let _ = to.try_send(first.into());
        let said = head.headers.get(http::header::AUTHORIZATION).and_then(|said| said.to_str().ok()).map(str::to_owned);
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|one| !one.to.is_closed());
        let who = |met: &Met| (met.principal.login.clone(), met.principal.is_guest().then_some(met.from));
        let of_one = subscribers.iter().filter(|one| who(&one.wanted.met) == who(&wanted.met)).count();
        if subscribers.len() >= SUBSCRIBERS || of_one >= OF_ONE {
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "full", "too many listen for events already");
            return Err(problem.help("close some, or ask again later"));
        }
        subscribers.push(Subscriber { wanted, said, node, at, to, cut: cut.clone() });
        Ok(Told::Pushed(from, cut))
    }

    /// Ends all subscriptions.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(worker) = worker {
            let _ = worker.join();
        }
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Worker {
    teller: Teller,
    logger: Logger,
    stopping: Arc<AtomicBool>,
}

/// Tells subscribers what has changed.
struct Teller {
    store: Arc<dyn Store>,
    people: Arc<People>,
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
    /// Books of which subscribers' rights are known.
    books: HashSet<String>,
}

impl Worker {
    fn run(&mut self) {
        let (mut beat, mut failing) = (Instant::now(), false);
        while !self.stopping.load(Ordering::Acquire) {
            let done = self.teller.turn();
            if let Err(error) = &done {
                if !failing {
                    warning!(self.logger, "changes of the logbook cannot be pushed for now: {error}");
                }
                std::thread::sleep(LOOK);
            }
            failing = done.is_err();
            if beat.elapsed() >= HEARTBEAT {
                beat = Instant::now();
                self.teller.look_again(true);
            }
        }
    }
}

impl Teller {
    /// Tells each subscriber what it has not been told, or waits a while for something new.
    fn turn(&mut self) -> Result<(), StoreError> {
        let places = {
            let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|one| !one.to.is_closed());
            let places = all.iter().map(|one| one.at);
            places.clone().min().zip(places.max())
        };
        let Some((last, first)) = places else {
            std::thread::sleep(LOOK.min(Duration::from_millis(50)));
            return Ok(());
        };
        if last < first {
            self.pass_on(first, BATCH)?;
            return self.pass_on(last, BEHIND);
        }
        if self.store.wait_for_change(first, LOOK)? > first {
            self.pass_on(first, BATCH)?;
        }
        Ok(())
    }

    /// Tells changes after one to those who have been told all up to it.
    fn pass_on(&mut self, after: u64, most: usize) -> Result<(), StoreError> {
        for change in &self.store.changes(after, most)? {
            // A book that was made since is nobody's as far as their rights were known.
            if !self.books.contains(&change.at.book) {
                self.people.forget();
                self.look_again(false);
                self.books.insert(change.at.book.clone());
            }
            let entry = match self.store.entry(&change.at) {
                Ok(entry) => Some(entry),
                Err(StoreError::Gone(_) | StoreError::NoEntry(_) | StoreError::NoBook(_)) => None,
                Err(error) => return Err(error),
            };
            self.tell(after, change, entry.as_ref());
        }
        Ok(())
    }

    fn tell(&self, after: u64, change: &EntryChange, entry: Option<&Entry>) {
        let stop = Stop::default().within(MATCHING);
        let subject = entry.map(|entry| Subject::of(entry).until(&stop));
        // Most want the same of an entry without its text.
        let short = entry.map(|entry| {
            let mut short = entry.clone();
            short.content.text.clear();
            short
        });
        let text = entry.map(|entry| plain(entry.content.encoding, &entry.content.text));
        let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain_mut(|one| {
            if one.at < after || one.at >= change.number {
                return true;
            }
            one.at = change.number;
            let books = &one.wanted.books;
            let reads = one.wanted.met.principal.rights.may(Right::Read, &change.at.book)
                && (books.is_empty() || books.iter().any(|book| same_name(book, &change.at.book)));
            if !reads {
                return true;
            }
            let matched = subject.as_ref().is_some_and(|subject| subject.is_meant(&one.node));
            let (kind, data) = match (&short, &text) {
                (Some(entry), Some(text)) if matched => {
                    let data = Match { what: change.what, entry, snippet: snippet(&one.node, text) };
                    ("match", serde_json::to_string(&data))
                }
                // What has just come here was never told, so that nobody misses it.
                (Some(entry), _) if change.what.is_coming() || change.what == Change::Imported && entry.revision == 0 => {
                    return true;
                }
                _ => ("gone", serde_json::to_string(&Gone { what: change.what, at: &change.at })),
            };
            let Ok(data) = data else { return true };
            one.push(format!("id: {}\nevent: {kind}\ndata: {data}\n\n", change.number))
        });
    }

    /// Who still may listen goes on, with the rights they have now; with `beat` they are told that all is well.
    fn look_again(&self, beat: bool) {
        let mut all = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain_mut(|one| {
            let met = &mut one.wanted.met;
            let bearer = one.said.as_deref().and_then(|said| said.split_once(' ')).map(|(_, token)| token.trim());
            let again = self.people.look_again(&met.principal, met.secret.as_deref().or(bearer));
            match again {
                Ok(principal) => {
                    met.principal = principal;
                    !beat || one.push(": all is well\n\n".to_owned())
                }
                Err(_) => {
                    one.cut.store(true, Ordering::Release);
                    false
                }
            }
        });
    }
}

impl Subscriber {
    /// Tells something; whether it still listens. Who does not read is cut.
    fn push(&mut self, text: String) -> bool {
        match self.to.try_send(text.into()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Closed(_)) => false,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.cut.store(true, Ordering::Release);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tampu_logbook::{
        book::Book,
        entry::{Content, NewEntry},
        people::registry::Settings,
        store::{Imported, sqlite::SqliteStore},
    };

    use super::*;

    #[test]
    fn what_is_new_is_told_before_who_is_behind_has_seen_what_is_old() {
        let directory = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(directory.path()).unwrap());
        store.put_book(&Book { name: "Shift".to_owned(), ..Book::default() }).unwrap();
        let new = |text: &str| {
            let content = Content { text: text.to_owned(), ..Content::default() };
            NewEntry { book: "Shift".to_owned(), content, ..NewEntry::default() }
        };
        let old = |id| Imported { id, thread: id, entry: new("old"), ..Imported::default() };
        store.import("Shift", (1..=500).map(old).collect(), vec![], "zoe").unwrap();
        let people = Arc::new(People::new(store.clone(), Settings::default()).unwrap());
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let met = Met { principal: people.guest().unwrap(), from, secret: None, elsewhere: false, secure: false };
        let subscriber = |at| {
            let wanted = Wanted { books: vec![], query: "word".to_owned(), after: None, met: met.clone() };
            let (to, receiver) = mpsc::channel(QUEUE);
            let node = parse("word", &[], now()).unwrap();
            (Subscriber { wanted, said: None, node, at, to, cut: Arc::default() }, receiver)
        };
        let last = store.last_change().unwrap();
        let ((late, mut to_late), (first, mut to_first)) = (subscriber(0), subscriber(last));
        let subscribers = Arc::new(Mutex::new(vec![late, first]));
        let mut teller = Teller { store: store.clone(), people, subscribers: subscribers.clone(), books: HashSet::new() };
        store.post(new("the word"), vec![], "zoe").unwrap();
        teller.turn().unwrap();
        assert!(to_first.try_recv().is_ok() && to_late.try_recv().is_err());
        let places = || subscribers.lock().unwrap().iter().map(|one| one.at).collect::<Vec<_>>();
        assert!(places()[0] <= BEHIND as u64, "{:?}", places());
        let mut turns = 0;
        while to_late.try_recv().is_err() {
            turns += 1;
            assert!(turns <= 500 / BEHIND + 1);
            teller.turn().unwrap();
        }
        assert!(places()[0] == places()[1] && to_first.try_recv().is_err(), "each is told everything once");
    }
}
