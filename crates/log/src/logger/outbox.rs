//! The bounded queue between the threads that log and the one that publishes.
//!
//! Bound: bytes of sealed packets. When full: the caller waits up to its bound, then keeps its packet and drops the record. A
//! caller that has waited in vain marks the outbox as stalled, and nobody waits again until a packet has gone out: a bus
//! that stands still costs an application one wait, not one a record.

use std::{
    collections::VecDeque,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Sealed packets on their way to the backend.
pub(crate) struct Outbox<P> {
    queue: Mutex<Queue<P>>,
    room: Condvar,
    work: Condvar,
    stalled: AtomicBool,
    limit: usize,
}

struct Queue<P> {
    packets: VecDeque<(usize, P)>,
    bytes: usize,
    rung: bool,
    closing: bool,
}

/// What the backend woke up for.
pub(crate) struct Work<P> {
    /// Packets, in the order they were sealed.
    pub packets: Vec<(usize, P)>,
    /// Whether somebody rang: a packet has begun to fill, or something urgent waits in one.
    pub rung: bool,
    /// Whether the last handle has gone.
    pub closing: bool,
}

impl<P> Outbox<P> {
    pub fn new(limit: usize) -> Outbox<P> {
        let queue = Queue { packets: VecDeque::new(), bytes: 0, rung: false, closing: false };
        Outbox { queue: Mutex::new(queue), room: Condvar::new(), work: Condvar::new(), stalled: AtomicBool::new(false), limit }
    }

    /// Queues a packet, waiting at most this long for room; gives it back if there is none.
    pub fn push(&self, bytes: usize, packet: P, wait: Duration) -> Result<(), P> {
        let mut queue = self.lock();
        // A packet longer than the whole queue still goes out when the queue is empty.
        let full = |queue: &Queue<P>| queue.bytes > 0 && queue.bytes + bytes > self.limit;
        if full(&queue) {
            if self.stalled.load(Ordering::Relaxed) {
                return Err(packet);
            }
            let deadline = Instant::now() + wait;
            while full(&queue) {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    // Who did not wait has not waited in vain.
                    self.stalled.fetch_or(!wait.is_zero(), Ordering::Relaxed);
                    return Err(packet);
                }
                queue = self.room.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        queue.bytes += bytes;
        queue.packets.push_back((bytes, packet));
        drop(queue);
        self.work.notify_one();
        Ok(())
    }

    /// Queues something whatever waits already: what is no packet, and what the backend, which cannot wait for itself, seals.
    pub fn force(&self, bytes: usize, packet: P) {
        let mut queue = self.lock();
        queue.bytes += bytes;
        queue.packets.push_back((bytes, packet));
        drop(queue);
        self.work.notify_one();
    }

    /// What is queued now, without waiting.
    pub fn take(&self) -> Vec<(usize, P)> {
        self.lock().packets.drain(..).collect()
    }

    /// Whether a push could only fail: somebody has waited in vain and nothing has gone out since.
    pub fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Relaxed)
    }

    /// Wakes the backend.
    pub fn ring(&self) {
        self.lock().rung = true;
        self.work.notify_one();
    }

    /// Tells the backend that no more will come.
    pub fn close(&self) {
        self.lock().closing = true;
        self.work.notify_one();
    }

    /// Whether the last handle has gone.
    pub fn is_closing(&self) -> bool {
        self.lock().closing
    }

    /// Waits this long; shorter only while nothing is closing and then something begins to.
    pub fn pause(&self, time: Duration) {
        let queue = self.lock();
        let closing = queue.closing;
        let _ = self.work.wait_timeout_while(queue, time, |queue| queue.closing == closing);
    }

    /// Waits for work until the deadline, or without end.
    pub fn wait(&self, until: Option<Instant>) -> Work<P> {
        let mut queue = self.lock();
        while queue.packets.is_empty() && !queue.rung && !queue.closing {
            queue = match until {
                None => self.work.wait(queue).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    self.work.wait_timeout(queue, left).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        Work { packets: queue.packets.drain(..).collect(), rung: std::mem::take(&mut queue.rung), closing: queue.closing }
    }

    /// Says that a packet taken by [`Outbox::wait`] has gone out, which makes room.
    pub fn done(&self, bytes: usize) {
        let mut queue = self.lock();
        queue.bytes = queue.bytes.saturating_sub(bytes);
        drop(queue);
        self.stalled.store(false, Ordering::Relaxed);
        self.room.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue<P>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_outbox_makes_callers_wait_once_until_something_leaves() {
        let outbox = Outbox::new(100);
        let wait = Duration::from_millis(1);
        assert_eq!(outbox.push(60, 'a', wait), Ok(()));
        assert_eq!(outbox.push(60, 'b', wait), Err('b'));
        assert!(outbox.is_stalled());
        // Nobody waits while it is stalled: an hour would otherwise pass here.
        assert_eq!(outbox.push(60, 'c', Duration::from_secs(3600)), Err('c'));

        let work = outbox.wait(None);
        assert_eq!(work.packets, [(60, 'a')]);
        outbox.done(60);
        assert!(!outbox.is_stalled());
        assert_eq!(outbox.push(200, 'd', wait), Ok(()), "a long packet passes an empty outbox");
    }

    #[test]
    fn a_ring_before_the_wait_is_not_missed() {
        let outbox: Outbox<char> = Outbox::new(1);
        outbox.ring();
        assert!(outbox.wait(None).rung);
        outbox.close();
        assert!(outbox.wait(None).closing);
    }
}
