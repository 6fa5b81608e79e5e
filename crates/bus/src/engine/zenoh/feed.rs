//! Announced keys as the node of this host passes them on, at a process. The node's side is in `table`.
//!
//! A process has all changes up to a number. News that begin later show that it has missed some; it asks for them. It asks,
//! too, when its connection has returned. A node of an earlier release has no table: then the engine itself reports keys.

use std::{
    any::Any,
    collections::HashSet,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
        mpsc::channel,
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use zenoh::{
    Session, Wait,
    key_expr::{KeyExpr, keyexpr},
    pubsub::Subscriber,
};

use super::{
    inbox::{Inbox, Note},
    link::Link,
    node_keys::NodeKeys,
    pattern::pattern,
    payload,
    question::{self, NEWS},
    worker::worker,
};
use crate::{
    engine::{Answer, CaughtUp},
    host,
    wire::{
        announced::{AnnouncedKeys, AskForKeys, KeyChange},
        keys::Keys,
    },
};

/// Longest wait for an answer of the node.
const ANSWER: Duration = Duration::from_secs(5);
/// Time within which a question ends if nobody answers at all.
const NOBODY: Duration = Duration::from_secs(1);
/// Number of questions before a node counts as one without a table. One that has just started makes its table.
const QUESTIONS: u32 = 4;
/// Number of questions that a busy node may be too slow for, when a process joins. It follows the keys on the engine then.
const PATIENCE: u32 = 2;
/// The same once the node has given its table. A thousand processes may ask it together.
const LONG_PATIENCE: u32 = 60;
/// Pause between these questions.
const PAUSE: Duration = Duration::from_millis(50);
/// Pause before a process whose connection has returned asks once more. A question may overtake its subscription at first.
const ONCE_MORE: Duration = Duration::from_millis(1_000);

/// Announced keys of one link.
pub(super) struct Feed {
    session: Session,
    generation: u64,
    keys: Keys,
    question: KeyExpr<'static>,
    inbox: Arc<Inbox>,
    state: Mutex<State>,
    /// True while a worker asks the node.
    is_asking: AtomicBool,
    subscriber: Mutex<Option<Subscriber<()>>>,
}

#[derive(Default)]
struct State {
    known: Known,
    /// Watches, by their numbers.
    watches: Vec<(u64, KeyExpr<'static>)>,
}

/// Watch of a feed; dropping it ends it.
struct Fed {
    feed: Weak<Feed>,
    number: u64,
}

impl Drop for Fed {
    fn drop(&mut self) {
        if let Some(feed) = self.feed.upgrade() {
            feed.state.lock().watches.retain(|(number, _)| *number != self.number);
        }
    }
}

impl Feed {
    /// Begins to follow the node of this link. Returns none if the node has no table.
    pub fn open(link: &Link, keys: Keys, place: &str, inbox: &Arc<Inbox>) -> Option<Arc<Feed>> {
        let key = |template: String| pattern(&template).ok().map(|template| link.key(&template));
        let feed = Arc::new(Feed {
            session: link.session.clone(),
            generation: link.generation,
            question: key(keys.question_for_news(place))?,
            inbox: inbox.clone(),
            state: Mutex::default(),
            is_asking: AtomicBool::new(false),
            subscriber: Mutex::default(),
            keys: keys.clone(),
        });
        let taking = Arc::downgrade(&feed);
        let news = key(keys.news_for(place, host::incarnation()))?;
        let take = move |sample: zenoh::sample::Sample| {
            if let Some(feed) = taking.upgrade() {
                feed.take(&payload::from_engine(sample.payload()));
            }
        };
        *feed.subscriber.lock() = Some(link.session.declare_subscriber(news).callback(take).wait().ok()?);
        feed.is_answered(QUESTIONS, PATIENCE).then_some(feed)
    }

    /// Asks until the node has answered. Returns false if nobody is there to answer, so many times, or if a busy node is too
    /// slow for `patience` questions.
    fn is_answered(self: &Arc<Feed>, mut questions: u32, mut patience: u32) -> bool {
        loop {
            let (began, (tell, told)) = (Instant::now(), channel());
            // Nobody listens if it took too long.
            self.ask(move |is_answered| _ = tell.send(is_answered));
            let left = match told.recv_timeout(2 * ANSWER) {
                Ok(true) => return true,
                Ok(false) if began.elapsed() < NOBODY => &mut questions,
                _ => &mut patience,
            };
            *left = left.saturating_sub(1);
            if *left == 0 {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Asks the node for the changes that this process does not have. Calls `then` behind them, with whether they have arrived.
    fn ask(self: &Arc<Feed>, then: impl FnOnce(bool) + Send + 'static) {
        let asked = self.state.lock().known.question();
        let (feed, mut then, mut has_arrived) = (Arc::downgrade(self), Some(then), false);
        let answers = Box::new(move |answer| match answer {
            Answer::Part(part) => {
                if let Some(feed) = feed.upgrade() {
                    has_arrived |= feed.take(&part);
                }
            }
            Answer::End | Answer::Unanswered => {
                if let Some(then) = then.take() {
                    then(has_arrived);
                }
            }
        });
        question::ask_on(&self.session, self.question.clone(), Bytes::from(asked.encode()), (NEWS, ANSWER), answers);
    }

    /// Takes news. Returns false if they cannot be read, or changes before them are missing.
    fn take(self: &Arc<Feed>, news: &[u8]) -> bool {
        let Ok(news) = AnnouncedKeys::decode(news) else { return false };
        let mut state = self.state.lock();
        let State { known, watches } = &mut *state;
        if known.is_empty() && !news.is_whole {
            // All keys are under way.
            return false;
        }
        let Some(changes) = known.apply(news) else {
            drop(state);
            self.clone().renew();
            return false;
        };
        let notes = |KeyChange { key, here }: &KeyChange| {
            watches.iter().filter_map(|(number, pattern)| self.note(*number, pattern, key, *here)).collect::<Vec<_>>()
        };
        // With the lock, so that notes stay in the order of the changes.
        self.inbox.put_all(changes.iter().flat_map(notes).collect());
        true
    }

    fn note(&self, watch: u64, pattern: &keyexpr, key: &str, here: bool) -> Option<Note> {
        let key = format!("{}/{key}", self.keys.root());
        let is_under = keyexpr::new(&key).is_ok_and(|key| pattern.intersects(key));
        is_under.then_some(Note::Token { watch, generation: self.generation, key, here, is_sure: true })
    }
}

impl NodeKeys for Feed {
    fn covers(&self, pattern: &str) -> bool {
        self.keys.announced(pattern).is_some()
    }

    fn watch(self: Arc<Self>, number: u64, pattern: KeyExpr<'static>, caught_up: Option<CaughtUp>) -> Box<dyn Any + Send + Sync> {
        let mut state = self.state.lock();
        let known = state.known.keys.iter().filter_map(|key| self.note(number, &pattern, key, true)).collect();
        self.inbox.put_all(known);
        state.watches.push((number, pattern));
        drop(state);
        if let Some(call) = caught_up {
            let inbox = self.inbox.clone();
            // The table may have keys that the latest news do not have.
            self.ask(move |_| inbox.put(Note::CaughtUp(call)));
        }
        Box::new(Fed { feed: Arc::downgrade(&self), number })
    }

    fn renew(self: Arc<Self>) {
        if self.is_asking.swap(true, Ordering::AcqRel) {
            return;
        }
        let feed = Arc::downgrade(&self);
        let renewing = worker("tampu-feed", move || {
            let is_answered = feed.upgrade().is_some_and(|feed| feed.is_answered(QUESTIONS, LONG_PATIENCE));
            if is_answered {
                std::thread::sleep(ONCE_MORE);
            }
            let Some(feed) = feed.upgrade() else { return };
            feed.is_asking.store(false, Ordering::Release);
            if !(is_answered && feed.is_answered(1, LONG_PATIENCE)) {
                feed.inbox.put(Note::Unfed { generation: feed.generation });
            }
        });
        if renewing.is_err() {
            self.is_asking.store(false, Ordering::Release);
        }
    }
}

/// Keys that a process knows of.
#[derive(Debug, Default)]
struct Known {
    table: u64,
    /// Number of changes that it has.
    has: u64,
    keys: HashSet<String>,
}

impl Known {
    /// Returns true if it has no keys of any table yet.
    fn is_empty(&self) -> bool {
        self.table == 0
    }

    /// Returns the question for what is missing.
    fn question(&self) -> AskForKeys {
        AskForKeys { table: self.table, has: self.has }
    }

    /// Takes news, and returns the changes in them. Returns none if changes before them are missing.
    fn apply(&mut self, news: AnnouncedKeys) -> Option<Vec<KeyChange>> {
        let until = news.until();
        if news.is_whole {
            if news.table == self.table && until < self.has {
                return Some(Vec::new());
            }
            let keys: HashSet<String> = news.changes.into_iter().map(|change| change.key).collect();
            let gone = self.keys.difference(&keys).map(|key| KeyChange { key: key.clone(), here: false });
            let come = keys.difference(&self.keys).map(|key| KeyChange { key: key.clone(), here: true });
            let changes = gone.chain(come).collect();
            (self.table, self.has, self.keys) = (news.table, until, keys);
            return Some(changes);
        }
        if news.table != self.table || self.has < news.from {
            return None;
        }
        let known = usize::try_from(self.has - news.from).unwrap_or(usize::MAX);
        let changes: Vec<KeyChange> = news.changes.into_iter().skip(known).collect();
        for KeyChange { key, here } in &changes {
            if *here {
                self.keys.insert(key.clone())
            } else {
                self.keys.remove(key)
            };
        }
        self.has = self.has.max(until);
        Some(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(key: &str, here: bool) -> KeyChange {
        KeyChange { key: key.to_owned(), here }
    }

    fn news(table: u64, from: u64, is_whole: bool, changes: &[(&str, bool)]) -> AnnouncedKeys {
        let changes = changes.iter().map(|(key, here)| change(key, *here)).collect();
        AnnouncedKeys { table, from, is_whole, changes }
    }

    #[test]
    fn news_are_taken_once_and_missing_ones_are_noticed() {
        let mut known = Known::default();
        assert_eq!(known.apply(news(7, 4, false, &[("a", true)])), None, "nothing is known of this table");
        assert_eq!(known.apply(news(7, 4, true, &[("a", true)])), Some(vec![change("a", true)]));
        let two = || news(7, 4, false, &[("b", true), ("a", false)]);
        assert_eq!(known.apply(two()), Some(vec![change("b", true), change("a", false)]));
        assert_eq!(known.apply(two()), Some(vec![]), "the same news again");
        let overlapping = news(7, 5, false, &[("a", false), ("c", true)]);
        assert_eq!(known.apply(overlapping), Some(vec![change("c", true)]));
        assert_eq!(known.question(), AskForKeys { table: 7, has: 7 });
        assert_eq!(known.apply(news(7, 8, false, &[("d", true)])), None, "one change is missing");
        assert_eq!(known.apply(news(7, 3, true, &[])), Some(vec![]), "an answer that later news have overtaken");
        assert_eq!(known.keys, HashSet::from(["b".to_owned(), "c".to_owned()]));
        // A node that has started again.
        assert_eq!(known.apply(news(8, 0, false, &[("e", true)])), None);
        let mut changes = known.apply(news(8, 1, true, &[("b", true), ("e", true)])).unwrap();
        changes.sort_by(|a, b| a.key.cmp(&b.key));
        assert_eq!(changes, [change("c", false), change("e", true)]);
        assert_eq!(known.question(), AskForKeys { table: 8, has: 1 });
    }
}
