//! One life of a process in one domain: its directory, its dictionary, its clock and its rings.

use std::{
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use tampu_types::Incarnation;

use crate::{
    clock_page::{self, ClockPage},
    dictionary::{Definitions, Dictionary},
    fork::Generation,
    lease::Held,
    lines::{Counts, LEVELS},
    map::RingMap,
    place::{FileSystem, Place, PlaceError, Why, hidden, nameless},
    producer::Ring,
    refuge,
    ring_file::{LARGEST, RingFile, SMALLEST},
    rings::Settings,
    source::Source,
    stock::{Ahead, Stock},
    system,
    thread::Thread,
};

/// Names of the files of a life.
pub(crate) const SOURCE: &str = "source";
pub(crate) const LEASE: &str = "lease";
pub(crate) const CLOCK: &str = "clock";
pub(crate) const DICTIONARY: &str = "dictionary";

/// Room that is reserved for the dictionary at once, so that call sites find room when the rest of the file system is full.
const DICTIONARY_RESERVE: u64 = 256 << 10;

/// The name of a ring's file.
pub(crate) fn ring_name(number: u32) -> String {
    format!("ring-{number}")
}

/// The number in a ring file's name.
pub(crate) fn ring_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("ring-")?;
    digits.parse().ok().filter(|number| ring_name(*number) == name)
}

/// Where the rings are, and with it what survives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shelter {
    /// In files: what was logged survives the process.
    Files {
        /// Their directory.
        directory: PathBuf,
        /// What it lies on.
        file_system: FileSystem,
    },
    /// In the process's own memory: what has not been drained dies with it.
    None {
        /// Why.
        why: String,
    },
}

impl Shelter {
    /// Whether what was logged survives the process.
    pub fn is_crash_safe(&self) -> bool {
        matches!(self, Shelter::Files { .. })
    }
}

pub(crate) struct Life {
    pub incarnation: Incarnation,
    generation: Generation,
    place: Option<Arc<Place>>,
    /// Why not everything, or nothing, is in files.
    unsheltered: Mutex<Option<String>>,
    pub dictionary: Dictionary,
    pub clock: Arc<ClockPage>,
    /// Held as long as the process lives and this is not dropped.
    _alive: Option<Held>,
    /// Whether somebody drains, where there is no file to lock.
    pub drained: AtomicBool,
    pool: Mutex<Pool>,
    /// Rings made ahead of the threads that will want them.
    pub stock: Stock,
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
    /// How many are being made, by threads that do not wait for one another meanwhile.
    making: usize,
}

impl Life {
    /// Begins a life, in files if that can be done, with what its parent knew.
    pub fn begin(settings: &Settings, incarnation: Incarnation, known: &Definitions) -> Result<Life, std::io::Error> {
        let mut why = "no directory was given".to_owned();
        if let Some(rings) = &settings.directory {
            match Life::in_files(settings, rings.join(incarnation.to_string()), incarnation, known) {
                Ok(life) => return Ok(life),
                Err(error) => why = error.to_string(),
            }
        }
        let clock = ClockPage::begin(&nameless("tampu-clock", clock_page::LENGTH as u64)?)?;
        let dictionary = Dictionary::begin(nameless("tampu-dictionary", 0)?, incarnation, known)?;
        Ok(Life::new(settings, incarnation, None, Some(why), dictionary, clock, None))
    }

