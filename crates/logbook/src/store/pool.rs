//! A bounded pool of database connections, lent in the order of requests.

use std::{
    collections::BTreeSet,
    fmt,
    ops::{Deref, DerefMut},
    time::Instant,
};

use parking_lot::{Condvar, Mutex};

use super::{Result, StoreError, error::WAIT, report::ConnectionReport};

/// A bounded set of connections.
pub struct Pool<C> {
    make: Box<dyn Fn() -> Result<C> + Send + Sync>,
    health: fn(&C) -> ConnectionHealth,
    most: usize,
    state: Mutex<Waiting<C>>,
    back: Condvar,
}

/// The state of a connection that is returned to its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionHealth {
    /// It is used again.
    Good,
    /// It is discarded.
    Spent,
    /// The connection is lost and is closed, together with all idle ones, because the same cause has ended them.
    Lost,
}

/// Idle connections, and the queue of waiting threads.
struct Waiting<C> {
    idle: Vec<C>,
    /// The number of connections that exist.
    made: usize,
    /// The ticket of the next thread in the queue, and the ticket that is served now.
    next: u64,
    turn: u64,
    /// The tickets of threads that have left the queue.
    left: BTreeSet<u64>,
}

impl<C> Waiting<C> {
    /// Serves the next ticket that a thread still waits with.
    fn pass_on(&mut self) {
        self.turn += 1;
        while self.left.remove(&self.turn) {
            self.turn += 1;
        }
    }
}

/// A lent connection, which returns to the pool when it is dropped.
pub struct PooledConnection<'a, C> {
    /// The connection; `None` only during the drop.
    connection: Option<C>,
    home: &'a Pool<C>,
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("most", &self.most).finish_non_exhaustive()
    }
}

impl<C> Pool<C> {
    /// Creates a pool of at most `most` connections. `make` opens one on demand. `health` checks each when it is
    /// returned and when it is lent again.
    pub fn new(most: usize, make: impl Fn() -> Result<C> + Send + Sync + 'static, health: fn(&C) -> ConnectionHealth) -> Pool<C> {
        let state = Mutex::new(Waiting { idle: Vec::new(), made: 0, next: 0, turn: 0, left: BTreeSet::new() });
        Pool { make: Box::new(make), health, most, state, back: Condvar::new() }
    }

    /// Returns the numbers of connections and of waiting threads.
    pub fn report(&self, used_to: &'static str) -> ConnectionReport {
        let state = self.state.lock();
        let waiting = (state.next - state.turn) as usize - state.left.len();
        ConnectionReport { used_to, open: state.made, busy: state.made - state.idle.len(), waiting }
    }

    /// Returns an idle connection; waits for one in the order of arrival, at most [`WAIT`].
    pub fn get(&self) -> Result<PooledConnection<'_, C>> {
        self.get_before(Instant::now() + WAIT)
    }

    fn get_before(&self, end: Instant) -> Result<PooledConnection<'_, C>> {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        while state.turn != number || (state.idle.is_empty() && state.made >= self.most) {
            if !self.back.wait_until(&mut state, end).timed_out() {
                continue;
            }
            if state.turn == number {
                state.pass_on();
            } else {
                state.left.insert(number);
            }
            drop(state);
            self.back.notify_all();
            return Err(StoreError::Busy);
        }
        state.pass_on();
        let (mut idle, mut ended) = (state.idle.pop(), Vec::new());
        while let Some(connection) = idle.take_if(|connection| (self.health)(connection) != ConnectionHealth::Good) {
            ended.push(connection);
            idle = state.idle.pop();
        }
        state.made = state.made + usize::from(idle.is_none()) - ended.len();
        drop(state);
        self.back.notify_all();
        drop(ended);
        // Opening a connection can take long; the pool is not locked meanwhile.
        let made = idle.map_or_else(&self.make, Ok);
        if made.is_err() {
            self.state.lock().made -= 1;
            self.back.notify_all();
        }
        made.map(|connection| PooledConnection { connection: Some(connection), home: self })
    }
}

impl<C> Drop for PooledConnection<'_, C> {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let health = (self.home.health)(&connection);
        let mut state = self.home.state.lock();
        let mut ended = Vec::new();
        if health == ConnectionHealth::Lost {
            ended = std::mem::take(&mut state.idle);
        }
        if health == ConnectionHealth::Good {
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

impl<C> Deref for PooledConnection<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        match &self.connection {
            Some(connection) => connection,
            None => unreachable!("a connection is there until it is given back"),
        }
    }
}

impl<C> DerefMut for PooledConnection<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        match &mut self.connection {
            Some(connection) => connection,
            None => unreachable!("a connection is there until it is given back"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_waits_for_a_connection_until_its_time_is_over() {
        let pool = Pool::new(1, || Ok(()), |_| ConnectionHealth::Good);
        let held = pool.get().unwrap();
        let now = Instant::now();
        assert!(matches!(pool.get_before(now), Err(StoreError::Busy)));
        std::thread::scope(|scope| {
            // The ticket of a thread that left is not waited for, neither at the head of the queue nor inside it.
            let waiting = scope.spawn(|| pool.get().is_ok());
            while pool.state.lock().next < 3 {
                std::thread::yield_now();
            }
            assert!(matches!(pool.get_before(now), Err(StoreError::Busy)));
            let last = scope.spawn(|| pool.get().is_ok());
            while pool.state.lock().next < 5 {
                std::thread::yield_now();
            }
            drop(held);
            assert!(waiting.join().unwrap() && last.join().unwrap());
        });
    }
}
