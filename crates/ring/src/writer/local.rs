//! The rings of the calling thread, which are returned when the thread ends.
//!
//! This thread-local variable has a destructor; the one that each call reads has none (`current.rs`).

use std::{
    cell::RefCell,
    sync::{Arc, Weak},
};

use crate::writer::{current, fork::Generation, incarnation::IncarnationRings, producer::Ring};

thread_local! {
    static TAKEN: RefCell<Vec<TakenRing>> = const { RefCell::new(Vec::new()) };
}

/// A ring that this thread has until it ends.
struct TakenRing {
    pool: u64,
    life: Weak<IncarnationRings>,
    /// Weak reference: a strong one would make the files of ended rings look used until this thread ends.
    ring: Weak<Ring>,
    generation: Generation,
}

impl Drop for TakenRing {
    fn drop(&mut self) {
        current::leave_ring();
        // A child does not own the parent's rings, and must not take the parent's locks: they may be held for ever.
        if self.generation.is_now()
            && let Some(life) = self.life.upgrade()
            && let Some(ring) = self.ring.upgrade()
        {
            life.give_back(&ring);
        }
    }
}

/// Result of looking for this thread's ring.
pub(crate) enum OwnRing {
    /// The thread's own ring.
    Ring(Arc<Ring>),
    /// All rings are in use.
    NoneFree,
    /// The thread ends, or is just now being given a ring.
    NotNow,
}

/// Returns this thread's ring of that incarnation; takes one if it has none.
pub(crate) fn ring_of(pool: u64, life: &Arc<IncarnationRings>) -> OwnRing {
    let look = |taken: &RefCell<Vec<TakenRing>>| {
        let Ok(mut taken) = taken.try_borrow_mut() else { return OwnRing::NotNow };
        let is_ours = |taken: &&TakenRing| taken.pool == pool && taken.generation.is_now();
        if let Some(ring) = taken.iter().find(is_ours).and_then(|found| found.ring.upgrade()) {
            return OwnRing::Ring(ring);
        }
        let Some(ring) = life.take() else { return OwnRing::NoneFree };
        let generation = Generation::now();
        taken.retain(|taken| taken.life.strong_count() > 0 && taken.generation.is_now());
        taken.push(TakenRing { pool, life: Arc::downgrade(life), ring: Arc::downgrade(&ring), generation });
        OwnRing::Ring(ring)
    };
    let found = TAKEN.try_with(look).unwrap_or(OwnRing::NotNow);
    if let OwnRing::Ring(ring) = &found {
        current::set(pool, ring.producer());
    }
    found
}
