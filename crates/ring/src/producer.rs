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
    mem::ManuallyDrop,
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
    #[error("a log record longer than a quarter of the ring")]
    Long,
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
    /// Whether losses of the thread before are still to be told: then they come before the note of the new one.
    owes: Cell<bool>,
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
            owes: Cell::new(false),
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
            self.owes.set(self.lost() != self.noted.load(Ordering::Relaxed));
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

    /// Whether `max` bytes of payload are known to have room.
    #[inline(always)]
    pub fn has_room(&self, max: usize) -> bool {
        // Payloads have 32 bits of length, so this changes nothing that fits, and makes the comparison right for what does not.
        (max.min(u32::MAX as usize) as i64) < self.spare.get()
    }

    /// Opens a slot of `max` bytes of payload.
    ///
    /// # Safety
    /// This thread has the ring and keeps it as long as the slot lives, and just now `has_room` or `make_room` said yes.
    #[inline(always)]
    pub unsafe fn open(&self, max: usize) -> Slot<'_> {
        let reopen = self.spare.replace(OPEN);
        // SAFETY: the data lie twice in a row, so that a record that begins within the first lies whole within both.
        let start = unsafe { self.data.add(self.head.get() as usize & self.mask) };
        // SAFETY: as above, with its header.
        let at = unsafe { start.add(HEADER) };
        Slot { producer: self, start, at, left: max, reopen }
    }

    /// Makes room: looks how far the drainer is, waits for it, writes the notes that are due. No slot is open.
    #[cold]
    pub fn make_room(&self, ring: &Ring, max: usize, wait: Duration) -> Result<(), Refused> {
        let size = ring.map.size();
        // Whatever is refused is told before the next record, which therefore has to come this way.
        self.spare.set(0);
        // Compared before anything is added, so that nothing can overflow.
        if max > size / 4 - MOST as usize {
            return Err(Refused::Long);
        }
        let need = HEADER + padded(max) + self.due();
        if self.room(ring) < need && !self.wait_for(ring, need, wait) {
            return Err(Refused::Full);
        }
        self.write_due(ring);
        let room = self.room(ring);
        if size - room > size / 2 {
            ring.clock.ring_bell();
        }
        // The next record on a shared ring looks again, whoever makes it.
        self.spare.set(if self.shared { 0 } else { room.min(size / 4) as i64 - MOST + 1 });
        Ok(())
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
        if self.owes.replace(false) {
            self.write_losses(ring);
        }
        if self.thread_due.replace(false) {
            self.write_note(&Note::thread(&self.thread.get()));
        }
        self.write_losses(ring);
    }

    fn write_losses(&self, ring: &Ring) {
        let losses = ring.map.lines().losses();
        let lost = losses.dropped.iter().sum();
        if lost != self.noted.load(Ordering::Relaxed) {
            self.write_note(&Note::losses(&losses));
            self.noted.store(lost, Ordering::Relaxed);
        }
    }

    fn write_note(&self, note: &Note) {
        // SAFETY: the thread that has the ring calls this, where it found room for the notes that are due.
        let mut slot = ManuallyDrop::new(unsafe { self.open(note.payload.len()) });
        slot.put(&note.payload);
        debug_assert_eq!(note.len(), HEADER + padded(slot.written()));
        slot.publish(NOTE, note.voice);
        self.spare.set(0);
    }

    /// Gives a shared ring to the next.
    #[cold]
    pub fn let_go(&self) {
        self.holder.store(0, Ordering::Release);
    }
}

/// Asks for the memory that some later record will be written to. The drainer's processor has read it a round ago, and without
/// this the stores of a record would wait until it has given it up.
#[inline(always)]
fn fetch_ahead(place: *const u8) {
    /// Bytes: some ten records, which is what passes while memory comes from another processor.
    const AHEAD: usize = 512;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which reads nothing and cannot fault.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(place.wrapping_add(AHEAD).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Room in a ring for one record. What is not committed was never there.
///
/// It belongs to the thread that claimed it. While it is open, another record of the same thread goes to the overflow ring;
/// keep it short.
#[must_use = "a slot that is not committed is no record"]
pub struct Slot<'r> {
    producer: &'r Producer,
    start: *mut u8,
    /// Where the next byte of payload goes, and how many may still be written.
    at: *mut u8,
    left: usize,
    reopen: i64,
}

impl Slot<'_> {
    /// Appends bytes, as many as the claimed room still takes; says how many.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.left);
        // SAFETY: `left` bytes behind `at` were claimed; nobody else reads or writes there before they are published. `bytes`
        // is no part of them: nothing lends out unpublished bytes.
        unsafe { copy::copy(bytes.as_ptr(), self.at, length) };
        self.advance(length);
        length
    }

    /// Appends a few bytes whose number is known when the program is built; `false` where the claimed room does not take them.
    #[inline(always)]
    pub fn put_array<const N: usize>(&mut self, bytes: [u8; N]) -> bool {
        let fits = N <= self.left;
        if fits {
            // SAFETY: as in `put`.
            unsafe { self.at.cast::<[u8; N]>().write(bytes) };
            self.advance(N);
        }
        fits
    }

    /// The next `length` bytes have been written; there were as many left.
    #[inline(always)]
    fn advance(&mut self, length: usize) {
        self.at = self.at.wrapping_add(length);
        self.left -= length;
        stored();
    }

    /// Bytes of payload so far.
    #[inline(always)]
    pub fn written(&self) -> usize {
        self.at.addr() - self.start.addr() - HEADER
    }

    /// Makes it a record: the time is taken now. Once this returns, the record survives the process.
    ///
    /// `site` and `voice` are numbers of the dictionary, from 1.
    #[inline(always)]
    pub fn commit(self, site: u32, voice: u32) {
        let slot = ManuallyDrop::new(self);
        slot.publish(site, voice);
        if slot.producer.shared {
            slot.producer.let_go();
        }
    }

    #[inline(always)]
    fn publish(&self, site: u32, voice: u32) {
        let producer = self.producer;
        let (position, length) = (producer.head.get(), self.written());
        let header = Header { ticks: producer.counter.ticks(), site, length: length as u32, voice, stamp: stamp(position) };
        // SAFETY: the header's room was claimed with the payload's; `start` is 8-aligned, as all records are.
        unsafe { self.start.cast::<[u64; 3]>().write(header.words()) };
        stored();
        let taken = HEADER + padded(length);
        let head = position + taken as u64;
        producer.head.set(head);
        producer.spare.set(self.reopen - taken as i64);
        // SAFETY: mapped for as long as the ring, which the slot borrows.
        unsafe { &*producer.lines }.publish(head);
        fetch_ahead(self.start);
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
