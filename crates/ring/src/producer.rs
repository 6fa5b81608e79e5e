//! The writing side of a ring: claim room, write the payload where it will stay, publish with one store.
//!
//! Decision: what the call needs lies in one line of the process's own memory: where the next record begins, and how much may
//! be written before looking further (`spare`). It is looked further (for the drainer's position, for notes that are due, to
//! wake a sleeping drainer) when `spare` is used up, and it is never set to more than a quarter of the ring, so that all of
//! this happens now and then without a branch of its own in the call.
//!
//! While a slot is open `spare` is so small that any other claim on this ring takes the slow way. That is how a record that is
//! made while another is being written (an argument whose formatting logs) is noticed.
//!
//! Rejected: a TLS variable with a destructor (its state is checked by every call); an atomic addition on a shared ring (5 ns,
//! and a thread killed between claim and publish stops everybody behind it).

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::{
    clock::Counter,
    clock_page::ClockPage,
    copy,
    lines::Lines,
    map::RingMap,
    record::{HEADER, Header, LOSS_NOTE_LEN, NOTE, Note, padded, stamp},
    step::stored,
    thread::Thread,
};

/// `spare` while a slot is open.
const OPEN: i64 = i64::MIN;
/// A record of `n` bytes of payload takes at most `n + MOST` bytes.
const MOST: i64 = HEADER as i64 + 7;

/// Why a record was not taken. It has been counted, by level, in the ring that was full; that will be told in the ring itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The drainer did not make room in time.
    #[error("the log ring is full and was not drained in time")]
    Full,
    /// More than a quarter of the ring.
    #[error("a log record of {0} bytes; a ring takes a quarter of its size")]
    Long(usize),
    /// Made while two records of this thread were being written.
    #[error("a log record inside a log record inside a log record")]
    Nested,
    /// There is no memory for a ring.
    #[error("there is no memory for a log ring")]
    NoRing,
}

/// One ring as its process has it.
pub(crate) struct Ring {
    pub number: u32,
    pub map: RingMap,
    producer: Producer,
    clock: Arc<ClockPage>,
}

// SAFETY: the cells of `producer` are used only by the thread that has taken the ring from the pool, or that is its holder;
// handing a ring on goes through the pool's mutex or the holder's Acquire and Release. All else is shareable by itself.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

/// What the writing thread keeps for itself.
#[repr(C, align(128))]
pub(crate) struct Producer {
    spare: Cell<i64>,
    head: Cell<u64>,
    data: *mut u8,
    mask: usize,
    lines: *const Lines,
    counter: Counter,
    shared: bool,
    /// The thread that has an overflow ring just now; 0 for none.
    holder: AtomicU32,
    /// Records lost up to the last note about them.
    noted: AtomicU64,
    thread: Cell<Thread>,
    thread_due: Cell<bool>,
}

impl Ring {
    /// A ring on fresh memory. `shared`: many threads write, one after the other.
    pub fn new(number: u32, map: RingMap, clock: Arc<ClockPage>, shared: bool) -> Arc<Ring> {
        let producer = Producer {
            spare: Cell::new(0),
            head: Cell::new(0),
            data: map.data(),
            mask: map.size() - 1,
            lines: map.lines(),
            counter: clock.counter(),
            shared,
            holder: AtomicU32::new(0),
            noted: AtomicU64::new(0),
            thread: Cell::new(Thread::NOBODY),
            thread_due: Cell::new(false),
        };
        Arc::new(Ring { number, map, producer, clock })
    }

    pub fn producer(&self) -> &Producer {
        &self.producer
    }

    /// Takes a shared ring for this thread; says how much of the wait is left.
    pub fn hold(&self, thread: &Thread, wait: Duration) -> Result<Duration, Refused> {
        let begun = Instant::now();
        loop {
            match self.producer.holder.compare_exchange(0, thread.id(), Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Ok(wait.saturating_sub(begun.elapsed())),
                Err(holder) if holder == thread.id() => return Err(Refused::Nested),
                Err(_) if begun.elapsed() >= wait => return Err(Refused::Full),
                Err(_) => thread::yield_now(),
            }
        }
    }

