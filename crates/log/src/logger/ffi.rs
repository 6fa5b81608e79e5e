//! The logger as front ends of other languages use it: a front end claims room for a call's payload, fills it, and
//! commits it.
//!
//! Decision: two calls with the writes in between, where the Rust front end has one call. So a header of C++ can write
//! its arguments inline, straight into the ring. Rejected: passing a finished payload, because it would be copied.
//! Rejected: passing a function that writes it, because it would not be inlined.
//!
//! No function here is unsafe. A payload that is committed without having been filled is a meaningless record, and
//! readers of rings accept any bytes.

use std::{marker::PhantomData, sync::atomic::AtomicU8};

use tampu_ring::{Refused, Slot};
use tampu_text::{ARGUMENTS_MAX, Statement, TEXT_MAX};

use crate::logger::{handle::Logger, shared::LoggerShared};

/// More bytes than any payload has: 64 texts, each as long as texts are kept.
pub const PAYLOAD_MAX: usize = ARGUMENTS_MAX * (TEXT_MAX + 8);

/// Room for the payload of one call. A claim that is dropped without a commit leaves no record.
///
/// It belongs to the thread that claimed it. Other calls of that thread take a slow path while it is open.
#[must_use = "a claim that is not committed leaves no record"]
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
    /// The rings have no room for it: it becomes a whole record.
    Aside(Vec<u8>),
}

/// Data by which a front end writes a call's record itself ([`tampu_ring::this_thread`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FfiContext {
    /// Mark in the words of a thread whose ring belongs to this process.
    pub pool: u64,
    /// Number of the dictionary of the statements' numbers; not 0. Each logger of a process that has several has its own.
    pub page: u32,
    /// The logger's number in records.
    pub identity: u32,
    /// Lowest level for which the backend is woken after the call.
    pub bell_from: u8,
}

impl Logger {
    /// Returns the data shared by all calls of this logger; `None` where each call has to go through [`Logger::claim`].
    pub fn ffi_context(&self) -> Option<FfiContext> {
        let shared = &*self.keeper.shared;
        let (page, identity, bell_from) = (shared.own_page()?, self.identity.id, shared.bell_from);
        (identity != 0).then_some(FfiContext { pool: shared.rings.front()?, page, identity, bell_from })
    }

    /// The number of a statement in records, where it has one.
    pub fn number_of(&self, statement: &'static Statement) -> Option<u32> {
        self.keeper.shared.meet(statement)
    }

    /// Wakes the backend after an urgent record.
    pub fn wake(&self) {
        self.keeper.shared.rings.wake_drainer();
    }

    /// Returns the number of the lowest enabled level; a front end compares with it itself. Updated when levels change.
    pub fn threshold(&self) -> &AtomicU8 {
        &self.levels.any
    }

    /// Claims room for a call of this statement with a payload of `length` bytes. If there is no room, the call waits
    /// for the time of its level. `None` means that the record is lost; the loss is counted and will be reported.
    /// `None` is also returned, without a count, for a length above [`PAYLOAD_MAX`], which no call has.
    #[inline]
    pub fn claim(&self, statement: &'static Statement, length: usize) -> Option<Claim<'_>> {
        let shared = &*self.keeper.shared;
        let known = LoggerShared::marked(shared.page, statement).or_else(|| shared.meet(statement));
        let (Some(site), 1..) = (known, self.identity.id) else { return self.claim_aside(statement, length) };
        let level = statement.level();
        match shared.rings.claim(length, level, shared.wait(level)) {
            Ok(mut slot) => {
                let mut place = std::ptr::null_mut();
                // SAFETY: the place is mapped memory, for which any bytes are valid. `Claim::bytes` writes it before the slot is
                // committed. Until then no other code reads or writes it.
                unsafe { slot.fill(length, |start| place = start) };
                Some(Claim { logger: self, statement, room: Room::Ring { slot, site, place, length, bytes: PhantomData } })
            }
            Err(Refused::Long) => self.claim_aside(statement, length),
            Err(_) => {
                if level >= shared.bell_from {
                    shared.rings.wake_drainer();
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
    /// Returns the room for the payload, with arbitrary content.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        match &mut self.room {
            // SAFETY: `length` bytes from `place` on were claimed for this claim alone, and are mapped as long as the logger lives.
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
                slot.commit(site, logger.identity.id);
                let shared = &*logger.keeper.shared;
                if statement.level() >= shared.bell_from {
                    shared.rings.wake_drainer();
                }
            }
            Room::Aside(bytes) => {
                logger.record_aside(statement, &bytes);
            }
        }
    }
}
