//! New matches of a search, pushed to subscribers as server-sent events.
//!
//! One worker waits for changes of the store, reads each changed entry once, and matches it against every subscription;
//! no search is repeated. A subscriber's queue is bounded. A subscriber that does not read is disconnected, and can
//! continue from the last event it got. A subscriber that continues from long ago catches up a few changes at a time,
//! and does not delay the others.

use std::{
    collections::HashSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{StatusCode, request::Parts};
use parking_lot::Mutex;
use serde::Serialize;
use tampu_log::{Logger, warning};
use tampu_logbook::{
    book::same_name,
    entry::{Change, Entry, EntryRef},
    people::{People, PeopleError, Right, Rules},
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
use tampu_workers::WorkerThread;
use tokio::sync::mpsc;

use crate::{
    clock::now,
    http::{auth::RequestAuth, body::ResponseBody, problem::Problem},
};

/// Maximum number of subscribers.
pub const SUBSCRIBERS: usize = 256;
/// Maximum number of subscribers of one login, or of one address for guests.
pub const OF_ONE: usize = 32;
/// Maximum number of queued events of one subscriber; with a further one it is disconnected.
pub const QUEUE: usize = 256;
/// Number of changes that are read at a time.
const BATCH: usize = 200;
/// Number of changes that are read at a time for subscribers that are behind, between two checks for new ones.
const BEHIND: usize = 50;
/// Pause of the worker after a panic.
const RESTART: Duration = Duration::from_secs(1);
/// Longest wait of the worker before it checks whether it must end.
const LOOK: Duration = Duration::from_millis(500);
/// Time limit for matching one change against all subscriptions. A regular expression on a long text can take very
/// long.
const MATCHING: Duration = Duration::from_secs(2);
/// Period of heartbeats to subscribers, and of the checks of their rights.
pub const HEARTBEAT: Duration = Duration::from_secs(15);

/// A search whose new matches are pushed.
pub struct SearchSubscription {
    /// Logbooks; empty means all that the caller may read.
    pub books: Vec<String>,
    /// The query, in the language of `spec/book-query.md`.
    pub query: String,
    /// The number of the last change the caller has seen; without it only new ones are pushed.
    pub after: Option<u64>,
    /// The authenticated caller.
    pub auth: RequestAuth,
}

struct Subscriber {
    wanted: SearchSubscription,
    /// Logbooks of which the caller sees some attributes only, with these attributes.
    shown: Vec<(String, Vec<String>)>,
    /// The `Authorization` header of the request.
    said: Option<String>,
    node: Node,
    /// The number of the last change that was sent or skipped.
    at: u64,
    to: mpsc::Sender<Bytes>,
    cut: Arc<AtomicBool>,
}

/// The subscribers, and the worker that notifies them.
pub struct Pushes {
    store: Arc<dyn Store>,
    people: Arc<People>,
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
    /// Starts the worker.
    pub fn start(store: Arc<dyn Store>, people: Arc<People>, logger: Logger) -> std::io::Result<Pushes> {
        let subscribers = Arc::new(Mutex::new(Vec::new()));
        let stopping = Arc::new(AtomicBool::new(false));
        watch_rights(&people, &subscribers);
        let (of_notifier, of_all, books) = (people.clone(), subscribers.clone(), HashSet::new());
        let teller = Notifier { store: store.clone(), people: of_notifier, subscribers: of_all, books, rules: None };
        let mut worker = Worker { teller, logger, stopping: stopping.clone() };
        let worker = WorkerThread::named("book-pushes").spawn_restarting(RESTART, move || worker.run())?;
        Ok(Pushes { store, people, subscribers, stopping, worker: Mutex::new(Some(worker)) })
    }

    /// Adds a subscriber; returns the body of its response.
    pub fn subscribe(&self, wanted: SearchSubscription, head: &Parts) -> Result<ResponseBody, Problem> {
        let last = self.store.last_change()?;
        let names: Vec<String> =
            self.store.books()?.into_iter().flat_map(|info| info.book.attributes).map(|one| one.name).collect();
        let node = parse(&wanted.query, &names, now()).map_err(StoreError::from)?;
        let (to, from) = mpsc::channel(QUEUE);
        let (cut, mut at) = (Arc::new(AtomicBool::new(false)), wanted.after.unwrap_or(last).min(last));
        let mut first = format!(": events of the logbook\nretry: 2000\nid: {at}\n\n");
        if last - at > CHANGES_KEPT {
            at = last;
            first = format!("id: {at}\nevent: reset\ndata: {{\"why\":\"too many changes were missed: search again\"}}\n\n");
        }
        // The queue is empty: there is room.
        let _ = to.try_send(first.into());
        let said = head.headers.get(http::header::AUTHORIZATION).and_then(|said| said.to_str().ok()).map(str::to_owned);
        let shown = self.people.shown(&wanted.auth.principal)?;
        let mut subscribers = self.subscribers.lock();
        subscribers.retain(|one| !one.to.is_closed());
        let who = |auth: &RequestAuth| (auth.principal.login.clone(), auth.principal.is_guest().then_some(auth.from));
        let of_one = subscribers.iter().filter(|one| who(&one.wanted.auth) == who(&wanted.auth)).count();
        if subscribers.len() >= SUBSCRIBERS || of_one >= OF_ONE {
            let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "full", "too many subscribers");
            return Err(problem.help("close some connections, or retry later"));
        }
        subscribers.push(Subscriber { wanted, shown, said, node, at, to, cut: cut.clone() });
        Ok(ResponseBody::Pushed(from, cut))
    }

    /// Ends all subscriptions.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        let worker = self.worker.lock().take();
        if let Some(worker) = worker {
            let _ = worker.join();
        }
        self.subscribers.lock().clear();
    }
}

