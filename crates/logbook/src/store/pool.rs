//! Connections to a database that are lent out one at a time: at most so many, who came first goes first.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

use super::Result;

/// Locks a mutex, also after a panic elsewhere: what panicked has rolled its transaction back, and nothing is left half done.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The connections.
pub struct Pool<C> {
    make: Box<dyn Fn() -> Result<C> + Send + Sync>,
    health: fn(&C) -> Health,
    most: usize,
    state: Mutex<Waiting<C>>,
    back: Condvar,
}

/// What becomes of a connection that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It is used again.
    Good,
    /// It is thrown away.
    Spent,
    /// It is thrown away, and so are all that nobody uses: what ended it has ended them too.
    Lost,
}

/// Connections that nobody uses, and who waits for one.
struct Waiting<C> {
    idle: Vec<C>,
    /// How many there are in all.
    made: usize,
    /// The number the next one who comes gets, and the one whose turn it is.
    next: u64,
    turn: u64,
}

/// One of them, until it is dropped.
pub struct Lent<'a, C> {
    /// There until it is dropped.
    connection: Option<C>,
    home: &'a Pool<C>,
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("most", &self.most).finish_non_exhaustive()
    }
}

impl<C> Pool<C> {
    /// At most so many, made so when they are needed, and looked at when they come back and when they are lent out again.
    pub fn new(most: usize, make: impl Fn() -> Result<C> + Send + Sync + 'static, health: fn(&C) -> Health) -> Pool<C> {
        let state = Mutex::new(Waiting { idle: Vec::new(), made: 0, next: 0, turn: 0 });
        Pool { make: Box::new(make), health, most, state, back: Condvar::new() }
    }

    /// One that nobody uses; waits for it, in the order of coming.
    pub fn get(&self) -> Result<Lent<'_, C>> {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        while state.turn != number || (state.idle.is_empty() && state.made >= self.most) {
            state = self.back.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.turn += 1;
        let (mut idle, mut ended) = (state.idle.pop(), Vec::new());
        while let Some(connection) = idle.take_if(|connection| (self.health)(connection) != Health::Good) {
            ended.push(connection);
            idle = state.idle.pop();
        }
        state.made = state.made + usize::from(idle.is_none()) - ended.len();
        drop(state);
        self.back.notify_all();
        drop(ended);
        // Making one can take long; others come and go meanwhile.
        let made = idle.map_or_else(&self.make, Ok);
        if made.is_err() {
            lock(&self.state).made -= 1;
            self.back.notify_all();
        }
        made.map(|connection| Lent { connection: Some(connection), home: self })
    }
}

impl<C> Drop for Lent<'_, C> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let health = (self.home.health)(&connection);
        let mut state = lock(&self.home.state);
        let mut ended = Vec::new();
        if health == Health::Lost {
            ended = std::mem::take(&mut state.idle);
        }
        if health == Health::Good {
            state.idle.push(connection);
        } else {
            ended.push(connection);
        }
        state.made -= ended.len();
        drop(state);
        self.home.back.notify_all();
        drop(ended);
    }
}

impl<C> Deref for Lent<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("a connection is there until it is given back"),
        }
    }
}

impl<C> DerefMut for Lent<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("a connection is there until it is given back"),
        }
    }
}
