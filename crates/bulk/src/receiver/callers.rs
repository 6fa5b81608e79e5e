//! Connections that have not identified themselves yet. They have a separate limit, so strangers take no sender's
//! place.

use std::{
    collections::VecDeque,
    io,
    net::{Shutdown, TcpStream},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use parking_lot::Mutex;

/// Most connections without identification. Beyond it the one that has been silent longest is closed.
const UNPROVEN: usize = 64;

/// Connections that have not identified themselves, and the number of admitted senders.
#[derive(Default)]
pub(super) struct Callers {
    unproven: Mutex<VecDeque<(u64, TcpStream)>>,
    next: AtomicU64,
    inside: AtomicUsize,
}

/// Admission of a sender, which ends when this value is dropped.
pub(super) struct AdmittedSender<'a>(&'a Callers);

impl Drop for AdmittedSender<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Callers {
    /// Adds a connection and returns its number. Beyond the limit the oldest one is closed.
    pub(super) fn add(&self, stream: &TcpStream) -> io::Result<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let to_shut = stream.try_clone()?;
        let mut unproven = self.unproven.lock();
        if unproven.len() >= UNPROVEN
            && let Some((_, oldest)) = unproven.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        unproven.push_back((number, to_shut));
        Ok(number)
    }

    /// Removes a connection that has identified itself or closed.
    pub(super) fn remove(&self, number: u64) {
        self.unproven.lock().retain(|(one, _)| *one != number);
    }

    /// Admits a sender; `None` if `limit` senders are connected.
    pub(super) fn admit(&self, limit: usize) -> Option<AdmittedSender<'_>> {
        let one_more = |inside| (inside < limit).then_some(inside + 1);
        self.inside.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).ok().map(|_| AdmittedSender(self))
    }
}