impl Drop for Pushes {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Worker {
    teller: Notifier,
    logger: Logger,
    stopping: Arc<AtomicBool>,
}

/// Notifies subscribers of changes.
struct Notifier {
    store: Arc<dyn Store>,
    people: Arc<People>,
    subscribers: Arc<Mutex<Vec<Subscriber>>>,
    /// Logbooks for which the subscribers' rights were looked up.
    books: HashSet<String>,
    /// The rules that the subscribers' rights come from.
    rules: Option<Rules>,
}

impl Worker {
    fn run(&mut self) {
        let (mut beat, mut failing) = (Instant::now(), false);
        while !self.stopping.load(Ordering::Acquire) {
            let done = self.teller.turn();
            if let Err(error) = &done {
                if !failing {
                    warning!(self.logger, "cannot push changes of the logbook: {error}; the hub retries");
                }
                std::thread::sleep(LOOK);
            }
            failing = done.is_err();
            if beat.elapsed() >= HEARTBEAT {
                beat = Instant::now();
                look_again(&self.teller.people, &self.teller.subscribers, true);
            }
        }
    }
}

impl Notifier {
    /// Sends each subscriber the changes it has not got, or waits a while for a new one.
    fn turn(&mut self) -> Result<(), StoreError> {
        let places = {
            let mut all = self.subscribers.lock();
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

    /// Sends the changes after `after` to the subscribers that have got all before.
    fn pass_on(&mut self, after: u64, most: usize) -> Result<(), StoreError> {
        for change in &self.store.changes(after, most)? {
            // A right that was taken away ends before the next entry is sent.
            if let Ok(rules) = self.people.rules()
                && self.rules.as_ref() != Some(&rules)
            {
                look_again(&self.people, &self.subscribers, false);
                self.rules = Some(rules);
            }
            // The subscribers' rights do not contain a logbook that was created later.
            if !self.books.contains(&change.at.book) {
                self.people.forget();
                look_again(&self.people, &self.subscribers, false);
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
        // Most subscribers get the same data: the entry without its text.
        let short = entry.map(|entry| {
            let mut short = entry.clone();
            short.content.text.clear();
            short
        });
        let text = entry.map(|entry| plain(entry.content.encoding, &entry.content.text));
        let mut all = self.subscribers.lock();
        all.retain_mut(|one| {
            if one.at < after || one.at >= change.number {
                return true;
            }
            one.at = change.number;
            let books = &one.wanted.books;
            let reads = one.wanted.auth.principal.rights.may(Right::Read, &change.at.book)
                && (books.is_empty() || books.iter().any(|book| same_name(book, &change.at.book)));
            if !reads {
                return true;
            }
            let veiled = one.shown.iter().find(|(book, _)| same_name(book, &change.at.book)).zip(entry);
            let veiled = veiled.map(|((_, shown), entry)| {
                let mut entry = entry.clone();
                entry.keep_shown(Some(shown));
                entry
            });
            let matched = match &veiled {
                Some(entry) => Subject::of(entry).until(&stop).is_meant(&one.node),
                None => subject.as_ref().is_some_and(|subject| subject.is_meant(&one.node)),
            };
            let veiled = veiled.map(|mut entry| {
                entry.content.text.clear();
                entry
            });
            let (kind, data) = match (veiled.as_ref().or(short.as_ref()), &text) {
                (Some(entry), Some(text)) if matched => {
                    let data = Match { what: change.what, entry, snippet: snippet(&one.node, text) };
                    ("match", serde_json::to_string(&data))
                }
                // Subscribers have not seen an entry that is new here, so they need no 'gone' for it.
                (Some(entry), _) if change.what.is_coming() || change.what == Change::Imported && entry.revision == 0 => {
                    return true;
                }
                _ => ("gone", serde_json::to_string(&Gone { what: change.what, at: &change.at })),
            };
            let Ok(data) = data else { return true };
            one.push(format!("id: {}\nevent: {kind}\ndata: {data}\n\n", change.number))
        });
    }
}

/// Re-checks the credentials of all subscribers and updates their rights. Subscribers that fail the check are
/// disconnected. With `beat` a heartbeat is sent.
fn look_again(people: &People, subscribers: &Mutex<Vec<Subscriber>>, beat: bool) {
    let mut all = subscribers.lock();
    all.retain_mut(|one| {
        let auth = &mut one.wanted.auth;
        let bearer = one.said.as_deref().and_then(|said| said.split_once(' ')).map(|(_, token)| token.trim());
        let again = people.look_again(&auth.principal, auth.secret.as_deref().or(bearer));
        let again = again.and_then(|principal| people.seen_from(principal, auth.from));
        match again.and_then(|principal| Ok((people.shown(&principal)?, principal))) {
            Ok((shown, principal)) => {
                (auth.principal, one.shown) = (principal, shown);
                !beat || one.push(": all is well\n\n".to_owned())
            }
            // A store that does not answer at the moment says nothing about the caller.
            Err(PeopleError::Store(_)) if !beat => true,
            Err(_) => {
                one.cut.store(true, Ordering::Release);
                false
            }
        }
    });
}

/// Checks the subscribers after each change of users, rights, sessions and tokens by this hub, before the change is
/// answered. Changes by others are seen with the next heartbeat.
fn watch_rights(people: &Arc<People>, subscribers: &Arc<Mutex<Vec<Subscriber>>>) {
    let (watched, subscribers) = (Arc::downgrade(people), Arc::downgrade(subscribers));
    people.on_change(move || {
        if let (Some(people), Some(subscribers)) = (watched.upgrade(), subscribers.upgrade()) {
            look_again(&people, &subscribers, false);
        }
    });
}

impl Subscriber {
    /// Queues a text. Returns false if the subscriber has disconnected, or if its queue is full and it is disconnected.
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
        people::{password::Password, registry::Settings, token::ApiToken, user::User},
        store::{Imported, sqlite::SqliteStore},
    };

    use super::*;

    #[test]
    fn a_subscriber_is_cut_off_with_the_change_that_ends_its_login() {
        let directory = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(directory.path()).unwrap());
        let people = Arc::new(People::new(store.clone(), Settings::default()).unwrap());
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let subscribers = Arc::<Mutex<Vec<Subscriber>>>::default();
        watch_rights(&people, &subscribers);
        let password = || Some(Password::new("battery staple").unwrap());
        for login in ["zoe", "max"] {
            people.add_user(User { password: password(), ..User::new(login) }).unwrap();
        }
        let session = |login: &str| {
            let (principal, secret) = people.log_in(login, "battery staple", from).unwrap();
            RequestAuth { principal, from, secret: Some(secret), elsewhere: false, secure: false, proof: None }
        };
        let subscribe = |auth: RequestAuth, said: Option<String>| {
            let wanted = SearchSubscription { books: vec![], query: String::new(), after: None, auth };
            let ((to, _from), node) = (mpsc::channel(QUEUE), parse("", &[], now()).unwrap());
            let cut = Arc::<AtomicBool>::default();
            subscribers.lock().push(Subscriber { wanted, shown: vec![], said, node, at: 0, to, cut: cut.clone() });
            cut
        };
        let is_cut = |cut: &AtomicBool| cut.load(Ordering::Acquire);
        let other = subscribe(session("max"), None);

        let auth = session("zoe");
        let (secret, cut) = (auth.secret.clone().unwrap(), subscribe(auth, None));
        people.log_out(&secret).unwrap();
        assert!(is_cut(&cut), "logout");
        let cut = subscribe(session("zoe"), None);
        people.end_sessions("zoe").unwrap();
        assert!(is_cut(&cut), "logout everywhere");
        let cut = subscribe(session("zoe"), None);
        people.set_password("zoe", "correct horse").unwrap();
        assert!(is_cut(&cut), "password");
        let (login, comment) = ("zoe".to_owned(), String::new());
        let (id, made, generation) = (String::new(), now(), None);
        let token = ApiToken { id, login, comment, may: vec![], books: vec![], made, expires: None, used: None, generation };
        let by_token = || {
            let (token, text) = people.make_token(token.clone()).unwrap();
            let principal = people.by_token(&text).unwrap();
            let auth = RequestAuth { principal, from, secret: None, elsewhere: false, secure: false, proof: None };
            (token.id, subscribe(auth, Some(format!("Bearer {text}"))))
        };
        let (id, cut) = by_token();
        people.drop_token("zoe", &id).unwrap();
        assert!(is_cut(&cut), "token");
        let (_, cut) = by_token();
        people.change_user("zoe", |user| user.inactive = true).unwrap();
        assert!(is_cut(&cut), "disabled");
        people.change_user("zoe", |user| user.inactive = false).unwrap();
        let (_, cut) = by_token();
        people.drop_user("zoe").unwrap();
        assert!(is_cut(&cut), "removed");
        assert!(!is_cut(&other) && subscribers.lock().len() == 1);
    }

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
        let auth =
            RequestAuth { principal: people.guest().unwrap(), from, secret: None, elsewhere: false, secure: false, proof: None };
        let subscriber = |at| {
            let wanted = SearchSubscription { books: vec![], query: "word".to_owned(), after: None, auth: auth.clone() };
            let (to, receiver) = mpsc::channel(QUEUE);
            let node = parse("word", &[], now()).unwrap();
            (Subscriber { wanted, shown: vec![], said: None, node, at, to, cut: Arc::default() }, receiver)
        };
        let last = store.last_change().unwrap();
        let ((late, mut to_late), (first, mut to_first)) = (subscriber(0), subscriber(last));
        let subscribers = Arc::new(Mutex::new(vec![late, first]));
        let mut teller =
            Notifier { store: store.clone(), people, subscribers: subscribers.clone(), books: HashSet::new(), rules: None };
        store.post(new("the word"), vec![], "zoe").unwrap();
        teller.turn().unwrap();
        assert!(to_first.try_recv().is_ok() && to_late.try_recv().is_err());
        let places = || subscribers.lock().iter().map(|one| one.at).collect::<Vec<_>>();
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
