//! The header of a ring: the memory that the writing thread and the drainer share, and the protocol on it.
//!
//! Decision: one word for each direction. The writer publishes with a Release store of `head`; the drainer releases
//! room with a Release store of `tail`. Each loads the other's word with Acquire, and seldom. The words are 128 bytes
//! apart because processors fetch pairs of 64-byte cache lines.
//!
//! The state of the drainer is more than a position. The number of the next record, its thread and the number of
//! reported losses must move with it, all or nothing, whenever the drainer dies. So there are two *cursors* and a
//! *turn*. The drainer fills the cursor that is not in use, and then stores the turn, which takes effect as one store.
//! `tail` follows. It is only the writer's copy, may lag behind after a death, and is set again by the next drainer.
//!
//! Rejected: a number in every record. It costs an addition and a word a call, and it would still not hold the thread.
//! Rejected: a checksum over the cursor. Two cursors need none: a store of eight bytes is whole or absent.
//!
//! Layout: `spec/log-ring.md`. Offsets are checked below.

use tampu_shm::{MirroredRing, SharedWords};

use crate::{
    step::stored,
    sync::{AtomicU64, Ordering, fence},
    thread::{NAME_LIMIT, Thread},
};

/// Levels are counted by ACS's number, 0 to 11.
pub const LEVELS: usize = 12;

/// Number of records of each level, indexed by ACS's number.
pub type Counts = [u64; LEVELS];

/// Bytes of the header, and so the least length of a ring file's header.
pub(crate) const HEADER_LEN: usize = 1024;
/// Offsets of the two cursors.
pub(crate) const CURSORS_AT: [usize; 2] = [512, 768];
/// Words of a cursor.
pub(crate) const CURSOR_WORDS: usize = 3 + NAME_LIMIT / 8 + LEVELS;

/// Words of a cursor that are moved. The exploration by loom tries every value of each load, so it gets two words: the
/// others behave alike.
const MOVED: usize = if cfg!(loom) { 2 } else { CURSOR_WORDS };
/// Attempts of a reader of the cursor.
const LOOKS: usize = if cfg!(loom) { 2 } else { 100 };

pub(crate) const HEAD_AT: usize = 128;
pub(crate) const LOSS_AT: usize = 256;
pub(crate) const TAIL_AT: usize = 384;
pub(crate) const TURN_AT: usize = 392;
pub(crate) const EARLY_AT: usize = 408;

#[repr(C, align(128))]
struct Apart<T>(T);

/// Written by the thread that has the ring.
#[repr(C)]
struct WriterLine {
    head: AtomicU64,
}

/// Written by the thread that has the ring, and only when it is full: away from `head`.
#[repr(C)]
struct LossLine {
    waited: AtomicU64,
    high_water: AtomicU64,
    first: AtomicU64,
    last: AtomicU64,
    dropped: [AtomicU64; LEVELS],
}

/// Written by the drainer.
#[repr(C)]
struct DrainerLine {
    tail: AtomicU64,
    turn: AtomicU64,
    high_water: AtomicU64,
    early: [AtomicU64; LEVELS],
}

/// The shared lines of one ring.
#[repr(C)]
pub struct RingHeader {
    /// The fixed part (`file.rs`): written before the file has its name, never again.
    _fixed: Apart<[u8; 128]>,
    writer: Apart<WriterLine>,
    loss: Apart<LossLine>,
    drainer: Apart<DrainerLine>,
    cursors: [Apart<[AtomicU64; CURSOR_WORDS]>; 2],
}

#[cfg(not(loom))]
const _: () = {
    assert!(std::mem::size_of::<RingHeader>() == HEADER_LEN);
    assert!(std::mem::offset_of!(RingHeader, writer) == HEAD_AT);
    assert!(std::mem::offset_of!(RingHeader, loss) == LOSS_AT);
    assert!(std::mem::offset_of!(RingHeader, drainer) == TAIL_AT);
    assert!(TAIL_AT + std::mem::offset_of!(DrainerLine, early) == EARLY_AT);
    assert!(std::mem::offset_of!(RingHeader, cursors) == CURSORS_AT[0]);
    assert!(std::mem::size_of::<Apart<[AtomicU64; CURSOR_WORDS]>>() == CURSORS_AT[1] - CURSORS_AT[0]);
};

// SAFETY: `repr(C)`. All words that change are atomics. The others were written before the file got its name, and are never read
// through this. Any bytes are a valid value. (The exploration by loom has other atomics and maps nothing.)
unsafe impl SharedWords for RingHeader {}

