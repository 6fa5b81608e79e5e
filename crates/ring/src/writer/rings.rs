//! The rings of a process: the interface that a logger holds and calls.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tampu_types::Incarnation;

use crate::{
    clock::Conversion,
    files::{
        dictionary::{DefineError, Kind},
        lock::Busy,
        long::{LONGEST_PAYLOAD, LongPayloads},
    },
    header::Counts,
    reader::drain::Drainer,
    record::{LONG_NOTE, LONG_NOTE_LEN, NOTE, long_note},
    settings::Settings,
    stats::{RingStats, ring_stats},
    thread::Thread,
    writer::{
        current, fork,
        incarnation::{IncarnationRings, RingStorage},
        local::{self, OwnRing},
        prealloc::PreallocStats,
        producer::{Producer, Refused, Ring, Room, Slot},
    },
};

/// Handle of a process's rings for the fast path of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool(u64);

impl Pool {
    /// Returns room for a payload of this length, if this thread has a ring with room and no other work is due first.
    /// Otherwise call [`Rings::claim`].
    ///
    /// # Safety
    /// The rings live as long as the room is used, and the thread makes no other record before it has been committed or
    /// dropped. `length` fits into 32 bits.
    #[inline(always)]
    pub unsafe fn room<'r>(self, length: usize) -> Option<Room<'r>> {
        match current::producer(self.0) {
            // SAFETY: `local` returns the ring of this thread; the caller guarantees the rest.
            Some(producer) => unsafe { producer.room_now(length) },
            None => None,
        }
    }
}

/// The rings of this process. Cheap to share: everything is behind `&self`.
pub struct Rings {
    number: u64,
    settings: Settings,
    /// The present incarnation. Another replaces it only in a child process. The old one is left unchanged there: its
    /// locks may be held by threads that do not exist in the child.
    life: AtomicPtr<IncarnationRings>,
}

