//! The queue of password hashing: a few hashes at a time, and a few requests that wait.
//!
//! A hash costs 20 to 40 ms of a processor. A request that waits for one holds a thread, so the queue is short, and one address has
//! only a part of it. A further request is rejected at once, and its client retries.

use std::{collections::HashMap, net::IpAddr};

use parking_lot::{Condvar, Mutex};

use super::{attempts::client_network, hash_memory::KEPT};

/// Passwords hashed at a time: each takes 19 MiB and some of a processor.
pub const HASHING: usize = KEPT;
/// Requests that wait for their hash.
pub const WAITING: usize = 6;
/// Requests of one address that are hashed or wait for it; of IPv6 from one network of 64 bits. The server admits as many
/// requests with a password of one address at a time, so this rejects none that it has admitted.
pub const OF_ONE: usize = 4;
/// Seconds after which a rejected request may be sent again.
pub const RETRY_AFTER: u32 = 1;

/// The queue of one site.
#[derive(Debug, Default)]
pub struct HashingQueue {
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    waiting: usize,
    /// Requests of each address that are hashed or wait.
    of_one: HashMap<IpAddr, usize>,
}

/// The queue is full, as a whole or for one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueFull;

/// The right to hash one password; it is returned when dropped.
#[derive(Debug)]
pub struct HashingTurn<'a> {
    queue: &'a HashingQueue,
    from: IpAddr,
}

impl HashingQueue {
    /// Waits for the turn of a request from an address. Fails at once if too many wait.
    pub fn turn(&self, from: IpAddr) -> Result<HashingTurn<'_>, QueueFull> {
        let from = client_network(from);
        let mut state = self.state.lock();
        let own = state.of_one.get(&from).copied().unwrap_or_default();
        let must_wait = state.running >= HASHING || state.waiting > 0;
        if own >= OF_ONE || must_wait && state.waiting >= WAITING {
            return Err(QueueFull);
        }
        *state.of_one.entry(from).or_default() += 1;
        if must_wait {
            state.waiting += 1;
            while state.running >= HASHING {
                self.freed.wait(&mut state);
            }
            state.waiting -= 1;
        }
        state.running += 1;
        // A thread that was notified while another one took the turn would sleep on beside a free turn.
        if state.running < HASHING && state.waiting > 0 {
            self.freed.notify_one();
        }
        Ok(HashingTurn { queue: self, from })
    }
}

impl Drop for HashingTurn<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.state.lock();
        state.running -= 1;
        if let Some(count) = state.of_one.get_mut(&self.from) {
            *count -= 1;
        }
        state.of_one.retain(|_, count| *count > 0);
        drop(state);
        self.queue.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        thread::{self, JoinHandle},
    };

    use super::*;

    const _: () = assert!(HASHING + WAITING == 8 && 2 * OF_ONE == HASHING + WAITING, "one address has half of the places");

    fn address(n: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, n])
    }

    /// Requests that wait in threads of their own, until all of them are in the queue.
    fn waiting(queue: &Arc<HashingQueue>, from: &[u8]) -> Vec<JoinHandle<bool>> {
        let before = queue.state.lock().waiting;
        let wait = |&n: &u8| {
            let queue = queue.clone();
            thread::spawn(move || queue.turn(address(n)).is_ok())
        };
        let threads = from.iter().map(wait).collect();
        while queue.state.lock().waiting < before + from.len() {
            thread::yield_now();
        }
        threads
    }

    #[test]
    fn the_queue_is_short_and_one_address_has_a_part_of_it() {
        let queue = Arc::new(HashingQueue::default());
        let held: Vec<_> = (0..HASHING).map(|_| queue.turn(address(1)).unwrap()).collect();
        let mut threads = waiting(&queue, &[1; OF_ONE - HASHING]);
        assert_eq!(queue.turn(address(1)).map(drop), Err(QueueFull), "one address, with those that are hashed");
        threads.extend(waiting(&queue, &[2; OF_ONE]));
        assert_eq!(queue.turn(address(2)).map(drop), Err(QueueFull), "one address that only waits has the same share");
        assert_eq!(queue.turn(address(3)).map(drop), Err(QueueFull), "all addresses");
        drop(held);
        assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        let state = queue.state.lock();
        assert_eq!((state.running, state.waiting, state.of_one.len()), (0, 0, 0), "nothing is left behind");
    }
}
