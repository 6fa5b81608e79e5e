//! Which ring the calling thread has.
//!
//! Two thread-local variables: one without a destructor, which each call reads, and one with, which gives rings back when
//! the thread ends. The first can be read at any time in a thread's life, its end included.

use std::{
    cell::{Cell, RefCell},
    ptr::NonNull,
    sync::{Arc, Weak},
};

use crate::{
    fork::Generation,
    life::Life,
    producer::{Producer, Ring},
};

/// The ring that a thread used last. Others than us look at it too (`front.rs`), and only look.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Current {
    /// The pool's number, which is never used again: so a pointer into a pool that is gone is never followed.
    pub(crate) pool: u64,
    pub(crate) producer: *const Producer,
}

const NONE: Current = Current { pool: 0, producer: std::ptr::null() };

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(NONE) };
    static TAKEN: RefCell<Vec<Taken>> = const { RefCell::new(Vec::new()) };
}

/// A ring that this thread has until it ends.
struct Taken {
    pool: u64,
    life: Weak<Life>,
    /// Not held: rings end with their life, whose files would else look used until this thread ends.
    ring: Weak<Ring>,
    generation: Generation,
}

impl Drop for Taken {
    fn drop(&mut self) {
        leave_ring();
        // A child neither has the parent's rings nor may it touch the parent's locks: they may be held for ever.
        if self.generation.is_now()
            && let Some(life) = self.life.upgrade()
            && let Some(ring) = self.ring.upgrade()
        {
            life.give_back(&ring);
        }
    }
}

/// The ring that this thread used last, if it is of that pool.
///
/// No closures here, nor in what calls it: the compiler may leave each in a unit of its own, and call it.
#[inline(always)]
pub(crate) fn producer<'r>(pool: u64) -> Option<&'r Producer> {
    let current = CURRENT.get();
    if current.pool != pool {
        return None;
    }
    // SAFETY: no pool has the number of `NONE`, so this is a ring's. The pool with this number lives, because its owner asks,
    // and with it all its rings; a child of its process has forgotten the number before it runs a line of its own (`fork.rs`).
    Some(unsafe { NonNull::new_unchecked(current.producer.cast_mut()).as_ref() })
}

/// Where these words of this thread are.
pub(crate) fn words() -> *const Current {
    CURRENT.with(Cell::as_ptr).cast_const()
}

/// From here on this thread has no ring until it asks for one.
pub(crate) fn leave_ring() {
    CURRENT.set(NONE);
}

/// What became of looking for this thread's ring.
pub(crate) enum Found {
    /// This thread's.
    Ring(Arc<Ring>),
    /// All rings are in use.
    NoneFree,
    /// The thread ends, or is just now being given a ring.
    NotNow,
}

/// This thread's ring of that life; takes one if it has none.
pub(crate) fn ring_of(pool: u64, life: &Arc<Life>) -> Found {
    let look = |taken: &RefCell<Vec<Taken>>| {
        let Ok(mut taken) = taken.try_borrow_mut() else { return Found::NotNow };
        let is_ours = |taken: &&Taken| taken.pool == pool && taken.generation.is_now();
        if let Some(ring) = taken.iter().find(is_ours).and_then(|found| found.ring.upgrade()) {
            return Found::Ring(ring);
        }
        let Some(ring) = life.take() else { return Found::NoneFree };
        let generation = Generation::now();
        taken.retain(|taken| taken.life.strong_count() > 0 && taken.generation.is_now());
        taken.push(Taken { pool, life: Arc::downgrade(life), ring: Arc::downgrade(&ring), generation });
        Found::Ring(ring)
    };
    let found = TAKEN.try_with(look).unwrap_or(Found::NotNow);
    if let Found::Ring(ring) = &found {
        CURRENT.set(Current { pool, producer: ring.producer() });
    }
    found
}
