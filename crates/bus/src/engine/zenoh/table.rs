//! The announced keys that a node passes on to the processes of its host.
//!
//! Decision: processes are not told of each key by the engine. There, every announcement is a message of its own for every
//! process, and the router compares it with the watches of each. With 1000 processes a million messages wake a million
//! times. So the node alone watches, and its processes get changes in batches, the same message for all. One that joins
//! gets all keys in one answer. The layout is in `spec/wire/announced.md`, the other side in `feed`.
//!
//! All keys are encoded once for many processes that join: their answer is followed by the changes since then.
//!
//! A change after a pause is passed on at once. Then the node gathers for 1 ms for each process of its host: to wake them all
//! takes less than a tenth of that on two processors.

use std::{
    collections::{HashSet, VecDeque},
    iter,
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use zenoh::{Wait, key_expr::KeyExpr, qos::CongestionControl};

use super::{
    core::Core,
    inbox::{Inbox, Note},
    lease::Lease,
    pattern::pattern,
    payload,
    process::ZenohEngine,
    question::NEWS,
    worker::worker,
};
use crate::{
    engine::{Engine, EngineError, Guard, Presence, Question},
    host,
    wire::{
        announced::{AskForKeys, KEPT, encode},
        keys::Keys,
    },
};

/// Time for which changes are gathered, for each process of the host.
const GATHER: Duration = Duration::from_millis(1);

/// Longest time for which changes are gathered.
const GATHER_AT_MOST: Duration = Duration::from_millis(200);

/// Longest time for which a withdrawn key is held back: a death is reported within 150 ms.
const GATHER_WITHDRAWN: Duration = Duration::from_millis(20);

/// Time without changes after which the number of changes is sent alone. A process that has missed some asks then.
const QUIET: Duration = Duration::from_secs(30);

/// Table of a node; dropping it ends it.
pub(super) struct AnnouncementTable {
    // Dropped before the engine.
    _guards: Vec<Guard>,
    shared: Arc<Shared>,
    _engine: ZenohEngine,
}

struct Shared {
    /// Key of the news.
    key: KeyExpr<'static>,
    core: Weak<Core>,
    table: Mutex<Table>,
    news: Condvar,
}

impl AnnouncementTable {
    /// Begins to pass on what this engine of a node sees, to the processes at this place.
    pub fn start(engine: ZenohEngine, keys: Keys, place: &str) -> Result<AnnouncementTable, EngineError> {
        let core = Arc::downgrade(&engine.core);
        let table = Mutex::new(Table::new(host::incarnation().start));
        let shared = Arc::new(Shared { key: pattern(&keys.news(place))?, core, table, news: Condvar::new() });
        let of_questions = Arc::downgrade(&shared);
        let inbox: Arc<Inbox> = engine.core.inbox.clone();
        let asked = move |question: Box<dyn Question>| {
            let shared = of_questions.clone();
            // Behind the notes about keys that were announced before the question.
            inbox.put(Note::CaughtUp(Box::new(move || {
                if let Some(shared) = shared.upgrade() {
                    shared.asked(question);
                }
            })));
        };
        let mut guards = vec![engine.answer(&keys.questions_for_news(place), Arc::new(asked))?];
        let (of_watch, of_end, all) = (Arc::downgrade(&shared), Arc::downgrade(&shared), keys.all());
        let seen = move |Presence { key, here }: Presence| {
            if let (Some(shared), Some(key)) = (of_watch.upgrade(), keys.announced(&key)) {
                shared.table.lock().note(key, here);
                shared.news.notify_all();
            }
        };
        let caught_up = move || {
            if let Some(shared) = of_end.upgrade() {
                shared.caught_up();
            }
        };
        guards.push(engine.watch(&all, Arc::new(seen), Some(Box::new(caught_up)))?);
        let publishes = shared.clone();
        worker("tampu-announced", move || publishes.run())?;
        Ok(AnnouncementTable { _guards: guards, shared, _engine: engine })
    }
}

impl Drop for AnnouncementTable {
    fn drop(&mut self) {
        self.shared.table.lock().is_over = true;
        self.shared.news.notify_all();
    }
}

impl Shared {
    fn caught_up(&self) {
        let mut table = self.table.lock();
        table.is_complete = true;
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        waiting.into_iter().for_each(|question| self.asked(question));
    }

    fn asked(&self, question: Box<dyn Question>) {
        let Ok(asked) = AskForKeys::decode(question.payload()) else { return };
        let mut table = self.table.lock();
        if !table.is_complete {
            return table.waiting.push(question);
        }
        let parts = table.answer(asked);
        drop(table);
        // If one fails, the process asks again.
        _ = parts.into_iter().try_for_each(|part| question.reply(part));
    }

    fn run(&self) {
        loop {
            let mut table = self.table.lock();
            loop {
                if table.is_over {
                    return;
                }
                match table.due() {
                    None => self.news.wait(&mut table),
                    Some(due) if due <= Instant::now() => break,
                    Some(due) => _ = self.news.wait_until(&mut table, due),
                }
            }
            let news = table.take_news(Instant::now());
            drop(table);
            self.publish(news);
        }
    }

    /// Sends news to all processes of the host. A process that is not connected asks for them when it is again.
    fn publish(&self, news: Vec<u8>) {
        let Some(core) = self.core.upgrade() else { return };
        let link = core.current().1;
        let Some(_in_use) = Lease::of(link.lease.as_ref()) else { return };
        let put = link.session.put(link.key(&self.key), payload::to_engine(news.into()));
        // A process that takes nothing for too long loses its connection, as with the engine's announcements.
        _ = put.congestion_control(CongestionControl::Block).priority(NEWS).wait();
    }
}

/// Announced keys, and the latest changes.
struct Table {
    id: u64,
    keys: HashSet<Arc<str>>,
    /// Latest changes, each with whether the key was announced.
    log: VecDeque<(Arc<str>, bool)>,
    /// Number of changes so far.
    changes: u64,
    published: u64,
    published_at: Option<Instant>,
    /// True if an unpublished change withdraws a key.
    has_withdrawn: bool,
    /// Start of the process number in keys of processes on this host.
    own_boot: String,
    /// Number of processes on this host.
    processes: u32,
    /// True once the keys are known that were announced before.
    is_complete: bool,
    waiting: Vec<Box<dyn Question>>,
    /// All keys for processes that join. Freed when nothing has changed for a while.
    snapshot: Option<Snapshot>,
    is_over: bool,
}

/// Message with all keys of a table.
#[derive(Clone)]
struct Snapshot {
    /// Number of changes that it includes.
    until: u64,
    message: Bytes,
}

impl Table {
    fn new(id: u64) -> Table {
        Table {
            id,
            keys: HashSet::new(),
            log: VecDeque::new(),
            changes: 0,
            published: 0,
            published_at: None,
            has_withdrawn: false,
            own_boot: format!("{:08x}-", host::boot()),
            processes: 0,
            is_complete: false,
            waiting: Vec::new(),
            snapshot: None,
            is_over: false,
        }
    }

    fn note(&mut self, key: &str, here: bool) {
        let key: Arc<str> = key.into();
        let is_news = if here { self.keys.insert(key.clone()) } else { self.keys.remove(&key) };
        if !is_news {
            return;
        }
        if key.starts_with("p/") && key.split('/').nth(2).is_some_and(|process| process.starts_with(&self.own_boot)) {
            self.processes = if here { self.processes + 1 } else { self.processes.saturating_sub(1) };
        }
        self.has_withdrawn |= !here;
        if self.log.len() == KEPT {
            self.log.pop_front();
        }
        self.log.push_back((key, here));
        self.changes += 1;
    }

    /// Returns the time of the next news; `None` without any change so far.
    fn due(&self) -> Option<Instant> {
        if self.published == self.changes {
            return self.published_at.map(|before| before + QUIET);
        }
        let longest = if self.has_withdrawn { GATHER_WITHDRAWN } else { GATHER_AT_MOST };
        let pause = (GATHER * self.processes).min(longest);
        Some(self.published_at.map_or_else(Instant::now, |before| before + pause))
    }

    fn take_news(&mut self, now: Instant) -> Vec<u8> {
        if self.published == self.changes {
            self.snapshot = None;
        }
        let news = self.since(self.published);
        (self.published, self.published_at, self.has_withdrawn) = (self.changes, Some(now), false);
        news
    }

    /// Number of changes before those that are kept.
    fn forgotten(&self) -> u64 {
        self.changes - self.log.len() as u64
    }

    fn since(&self, has: u64) -> Vec<u8> {
        let from = has.max(self.forgotten());
        let known = usize::try_from(from - self.forgotten()).unwrap_or(usize::MAX);
        encode(self.id, from, false, self.log.iter().skip(known).map(|(key, here)| (&**key, *here)))
    }

    /// Returns the parts of an answer, in their order.
    fn answer(&mut self, asked: AskForKeys) -> Vec<Bytes> {
        if asked.table == self.id && (self.forgotten()..=self.changes).contains(&asked.has) {
            return vec![self.since(asked.has).into()];
        }
        let Snapshot { until, message } = self.all_keys();
        let later = (until < self.changes).then(|| self.since(until).into());
        iter::once(message).chain(later).collect()
    }

    /// Returns all keys, as of a short while ago.
    ///
    /// With n keys, and a process that joins for each change, a new snapshot after k changes costs n / k entries for each of
    /// them, and the changes since then k / 2: together least at the square root of 2 n.
    fn all_keys(&mut self) -> Snapshot {
        let most = (2 * self.keys.len() as u64).isqrt().min(self.log.len() as u64);
        if let Some(earlier) = self.snapshot.as_ref().filter(|earlier| self.changes - earlier.until <= most) {
            return earlier.clone();
        }
        let message = encode(self.id, self.changes, true, self.keys.iter().map(|key| (&**key, true)));
        self.snapshot.insert(Snapshot { until: self.changes, message: message.into() }).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::announced::{AnnouncedKeys, KeyChange};

    fn read(bytes: &[u8]) -> AnnouncedKeys {
        AnnouncedKeys::decode(bytes).unwrap()
    }

    fn change(key: &str, here: bool) -> KeyChange {
        KeyChange { key: key.to_owned(), here }
    }

    #[test]
    fn a_process_gets_what_it_misses() {
        let mut table = Table::new(7);
        for key in ["p/-/1-2-3/61", "n/-/1", "p/-/1-2-3/61"] {
            table.note(key, true);
        }
        table.note("n/-/2", false);
        table.note("n/-/1", false);
        assert_eq!(table.changes, 3, "two reports were no change");
        let answer = |table: &mut Table, asked| {
            let parts = table.answer(asked);
            assert_eq!(parts.len(), 1);
            read(&parts[0])
        };
        let all = answer(&mut table, AskForKeys::default());
        assert_eq!((all.is_whole, all.from, all.changes), (true, 3, vec![change("p/-/1-2-3/61", true)]));
        let missed = answer(&mut table, AskForKeys { table: 7, has: 1 });
        assert_eq!((missed.is_whole, missed.from), (false, 1));
        assert_eq!(missed.changes, [change("n/-/1", true), change("n/-/1", false)]);
        assert_eq!(answer(&mut table, AskForKeys { table: 7, has: 3 }).changes, []);
        assert!(answer(&mut table, AskForKeys { table: 8, has: 1 }).is_whole, "of another table");
        assert!(answer(&mut table, AskForKeys { table: 7, has: 4 }).is_whole, "more than there are");
        // News are of all changes since the last ones, once.
        let news = read(&table.take_news(Instant::now()));
        assert_eq!((news.from, news.changes.len()), (0, 3));
        let now = Instant::now();
        assert!(table.due().is_some_and(|due| due > now && due <= now + QUIET), "the number alone, after a while");
        let alone = read(&table.take_news(now));
        assert_eq!((alone.from, alone.changes.len()), (3, 0));
        for number in 0..KEPT {
            table.note(&format!("p/-/{number}"), true);
        }
        assert!(answer(&mut table, AskForKeys { table: 7, has: 2 }).is_whole, "forgotten");
        assert_eq!(answer(&mut table, AskForKeys { table: 7, has: 3 }).changes.len(), KEPT);
    }

    #[test]
    fn all_keys_are_encoded_once_for_many_processes_that_join() {
        const KEYS: usize = 2_000;
        let mut table = Table::new(7);
        (0..KEYS).for_each(|number| table.note(&format!("p/-/{number}"), true));
        let (mut snapshots, mut changes) = (Vec::new(), 0);
        for number in 0..KEYS {
            table.note(&format!("p/-/{number}"), false);
            let parts = table.answer(AskForKeys::default());
            let [all, later] = [parts.first(), parts.get(1)].map(|part| part.map(|part| read(part)));
            let (all, later) = (all.unwrap(), later.unwrap_or_default());
            assert!(all.is_whole && !later.is_whole && (later.changes.is_empty() || later.from == all.until()));
            changes += later.changes.len();
            let mut keys: HashSet<String> = all.changes.into_iter().map(|change| change.key).collect();
            later.changes.iter().for_each(|change| assert!(!change.here && keys.remove(&change.key)));
            assert_eq!(keys.len(), KEYS - number - 1);
            // Held, so that each has memory of its own.
            snapshots.push(parts[0].clone());
        }
        let addresses: HashSet<*const u8> = snapshots.iter().map(|snapshot| snapshot.as_ptr()).collect();
        assert!(addresses.len() < KEYS / 20, "{} times", addresses.len());
        assert!(changes < 40 * KEYS, "{changes} changes behind them");
        assert!(table.snapshot.is_some());
        table.take_news(Instant::now());
        assert!(table.snapshot.is_some(), "processes may still join");
        table.take_news(Instant::now());
        assert!(table.snapshot.is_none(), "freed with the news that there are no changes");
    }

    #[test]
    fn a_node_with_many_processes_gathers_for_longer_but_holds_no_death_back() {
        let mut table = Table::new(7);
        let here = |number: u32| format!("p/-/{:08x}-0-{number:x}/61", host::boot());
        table.note(&here(0), true);
        assert!(table.due().is_some_and(|due| due <= Instant::now()), "the first change at once");
        let began = Instant::now();
        let mut pause = |count: u32, here: &dyn Fn(&mut Table)| {
            (1..count).for_each(|number| table.note(&format!("p/-/{:08x}-1-{number:x}/61", host::boot()), true));
            table.take_news(began);
            here(&mut table);
            table.due().map(|due| due - began)
        };
        assert_eq!(pause(100, &|table| table.note("n/-/1", true)), Some(100 * GATHER));
        assert_eq!(pause(100, &|table| table.note("n/-/1", false)), Some(GATHER_WITHDRAWN));
        assert_eq!(pause(1000, &|table| table.note("n/-/1", true)), Some(GATHER_AT_MOST));
        assert_eq!(pause(1000, &|_| {}), Some(QUIET));
    }
}