/// A mapped ring. One thread at a time writes the data, only through `Producer` and beyond the published part. The
/// drainer reads only the published part.
pub(crate) type RingMap = MirroredRing<RingHeader>;

/// Position of a drainer in a ring. Everything before it has been handed off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Bytes of the ring's stream before it.
    pub position: u64,
    /// Number of the next record.
    pub number: u64,
    /// The thread that wrote last before it.
    pub thread: Thread,
    /// Lost records that have been reported, by level.
    pub reported: Counts,
}

impl Cursor {
    /// The cursor at which every ring begins.
    pub const START: Cursor = Cursor { position: 0, number: 0, thread: Thread::NOBODY, reported: [0; LEVELS] };

    pub(crate) fn to_words(self) -> [u64; CURSOR_WORDS] {
        let mut words = [0; CURSOR_WORDS];
        words[0] = self.position;
        words[1] = self.number;
        words[2] = u64::from(self.thread.id()) | (self.thread.name_bytes().len() as u64) << 32;
        for (word, bytes) in words[3..].iter_mut().zip(self.thread.name_field().as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*bytes);
        }
        words[3 + NAME_LIMIT / 8..].copy_from_slice(&self.reported);
        words
    }

    pub(crate) fn from_words(words: &[u64; CURSOR_WORDS]) -> Cursor {
        let (named, reported) = words[3..].split_at(NAME_LIMIT / 8);
        let mut name = [0; NAME_LIMIT];
        for (bytes, word) in name.as_chunks_mut::<8>().0.iter_mut().zip(named) {
            *bytes = word.to_ne_bytes();
        }
        let length = (words[2] >> 32).min(NAME_LIMIT as u64) as usize;
        let mut cursor = Cursor { position: words[0], number: words[1], ..Cursor::START };
        cursor.thread = Thread::from_parts(words[2] as u32, &name[..length]);
        cursor.reported.copy_from_slice(reported);
        cursor
    }
}

/// Records that a writer could not place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Losses {
    /// Time of the first loss that has not been reported in the ring, in ticks.
    pub first: u64,
    /// Time of the last loss.
    pub last: u64,
    /// All ever lost, by level.
    pub dropped: Counts,
}

impl RingHeader {
    /// RingHeader in plain memory, for the tests of the protocol.
    #[cfg(any(test, loom))]
    pub fn new() -> RingHeader {
        let word = || AtomicU64::new(0);
        RingHeader {
            _fixed: Apart([0; 128]),
            writer: Apart(WriterLine { head: word() }),
            loss: Apart(LossLine {
                waited: word(),
                high_water: word(),
                first: word(),
                last: word(),
                dropped: std::array::from_fn(|_| word()),
            }),
            drainer: Apart(DrainerLine {
                tail: word(),
                turn: word(),
                high_water: word(),
                early: std::array::from_fn(|_| word()),
            }),
            cursors: std::array::from_fn(|_| Apart(std::array::from_fn(|_| word()))),
        }
    }

    /// Makes everything before `head` visible to the drainer: the one store a record costs.
    #[inline(always)]
    pub fn publish(&self, head: u64) {
        self.writer.0.head.store(head, Ordering::Release);
        stored();
    }

    /// Up to where records are complete.
    pub fn published(&self) -> u64 {
        self.writer.0.head.load(Ordering::Acquire)
    }

    /// Up to where the drainer has given room back.
    pub fn released(&self) -> u64 {
        self.drainer.0.tail.load(Ordering::Acquire)
    }

    /// Moves the cursor. Only the holder of the lease calls this.
    pub fn move_cursor(&self, cursor: &Cursor) {
        let turn = self.drainer.0.turn.load(Ordering::Relaxed);
        let unused = &self.cursors[(turn + 1) as usize & 1].0;
        // The next cursor to fill was in use before the last turn, so the store of that turn must be visible first.
        fence(Ordering::Release);
        for (word, value) in unused.iter().zip(cursor.to_words()).take(MOVED) {
            word.store(value, Ordering::Relaxed);
            stored();
        }
        self.drainer.0.turn.store(turn + 1, Ordering::Release);
        stored();
        self.drainer.0.tail.store(cursor.position, Ordering::Release);
        stored();
    }

