//! Announcements of processes, and notices of their presence.
//!
//! The engine takes the loss of its own connection for the death of every process behind it. So a disappearance is
//! uncertain at first. It is reported if the connection turns out to be up. It is held back while the connection is
//! down or has just returned, until all processes have had time to return too. A process that is announced again in
//! that time counts as never gone.

use std::{
    any::Any,
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use zenoh::{
    Wait,
    handlers::CallbackDrop,
    key_expr::KeyExpr,
    liveliness::LivelinessToken,
    query::Reply,
    sample::{Sample, SampleKind},
};

use super::{
    declaration::{Declaration, Retired, Slot},
    inbox::{Inbox, Note},
    link::Link,
};
use crate::engine::{CaughtUp, EngineError, Presence, Seen};

/// Time between a disappearance and its report. The engine reports the loss of its connection up to some milliseconds
/// after its conclusions from it.
pub(super) const DOUBT: Duration = Duration::from_millis(20);

/// Time that the others have to return after a connection returned.
pub(super) const RETURN: Duration = Duration::from_millis(1_500);

/// Longest wait for the end of the keys that are announced at the beginning of a watch.
const CATCHING_UP: Duration = Duration::from_secs(5);
/// Number of questions for this end, at most, if their answers end before they are asked.
const QUESTIONS: usize = 20;

/// Announced key of the engine.
pub(super) struct Announcement {
    key: KeyExpr<'static>,
    token: Slot<LivelinessToken>,
}

impl Announcement {
    pub fn new(key: KeyExpr<'static>) -> Announcement {
        Announcement { key, token: Slot::default() }
    }
}

impl Declaration for Announcement {
    fn attach(&self, link: &Link) -> Result<Option<Retired>, EngineError> {
        let declare = || link.session.liveliness().declare_token(marked(&link.key(&self.key))).wait();
        self.token.attach(link, || format!("announcing {}", self.key), declare)
    }

    fn withdraw(&self) {
        self.token.withdraw();
    }
}

/// Watched pattern. Its notices go through the supervisor, which delivers them in order and without any lock.
pub(super) struct Watch {
    pattern: KeyExpr<'static>,
    number: u64,
    inbox: Arc<Inbox>,
    /// The engine's subscription, or a watch of the keys that the node passes on.
    subscriber: Slot<Box<dyn Any + Send + Sync>>,
    /// Call after the first keys, until it is due.
    caught_up: Mutex<Option<CaughtUp>>,
    /// True if nothing on this engine has watched the pattern before.
    is_new: bool,
}

impl Watch {
    pub fn new(pattern: KeyExpr<'static>, seen: Seen, caught_up: Option<CaughtUp>, inbox: &Arc<Inbox>) -> Watch {
        let (number, is_new) = (inbox.next_watch(), inbox.is_new_pattern(&pattern));
        inbox.put(Note::Watch { number, seen });
        let (subscriber, caught_up) = (Slot::default(), Mutex::new(caught_up));
        Watch { pattern, number, inbox: inbox.clone(), subscriber, caught_up, is_new }
    }

    /// Puts the note that the first keys have been reported behind the notes about them.
    ///
    /// The engine does not say where the first keys end, but it answers questions about keys in their order. So the end of
    /// the answer to a question asked after the watch began comes after the first keys. The question is about a key that
    /// nobody announces, because its answer would hold all keys once more. A session that knows the keys already, from
    /// another watch, reports them in its own time: then the answer brings them.
    ///
    /// The keys that the session knows are delivered by the thread that asks, and the end by the thread that reads from the
    /// node. If the end overtakes them, they are lost. So an answer that ended before the question returned does not count.
    fn ask_for_end(&self, link: &Link) {
        let Some(mut call) = self.caught_up.lock().take() else { return };
        for _ in 0..QUESTIONS {
            let answer = Arc::new(Answer::new(self.inbox.clone()));
            self.ask(link, answer.clone());
            match answer.returned(call) {
                Ok(()) => return,
                Err(early) => call = early,
            }
        }
        self.inbox.put(Note::CaughtUp(call));
    }

    /// Asks for the announced keys. If the question cannot be asked, the answer has ended.
    fn ask(&self, link: &Link, answer: Arc<Answer>) {
        let pattern = link.key(&self.pattern);
        let asked = if self.is_new && link.is_owned() { before_wildcards(&pattern) } else { pattern.clone() };
        let (inbox, watch, generation) = (self.inbox.clone(), self.number, link.generation);
        let noted = move |reply: Reply| {
            if let Some(key) = reply.result().ok().and_then(|token| unmarked(token.key_expr(), &pattern)) {
                inbox.put(Note::Token { watch, generation, key, here: true, is_sure: false });
            }
        };
        let handler = CallbackDrop { callback: noted, drop: move || answer.ended() };
        drop(link.session.liveliness().get(asked).timeout(CATCHING_UP).with(handler).wait());
    }
}

/// Answer to a question for announced keys. It counts if it ends after the question has returned.
struct Answer {
    inbox: Arc<Inbox>,
    stage: Mutex<Stage>,
}

enum Stage {
    /// The question has not returned.
    Asking,
    /// The question has returned. This is called at the end of the answer.
    Asked(CaughtUp),
    Ended,
}

impl Answer {
    fn new(inbox: Arc<Inbox>) -> Answer {
        Answer { inbox, stage: Mutex::new(Stage::Asking) }
    }

    /// Notes that the question has returned. Gives the call back if the answer ended before.
    fn returned(&self, call: CaughtUp) -> Result<(), CaughtUp> {
        let mut stage = self.stage.lock();
        if matches!(*stage, Stage::Ended) {
            return Err(call);
        }
        *stage = Stage::Asked(call);
        Ok(())
    }

    /// Notes that all of the answer has been delivered.
    fn ended(&self) {
        if let Stage::Asked(call) = std::mem::replace(&mut *self.stage.lock(), Stage::Ended) {
            self.inbox.put(Note::CaughtUp(call));
        }
    }
}

impl Declaration for Watch {
    fn attach(&self, link: &Link) -> Result<Option<Retired>, EngineError> {
        let declare = || {
            let (inbox, watch, generation) = (self.inbox.clone(), self.number, link.generation);
            let pattern = link.key(&self.pattern);
            let watched = pattern.clone();
            let noted = move |token: Sample| {
                let here = token.kind() == SampleKind::Put;
                if let Some(key) = unmarked(token.key_expr(), &watched) {
                    inbox.put(Note::Token { watch, generation, key, here, is_sure: false });
                }
            };
            if let Some(node) = link.node_keys.clone().filter(|node| node.covers(&pattern)) {
                return Ok(node.watch(self.number, pattern, self.caught_up.lock().take()));
            }
            let subscriber = link.session.liveliness().declare_subscriber(pattern).history(true).callback(noted).wait()?;
            self.ask_for_end(link);
            Ok(Box::new(subscriber) as Box<dyn Any + Send + Sync>)
        };
        self.subscriber.attach(link, || format!("watching {}", self.pattern), declare)
    }

    fn withdraw(&self) {
        self.subscriber.withdraw();
        self.inbox.put(Note::Unwatch { number: self.number });
    }
}

/// Mark in announced keys, in their fifth chunk, which names a process or a boot; in shorter keys in the last one.
///
/// For each key without wildcards that a node tells a process of, it assigns a number to the start of the key that has no
/// wildcards, and both keep the number for as long as the process is connected. For whole keys these would be several for
/// every process that ever lived, and each new key is compared with all of them. With a wildcard in its fifth chunk, the
/// keys of all processes of a host share one start.
const MARK: &str = "$*";

/// Returns the announced form of a key.
fn marked(key: &KeyExpr<'_>) -> KeyExpr<'static> {
    let mut chunks: Vec<String> = key.as_str().split('/').map(str::to_owned).collect();
    let last = chunks.len() - 1;
    chunks[last.min(4)].push_str(MARK);
    KeyExpr::try_from(chunks.join("/")).unwrap_or_else(|_| key.clone().into_owned())
}

/// Returns the key of an announced form, if it falls under the pattern.
fn unmarked(announced: &KeyExpr<'_>, pattern: &KeyExpr<'_>) -> Option<String> {
    let key = announced.as_str().replace(MARK, "");
    KeyExpr::try_from(key.as_str()).is_ok_and(|key| pattern.intersects(&key)).then_some(key)
}

/// Returns the start of a pattern, up to its first chunk with a wildcard.
fn before_wildcards(pattern: &KeyExpr<'_>) -> KeyExpr<'static> {
    let chunks: Vec<&str> = pattern.as_str().split('/').take_while(|chunk| !chunk.contains('*')).collect();
    KeyExpr::try_from(chunks.join("/")).unwrap_or_else(|_| pattern.clone().into_owned())
}

/// Announced keys by watch, and keys that may be gone. It belongs to the supervisor.
#[derive(Default)]
pub(super) struct Register {
    watches: HashMap<u64, Known>,
    doubts: BTreeMap<(u64, String), Instant>,
}

struct Known {
    seen: Seen,
    /// Latest link on which each key was seen.
    keys: HashMap<String, u64>,
}

impl Register {
    pub fn watch(&mut self, number: u64, seen: Seen) {
        self.watches.insert(number, Known { seen, keys: HashMap::new() });
    }

    pub fn unwatch(&mut self, number: u64) {
        self.watches.remove(&number);
        self.doubts.retain(|(watch, _), _| *watch != number);
    }

    /// Notes a link's report about a key. The key may be gone since `now`.
    pub fn note(&mut self, watch: u64, generation: u64, key: String, here: bool, now: Instant) {
        let Some(known) = self.watches.get_mut(&watch) else { return };
        if here {
            if !self.doubts.is_empty() {
                self.doubts.remove(&(watch, key.clone()));
            }
            let latest = known.keys.get(&key).copied();
            known.keys.insert(key.clone(), generation.max(latest.unwrap_or(0)));
            if latest.is_none() {
                (known.seen)(Presence { key, here: true });
            }
        } else if known.keys.get(&key).is_some_and(|latest| *latest <= generation) {
            self.doubts.entry((watch, key)).or_insert(now);
        }
    }

    /// Marks every key as doubtful that was not yet seen on this link, which has replaced all earlier ones.
    pub fn doubt_all_but(&mut self, generation: u64, now: Instant) {
        for (watch, known) in &self.watches {
            for (key, latest) in &known.keys {
                if *latest < generation {
                    self.doubts.entry((*watch, key.clone())).or_insert(now);
                }
            }
        }
    }

    /// Returns the time of the next possible notice; `None` without doubts.
    pub fn due(&self) -> Option<Instant> {
        self.doubts.values().min().map(|since| *since + DOUBT)
    }

    /// Reports the keys that have been doubtful for long enough.
    pub fn settle(&mut self, now: Instant) {
        let gone: Vec<(u64, String)> =
            self.doubts.iter().filter(|(_, since)| **since + DOUBT <= now).map(|(doubt, _)| doubt.clone()).collect();
        for (watch, key) in gone {
            self.doubts.remove(&(watch, key.clone()));
            if let Some(known) = self.watches.get_mut(&watch)
                && known.keys.remove(&key).is_some()
            {
                (known.seen)(Presence { key, here: false });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn the_start_of_a_pattern_has_no_wildcards() {
        let start = |pattern: &str| before_wildcards(&KeyExpr::try_from(pattern.to_owned()).unwrap()).to_string();
        assert_eq!(start("tampu/lab/r/**"), "tampu/lab/r");
        assert_eq!(start("tampu/lab/p$*/x"), "tampu/lab");
        assert_eq!((start("a/b"), start("**")), ("a/b".to_owned(), "**".to_owned()));
    }

    #[test]
    fn marked_keys_lead_back_to_themselves() {
        for (key, announced) in [("t/lab/p/-/1-2-3/61", "t/lab/p/-/1-2-3$*/61"), ("t/lab/n/-/7", "t/lab/n/-/7$*"), ("a", "a$*")] {
            let marked = marked(&KeyExpr::try_from(key).unwrap());
            assert_eq!(marked.as_str(), announced);
            let under = |pattern: &str| unmarked(&marked, &KeyExpr::try_from(pattern.to_owned()).unwrap());
            assert_eq!((under("**").as_deref(), under(key).as_deref()), (Some(key), Some(key)));
            assert_eq!(under(&format!("{key}x")), None);
        }
    }

    #[test]
    fn only_a_disappearance_that_lasts_is_told() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let into = told.clone();
        let mut register = Register::default();
        register.watch(1, Arc::new(move |presence| into.lock().unwrap().push((presence.key, presence.here))));
        let start = Instant::now();
        let note = |register: &mut Register, generation, key: &str, here| {
            register.note(1, generation, key.to_owned(), here, start);
            told.lock().unwrap().drain(..).collect::<Vec<_>>()
        };

        assert_eq!(note(&mut register, 1, "a", true), [("a".to_owned(), true)]);
        assert_eq!(note(&mut register, 1, "a", true), []);
        // Gone and back within the doubt period: no change is reported.
        assert_eq!(note(&mut register, 1, "a", false), []);
        assert_eq!(register.due(), Some(start + DOUBT));
        assert_eq!(note(&mut register, 1, "a", true), []);
        assert_eq!(register.due(), None);
        // Seen on a later link: reports of the earlier one do not count.
        assert_eq!(note(&mut register, 2, "a", true), []);
        assert_eq!(note(&mut register, 1, "a", false), []);
        assert_eq!(register.due(), None);
        // Not seen on the later link.
        assert_eq!(note(&mut register, 1, "b", true), [("b".to_owned(), true)]);
        register.doubt_all_but(2, start);
        register.settle(start);
        assert_eq!(note(&mut register, 1, "c", false), []);
        register.settle(start + DOUBT);
        assert_eq!(note(&mut register, 1, "c", false), [("b".to_owned(), false)]);
    }
}