    /// Counts a record that was not taken; any thread may.
    pub fn count_lost(&self, level: usize) {
        let losses = self.map.lines().losses();
        let is_first = losses.dropped.iter().sum::<u64>() == self.producer.noted.load(Ordering::Relaxed);
        self.map.lines().count_lost(level, self.clock.counter().ticks(), is_first);
    }
}

impl Producer {
    /// The thread that has this ring from now on.
    pub fn is_taken_by(&self, thread: Thread) {
        if self.thread.get() != thread {
            self.thread.set(thread);
            self.thread_due.set(true);
            self.spare.set(0);
        }
    }

    /// The thread that has the ring ends: what was lost is told while somebody still can.
    pub fn is_given_back(&self, ring: &Ring) {
        if self.spare.get() != OPEN && self.room(ring) >= self.due() {
            self.write_due(ring);
        }
        self.spare.set(0);
    }

    /// Whether a slot is open on it.
    pub fn is_open(&self) -> bool {
        self.spare.get() == OPEN
    }

    /// Room for `max` bytes of payload, if it is known to be there.
    ///
    /// # Safety
    /// This thread has the ring, and keeps it as long as the slot lives.
    #[inline(always)]
    pub unsafe fn claim<'r>(&'r self, max: usize) -> Option<Slot<'r>> {
        let spare = self.spare.get();
        // Payloads have 32 bits of length, so this changes nothing that fits, and makes the comparison right for what does not.
        if (max.min(u32::MAX as usize) as i64) < spare { Some(self.open(max, spare)) } else { None }
    }

    #[inline(always)]
    fn open(&self, max: usize, reopen: i64) -> Slot<'_> {
        self.spare.set(OPEN);
        // SAFETY: the data lie twice in a row, so that a record that begins within the first lies whole within both.
        let start = unsafe { self.data.add(self.head.get() as usize & self.mask) };
        Slot { producer: self, start, written: 0, max, reopen, _not_send: PhantomData }
    }

    /// The same when more has to be looked at: waits for room, writes the notes that are due.
    ///
    /// # Safety
    /// As for [`Producer::claim`], and no slot is open.
    #[cold]
    pub unsafe fn claim_slowly<'r>(&'r self, ring: &'r Ring, max: usize, wait: Duration) -> Result<Slot<'r>, Refused> {
        let size = ring.map.size();
        // Compared before anything is added, so that nothing can overflow.
        if max > size / 4 - MOST as usize {
            return Err(Refused::Long(max));
        }
        let need = HEADER + padded(max) + self.due();
        if self.room(ring) < need && !self.wait_for(ring, need, wait) {
            self.spare.set(0);
            return Err(Refused::Full);
        }
        self.write_due(ring);
        let room = self.room(ring);
        if size - room > size / 2 {
            ring.clock.ring_bell();
        }
        let reopen = if self.shared { 0 } else { room.min(size / 4) as i64 - MOST + 1 };
        Ok(self.open(max, reopen))
    }

    /// Bytes that may be written now.
    fn room(&self, ring: &Ring) -> usize {
        let used = self.head.get().saturating_sub(ring.map.lines().released());
        ring.map.lines().writer_saw(used);
        ring.map.size().saturating_sub(used as usize)
    }

    #[cold]
    fn wait_for(&self, ring: &Ring, need: usize, wait: Duration) -> bool {
        ring.map.lines().count_waited();
        ring.clock.ring_bell();
        let begun = Instant::now();
        for _ in 0..100 {
            std::hint::spin_loop();
        }
        loop {
            if self.room(ring) >= need {
                return true;
            }
            let Some(left) = wait.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else { return false };
            // A sleep comes back up to some 60 us late: near the end the processor is only offered to others.
            if left > Duration::from_micros(150) {
                thread::sleep(Duration::from_micros(50));
            } else {
                thread::yield_now();
            }
            ring.clock.ring_bell();
        }
    }

    fn lost(&self) -> u64 {
        // SAFETY: the lines are mapped as long as the ring that this is part of.
        unsafe { &*self.lines }.losses().dropped.iter().sum()
    }

    /// Bytes of the notes that must come before the next record.
    fn due(&self) -> usize {
        let thread = if self.thread_due.get() { HEADER + 8 + padded(self.thread.get().name_bytes().len()) } else { 0 };
        let losses = if self.lost() != self.noted.load(Ordering::Relaxed) { LOSS_NOTE_LEN } else { 0 };
        thread + losses
    }

    /// Writes them; there is room.
    fn write_due(&self, ring: &Ring) {
        let losses = ring.map.lines().losses();
        let lost = losses.dropped.iter().sum();
        if lost != self.noted.load(Ordering::Relaxed) {
            self.write_note(&Note::losses(&losses));
            self.noted.store(lost, Ordering::Relaxed);
        }
        if self.thread_due.get() {
            self.write_note(&Note::thread(&self.thread.get()));
            self.thread_due.set(false);
        }
    }

    fn write_note(&self, note: &Note) {
        let mut slot = self.open(note.payload.len(), 0);
        slot.put(&note.payload);
        debug_assert_eq!(note.len(), HEADER + padded(slot.written));
        slot.publish(NOTE, note.voice);
        self.spare.set(0);
        std::mem::forget(slot);
    }

    /// Gives a shared ring to the next.
    #[cold]
    pub fn let_go(&self) {
        self.holder.store(0, Ordering::Release);
    }
}

