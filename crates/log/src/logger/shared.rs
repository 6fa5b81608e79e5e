//! What all loggers of a process have in common: settings, rings, voices, the inlet to the backend.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use tampu_ring::{Busy, Drainer, Kind, Refused, Rings, Settings as RingSettings, Source};
use tampu_text::Statement;
use tampu_types::{Incarnation, Level, LogRecord, RecordId};

use crate::logger::{
    attach::Attached,
    config::Tunable,
    control,
    inlet::{Inlet, Parcel},
    made,
    pump::MADE_BY_HAND,
    repeat::RepeatGuard,
    settings::{BadSettings, LogSettings, Threshold},
    voice::{Identity, Levels, Voice},
};

/// Counters a process can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoggerStats {
    /// Records dropped because there was no room for them; each is also told of in-band.
    pub dropped: u64,
    /// Records handed to the bus.
    pub published: u64,
    /// Bytes handed to the bus.
    pub bytes: u64,
    /// Calls that waited for room.
    pub waited: u64,
    /// Records handed to the bus, by the level's ordinal.
    pub by_level: [u64; 10],
    /// The most bytes that were seen waiting in one ring.
    pub high_water: u64,
    /// Bytes that wait in all rings now. They wait until whoever keeps records has committed them.
    pub waiting: u64,
    /// Records that could not be written to the local output; each is also told of in the log.
    pub unprinted: u64,
    /// Records suppressed as repetitions or because there were too many a second, where settings want that; each is also told of in
    /// the log.
    pub suppressed: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    /// Records that found no room in the inlet, or were of no use.
    pub dropped: AtomicU64,
    pub published: AtomicU64,
    pub bytes: AtomicU64,
    /// The published ones, by the level's ordinal.
    pub by_level: [AtomicU64; 10],
    /// Records that local output did not take.
    pub unprinted: AtomicU64,
    /// Records that settings keep out.
    pub suppressed: AtomicU64,
}

pub(crate) struct Shared {
    pub settings: LogSettings,
    pub life: Incarnation,
    pub rings: Rings,
    pub inlet: Inlet,
    pub counters: Counters,
    /// What marks of statements begin with when their numbers are of this dictionary.
    pub page: u32,
    /// Calls from this level on wake the backend.
    pub bell_from: u8,
    /// What may change while the process runs, and how often it has.
    tunable: Mutex<Tunable>,
    pub tuned: AtomicU64,
    attached: Mutex<Attached>,
    levels: Mutex<HashMap<String, Arc<Levels>>>,
    /// By number in the dictionary.
    voices: Mutex<HashMap<u32, Voice>>,
    sites: Mutex<HashMap<usize, u32>>,
    /// What records made by hand have in the rings instead of a statement's number; 0 where there was no room for it.
    made: u32,
    next_ring: AtomicU32,
    own: OnceLock<Voice>,
    /// Drops in the inlet since the last report, by the level's ordinal.
    untold: [AtomicU64; 10],
}

/// How records made by hand are written, for people who look into a dictionary.
const MADE: &[u8] = b"log batch";

/// Marks of statements: the page of the dictionary above, the number in it below. A statement that several dictionaries know
/// (there is one a process, but in tests) is marked by whoever met it last, and looked up by the others.
const SITE_BITS: u32 = 20;
const LAST_PAGE: u32 = (1 << (32 - SITE_BITS)) - 1;

impl Shared {
    pub fn new(settings: LogSettings) -> std::io::Result<Shared> {
        static PAGES: AtomicU32 = AtomicU32::new(1);
        let life = tampu_bus::host::incarnation();
        let source = Source {
            domain: settings.domain.clone(),
            name: settings.source.clone(),
            process: settings.process.clone(),
            host: settings.host.clone(),
            incarnation: life,
        };
        let mut rings = RingSettings::new(settings.rings.clone(), source);
        rings.ring_bytes = settings.ring_bytes;
        let rings = Rings::open(rings)?;
        let made = rings.define(Kind::Made, MADE).unwrap_or(0);
        Ok(Shared {
            rings,
            made,
            inlet: Inlet::new(settings.queue_bytes),
            bell_from: settings.immediate.number(),
            tunable: Mutex::new(Tunable::of(&settings)),
            tuned: AtomicU64::new(0),
            attached: Mutex::default(),
            settings,
            life,
            counters: Counters::default(),
            page: PAGES.fetch_add(1, Ordering::Relaxed).min(LAST_PAGE + 1),
            levels: Mutex::default(),
            voices: Mutex::default(),
            sites: Mutex::default(),
            next_ring: AtomicU32::new(0),
            own: OnceLock::new(),
            untold: Default::default(),
        })
    }

