//! The rings of a process: what a logger holds and calls.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use tampu_types::Incarnation;

use crate::{
    clock::Conversion,
    dictionary::{DefineError, Kind},
    drain::{Busy, Drainer},
    fork,
    life::{Life, Shelter},
    lines::Counts,
    local::{self, Found},
    long::{LONGEST_PAYLOAD, Longs},
    producer::{Producer, Refused, Ring, Room, Slot},
    record::{LONG_NOTE, LONG_NOTE_LEN, NOTE, long_note},
    source::Source,
    stock::StockStats,
    thread::Thread,
};

/// How the rings of a process are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `<run>/<domain>/rings`; `None` keeps the rings in memory that ends with the process.
    pub directory: Option<PathBuf>,
    /// Who logs.
    pub source: Source,
    /// Bytes of each ring; a power of two is made of it.
    pub ring_bytes: usize,
    /// Threads that have a ring of their own at one time; further ones share one.
    pub max_rings: usize,
}

impl Settings {
    /// The usual sizes: 1 MiB for each of at most 256 threads.
    pub fn new(directory: Option<PathBuf>, source: Source) -> Settings {
        Settings { directory, source, ring_bytes: 1 << 20, max_rings: 256 }
    }
}

/// What one ring has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingStats {
    /// Its number.
    pub ring: u32,
    /// Records handed off.
    pub records: u64,
    /// Bytes ever written, headers included.
    pub bytes: u64,
    /// Bytes that wait for the drainer.
    pub waiting: u64,
    /// The most that were seen waiting.
    pub high_water: u64,
    /// Calls that waited for room.
    pub waited: u64,
    /// Records that found no room, by level.
    pub dropped: Counts,
}

/// Which rings are meant: what the fast way of a call needs to know of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool(u64);

impl Pool {
    /// Room for a payload of this length, where this thread has a ring with room and nothing else is to be done first; else
    /// [`Rings::claim`] is the way.
    ///
    /// # Safety
    /// The rings live as long as the room is used, and the thread makes no other record before it has been committed or
    /// dropped. `length` fits into 32 bits.
    #[inline(always)]
    pub unsafe fn room<'r>(self, length: usize) -> Option<Room<'r>> {
        match local::producer(self.0) {
            // SAFETY: `local` gives the ring of this thread; the rest is the caller's promise.
            Some(producer) => unsafe { producer.room_now(length) },
            None => None,
        }
    }
}

/// The rings of this process. Cheap to share: everything is behind `&self`.
pub struct Rings {
    number: u64,
    settings: Settings,
    /// The present life. Another takes its place only in a child process, where the old one is left as it is: its locks may
    /// be held by threads that do not exist there.
    life: AtomicPtr<Life>,
}