/// Room in a ring for one record. What is not committed was never there.
///
/// It belongs to the thread that claimed it. While it is open, another record of the same thread goes to the overflow ring;
/// keep it short.
#[must_use = "a slot that is not committed is no record"]
pub struct Slot<'r> {
    producer: &'r Producer,
    start: *mut u8,
    written: usize,
    max: usize,
    reopen: i64,
    _not_send: PhantomData<*mut u8>,
}

impl Slot<'_> {
    /// Appends bytes, as many as the claimed room still takes; says how many.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.max - self.written);
        // SAFETY: written + length <= max, and max bytes of payload behind the header were claimed; nobody else reads or
        // writes there before they are published. `bytes` is no part of them: nothing lends out unpublished bytes.
        unsafe { copy::copy(bytes.as_ptr(), self.start.add(HEADER + self.written), length) };
        self.written += length;
        stored();
        length
    }

    /// Appends a few bytes whose number is known when the program is built; `false` where the claimed room does not take them.
    #[inline(always)]
    pub fn put_array<const N: usize>(&mut self, bytes: [u8; N]) -> bool {
        if N > self.max - self.written {
            return false;
        }
        // SAFETY: as in `put`.
        unsafe { self.start.add(HEADER + self.written).cast::<[u8; N]>().write(bytes) };
        self.written += N;
        stored();
        true
    }

    /// Bytes of payload so far.
    #[inline(always)]
    pub fn written(&self) -> usize {
        self.written
    }

    /// Makes it a record: the time is taken now. Once this returns, the record survives the process.
    ///
    /// `site` and `voice` are numbers of the dictionary, from 1.
    #[inline(always)]
    pub fn commit(self, site: u32, voice: u32) {
        self.publish(site, voice);
        if self.producer.shared {
            self.producer.let_go();
        }
        std::mem::forget(self);
    }

    #[inline(always)]
    fn publish(&self, site: u32, voice: u32) {
        let producer = self.producer;
        let position = producer.head.get();
        let header =
            Header { ticks: producer.counter.ticks(), site, length: self.written as u32, voice, stamp: stamp(position) };
        // SAFETY: the header's room was claimed with the payload's; `start` is 8-aligned, as all records are.
        unsafe { self.start.cast::<[u64; 3]>().write(header.words()) };
        stored();
        let taken = HEADER + padded(self.written);
        let head = position + taken as u64;
        producer.head.set(head);
        producer.spare.set(self.reopen - taken as i64);
        // SAFETY: mapped for as long as the ring, which the slot borrows.
        unsafe { &*producer.lines }.publish(head);
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.producer.spare.set(self.reopen);
        if self.producer.shared {
            self.producer.let_go();
        }
    }
}
