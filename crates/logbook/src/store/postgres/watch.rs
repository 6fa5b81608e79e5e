//! Ends statements of searches that nobody waits for any longer, or whose time is over: a thread that looks while there are some.

use std::{
    collections::HashMap,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use postgres::{CancelToken, NoTls};

use super::session::Session;
use crate::{search::Stop, store::pool::lock};

/// How often it looks.
const LOOK: Duration = Duration::from_millis(20);

/// The searches that are under way.
#[derive(Default)]
pub struct Watch(Arc<Watched>);

#[derive(Default)]
struct Watched {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    searches: HashMap<u64, Search>,
    next: u64,
    /// Whether the thread runs; it ends when there was nothing to look at for a while.
    runs: bool,
    /// Whether it waits until there is something.
    sleeps: bool,
}

struct Search {
    stop: Stop,
    cancel: CancelToken,
    cancelled: bool,
    watched: Arc<AtomicBool>,
}

/// A search that is watched until this is dropped.
pub struct Watching<'a> {
    watch: &'a Watch,
    number: u64,
    session: &'a Session,
    watched: Arc<AtomicBool>,
}

impl Watching<'_> {
    /// While this is set its statements are ended.
    pub fn watched(&self) -> &AtomicBool {
        &self.watched
    }
}

impl Watch {
    /// Watches over what a connection does.
    pub fn over<'a>(&'a self, session: &'a Session, stop: &Stop) -> Watching<'a> {
        let mut state = lock(&self.0.state);
        let number = state.next;
        state.next += 1;
        let watched = Arc::new(AtomicBool::new(true));
        let search = Search { stop: stop.clone(), cancel: session.cancel_token(), cancelled: false, watched: watched.clone() };
        state.searches.insert(number, search);
        if !state.runs {
            let watched = self.0.clone();
            let thread = std::thread::Builder::new().name("book-watch".to_owned());
            // Without a thread searches still end between two statements.
            state.runs = thread.spawn(move || watched.look()).is_ok();
        } else if state.sleeps {
            self.0.more.notify_one();
        }
        Watching { watch: self, number, session, watched }
    }
}

impl Watched {
    fn look(&self) {
        let mut state = lock(&self.state);
        loop {
            if state.searches.is_empty() {
                let long = Duration::from_secs(10);
                state.sleeps = true;
                state = self.more.wait_timeout(state, long).unwrap_or_else(PoisonError::into_inner).0;
                state.sleeps = false;
                if state.searches.is_empty() {
                    state.runs = false;
                    return;
                }
            }
            state = self.more.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            let ended: Vec<CancelToken> = state
                .searches
                .values_mut()
                .filter(|search| !search.cancelled && search.watched.load(Ordering::Relaxed) && search.stop.why().is_some())
                .map(|search| {
                    search.cancelled = true;
                    search.cancel.clone()
                })
                .collect();
            if !ended.is_empty() {
                drop(state);
                for cancel in ended {
                    // A server that cannot be asked ends nothing; the search then ends with its statement.
                    let _ = cancel.cancel_query(NoTls);
                }
                state = lock(&self.state);
            }
        }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let search = lock(&self.watch.0.state).searches.remove(&self.number);
        if search.is_some_and(|search| search.cancelled) {
            // The request may still be on its way, and would end what somebody else does with this connection.
            self.session.spend();
        }
    }
}
