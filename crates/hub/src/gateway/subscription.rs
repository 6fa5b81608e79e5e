//! A subscription: its credit, and the wish to go on.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

/// Credit of a subscription, shared by the client's connection and by the workers that send.
#[derive(Default)]
pub(super) struct Subscription {
    /// Bytes that the client takes, in total.
    granted: Mutex<u64>,
    more: Condvar,
    sent: AtomicU64,
    stopped: AtomicBool,
    at_end: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

impl Subscription {
    pub fn new(credit: u64) -> Subscription {
        Subscription { granted: Mutex::new(credit), ..Subscription::default() }
    }

    /// Notes the total credit; a lower one than before changes nothing.
    pub fn grant(&self, total: u64) {
        let mut granted = self.granted.lock();
        *granted = total.max(*granted);
        self.more.notify_all();
    }

    /// Waits for credit, at most this long. Returns whether there is some.
    pub fn await_credit(&self, timeout: Duration) -> bool {
        let mut granted = self.granted.lock();
        let has = |granted: u64| self.sent.load(Ordering::Acquire) < granted;
        if !has(*granted) && !self.is_stopped() {
            self.more.wait_for(&mut granted, timeout);
        }
        has(*granted)
    }

    /// Counts a body that was sent.
    pub fn spend(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::AcqRel);
    }

    /// Adds a call that is made when the subscription stops.
    pub fn at_end(&self, call: impl Fn() + Send + 'static) {
        self.at_end.lock().push(Box::new(call));
    }

    /// Returns true once its workers have to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Makes its workers end.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        // With the lock, no worker is between its look and its wait.
        drop(self.granted.lock());
        self.more.notify_all();
        self.at_end.lock().iter().for_each(|call| call());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_is_a_total_and_repeating_it_changes_nothing() {
        let subscription = Subscription::new(0);
        assert!(!subscription.await_credit(Duration::ZERO));
        subscription.grant(10);
        subscription.grant(5);
        assert!(subscription.await_credit(Duration::ZERO));
        subscription.spend(9);
        assert!(subscription.await_credit(Duration::ZERO), "one more body may be sent");
        subscription.spend(20);
        subscription.grant(10);
        assert!(!subscription.await_credit(Duration::ZERO));
        subscription.grant(30);
        assert!(subscription.await_credit(Duration::ZERO));
        subscription.stop();
        assert!(subscription.is_stopped());
    }
}
