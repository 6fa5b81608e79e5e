//! The writing side of a ring: claims room, writes the payload in its final position, publishes with one store.
//!
//! Decision: the data of the call lie in one cache line of the process's own memory. They are the position of the next
//! record, and the position up to which the call may write without a check (`end`). The checks are: the drainer's
//! position, due notes, a sleeping drainer, and the wrap to the previous round. They run when `end` is reached, which
//! is never more than a quarter of the ring away. So they run now and then, without a branch of their own in the call.
//!
//! While a slot is open there is no `end`, and any other claim on this ring takes the slow path. That path notices a
//! record that is made while another is being written (an argument whose formatting logs).
//!
//! Rejected: a TLS variable with a destructor, because every call checks its state. Rejected: an atomic addition on a
//! shared ring. It costs 5 ns, and a thread killed between claim and publish stops all threads behind it.

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
    clock::{Counter, page::ClockPage},
    header::{Counts, RingHeader, RingMap},
    record::{HEADER, Header, LOSS_NOTE_LEN, NOTE, Note, padded, stamp},
    step::stored,
    thread::Thread,
    writer::copy,
};

/// `end` while a slot is open.
const OPEN: usize = 0;
/// Value of `end` for which the next claim must check further.
const SHUT: usize = 1;
/// A record of `n` bytes of payload takes at most `n + MOST` bytes.
const MOST: usize = HEADER + 7;

/// Reason for which a record was not stored. Unless the variant states otherwise, the loss is counted, by level, in the
/// full ring, and is reported in the ring itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The drainer did not make room in time.
    #[error("the log ring is full and was not drained in time")]
    Full,
    /// More than a quarter of the ring. It was not counted: [`Rings::put_long`](crate::Rings::put_long) may store it.
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

// SAFETY: the cells of `producer` are used only by the thread that took the ring from the pool, or that is its holder. A ring
// passes to another thread through the pool's mutex, or the holder's Acquire and Release. All other parts are `Sync` themselves.
unsafe impl Sync for Ring {}
// SAFETY: as above.
unsafe impl Send for Ring {}

/// State of the writing thread. Code of other languages writes the first fields too (`ffi.rs`).
#[repr(C, align(128))]
pub(crate) struct Producer {
    /// Address of the next record: in the first mapping of the data, or less than two rounds behind its beginning.
    pub(crate) next: Cell<*mut u8>,
    /// Payloads that end before this place, counted from `next`, have room with all that belongs to them.
    pub(crate) end: Cell<usize>,
    /// Difference between an address and its position in the ring's stream.
    pub(crate) bias: Cell<u64>,
    pub(crate) header: *const RingHeader,
    /// True if a record needs more than the counter of the processor and one store.
    odd: bool,
    shared: bool,
    counter: Counter,
    data: *mut u8,
    size: usize,
    /// The thread that has an overflow ring just now; 0 for none.
    holder: AtomicU32,
    /// Records lost up to the last note about them.
    noted: AtomicU64,
    thread: Cell<Thread>,
    thread_due: Cell<bool>,
    /// True if losses of the previous thread are still unreported: they precede the note of the new thread.
    owes: Cell<bool>,
}

impl Ring {
    /// Makes a ring on fresh memory. `shared`: many threads write, one at a time.
    pub fn new(number: u32, map: RingMap, clock: Arc<ClockPage>, shared: bool) -> Arc<Ring> {
        let producer = Producer {
            next: Cell::new(map.data()),
            end: Cell::new(SHUT),
            bias: Cell::new((map.data().addr() as u64).wrapping_neg()),
            header: map.header(),
            odd: shared || clock.counter() != Counter::Processor,
            shared,
            counter: clock.counter(),
            data: map.data(),
            size: map.size(),
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

    /// Takes a shared ring for this thread; returns the rest of the wait.
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
        let losses = self.map.header().losses();
        let is_first = sum(&losses.dropped) == self.producer.noted.load(Ordering::Relaxed);
        self.map.header().count_lost(level, self.clock.counter().ticks(), is_first);
    }
}

/// Adds up counters. They lie in memory that other processes of the user can write.
fn sum(counts: &Counts) -> u64 {
    counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
}

impl Producer {
    /// The thread that has this ring from now on.
    pub fn is_taken_by(&self, thread: Thread) {
        if self.thread.get() != thread {
            self.thread.set(thread);
            self.thread_due.set(true);
            self.owes.set(self.lost() != self.noted.load(Ordering::Relaxed));
            self.end.set(SHUT);
        }
    }

    /// Ends the use of the ring by its thread: losses are reported while this is still possible.
    pub fn is_given_back(&self, ring: &Ring) {
        self.go_back();
        if self.end.get() != OPEN && self.room(ring) >= self.due() {
            self.write_due(ring);
        }
        self.end.set(SHUT);
    }

    /// Makes the next claim take the slow path, because a loss must be reported first. No slot is open.
    pub fn shut(&self) {
        // On a shared ring every record takes the slow path.
        if !self.shared {
            self.end.set(SHUT);
        }
    }