    fn in_files(settings: &Settings, path: PathBuf, incarnation: Incarnation, known: &Definitions) -> Result<Life, PlaceError> {
        if let Some(rings) = path.parent() {
            Place::create(rings)?;
        }
        let place = Place::create(&path)?;
        let made = || {
            place.create_file(LEASE, 0)?;
            place.publish(LEASE)?;
            let clock = place.create_file(CLOCK, clock_page::LENGTH as u64)?;
            let clock = ClockPage::begin(&clock).map_err(place.about(CLOCK))?;
            place.publish(CLOCK)?;
            let file = place.create_file(DICTIONARY, 0)?;
            // Where it cannot be reserved it grows all the same, as long as there is room.
            let _ = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, DICTIONARY_RESERVE);
            let dictionary = Dictionary::begin(file, incarnation, known).map_err(place.about(DICTIONARY))?;
            place.publish(DICTIONARY)?;
            let file = place.create_file(SOURCE, 0)?;
            let source = Source { incarnation, ..settings.source.clone() };
            file.write_all_at(source.to_text().as_bytes(), 0).map_err(place.about(SOURCE))?;
            let alive = Held::take(file).map_err(place.about(SOURCE))?;
            place.publish(SOURCE)?;
            Ok((dictionary, clock, alive))
        };
        match made() {
            Ok((dictionary, clock, alive)) => Ok(Life::new(settings, incarnation, Some(place), None, dictionary, clock, alive)),
            Err(error) => {
                remove_all(&place);
                Err(error)
            }
        }
    }

    fn new(
        settings: &Settings,
        incarnation: Incarnation,
        place: Option<Place>,
        unsheltered: Option<String>,
        dictionary: Dictionary,
        clock: ClockPage,
        alive: Option<Held>,
    ) -> Life {
        let page = system::page_size().max(SMALLEST as usize);
        Life {
            incarnation,
            generation: Generation::now(),
            place: place.map(Arc::new),
            unsheltered: Mutex::new(unsheltered),
            dictionary,
            clock: Arc::new(clock),
            _alive: alive,
            drained: AtomicBool::new(false),
            pool: Mutex::default(),
            stock: Stock::default(),
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

    pub fn place(&self) -> Option<&Arc<Place>> {
        self.place.as_ref()
    }

    pub fn shelter(&self) -> Shelter {
        let why = lock(&self.unsheltered).clone();
        match (&self.place, why) {
            (Some(place), None) => Shelter::Files { directory: place.path().to_owned(), file_system: place.file_system() },
            (_, why) => Shelter::None { why: why.unwrap_or_default() },
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
                // Threads that begin together do not wait for each other's ring.
                drop(pool);
                let made = self.take_stocked().or_else(|| self.make_now(is_first));
                pool = lock(&self.pool);
                pool.making -= 1;
                let ring = made?;
                pool.all.push(ring.clone());
                ring
            }
        };
        // Before the lock is let go: from here on the ring is this thread's.
        ring.producer().is_taken_by(Thread::current());
        Some(ring)
    }

    /// A ring made ahead gets its name: before that nobody who reads the directory looks at it.
    fn take_stocked(&self) -> Option<Arc<Ring>> {
        let Ahead { number, map, in_file } = self.stock.take()?;
        if self.stock.is_low() {
            // Whoever drains makes more.
            self.clock.ring_bell();
        }
        if let Some(place) = self.place.as_deref().filter(|_| in_file) {
            place.publish(&ring_name(number)).ok()?;
        }
        Some(Ring::new(number, map, self.clock.clone(), false))
    }

    /// A ring for a thread that finds none and waits for it: only its beginning is made present now.
    fn make_now(&self, is_first: bool) -> Option<Arc<Ring>> {
        let ring = self.make(false)?;
        ring.map.prefault_beginning();
        self.stock.missed(ring.clone(), is_first);
        Some(ring)
    }

    /// Does one thing of what is to be done ahead of threads, if there is any; whether there was. For the one who drains: it takes
    /// about as long as a thread's first call would without it.
    pub fn stock_up(&self) -> bool {
        if !self.stock.is_wanting() {
            return false;
        }
        if let Some(ring) = self.stock.take_raw() {
            ring.map.prefault();
            return true;
        }
        let room = {
            let pool = lock(&self.pool);
            if pool.all.is_empty() {
                return false;
            }
            self.max_rings.saturating_sub(pool.all.len() + pool.making)
        };
        if !self.stock.is_short(room) {
            return false;
        }
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        // Where there is no room for it, the thread that wants one finds that out and says so.
        let Ok(map) = self.prepare(self.place.as_deref(), number) else { return self.stock.gives_up() };
        map.prefault();
        self.stock.put(Ahead { number, map, in_file: self.place.is_some() });
        true
    }

    /// About once a second: what was made ahead for many threads and that nobody wants is given up. Says whether anything was.
    pub fn thin_stock(&self) -> bool {
        let Some(Ahead { number, map, in_file }) = self.stock.surplus() else { return false };
        drop(map);
        if let Some(place) = self.place.as_deref().filter(|_| in_file) {
            // What cannot be removed goes with the directory.
            let _ = place.remove_file(&hidden(&ring_name(number)));
        }
        true
    }

    /// The thread that had it ends.
    pub fn give_back(&self, ring: &Arc<Ring>) {
        // A slot that was forgotten open never closes: such a ring is not used again.
        if !ring.producer().is_open() {
            ring.producer().is_given_back(ring);
            lock(&self.pool).free.push(ring.clone());
        }
    }

    /// The ring for whoever has none.
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
        let in_file = |place: &Place| self.make_in(Some(place), number);
        let map = match self.place.as_deref().map(in_file) {
            Some(Ok(map)) => Some(map),
            Some(Err(error)) => {
                lock(&self.unsheltered).get_or_insert_with(|| error.to_string());
                self.make_in(None, number).ok()
            }
            None => self.make_in(None, number).ok(),
        };
        Some(Ring::new(number, map?, self.clock.clone(), shared))
    }

    fn make_in(&self, place: Option<&Place>, number: u32) -> Result<RingMap, PlaceError> {
        let map = self.prepare(place, number)?;
        if let Some(place) = place {
            place.publish(&ring_name(number))?;
        }
        Ok(map)
    }

    /// A ring complete but for its name.
    fn prepare(&self, place: Option<&Place>, number: u32) -> Result<RingMap, PlaceError> {
        let name = ring_name(number);
        let header = system::page_size();
        let length = (header + self.ring_bytes) as u64;
        let about = |why: Why| PlaceError { path: PathBuf::from(&name), why };
        let file = match place {
            Some(place) => place.create_file(&name, length)?,
            None => nameless(&name, length).map_err(|why| about(why.into()))?,
        };
        let fixed = RingFile { header: header as u32, number, size: self.ring_bytes as u64, incarnation: self.incarnation };
        let made = file.write_all_at(&fixed.encode(), 0).and_then(|()| RingMap::new(&file, header, self.ring_bytes));
        made.map_err(|why| about(why.into()))
    }

    /// Whether everything that was logged has been handed off.
    fn is_drained(&self) -> bool {
        self.rings().iter().all(|ring| {
            let lines = ring.map.lines();
            let told_all = |told: Counts| lines.losses().dropped == told;
            lines.cursor().is_some_and(|cursor| cursor.position == lines.published() && told_all(cursor.told))
        })
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // What was not drained stays for whoever recovers it, as after a death.
        if let Some(place) = self.place.as_deref().filter(|_| self.generation.is_now())
            && self.is_drained()
            && refuge::is_empty(place)
        {
            remove_all(place);
        }
    }
}

/// Removes the files of a life, its `source` last, and the directory. What cannot be removed is found and removed later.
pub(crate) fn remove_all(place: &Place) -> Vec<PlaceError> {
    let mut names = match place.names() {
        Ok(names) => names,
        Err(error) => return vec![error],
    };
    names.sort_by_key(|name| name == SOURCE);
    let mut failed: Vec<_> = names.iter().filter_map(|name| place.remove_file(name).err()).collect();
    failed.extend(place.remove().err());
    failed
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
