//! Memory lent for a sample, which readers on this host map instead of receiving a copy.

use std::{
    ops::{Deref, DerefMut},
    sync::atomic::Ordering,
};

use tampu_shm::{LOAN_ALIGNMENT, Lease, LoanMemory, LoanRing, LoanRoom};

use super::{LOAN_PATIENCE, Stream, Written, outbox::Admission};
use crate::{
    error::{LoanError, WriteError},
    links::lock,
    wire::batch::Loaned,
};

impl Stream {
    pub(super) fn lend(&self, length: usize) -> Result<Space, LoanError> {
        let Some(dir) = &self.links.shared_dir else { return Ok(Space::Heap(vec![0; length])) };
        let mut ring = lock(&self.ring);
        if ring.is_none() {
            let path = dir.join(format!("{}-{}.ring", self.links.incarnation, self.id));
            let made = LoanRing::create(path.clone(), self.qos.pool);
            *ring = Some(made.map_err(|why| LoanError::NoMemory { place: path, why })?);
        }
        let mut waited = false;
        loop {
            let Some(pool) = ring.as_mut() else { return Ok(Space::Heap(vec![0; length])) };
            pool.read_by(self.matched.load(Ordering::Relaxed));
            match pool.room(length) {
                LoanRoom::Free(begin) => return Ok(Space::Shared(pool.lend(begin, length))),
                LoanRoom::Never => return Err(LoanError::TooLong { length, pool: self.qos.pool }),
                LoanRoom::After(needed) => {
                    let mut outbox = lock(&self.outbox);
                    // All loans that every reader has released are taken back at once, so that this is rare.
                    let done = outbox.loans_needed_from().unwrap_or(u64::MAX).min(pool.lent_to());
                    if done >= needed {
                        outbox.forget_loans_before(done);
                        pool.take_back(done);
                        continue;
                    }
                    let now = self.links.clock.monotonic();
                    self.send(&mut outbox);
                    match outbox.admit_loan(now, |position| position < needed) {
                        Admission::Go => {
                            outbox.forget_loans_before(needed);
                            pool.take_back(needed);
                        }
                        // Readers that keep up finish within this time. For slower ones the span grows.
                        Admission::Wait { .. } if waited && pool.grow() => waited = false,
                        Admission::Wait { target, longest } => {
                            waited = true;
                            drop(ring);
                            drop(self.wait(outbox, now, target, longest.min(LOAN_PATIENCE)));
                            ring = lock(&self.ring);
                        }
                    }
                }
            }
        }
    }

    /// Returns whether a sample of this length, written or lent, may have to wait for readers.
    pub(super) fn may_wait(&self, length: usize) -> bool {
        let mut ring = lock(&self.ring);
        let mut outbox = lock(&self.outbox);
        let Some(pool) = ring.as_mut() else { return outbox.is_ahead(length) };
        pool.read_by(self.matched.load(Ordering::Relaxed));
        if let LoanRoom::After(needed) = pool.room(length) {
            let done = outbox.loans_needed_from().unwrap_or(u64::MAX).min(pool.lent_to());
            if done < needed {
                return true;
            }
        }
        outbox.is_ahead(length)
    }

    fn publish(&self, space: Space) -> Result<Written, WriteError> {
        let mut lease = match space {
            Space::Heap(bytes) => {
                self.copied_loans.fetch_add(1, Ordering::Relaxed);
                return self.write(&bytes, false, None);
            }
            Space::Shared(lease) => lease,
        };
        let (mut outbox, begun) = self.admitted(16);
        // If one reader cannot map the ring, all readers get a copy, because all receive the same batch. Later readers may also be
        // unable to map it, as long as earlier samples are kept for them.
        let nobody_yet = outbox.matched() == 0 && lease.length <= outbox.qos().keep;
        if nobody_yet || !outbox.shares_memory() && outbox.matched() > 0 {
            drop(outbox);
            self.copied_loans.fetch_add(1, Ordering::Relaxed);
            let written = self.write(lease.bytes(), false, None);
            self.settle_lease(&lease);
            return written;
        }
        let place = (lease.offset / LOAN_ALIGNMENT) as u32;
        let loaned = Loaned { position: lease.position, place, length: lease.length as u32 };
        let sequence = outbox.append_loan(loaned);
        self.send_if_due(&mut outbox, begun, false);
        drop(outbox);
        self.settle_lease(&lease);
        Ok(Written { sequence, matched: self.matched.load(Ordering::Relaxed) })
    }

    fn settle_lease(&self, lease: &Lease) {
        if let Some(ring) = lock(&self.ring).as_mut() {
            ring.settle(lease.position);
        }
    }
}

pub(super) enum Space {
    Heap(Vec<u8>),
    Shared(Lease),
}

/// Memory lent for one sample. Fill it and publish it; dropping it returns the memory.
pub struct Loan<'a> {
    pub(super) stream: &'a Stream,
    /// Lent space; `None` once published.
    pub(super) space: Option<Space>,
}

impl Loan<'_> {
    /// Returns the shared memory of the sample, to read it again until it is lent anew; `None` if it is not shared.
    pub fn memory(&self) -> Option<LoanMemory> {
        match &self.space {
            Some(Space::Shared(lease)) => Some(lease.memory()),
            _ => None,
        }
    }

    /// Publishes the sample.
    pub fn publish(mut self) -> Result<Written, WriteError> {
        // Only this method takes the space, and it takes the loan with it.
        self.stream.publish(self.space.take().unwrap_or(Space::Heap(Vec::new())))
    }
}

impl Deref for Loan<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.space {
            Some(Space::Heap(bytes)) => bytes,
            Some(Space::Shared(lease)) => lease.view(),
            None => &[],
        }
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.space {
            Some(Space::Heap(bytes)) => bytes,
            Some(Space::Shared(lease)) => lease.bytes(),
            None => &mut [],
        }
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if let Some(Space::Shared(lease)) = &self.space {
            self.stream.settle_lease(lease);
        }
    }
}