    /// The drainer's position. Anybody may read it at any time; `None` while it moves too fast to be read.
    pub fn cursor(&self) -> Option<Cursor> {
        (0..LOOKS).find_map(|_| {
            let turn = self.drainer.0.turn.load(Ordering::Acquire);
            let cursor = &self.cursors[turn as usize & 1].0;
            let mut words = [0; CURSOR_WORDS];
            for (value, word) in words.iter_mut().zip(cursor).take(MOVED) {
                *value = word.load(Ordering::Relaxed);
            }
            fence(Ordering::Acquire);
            (self.drainer.0.turn.load(Ordering::Relaxed) == turn).then(|| Cursor::from_words(&words))
        })
    }

    /// Sets the writer's copy of the cursor right, which a drainer that died may have left behind.
    pub(crate) fn restore_tail(&self, cursor: &Cursor) {
        self.drainer.0.tail.store(cursor.position, Ordering::Release);
    }

    /// Counts a record that found no room. The overflow ring has several writers, so this adds.
    pub(crate) fn count_lost(&self, level: usize, ticks: u64, is_first: bool) {
        if is_first {
            self.loss.0.first.store(ticks, Ordering::Relaxed);
            stored();
        }
        self.loss.0.last.store(ticks, Ordering::Relaxed);
        stored();
        self.loss.0.dropped[level.min(LEVELS - 1)].fetch_add(1, Ordering::Release);
        stored();
    }

    pub(crate) fn losses(&self) -> Losses {
        let dropped = std::array::from_fn(|level| self.loss.0.dropped[level].load(Ordering::Acquire));
        let [first, last] = [&self.loss.0.first, &self.loss.0.last].map(|time| time.load(Ordering::Relaxed));
        Losses { first, last, dropped }
    }

    /// Stores that the drainer is about to report these losses ahead of the ring's own notes. Nothing is reported
    /// before this returns, so the next drainer finds here every loss that may have been reported.
    pub(crate) fn report_early(&self, counts: &Counts) {
        for (word, count) in self.drainer.0.early.iter().zip(counts) {
            word.store(*count, Ordering::Relaxed);
            stored();
        }
    }

    /// Losses that were reported ahead of the ring's own notes, or were about to be.
    pub(crate) fn early(&self) -> Counts {
        std::array::from_fn(|level| self.drainer.0.early[level].load(Ordering::Relaxed))
    }

    /// Counts a call that had to wait for room.
    pub(crate) fn count_waited(&self) {
        self.loss.0.waited.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn waited(&self) -> u64 {
        self.loss.0.waited.load(Ordering::Relaxed)
    }

    /// The writer saw this many bytes waiting.
    pub(crate) fn writer_saw(&self, bytes: u64) {
        let high_water = &self.loss.0.high_water;
        if bytes > high_water.load(Ordering::Relaxed) {
            high_water.store(bytes, Ordering::Relaxed);
        }
    }

    /// The drainer saw this many bytes waiting.
    pub(crate) fn drainer_saw(&self, bytes: u64) {
        let high_water = &self.drainer.0.high_water;
        if bytes > high_water.load(Ordering::Relaxed) {
            high_water.store(bytes, Ordering::Relaxed);
        }
    }

    /// The most bytes that were seen waiting.
    pub(crate) fn high_water(&self) -> u64 {
        self.loss.0.high_water.load(Ordering::Relaxed).max(self.drainer.0.high_water.load(Ordering::Relaxed))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_the_old_one_or_the_new_one_after_every_store() {
        let header = std::rc::Rc::new(RingHeader::new());
        let at =
            |number: u64| Cursor { position: number * 48, number, thread: Thread::new(7, "seven"), reported: [number; LEVELS] };
        for number in 1..5 {
            let (seen, looks) = (header.clone(), std::rc::Rc::new(std::cell::Cell::new(0)));
            let counted = looks.clone();
            let before = header.cursor().unwrap();
            step_set(move || {
                let found = seen.cursor().unwrap();
                assert!(found == before || found == at(number), "{found:?}");
                assert!(seen.released() <= found.position, "the writer never gets room that was not handed off");
                counted.set(counted.get() + 1);
            });
            header.move_cursor(&at(number));
            crate::step::hook::set(None);
            assert_eq!(looks.get(), CURSOR_WORDS + 2);
            assert_eq!(header.cursor(), Some(at(number)));
        }
    }

    fn step_set(look: impl FnMut() + 'static) {
        crate::step::hook::set(Some(Box::new(look)));
    }
}
