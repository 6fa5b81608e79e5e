//! One incarnation of a process in one domain: its directory, its dictionary, its clock and its rings.

use std::{
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use tampu_shm::create_unnamed;
use tampu_types::Incarnation;

use crate::{
    clock::page::{self, ClockPage},
    files::{
        dictionary::{Definitions, Dictionary},
        directory::{FileError, FileErrorKind, FileSystem, RingDirectory, hidden},
        lock::LockedFile,
        names::{CLOCK, DICTIONARY, LEASE, SOURCE, remove_all, ring_name},
        overflow,
        ring_file::{LARGEST, RingFile, SMALLEST},
        source::Source,
    },
    header::{Counts, LEVELS, RingMap},
    settings::Settings,
    system,
    thread::Thread,
    writer::{
        fork::Generation,
        prealloc::{Prealloc, RawRing, ReadyRing},
        producer::Ring,
    },
};

/// Room that is reserved for the dictionary at once, so that call sites find room when the rest of the file system is
/// full.
const DICTIONARY_RESERVE: u64 = 256 << 10;
/// Memory of a ring that the drainer makes present between two of its passes, in bytes: a quarter of a millisecond on a disk.
const PIECE: usize = 128 << 10;

/// Storage of the rings, which decides whether records survive a crash of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RingStorage {
    /// In files: records survive the process.
    Files {
        /// Directory of the rings.
        directory: PathBuf,
        /// File system of the directory.
        file_system: FileSystem,
    },
    /// In the process's own memory: undrained records are lost with it.
    Memory {
        /// Reason for which they are not in files.
        why: String,
    },
}

impl RingStorage {
    /// Returns true if logged records survive a crash of the process.
    pub fn is_crash_safe(&self) -> bool {
        matches!(self, RingStorage::Files { .. })
    }
}

pub(crate) struct IncarnationRings {
    pub incarnation: Incarnation,
    generation: Generation,
    place: Option<Arc<RingDirectory>>,
    /// Reason for which some or all rings are not in files.
    memory_reason: Mutex<Option<String>>,
    pub dictionary: Dictionary,
    pub clock: Arc<ClockPage>,
    /// LockedFile as long as the process lives and this is not dropped.
    _alive: Option<LockedFile>,
    /// True while a drainer works, for rings without a file to lock.
    pub drained: AtomicBool,
    pool: Mutex<Pool>,
    /// Rings made ahead of their threads.
    pub prealloc: Prealloc,
    overflow: Mutex<Option<Arc<Ring>>>,
    next_number: AtomicU32,
    ring_bytes: usize,
    max_rings: usize,
    /// Records for which there was no ring at all, by level.
    unplaced: [AtomicU64; LEVELS],
}

#[derive(Default)]
struct Pool {
    all: Vec<Arc<Ring>>,
    free: Vec<Arc<Ring>>,
    /// Rings that threads are making at this moment, without waiting for one another.
    making: usize,
}

impl IncarnationRings {
    /// Begins an incarnation, in files if possible, with the dictionary of its parent.
    pub fn begin(settings: &Settings, incarnation: Incarnation, known: &Definitions) -> Result<IncarnationRings, std::io::Error> {
        let mut why = "no directory was given".to_owned();
        if let Some(rings) = &settings.directory {
            match IncarnationRings::in_files(settings, rings.join(incarnation.to_string()), incarnation, known) {
                Ok(life) => return Ok(life),
                Err(error) => why = error.to_string(),
            }
        }
        let clock = ClockPage::begin(&create_unnamed("tampu-clock", page::LENGTH as u64)?)?;
        let dictionary = Dictionary::begin(create_unnamed("tampu-dictionary", 0)?, incarnation, known)?;
        Ok(IncarnationRings::new(settings, incarnation, None, Some(why), dictionary, clock, None))
    }

