//! Cancels the statements of stopped searches: a thread checks the stop signals while there are searches.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tampu_workers::WorkerThread;

use super::session::{Cancel, Session};
use crate::search::Stop;

/// The poll interval of stop signals.
const LOOK: Duration = Duration::from_millis(20);

/// The searches in progress.
#[derive(Default)]
pub struct SearchWatch(Arc<Watched>);

#[derive(Default)]
struct Watched {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    searches: HashMap<u64, Search>,
    next: u64,
    /// True while the thread runs; it ends after some time without searches.
    runs: bool,
    /// True while the thread waits for a search.
    sleeps: bool,
}

struct Search {
    stop: Stop,
    cancel: Cancel,
    cancelled: bool,
    watched: Arc<AtomicBool>,
}

/// A search that is watched until this is dropped.
pub struct Watching<'a> {
    watch: &'a SearchWatch,
    number: u64,
    session: &'a Session,
    watched: Arc<AtomicBool>,
}

impl Watching<'_> {
    /// Returns the flag. While it is set, the search's statements are cancelled.
    pub fn watched(&self) -> &AtomicBool {
        &self.watched
    }
}

impl SearchWatch {
    /// Watches the searches of a connection.
    pub fn over<'a>(&'a self, session: &'a Session, stop: &Stop) -> Watching<'a> {
        let mut state = self.0.state.lock();
        let number = state.next;
        state.next += 1;
        let watched = Arc::new(AtomicBool::new(true));
        let search = Search { stop: stop.clone(), cancel: session.cancel_token(), cancelled: false, watched: watched.clone() };
        state.searches.insert(number, search);
        if !state.runs {
            let watched = self.0.clone();
            let thread = WorkerThread::named("book-watch");
            // Without a thread searches still end between two statements.
            state.runs = thread.spawn_restarting(LOOK, move || watched.look()).is_ok();
        } else if state.sleeps {
            self.0.more.notify_one();
        }
        Watching { watch: self, number, session, watched }
    }
}

impl Watched {
    fn look(&self) {
        let mut state = self.state.lock();
        loop {
            if state.searches.is_empty() {
                let long = Duration::from_secs(10);
                state.sleeps = true;
                self.more.wait_for(&mut state, long);
                state.sleeps = false;
                if state.searches.is_empty() {
                    state.runs = false;
                    return;
                }
            }
            self.more.wait_for(&mut state, LOOK);
            let ended: Vec<Cancel> = state
                .searches
                .values_mut()
                .filter(|search| !search.cancelled && search.watched.load(Ordering::Relaxed) && search.stop.is_stopped())
                .map(|search| {
                    search.cancelled = true;
                    search.cancel.clone()
                })
                .collect();
            if !ended.is_empty() {
                drop(state);
                for cancel in ended {
                    cancel.send();
                }
                state = self.state.lock();
            }
        }
    }
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        let search = self.watch.0.state.lock().searches.remove(&self.number);
        if search.is_some_and(|search| search.cancelled) {
            // The cancel request may still be on its way, and would cancel the next user's statement on this connection.
            self.session.spend();
        }
    }
}