    /// Returns true if a slot is open on this ring.
    pub fn is_open(&self) -> bool {
        self.end.get() == OPEN
    }

    /// Returns true if `max` bytes of payload are known to have room.
    #[inline(always)]
    pub fn has_room(&self, max: usize) -> bool {
        // Payload lengths have 32 bits. The bound changes nothing for a payload that fits, and prevents an overflow for one that
        // does not.
        self.next.get().addr() + max.min(u32::MAX as usize) < self.end.get()
    }

    /// Returns room for a payload if no check and no other work is due.
    ///
    /// # Safety
    /// This thread has the ring as long as the room lives, and makes no other record meanwhile. `length` fits into 32
    /// bits.
    #[inline(always)]
    pub unsafe fn room_now(&self, length: usize) -> Option<Room<'_>> {
        debug_assert!(u32::try_from(length).is_ok());
        let start = self.next.get();
        if start.addr() + length >= self.end.get() || self.odd {
            return None;
        }
        Some(Room { producer: self, start, length })
    }

    /// Opens a slot of `max` bytes of payload.
    ///
    /// # Safety
    /// This thread has the ring and keeps it as long as the slot lives, and `has_room` or `make_room` has just returned
    /// true.
    #[inline(always)]
    pub unsafe fn open(&self, max: usize) -> Slot<'_> {
        let (start, reopen) = (self.next.get(), self.end.replace(OPEN));
        // SAFETY: the caller guarantees room for a header and its payload.
        let at = unsafe { start.add(HEADER) };
        Slot { producer: self, start, at, left: max, reopen }
    }

    /// Makes room: reads the drainer's position, waits for the drainer, writes the due notes. No slot is open.
    #[cold]
    pub fn make_room(&self, ring: &Ring, max: usize, wait: Duration) -> Result<(), Refused> {
        let size = ring.map.size();
        // A refused record is reported before the next record, which therefore has to take this path.
        self.end.set(SHUT);
        // Compared before any addition, so that nothing can overflow.
        if max > size / 4 - MOST {
            return Err(Refused::Long);
        }
        self.go_back();
        let need = HEADER + padded(max) + self.due();
        if self.room(ring) < need && !self.wait_for(ring, need, wait) {
            return Err(Refused::Full);
        }
        self.write_due(ring);
        let room = self.room(ring);
        self.end.set(SHUT);
        if size - room > size / 2 {
            ring.clock.wake_drainer();
        }
        // On a shared ring every record checks again, because any thread may have made the previous one.
        if !self.shared {
            self.end.set(self.next.get().addr() + room.min(size / 4) + 1 - MOST);
        }
        Ok(())
    }

    /// Up to where records are complete.
    fn head(&self) -> u64 {
        (self.next.get().addr() as u64).wrapping_add(self.bias.get())
    }

    /// Moves from the second mapping of the data to the same position in the first.
    fn go_back(&self) {
        let next = self.next.get();
        if next.addr() >= self.data.addr() + self.size {
            self.next.set(next.wrapping_sub(self.size));
            self.bias.set(self.bias.get().wrapping_add(self.size as u64));
        }
    }

    /// Bytes that may be written now.
    fn room(&self, ring: &Ring) -> usize {
        let used = self.head().saturating_sub(ring.map.header().released());
        ring.map.header().writer_saw(used);
        ring.map.size().saturating_sub(used as usize)
    }

    #[cold]
    fn wait_for(&self, ring: &Ring, need: usize, wait: Duration) -> bool {
        ring.map.header().count_waited();
        ring.clock.wake_drainer();
        let begun = Instant::now();
        for _ in 0..100 {
            std::hint::spin_loop();
        }
        loop {
            if self.room(ring) >= need {
                return true;
            }
            let Some(left) = wait.checked_sub(begun.elapsed()).filter(|left| !left.is_zero()) else { return false };
            // A sleep may return up to about 60 us late, so near the end the processor is only yielded.
            if left > Duration::from_micros(150) {
                thread::sleep(Duration::from_micros(50));
            } else {
                thread::yield_now();
            }
            ring.clock.wake_drainer();
        }
    }

    fn lost(&self) -> u64 {
        // SAFETY: the header is mapped as long as the ring that this is part of.
        sum(&unsafe { &*self.header }.losses().dropped)
    }

    /// Returns the bytes of the notes that must precede the next record.
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
        let losses = ring.map.header().losses();
        let lost = sum(&losses.dropped);
        if lost != self.noted.load(Ordering::Relaxed) {
            self.write_note(&Note::losses(&losses));
            self.noted.store(lost, Ordering::Relaxed);
        }
    }

    fn write_note(&self, note: &Note) {
        // SAFETY: only the thread that owns the ring calls this, after it found room for the notes that are due.
        let mut slot = ManuallyDrop::new(unsafe { self.open(note.payload.len()) });
        slot.put(&note.payload);
        debug_assert_eq!(note.len(), HEADER + padded(slot.written()));
        self.publish(slot.start, slot.written(), self.counter.ticks(), NOTE, note.voice);
        self.end.set(SHUT);
    }

    /// Completes the record at `start`, after its payload.
    #[inline(always)]
    fn publish(&self, start: *mut u8, length: usize, ticks: u64, site: u32, voice: u32) {
        let position = (start.addr() as u64).wrapping_add(self.bias.get());
        let header = Header { ticks, site, length: length as u32, voice, stamp: stamp(position) };
        // SAFETY: the header's room was claimed with the payload's; `start` is 8-aligned, as all records are.
        unsafe { start.cast::<[u64; 3]>().write(header.words()) };
        stored();
        let taken = HEADER + padded(length);
        self.next.set(start.wrapping_add(taken));
        // SAFETY: mapped for as long as the ring, which the slot borrows.
        unsafe { &*self.header }.publish(position + taken as u64);
        fetch_ahead(start);
    }

    /// Publishes with another clock, or in a shared ring.
    #[cold]
    #[inline(never)]
    fn publish_odd(&self, start: *mut u8, length: usize, reopen: usize, site: u32, voice: u32) {
        self.publish(start, length, self.counter.ticks(), site, voice);
        self.end.set(reopen);
        if self.shared {
            self.let_go();
        }
    }

    /// Gives a shared ring to the next.
    #[cold]
    pub fn let_go(&self) {
        self.holder.store(0, Ordering::Release);
    }
}