impl Rings {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Begins a life. Where files cannot be had it goes on without; [`Rings::shelter`] tells.
    pub fn open(settings: Settings) -> io::Result<Rings> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        fork::watch();
        let life = Life::begin(&settings, settings.source.incarnation, &Default::default())?;
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Rings { number, settings, life: AtomicPtr::new(Arc::into_raw(Arc::new(life)).cast_mut()) })
    }

    /// Room for a record of at most `max` bytes of payload and of this level (ACS's number).
    ///
    /// Where the ring is full the call waits at most `wait`; then the record is counted as lost and that is told in the ring
    /// as soon as there is room. May be called in every thread at any time, in destructors of thread-local variables too, but
    /// not in a signal handler.
    #[inline(always)]
    pub fn claim(&self, max: usize, level: u8, wait: Duration) -> Result<Slot<'_>, Refused> {
        let producer = match local::producer(self.number) {
            Some(producer) if producer.has_room(max) => producer,
            _ => self.make_room(max, level, wait)?,
        };
        // SAFETY: `local` and `make_room` give the ring of this thread, or one it holds, and it has room.
        Ok(unsafe { producer.open(max) })
    }

    /// By which a call finds its thread's ring without a look at these rings.
    pub fn pool(&self) -> Pool {
        Pool(self.number)
    }

    #[cold]
    #[inline(never)]
    fn make_room(&self, max: usize, level: u8, wait: Duration) -> Result<&Producer, Refused> {
        let Some(life) = self.present_life() else { return Err(Refused::NoRing) };
        let level = usize::from(level);
        let mine = match local::ring_of(self.number, &life) {
            Found::Ring(ring) if !ring.producer().is_open() => Some(ring),
            Found::Ring(_) | Found::NoneFree | Found::NotNow => None,
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
        // SAFETY: rings of a life are never removed from it, and lives end with `self`, which the result borrows.
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

    /// Counts a record that its maker gives up, as those that found no room are: it is told in this thread's ring before the next.
    pub fn count_lost(&self, level: u8) {
        let Some(life) = self.present_life() else { return };
        let level = usize::from(level);
        match local::ring_of(self.number, &life) {
            Found::Ring(ring) => {
                ring.count_lost(level);
                if !ring.producer().is_open() {
                    ring.producer().shut();
                }
            }
            Found::NoneFree | Found::NotNow => match life.overflow() {
                Some(ring) => ring.count_lost(level),
                None => life.count_unplaced(level),
            },
        }
    }

    /// Takes a payload that is too long for a ring (at most [`LONGEST_PAYLOAD`]): it goes into a file of its own, and a note into
    /// the ring. Waits at most so long, for room in the ring and until no more than `limit` bytes, or none, are in such files.
    ///
    /// `Err(Refused::Long)`, uncounted, where the rings are in memory: there are no files then.
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
        let longs = Longs::in_life(&life);
        if !longs.are_possible() {
            return Err(Refused::Long);
        }
        let mut slot = self.claim(LONG_NOTE_LEN, level, wait)?;
        let ring = life.rings().into_iter().find(|ring| slot.is_in(ring));
        let written = ring.as_ref().filter(|_| bytes.len() as u64 <= LONGEST_PAYLOAD).and_then(|ring| {
            // Why it could not be written is no use to the caller, to whom it is lost.
            longs.write(ring.number, &slot, bytes, limit, wait).ok()
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

    /// The number that stands for these bytes from now on. Once it is returned the entry is in the file.
    ///
    /// In a child process all numbers of its parent stay valid.
    pub fn define(&self, kind: Kind, bytes: &[u8]) -> Result<u32, DefineError> {
        let life = self.present_life().ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
        life.dictionary.define(kind, bytes)
    }

    /// Becomes the one who drains this process's rings.
    pub fn drainer(&self) -> Result<Drainer, Busy> {
        let life = self.present_life().ok_or_else(|| Busy::Io(io::ErrorKind::OutOfMemory.into()))?;
        Drainer::inside(life)
    }

    /// The same, where somebody else drains them now and is asked to leave; at most so long.
    pub fn drainer_within(&self, patience: Duration) -> Result<Drainer, Busy> {
        /// How often the lease is looked for.
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
        /// How often it is looked.
        const LOOK: Duration = Duration::from_millis(2);
        let until = Instant::now() + timeout;
        let logged: Vec<(u32, u64)> = self.stats().iter().map(|ring| (ring.ring, ring.bytes)).collect();
        self.ring_bell();
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

    /// Wakes the drainer: what was just logged is urgent.
    pub fn ring_bell(&self) {
        if let Some(life) = self.present_life() {
            life.clock.ring_bell();
        }
    }

    /// Which life this process leads. A child's differs from its parent's.
    pub fn incarnation(&self) -> Incarnation {
        self.present_life().map_or(self.settings.source.incarnation, |life| life.incarnation)
    }

    /// Whether what is logged survives the process, and if not, why.
    pub fn shelter(&self) -> Shelter {
        let none = || Shelter::None { why: "no memory".to_owned() };
        self.present_life().map_or_else(none, |life| life.shelter())
    }

    /// Turns ticks into UTC.
    pub fn conversion(&self) -> Option<Conversion> {
        self.present_life().map(|life| life.clock.conversion())
    }

    /// What each ring has seen.
    pub fn stats(&self) -> Vec<RingStats> {
        let rings = self.present_life().map(|life| life.rings()).unwrap_or_default();
        rings.iter().map(|ring| ring_stats(ring.number, ring.map.lines())).collect()
    }

    /// What was made ahead of threads.
    pub fn stock(&self) -> StockStats {
        self.present_life().map(|life| life.stock.stats()).unwrap_or_default()
    }

    /// Records for which not even the overflow ring could be made, by level. They are counted here and nowhere else.
    pub fn unplaced(&self) -> Counts {
        self.present_life().map_or_else(Counts::default, |life| life.unplaced())
    }

    /// This process's life; a child makes its own when it first needs one.
    fn present_life(&self) -> Option<Arc<Life>> {
        let found = self.life.load(Ordering::Acquire);
        // SAFETY: made by `Arc::into_raw`, and given up only by the drop of `self`.
        let life = unsafe { shared(found) };
        if life.is_of_this_process() {
            return Some(life);
        }
        // In a child: the parent's life is neither dropped nor locked.
        let parent = std::mem::ManuallyDrop::new(life);
        let known = parent.dictionary.read().unwrap_or_default();
        let incarnation =
            Incarnation { pid: std::process::id(), start: now().max(parent.incarnation.start + 1), ..parent.incarnation };
        let own = Arc::into_raw(Arc::new(Life::begin(&self.settings, incarnation, &known).ok()?)).cast_mut();
        match self.life.compare_exchange(found, own, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => Some(unsafe { shared(own) }),
            Err(other) => {
                // Another thread of the child was faster. The directory of the life that is dropped here is empty.
                // SAFETY: made above and seen by nobody; the other one as above.
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
unsafe fn shared(life: *mut Life) -> Arc<Life> {
    // SAFETY: by the caller.
    unsafe {
        Arc::increment_strong_count(life);
        Arc::from_raw(life)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

pub(crate) fn ring_stats(ring: u32, lines: &crate::lines::Lines) -> RingStats {
    let (cursor, head) = (lines.cursor(), lines.published());
    RingStats {
        ring,
        records: cursor.map_or(0, |cursor| cursor.number),
        bytes: head,
        waiting: head.saturating_sub(lines.released()),
        high_water: lines.high_water(),
        waited: lines.waited(),
        dropped: lines.losses().dropped,
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        // SAFETY: made by `Arc::into_raw`; nobody uses the pointer after this.
        let life = unsafe { Arc::from_raw(*self.life.get_mut()) };
        if !life.is_of_this_process() {
            std::mem::forget(life);
        }
    }
}
