//! The logger as front ends of other languages use it: room for a call's payload is claimed, filled by them, and committed.
//!
//! Decision: two calls with the bytes written in between, where the Rust front end has one. So a header of C++ can write its
//! arguments inline, straight into the ring. Rejected: handing over a finished payload (it would be copied), and handing over a
//! function that writes it (it would not be inlined).
//!
//! Nothing here is unsafe to call: what is committed without having been filled is a record that says nonsense, and readers of
//! rings expect any bytes.

use std::{marker::PhantomData, sync::atomic::AtomicU8};

use tampu_ring::{Refused, Slot};
use tampu_text::{ARGUMENTS_MAX, Statement, TEXT_MAX};

use crate::logger::{handle::Logger, shared::Shared};

/// More bytes than any payload has: 64 texts, each as long as texts are kept.
pub const PAYLOAD_MAX: usize = ARGUMENTS_MAX * (TEXT_MAX + 8);

/// Room for the payload of one call. What is dropped without having been committed was never there.
///
/// It belongs to the thread that claimed it, and other calls of that thread take a slow way as long as it is open.
#[must_use = "a claim that is not committed is no record"]
pub struct Claim<'l> {
    logger: &'l Logger,
    statement: &'static Statement,
    room: Room<'l>,
}

enum Room<'l> {
    Ring {
        slot: Slot<'l>,
        site: u32,
        place: *mut u8,
        length: usize,
        bytes: PhantomData<&'l mut [u8]>,
    },
    /// The rings cannot take it: it becomes a record made by hand.
    Aside(Vec<u8>),
}

/// What a front end needs to write a call's record by itself ([`tampu_ring::this_thread`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Front {
    /// What stands in the words of a thread whose ring is this process's.
    pub pool: u64,
    /// Whose numbers statements have; not 0. Statements have others with other loggers of the process, if it has several.
    pub page: u32,
    /// The logger's number in records.
    pub voice: u32,
    /// From this level on the backend is woken after the call.
    pub bell_from: u8,
}

impl Logger {
    /// What is the same in all calls of this logger; nothing where each has to go through [`Logger::claim`].
    pub fn front(&self) -> Option<Front> {
        let shared = &*self.keeper.shared;
        let (page, voice, bell_from) = (shared.own_page()?, self.voice.id, shared.bell_from);
        (voice != 0).then_some(Front { pool: shared.rings.front()?, page, voice, bell_from })
    }

    /// The number of a statement in records, where it has one.
    pub fn number_of(&self, statement: &'static Statement) -> Option<u32> {
        self.keeper.shared.meet(statement)
    }

    /// Wakes the backend: what was just logged is urgent.
    pub fn wake(&self) {
        self.keeper.shared.rings.ring_bell();
    }

    /// From which level's number on calls go anywhere; a front end compares with it by itself. Renewed when levels change.
    pub fn threshold(&self) -> &AtomicU8 {
        &self.levels.any
    }

    /// Room for a call of this statement with a payload of `length` bytes. Where there is none the call waits as long as its level
    /// says; `None` then says that the record is lost, which has been counted and will be told. So is, without being counted, a
    /// length above [`PAYLOAD_MAX`], which no call has.
    #[inline]
    pub fn claim(&self, statement: &'static Statement, length: usize) -> Option<Claim<'_>> {
        let shared = &*self.keeper.shared;
        let known = Shared::marked(shared.page, statement).or_else(|| shared.meet(statement));
        let (Some(site), 1..) = (known, self.voice.id) else { return self.claim_aside(statement, length) };
        let level = statement.level();
        match shared.rings.claim(length, level, shared.wait(level)) {
            Ok(mut slot) => {
                let mut place = std::ptr::null_mut();
                // SAFETY: the place is mapped memory that may hold anything. It is written through `Claim::bytes`, before the slot
                // is committed, and nobody else reads or writes it until then.
                unsafe { slot.fill(length, |start| place = start) };
                Some(Claim { logger: self, statement, room: Room::Ring { slot, site, place, length, bytes: PhantomData } })
            }
            Err(Refused::Long) => self.claim_aside(statement, length),
            Err(_) => {
                if level >= shared.bell_from {
                    shared.rings.ring_bell();
                }
                None
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn claim_aside(&self, statement: &'static Statement, length: usize) -> Option<Claim<'_>> {
        (length <= PAYLOAD_MAX).then(|| Claim { logger: self, statement, room: Room::Aside(vec![0; length]) })
    }
}

impl Claim<'_> {
    /// Where the payload goes. It holds anything until it is written.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        match &mut self.room {
            // SAFETY: `length` bytes from `place` on were claimed, are mapped as long as the logger, and are this claim's alone.
            // Like all shared mappings they are initialised.
            Room::Ring { place, length, .. } => unsafe { std::slice::from_raw_parts_mut(*place, *length) },
            Room::Aside(bytes) => bytes,
        }
    }

    /// Makes it a record: the time is taken now. Once this returns, a record in a ring survives the process.
    #[inline]
    pub fn commit(self) {
        let Claim { logger, statement, room } = self;
        match room {
            Room::Ring { slot, site, .. } => {
                slot.commit(site, logger.voice.id);
                let shared = &*logger.keeper.shared;
                if statement.level() >= shared.bell_from {
                    shared.rings.ring_bell();
                }
            }
            Room::Aside(bytes) => logger.record_aside(statement, &bytes),
        }
    }
}
