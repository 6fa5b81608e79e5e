//! Notes for the supervisor. Callbacks of the engine put them here and return at once.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use super::{connection::Connection, host_name::HostName, link::Link, settings::Role};
use crate::engine::{CaughtUp, EngineError, Seen};

/// Note for the supervisor.
pub(super) enum Note {
    /// A connection of a link came or went.
    Connection { generation: u64, there: String, up: bool },
    /// A watch begins.
    Watch { number: u64, seen: Seen },
    /// A watch ends.
    Unwatch { number: u64 },
    /// A watch saw a key come or go.
    Token {
        watch: u64,
        generation: u64,
        key: String,
        here: bool,
        /// True if a disappearance needs no doubt: the node has reported it.
        is_sure: bool,
    },
    /// The node no longer passes on announced keys, although the connection is up.
    Unfed { generation: u64 },
    /// A watch has reported the keys that were announced at its beginning.
    CaughtUp(CaughtUp),
    /// The requested session has been opened, or failed.
    Opened(Connection, Box<Result<Link, EngineError>>),
}

/// Queue of notes for the supervisor. Bounded by the announced keys: each has at most a few notes under way.
#[derive(Default)]
pub(super) struct Inbox {
    notes: Mutex<(VecDeque<Note>, bool)>,
    news: Condvar,
    watches: AtomicU64,
    /// Patterns that have been watched.
    patterns: Mutex<HashSet<String>>,
}

impl Inbox {
    pub fn put(&self, note: Note) {
        let mut notes = self.notes.lock();
        if notes.1 {
            // Dropped without the lock: a session in the note closes, which puts notes about its connections.
            drop(notes);
            return drop(note);
        }
        notes.0.push_back(note);
        self.news.notify_all();
    }

    /// Puts several notes, which the supervisor takes together.
    pub fn put_all(&self, several: Vec<Note>) {
        let mut notes = self.notes.lock();
        if notes.1 || several.is_empty() {
            return;
        }
        notes.0.extend(several);
        self.news.notify_all();
    }

    /// Ends the supervisor.
    pub fn close(&self) {
        let mut notes = self.notes.lock();
        notes.1 = true;
        let unread = std::mem::take(&mut notes.0);
        self.news.notify_all();
        drop(notes);
        drop(unread);
    }

    /// Opens a link that reports its connections here.
    pub fn open_link(self: &Arc<Inbox>, role: &Role, host: HostName) -> Result<Link, EngineError> {
        let inbox = self.clone();
        Link::open(role, host, move |generation, there, up| inbox.put(Note::Connection { generation, there, up }))
    }

    /// Notes that a pattern is watched. Returns true if it has not been watched before.
    pub fn is_new_pattern(&self, pattern: &str) -> bool {
        self.patterns.lock().insert(pattern.to_owned())
    }

    pub fn next_watch(&self) -> u64 {
        self.watches.fetch_add(1, Ordering::Relaxed)
    }

    /// Waits for notes, at most until the deadline; returns `None` once closed.
    pub fn take(&self, deadline: Option<Instant>) -> Option<VecDeque<Note>> {
        let mut notes = self.notes.lock();
        loop {
            if notes.1 {
                return None;
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if !notes.0.is_empty() || left == Some(Duration::ZERO) {
                return Some(std::mem::take(&mut notes.0));
            }
            match left {
                None => self.news.wait(&mut notes),
                Some(left) => _ = self.news.wait_for(&mut notes, left),
            }
        }
    }
}