impl Rings {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Opens the rings of this process. If files cannot be made, the rings lie in memory; [`Rings::storage`] reports
    /// it.
    pub fn open(settings: Settings) -> io::Result<Rings> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        fork::watch();
        let life = IncarnationRings::begin(&settings, settings.source.incarnation, &Default::default())?;
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Rings { number, settings, life: AtomicPtr::new(Arc::into_raw(Arc::new(life)).cast_mut()) })
    }

    /// Room for a record of at most `max` bytes of payload and of this level (ACS's number).
    ///
    /// If the ring is full the call waits at most `wait`; then the record is counted as lost, and the loss is reported
    /// in the ring as soon as there is room. May be called in every thread at any time, in destructors of thread-local
    /// variables too, but not in a signal handler.
    #[inline(always)]
    pub fn claim(&self, max: usize, level: u8, wait: Duration) -> Result<Slot<'_>, Refused> {
        let producer = match current::producer(self.number) {
            Some(producer) if producer.has_room(max) => producer,
            _ => self.make_room(max, level, wait)?,
        };
        // SAFETY: `local` and `make_room` return the ring of this thread, or one it holds, and it has room.
        Ok(unsafe { producer.open(max) })
    }

    /// Returns the key by which a call finds its thread's ring without reading these rings.
    pub fn pool(&self) -> Pool {
        Pool(self.number)
    }

    #[cold]
    #[inline(never)]
    fn make_room(&self, max: usize, level: u8, wait: Duration) -> Result<&Producer, Refused> {
        let Some(life) = self.present_life() else { return Err(Refused::NoRing) };
        let level = usize::from(level);
        let mine = match local::ring_of(self.number, &life) {
            OwnRing::Ring(ring) if !ring.producer().is_open() => Some(ring),
            OwnRing::Ring(_) | OwnRing::NoneFree | OwnRing::NotNow => None,
        };
        let (ring, shared) = match mine {
            Some(ring) => (ring, false),
            None => match life.overflow() {
                Some(ring) => (ring, true),
                None => {
                    life.count_unplaced(level);
                    return Err(Refused::NoRing);
                }
            },
        };
        // SAFETY: rings of an incarnation are never removed from it, and it lives as long as `self`, which the result borrows.
        let ring: &Ring = unsafe { &*Arc::as_ptr(&ring) };
        let mut wait = wait;
        if shared {
            let thread = Thread::current_at_exit();
            wait = ring.hold(&thread, wait).inspect_err(|_| ring.count_lost(level))?;
            ring.producer().is_taken_by(thread);
        }
        let made = ring.producer().make_room(ring, max, wait);
        if let Err(refused) = made {
            if refused != Refused::Long {
                ring.count_lost(level);
            }
            if shared {
                ring.producer().let_go();
            }
        }
        made.map(|()| ring.producer())
    }

    /// Counts a record that its caller drops, like a record without room. The loss is reported in this thread's ring
    /// before the next record.
    pub fn count_lost(&self, level: u8) {
        let Some(life) = self.present_life() else { return };
        let level = usize::from(level);
        match local::ring_of(self.number, &life) {
            OwnRing::Ring(ring) => {
                ring.count_lost(level);
                if !ring.producer().is_open() {
                    ring.producer().shut();
                }
            }
            OwnRing::NoneFree | OwnRing::NotNow => match life.overflow() {
                Some(ring) => ring.count_lost(level),
                None => life.count_unplaced(level),
            },
        }
    }

    /// Stores a payload that is too long for a ring (at most [`LONGEST_PAYLOAD`]): it goes into a file of its own, and
    /// a note into the ring. Waits at most so long for room in the ring, and until at most `limit` bytes, or none, are
    /// in such files.
    ///
    /// Returns `Err(Refused::Long)`, uncounted, if the rings are in memory: there are no files then.
    #[cold]
    pub fn put_long(
        &self,
        bytes: &[u8],
        limit: u64,
        (site, voice): (u32, u32),
        level: u8,
        wait: Duration,
    ) -> Result<(), Refused> {
        let Some(life) = self.present_life() else { return Err(Refused::NoRing) };
        let longs = LongPayloads::of(life.place().cloned());
        if !longs.are_possible() {
            return Err(Refused::Long);
        }
        let mut slot = self.claim(LONG_NOTE_LEN, level, wait)?;
        let ring = life.rings().into_iter().find(|ring| slot.is_in(ring));
        let written = ring.as_ref().filter(|_| bytes.len() as u64 <= LONGEST_PAYLOAD).and_then(|ring| {
            // The caller loses the record for any reason, so the error is dropped.
            longs.write(ring.number, slot.position(), bytes, limit, wait).ok()
        });
        match written {
            Some(long) => {
                slot.put_array(long_note(site, voice, &long));
                slot.commit(NOTE, LONG_NOTE);
                Ok(())
            }
            None => {
                drop(slot);
                if let Some(ring) = ring {
                    ring.count_lost(level.into());
                    ring.producer().shut();
                }
                Err(Refused::Full)
            }
        }
    }

    /// Returns the number of these bytes. When it returns, the entry is in the file.
    ///
    /// In a child process all numbers of its parent stay valid.
    pub fn define(&self, kind: Kind, bytes: &[u8]) -> Result<u32, DefineError> {
        let life = self.present_life().ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
        life.dictionary.define(kind, bytes)
    }

    /// Becomes the drainer of this process's rings.
    pub fn drainer(&self) -> Result<Drainer, Busy> {
        let life = self.present_life().ok_or_else(|| Busy::Io(io::ErrorKind::OutOfMemory.into()))?;
        Drainer::inside(life)
    }

    /// Becomes the drainer of this process's rings; an outside drainer is requested to leave, and is awaited at most so
    /// long.
    pub fn drainer_within(&self, patience: Duration) -> Result<Drainer, Busy> {
        /// Pause between two attempts to take the lease.
        const LOOK: Duration = Duration::from_millis(1);
        let until = Instant::now() + patience;
        loop {
            match self.drainer() {
                Err(Busy::Taken) if Instant::now() < until => {}
                found => return found,
            }
            if let Some(life) = self.present_life() {
                life.clock.want(true);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until everything logged so far has been handed off; whether it has.
    pub fn wait_until_drained(&self, timeout: Duration) -> bool {
        /// Pause between two checks.
        const LOOK: Duration = Duration::from_millis(2);
        let until = Instant::now() + timeout;
        let logged: Vec<(u32, u64)> = self.stats().iter().map(|ring| (ring.ring, ring.bytes)).collect();
        self.wake_drainer();
        loop {
            let is_left = |ring: &RingStats| {
                let wanted = logged.iter().find(|(number, _)| *number == ring.ring).map_or(0, |(_, bytes)| *bytes);
                ring.bytes - ring.waiting < wanted
            };
            if !self.stats().iter().any(is_left) {
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Wakes the drainer after an urgent record.
    pub fn wake_drainer(&self) {
        if let Some(life) = self.present_life() {
            life.clock.wake_drainer();
        }
    }

    /// Incarnation of this process. A child's differs from its parent's.
    pub fn incarnation(&self) -> Incarnation {
        self.present_life().map_or(self.settings.source.incarnation, |life| life.incarnation)
    }

    /// Returns the storage of the rings: whether logged records survive the process, and if not, the reason.
    pub fn storage(&self) -> RingStorage {
        let none = || RingStorage::Memory { why: "no memory".to_owned() };
        self.present_life().map_or_else(none, |life| life.storage())
    }

    /// Turns ticks into UTC.
    pub fn conversion(&self) -> Option<Conversion> {
        self.present_life().map(|life| life.clock.conversion())
    }

    /// Statistics of each ring.
    pub fn stats(&self) -> Vec<RingStats> {
        let rings = self.present_life().map(|life| life.rings()).unwrap_or_default();
        rings.iter().map(|ring| ring_stats(ring.number, ring.map.header())).collect()
    }

    /// Counts of rings made ahead of threads.
    pub fn prealloc(&self) -> PreallocStats {
        self.present_life().map(|life| life.prealloc.stats()).unwrap_or_default()
    }

    /// Records for which not even the overflow ring could be made, by level. They are counted here and nowhere else.
    pub fn unplaced(&self) -> Counts {
        self.present_life().map_or_else(Counts::default, |life| life.unplaced())
    }

    /// Removes the files of rings whose records have all been handed off. Called when no thread logs any more. Another
    /// thread may still share the rings for a moment; if the process ended meanwhile, it would be taken for dead.
    pub fn end(&self) {
        // SAFETY: made by `Arc::into_raw`, and released only by the drop of `self`.
        let life = unsafe { shared(self.life.load(Ordering::Acquire)) };
        if life.is_of_this_process() {
            life.end();
        } else {
            std::mem::forget(life);
        }
    }

    /// Returns this process's incarnation; a child makes its own when it first needs one.
    fn present_life(&self) -> Option<Arc<IncarnationRings>> {
        let found = self.life.load(Ordering::Acquire);
        // SAFETY: made by `Arc::into_raw`, and released only by the drop of `self`.
        let life = unsafe { shared(found) };
        if life.is_of_this_process() {
            return Some(life);
        }
        // In a child: the parent's incarnation is neither dropped nor locked.
        let parent = std::mem::ManuallyDrop::new(life);
        let known = parent.dictionary.read().unwrap_or_default();
        let incarnation =
            Incarnation { pid: std::process::id(), start: now().max(parent.incarnation.start + 1), ..parent.incarnation };
        let own = Arc::into_raw(Arc::new(IncarnationRings::begin(&self.settings, incarnation, &known).ok()?)).cast_mut();
        match self.life.compare_exchange(found, own, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => Some(unsafe { shared(own) }),
            Err(other) => {
                // Another thread of the child was faster. The directory of the incarnation that is dropped here is empty.
                // SAFETY: made above and not shared; the other one as above.
                unsafe {
                    drop(Arc::from_raw(own));
                    Some(shared(other))
                }
            }
        }
    }
}

/// # Safety
/// A pointer from `Arc::into_raw` whose count is still held.
unsafe fn shared(life: *mut IncarnationRings) -> Arc<IncarnationRings> {
    // SAFETY: the caller guarantees the pointer.
    unsafe {
        Arc::increment_strong_count(life);
        Arc::from_raw(life)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: made by `Arc::into_raw`; no code uses the pointer after this.
        let life = unsafe { Arc::from_raw(*self.life.get_mut()) };
        if !life.is_of_this_process() {
            std::mem::forget(life);
        }
    }
}