    /// A voice with this identity.
    pub fn voice(&self, identity: Identity, levels: Arc<Levels>) -> Voice {
        // A dictionary only grows, and error chains come without end: their records take the slow way, as all do for which there
        // is no room in the dictionary.
        let for_ever = identity.stack_id.is_empty();
        let id = if for_ever { self.rings.define(Kind::Voice, &identity.encode()).unwrap_or(0) } else { 0 };
        let ring = MADE_BY_HAND | self.next_ring.fetch_add(1, Ordering::Relaxed);
        let voice = Voice::new(identity, id, ring, levels);
        if id != 0 {
            lock(&self.voices).insert(id, voice.clone());
        }
        voice
    }

    /// The voice with this number.
    pub fn voice_of(&self, id: u32) -> Option<Voice> {
        lock(&self.voices).get(&id).cloned()
    }

    /// The levels of a named logger.
    pub fn levels(&self, name: &str) -> Arc<Levels> {
        let mut levels = lock(&self.levels);
        if let Some(known) = levels.get(name) {
            return known.clone();
        }
        let fresh = Arc::new(Levels::new(lock(&self.tunable).named(name)));
        attach(&fresh, lock(&self.attached).level(self.settings.source.as_str(), name));
        levels.insert(name.to_owned(), fresh.clone());
        fresh
    }