    fn in_files(
        settings: &Settings,
        path: PathBuf,
        incarnation: Incarnation,
        known: &Definitions,
    ) -> Result<IncarnationRings, FileError> {
        if let Some(rings) = path.parent() {
            RingDirectory::create(rings)?;
        }
        let place = RingDirectory::create(&path)?;
        let made = || {
            place.create_file(LEASE, 0)?;
            place.publish(LEASE)?;
            let clock = place.create_file(CLOCK, page::LENGTH as u64)?;
            let clock = ClockPage::begin(&clock).map_err(place.about(CLOCK))?;
            place.publish(CLOCK)?;
            let file = place.create_file(DICTIONARY, 0)?;
            // If the room cannot be reserved, the file still grows as long as there is space.
            let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, DICTIONARY_RESERVE);
            let dictionary = Dictionary::begin(file, incarnation, known).map_err(place.about(DICTIONARY))?;
            place.publish(DICTIONARY)?;
            let file = place.create_file(SOURCE, 0)?;
            let source = Source { incarnation, ..settings.source.clone() };
            file.write_all_at(source.to_text().as_bytes(), 0).map_err(place.about(SOURCE))?;
            let alive = LockedFile::take(file).map_err(place.about(SOURCE))?;
            place.publish(SOURCE)?;
            Ok((dictionary, clock, alive))
        };
        match made() {
            Ok((dictionary, clock, alive)) => {
                Ok(IncarnationRings::new(settings, incarnation, Some(place), None, dictionary, clock, alive))
            }
            Err(error) => {
                remove_all(&place);
                Err(error)
            }
        }
    }

    fn new(
        settings: &Settings,
        incarnation: Incarnation,
        place: Option<RingDirectory>,
        memory_reason: Option<String>,
        dictionary: Dictionary,
        clock: ClockPage,
        alive: Option<LockedFile>,
    ) -> IncarnationRings {
        let page = system::page_size().max(SMALLEST as usize);
        IncarnationRings {
            incarnation,
            generation: Generation::now(),
            place: place.map(Arc::new),
            memory_reason: Mutex::new(memory_reason),
            dictionary,
            clock: Arc::new(clock),
            _alive: alive,
            drained: AtomicBool::new(false),
            pool: Mutex::default(),
            prealloc: Prealloc::default(),
            overflow: Mutex::default(),
            next_number: AtomicU32::new(0),
            ring_bytes: settings.ring_bytes.clamp(page, LARGEST as usize).next_power_of_two(),
            max_rings: settings.max_rings,
            unplaced: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    pub fn is_of_this_process(&self) -> bool {
        self.generation.is_now()
    }

    pub fn place(&self) -> Option<&Arc<RingDirectory>> {
        self.place.as_ref()
    }

    pub fn storage(&self) -> RingStorage {
        let why = lock(&self.memory_reason).clone();
        match (&self.place, why) {
            (Some(place), None) => RingStorage::Files { directory: place.path().to_owned(), file_system: place.file_system() },
            (_, why) => RingStorage::Memory { why: why.unwrap_or_default() },
        }
    }

    /// A ring for the calling thread: one that another has given back, one that was made ahead, or a new one.
    pub fn take(&self) -> Option<Arc<Ring>> {
        let mut pool = lock(&self.pool);
        let ring = match pool.free.pop() {
            Some(ring) => ring,
            None if pool.all.len() + pool.making >= self.max_rings => return None,
            None => {
                let is_first = pool.all.is_empty() && pool.making == 0;
                pool.making += 1;
                // Threads that start together do not wait for each other's ring.
                drop(pool);
                let made = self.take_ready().or_else(|| self.make_now(is_first));
                pool = lock(&self.pool);
                pool.making -= 1;
                let ring = made?;
                pool.all.push(ring.clone());
                ring
            }
        };
        // Before the lock is released: from here on the ring belongs to this thread.
        ring.producer().is_taken_by(Thread::current());
        Some(ring)
    }

    /// Names a ring made ahead: before that no reader of the directory sees it.
    fn take_ready(&self) -> Option<Arc<Ring>> {
        let ReadyRing { number, map, in_file, present } = self.prealloc.take()?;
        if self.prealloc.is_low() {
            // The drainer makes more rings.
            self.clock.wake_drainer();
        }
        if let Some(place) = self.place.as_deref().filter(|_| in_file) {
            place.publish(&ring_name(number)).ok()?;
        }
        let ring = Ring::new(number, map, self.clock.clone(), false);
        if let Some(present) = present {
            self.prealloc.put_raw(RawRing { ring: ring.clone(), present });
        }
        Some(ring)
    }

    /// A ring for a thread that finds none and waits for it: only its beginning is made present now.
    fn make_now(&self, is_first: bool) -> Option<Arc<Ring>> {
        let ring = self.make(false)?;
        ring.map.prefault_beginning();
        self.prealloc.missed(ring.clone(), is_first);
        Some(ring)
    }

    /// Prepares one ring, or a piece of the memory of one, ahead of threads; returns false if there is nothing to do. The
    /// drainer calls it between its passes, so it does little at a time.
    pub fn make_ahead(&self) -> bool {
        if !self.prealloc.is_wanting() {
            return false;
        }
        if let Some(RawRing { ring, present }) = self.prealloc.take_raw() {
            if let Some(present) = ring.map.prefault_piece(present, PIECE) {
                self.prealloc.put_raw(RawRing { ring, present });
            }
            return true;
        }
        if let Some(mut ahead) = self.prealloc.take_incomplete() {
            ahead.present = ahead.present.and_then(|present| ahead.map.prefault_piece(present, PIECE));
            self.prealloc.put(ahead);
            return true;
        }
        let room = {
            let pool = lock(&self.pool);
            if pool.all.is_empty() {
                return false;
            }
            self.max_rings.saturating_sub(pool.all.len() + pool.making)
        };
        if !self.prealloc.is_short(room) {
            return false;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        // If memory is short, the thread that needs a ring finds the error and reports it.
        let Ok(map) = self.prepare(self.place.as_deref(), number) else { return self.prealloc.gives_up() };
        map.prefault_beginning();
        self.prealloc.put(ReadyRing { number, map, in_file: self.place.is_some(), present: Some(0) });
        true
    }

    /// Removes a ring that was prepared and is not needed; called about once a second. Returns whether a ring was
    /// removed.
    pub fn drop_surplus(&self) -> bool {
        let Some(ReadyRing { number, map, in_file, .. }) = self.prealloc.surplus() else { return false };
        drop(map);
        if let Some(place) = self.place.as_deref().filter(|_| in_file) {
            // Files that cannot be removed here are removed with the directory.
            let _ = place.remove_file(&hidden(&ring_name(number)));
        }
        true
    }

    /// The thread that had it ends.
    pub fn give_back(&self, ring: &Arc<Ring>) {
        // A slot that was leaked open never closes, so its ring is not reused.
        if !ring.producer().is_open() {
            ring.producer().is_given_back(ring);
            lock(&self.pool).free.push(ring.clone());
        }
    }

    /// The ring for threads without one.
    pub fn overflow(&self) -> Option<Arc<Ring>> {
        let mut overflow = lock(&self.overflow);
        if overflow.is_none() {
            *overflow = self.make(true).inspect(|ring| ring.map.prefault());
        }
        overflow.clone()
    }

    /// All rings there are.
    pub fn rings(&self) -> Vec<Arc<Ring>> {
        let mut rings = lock(&self.pool).all.clone();
        rings.extend(lock(&self.overflow).clone());
        rings
    }

    pub fn count_unplaced(&self, level: usize) {
        self.unplaced[level.min(LEVELS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn unplaced(&self) -> Counts {
        std::array::from_fn(|level| self.unplaced[level].load(Ordering::Relaxed))
    }

    fn make(&self, shared: bool) -> Option<Arc<Ring>> {
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let in_file = |place: &RingDirectory| self.make_in(Some(place), number);
        let map = match self.place.as_deref().map(in_file) {
            Some(Ok(map)) => Some(map),
            Some(Err(error)) => {
                lock(&self.memory_reason).get_or_insert_with(|| error.to_string());
                self.make_in(None, number).ok()
            }
            None => self.make_in(None, number).ok(),
        };
        Some(Ring::new(number, map?, self.clock.clone(), shared))
    }

    fn make_in(&self, place: Option<&RingDirectory>, number: u32) -> Result<RingMap, FileError> {
        let map = self.prepare(place, number)?;
        if let Some(place) = place {
            place.publish(&ring_name(number))?;
        }
        Ok(map)
    }

    /// A ring complete but for its name.
    fn prepare(&self, place: Option<&RingDirectory>, number: u32) -> Result<RingMap, FileError> {
        let name = ring_name(number);
        let header = system::page_size();
        let length = (header + self.ring_bytes) as u64;
        let about = |why: FileErrorKind| FileError { path: PathBuf::from(&name), why };
        let file = match place {
            Some(place) => place.create_file(&name, length)?,
            None => create_unnamed(&name, length).map_err(|why| about(why.into()))?,
        };
        let fixed = RingFile { header: header as u32, number, size: self.ring_bytes as u64, incarnation: self.incarnation };
        let made = file.write_all_at(&fixed.encode(), 0).and_then(|()| RingMap::new(&file, header, self.ring_bytes));
        made.map_err(|why| about(why.into()))
    }

    /// Removes the files if everything has been handed off. Undrained records stay for recovery, as after a death.
    pub fn end(&self) {
        if let Some(place) = self.place.as_deref().filter(|_| self.generation.is_now())
            && self.is_drained()
            && overflow::is_empty(place)
        {
            remove_all(place);
        }
    }

    /// Returns true if everything that was logged has been handed off.
    fn is_drained(&self) -> bool {
        self.rings().iter().all(|ring| {
            let header = ring.map.header();
            let reported_all = |reported: Counts| header.losses().dropped == reported;
            header.cursor().is_some_and(|cursor| cursor.position == header.published() && reported_all(cursor.reported))
        })
    }
}

impl Drop for IncarnationRings {
    fn drop(&mut self) {
        self.end();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