/// Asks for the memory that some later record will be written to. The drainer's processor has read it a round ago, and
/// without this the stores of a record would wait until it has given it up.
#[inline(always)]
fn fetch_ahead(place: *const u8) {
    /// Bytes of about ten records, which are written while memory comes from another processor.
    const AHEAD: usize = 512;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that changes nothing and cannot fault; processors without it ignore it.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) place.wrapping_add(AHEAD), options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Room for a payload of known length, taken the fast way: until it is committed nothing has happened.
#[must_use = "room that is not committed leaves no record"]
pub struct Room<'r> {
    producer: &'r Producer,
    start: *mut u8,
    length: usize,
}

impl Room<'_> {
    /// Address of the payload.
    #[inline(always)]
    pub fn place(&self) -> *mut u8 {
        // SAFETY: the claim has room for a header and the payload.
        unsafe { self.start.add(HEADER) }
    }

    /// Makes it a record: the time is taken now. Once this returns, the record survives the process.
    ///
    /// # Safety
    /// The payload has been written at [`Room::place`], as many bytes as were asked for.
    #[inline(always)]
    pub unsafe fn commit(self, site: u32, voice: u32) {
        stored();
        self.producer.publish(self.start, self.length, Counter::Processor.ticks(), site, voice);
    }
}

/// Room in a ring for one record. A slot that is dropped without a commit leaves no record.
///
/// It belongs to the thread that claimed it. While it is open, another record of the same thread goes to the overflow
/// ring, so keep it short.
#[must_use = "a slot that is not committed leaves no record"]
pub struct Slot<'r> {
    producer: &'r Producer,
    start: *mut u8,
    /// Address of the next byte of payload; `left` is the number of bytes that may still be written.
    at: *mut u8,
    left: usize,
    reopen: usize,
}

impl Slot<'_> {
    /// Appends bytes, as many as the claimed room allows; returns their number.
    #[inline(always)]
    pub fn put(&mut self, bytes: &[u8]) -> usize {
        let length = bytes.len().min(self.left);
        // SAFETY: `left` bytes behind `at` were claimed; no other code reads or writes there before they are published. `bytes`
        // does not overlap them: no function returns unpublished bytes.
        unsafe { copy::copy(bytes.as_ptr(), self.at, length) };
        self.advance(length);
        length
    }

    /// Appends a few bytes of a length known at compile time; returns `false` if the claimed room is too small.
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

    /// Lets `write` write the next `length` bytes in place. Returns `false`, and does nothing, if the claimed room is
    /// too small.
    ///
    /// # Safety
    /// `write` writes exactly `length` bytes from the given address on, and reads none of them before.
    #[inline(always)]
    pub unsafe fn fill(&mut self, length: usize, write: impl FnOnce(*mut u8)) -> bool {
        let fits = length <= self.left;
        if fits {
            write(self.at);
            self.advance(length);
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

    /// Position of the record in its ring's stream.
    pub(crate) fn position(&self) -> u64 {
        (self.start.addr() as u64).wrapping_add(self.producer.bias.get())
    }

    /// Returns true if the slot lies in this ring.
    pub(crate) fn is_in(&self, ring: &Ring) -> bool {
        std::ptr::eq(self.producer, ring.producer())
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
        let (producer, start, length, reopen) = (slot.producer, slot.start, slot.written(), slot.reopen);
        if producer.odd {
            producer.publish_odd(start, length, reopen, site, voice);
        } else {
            producer.publish(start, length, Counter::Processor.ticks(), site, voice);
            producer.end.set(reopen);
        }
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.producer.end.set(self.reopen);
        if self.producer.shared {
            self.producer.let_go();
        }
    }
}