    /// Reads the settings once more and goes by what may change: levels and guards of all loggers, also those that were changed
    /// while the process runs, and how many records a second may come.
    pub fn refresh(&self) -> Result<(), BadSettings> {
        let none = || BadSettings::new("refresh", "this process has no configuration that it could read once more");
        let settings = self.settings.reread.as_ref().ok_or_else(none)?.read()?;
        let tunable = Tunable::of(&settings);
        // Loggers that are named meanwhile wait for this lock.
        let levels = lock(&self.levels);
        for (name, levels) in levels.iter() {
            let named = tunable.named(name);
            *lock(&levels.repeat) = named.repeat;
            control::store(levels, control::Change { central: Some(named.central), local: Some(named.local) });
        }
        *lock(&self.tunable) = tunable;
        self.tuned.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Changes who is attached, and so from which level on loggers publish for them.
    pub fn attach(&self, change: &dyn Fn(&mut Attached)) {
        // Loggers that are named meanwhile wait for this lock.
        let levels = lock(&self.levels);
        let mut attached = lock(&self.attached);
        change(&mut attached);
        for (name, levels) in levels.iter() {
            attach(levels, attached.level(self.settings.source.as_str(), name));
        }
    }

    /// What may change while the process runs, as it is now.
    pub fn tunable(&self) -> Tunable {
        lock(&self.tunable).clone()
    }

    /// The number of a statement in this process's dictionary, if its mark tells.
    #[inline(always)]
    pub fn marked(page: u32, statement: &Statement) -> Option<u32> {
        let mark = statement.mark.load(Ordering::Relaxed);
        (mark >> SITE_BITS == page).then_some(mark & ((1 << SITE_BITS) - 1))
    }

    /// The same for one not met before; `None` where the dictionary has no room for it.
    #[cold]
    #[inline(never)]
    pub fn meet(&self, statement: &'static Statement) -> Option<u32> {
        let mut sites = lock(&self.sites);
        let address = std::ptr::from_ref(statement).addr();
        let id = match sites.get(&address) {
            Some(&id) => id,
            None => {
                let mut bytes = Vec::new();
                statement.site().encode(&mut bytes);
                let id = self.rings.define(Kind::Site, &bytes).ok()?;
                sites.insert(address, id);
                id
            }
        };
        if self.page <= LAST_PAGE && id >> SITE_BITS == 0 {
            statement.mark.store(self.page << SITE_BITS | id, Ordering::Relaxed);
        }
        Some(id)
    }

    /// The page of its statements' marks; nothing where it shares one with others.
    pub fn own_page(&self) -> Option<u32> {
        (self.page <= LAST_PAGE).then_some(self.page)
    }

    /// How long a call of this level may wait for room.
    #[inline(always)]
    pub fn wait(&self, level: u8) -> Duration {
        if level >= Level::Error.number() { self.settings.full_wait_grave } else { self.settings.full_wait }
    }

    /// Takes a record made by hand and complete but for its id.
    pub fn take_record(&self, voice: &Voice, mut record: LogRecord) {
        record.id = None;
        let (level, reach) = (record.level.number(), voice.reach(record.level));
        let taken = match made::encode(&record, reach) {
            Ok(bytes) if self.made != 0 => self.put(self.made, 0, &bytes, level),
            _ => Err(Refused::Long),
        };
        // Other refusals have been counted in a ring, and are told there.
        if taken == Err(Refused::Long) {
            self.take_aside(voice, record);
        }
        self.rings.ring_bell();
    }

    /// Puts a payload into this thread's ring, or into a file beside it. `Err(Refused::Long)` where that is not possible; all else
    /// that is refused is counted and will be told.
    pub fn put(&self, site: u32, voice: u32, bytes: &[u8], level: u8) -> Result<(), Refused> {
        match self.rings.claim(bytes.len(), level, self.wait(level)) {
            Ok(mut slot) => {
                slot.put(bytes);
                slot.commit(site, voice);
                Ok(())
            }
            Err(Refused::Long) => {
                let limit = self.settings.queue_bytes as u64;
                self.rings.put_long(bytes, limit, (site, voice), level, self.wait(level))
            }
            Err(other) => Err(other),
        }
    }

    /// Takes a record for which there is no way through the rings: it does not survive the process.
    fn take_aside(&self, voice: &Voice, mut record: LogRecord) {
        record.id = Some(self.next_id(voice));
        let level = record.level;
        let data: usize = record.data.iter().map(|datum| datum.name.len() + datum.value.len() + 48).sum();
        let size = record.message.len() + data + size_of::<LogRecord>();
        let reach = voice.reach(level);
        if !self.inlet.push(Parcel::Record(Box::new(record), reach), size, self.wait(level.number())) {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            self.untold[level.ordinal()].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The id of the next record made by hand in this voice's name.
    pub fn next_id(&self, voice: &Voice) -> RecordId {
        RecordId { incarnation: self.life, ring: voice.ring, number: voice.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// The voice of the logging itself.
    pub fn own_voice(&self) -> Voice {
        self.own.get_or_init(|| self.voice(self.own_identity(), self.levels(self.settings.source.as_str()))).clone()
    }

    /// Who logs without having said more.
    pub fn own_identity(&self) -> Identity {
        Identity { logger: self.settings.source.as_str().to_owned(), ..Identity::default() }
    }

    /// Records dropped at the inlet since the last call.
    pub fn take_untold(&self) -> Vec<(Level, u64)> {
        let counted = Level::ALL.iter().zip(&self.untold).map(|(level, count)| (*level, count.swap(0, Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Waits until whoever drains this process's rings from outside has let go, which it is asked to; `None` if the last handle goes
    /// meanwhile.
    pub fn take_lease(&self) -> Option<Drainer> {
        /// How long is waited at a time.
        const TURN: Duration = Duration::from_millis(200);
        loop {
            match self.rings.drainer_within(TURN) {
                Ok(drainer) => return Some(drainer),
                Err(Busy::Taken) if !self.inlet.is_closing() => {}
                Err(Busy::Taken) => return None,
                Err(other) => {
                    eprintln!("tampu-log: {}: the log rings cannot be drained: {other}", self.settings.source);
                    return None;
                }
            }
        }
    }

    /// What has been counted so far.
    pub fn counted(&self) -> LoggerStats {
        let rings = self.rings.stats();
        let unplaced: u64 = self.rings.unplaced().iter().sum();
        let in_rings: u64 = rings.iter().flat_map(|ring| ring.dropped).sum();
        LoggerStats {
            dropped: self.counters.dropped.load(Ordering::Relaxed) + unplaced + in_rings,
            published: self.counters.published.load(Ordering::Relaxed),
            bytes: self.counters.bytes.load(Ordering::Relaxed),
            waited: rings.iter().map(|ring| ring.waited).sum(),
            by_level: std::array::from_fn(|ordinal| self.counters.by_level[ordinal].load(Ordering::Relaxed)),
            suppressed: self.counters.suppressed.load(Ordering::Relaxed),
            unprinted: self.counters.unprinted.load(Ordering::Relaxed),
            waiting: rings.iter().map(|ring| ring.waiting).sum(),
            high_water: rings.iter().map(|ring| ring.high_water).max().unwrap_or(0),
        }
    }

    /// The named loggers there are now, in no order.
    pub fn named_loggers(&self) -> Vec<(String, Arc<Levels>)> {
        lock(&self.levels).iter().map(|(name, levels)| (name.clone(), levels.clone())).collect()
    }

    /// What is done about repetitions of a logger of this name.
    pub fn repeat(&self, name: &str) -> RepeatGuard {
        let known = lock(&self.levels).get(name).map(|levels| levels.repeat());
        known.unwrap_or_else(|| lock(&self.tunable).repeat)
    }

    /// Whether the logger of this name prints records of this level, if there is one.
    pub fn prints(&self, name: &str, level: Level) -> Option<bool> {
        lock(&self.levels).get(name).map(|levels| levels.prints(level))
    }
}

/// Has a logger publish from this level on for attached readers, or nothing for them.
fn attach(levels: &Levels, from: Option<Level>) {
    let number = from.map_or(Threshold::Off, Threshold::From).number();
    if levels.attached.swap(number, Ordering::SeqCst) != number {
        levels.renew();
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
