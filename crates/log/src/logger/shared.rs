//! State that all loggers of a process share: settings, rings, identities, the queue to the backend.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tampu_ring::{Busy, Drainer, Kind, Refused, Rings, Settings as RingSettings, Source};
use tampu_text::Statement;
use tampu_types::{Incarnation, Level, LogRecord, RecordId};

use crate::logger::{
    attached::Attached,
    command_queue::{BackendCommand, CommandQueue},
    config::Tunable,
    fields::LoggerFields,
    identity::LoggerIdentity,
    levels::LoggerLevels,
    record::{self, RECORD_RINGS},
    repeat::RepeatGuard,
    settings::{BadSettings, LogSettings},
    stats::LoggerStats,
    threshold::Threshold,
};

#[derive(Default)]
pub(crate) struct Counters {
    /// Records that found no room in the queue, or were of no use.
    pub dropped: AtomicU64,
    pub published: AtomicU64,
    pub bytes: AtomicU64,
    /// The published ones, by the level's ordinal.
    pub by_level: [AtomicU64; 10],
    /// Records that the local output failed to write.
    pub unprinted: AtomicU64,
    /// Records that settings keep out.
    pub suppressed: AtomicU64,
}

pub(crate) struct LoggerShared {
    pub settings: LogSettings,
    pub life: Incarnation,
    pub rings: Rings,
    pub commands: CommandQueue,
    pub counters: Counters,
    /// First part of the marks of statements with numbers of this dictionary.
    pub page: u32,
    /// Calls from this level on wake the backend.
    pub bell_from: u8,
    /// Settings that may change while the process runs, with a number for each change.
    tunable: Mutex<Tunable>,
    pub tuned: AtomicU64,
    attached: Mutex<Attached>,
    levels: Mutex<HashMap<String, Arc<LoggerLevels>>>,
    /// Identities by number in the dictionary.
    identities: Mutex<HashMap<u32, LoggerIdentity>>,
    sites: Mutex<HashMap<usize, u32>>,
    /// Number of whole records in the rings, in the position of a statement's number; 0 if there was no room for it.
    record_site: u32,
    next_ring: AtomicU32,
    own: OnceLock<LoggerIdentity>,
    /// Drops in the queue since the last report, by the level's ordinal.
    unreported: [AtomicU64; 10],
}

/// Text by which a dictionary names whole records, for human readers.
const RECORD_SITE: &[u8] = b"log batch";

/// Marks of statements: the page of the dictionary above, the number in it below. Several dictionaries may know a
/// statement, though only in tests: a process has one. Then the last dictionary marks it, and the others look it up.
const SITE_BITS: u32 = 20;
const LAST_PAGE: u32 = (1 << (32 - SITE_BITS)) - 1;

impl LoggerShared {
    pub fn new(settings: LogSettings) -> std::io::Result<LoggerShared> {
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
        let record_site = rings.define(Kind::Made, RECORD_SITE).unwrap_or(0);
        Ok(LoggerShared {
            rings,
            record_site,
            commands: CommandQueue::new(settings.queue_bytes),
            bell_from: settings.immediate.number(),
            tunable: Mutex::new(Tunable::of(&settings)),
            tuned: AtomicU64::new(0),
            attached: Mutex::default(),
            settings,
            life,
            counters: Counters::default(),
            page: PAGES.fetch_add(1, Ordering::Relaxed).min(LAST_PAGE + 1),
            levels: Mutex::default(),
            identities: Mutex::default(),
            sites: Mutex::default(),
            next_ring: AtomicU32::new(0),
            own: OnceLock::new(),
            unreported: Default::default(),
        })
    }

    /// A identity with this fields.
    pub fn identity(&self, fields: LoggerFields, levels: Arc<LoggerLevels>) -> LoggerIdentity {
        // A dictionary only grows, and the number of error chains has no bound. Their records take the slow path, as do all records
        // without room in the dictionary.
        let for_ever = fields.stack_id.is_empty();
        let id = if for_ever { self.rings.define(Kind::Voice, &fields.encode()).unwrap_or(0) } else { 0 };
        let ring = RECORD_RINGS | self.next_ring.fetch_add(1, Ordering::Relaxed);
        let identity = LoggerIdentity::new(fields, id, ring, levels);
        if id != 0 {
            self.identities.lock().insert(id, identity.clone());
        }
        identity
    }

    /// The identity with this number.
    pub fn identity_of(&self, id: u32) -> Option<LoggerIdentity> {
        self.identities.lock().get(&id).cloned()
    }

    /// The levels of a named logger.
    pub fn levels(&self, name: &str) -> Arc<LoggerLevels> {
        let mut levels = self.levels.lock();
        if let Some(known) = levels.get(name) {
            return known.clone();
        }
        let fresh = Arc::new(LoggerLevels::new(self.tunable.lock().named(name)));
        attach(&fresh, self.attached.lock().level(self.settings.source.as_str(), name));
        levels.insert(name.to_owned(), fresh.clone());
        fresh
    }

    /// Reads the settings again and applies the changeable ones: levels and guards of all loggers, also those that were
    /// changed while the process runs, and the limit of records a second.
    pub fn refresh(&self) -> Result<(), BadSettings> {
        let none = || BadSettings::new("refresh", "this process has no configuration to read again");
        let settings = self.settings.reread.as_ref().ok_or_else(none)?.read()?;
        let tunable = Tunable::of(&settings);
        // New loggers wait for this lock.
        let levels = self.levels.lock();
        for (name, levels) in levels.iter() {
            let named = tunable.named(name);
            *levels.repeat.lock() = named.repeat;
            levels.set(Some(named.central), Some(named.local));
        }
        *self.tunable.lock() = tunable;
        self.tuned.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Changes the attached readers, and with them the lowest level that loggers publish for them.
    pub fn attach(&self, change: &dyn Fn(&mut Attached)) {
        // New loggers wait for this lock.
        let levels = self.levels.lock();
        let mut attached = self.attached.lock();
        change(&mut attached);
        for (name, levels) in levels.iter() {
            attach(levels, attached.level(self.settings.source.as_str(), name));
        }
    }

    /// Returns the present settings of those that may change.
    pub fn tunable(&self) -> Tunable {
        self.tunable.lock().clone()
    }

    /// Returns the number of a statement in this process's dictionary, if its mark has it.
    #[inline(always)]
    pub fn marked(page: u32, statement: &Statement) -> Option<u32> {
        let mark = statement.mark.load(Ordering::Relaxed);
        (mark >> SITE_BITS == page).then_some(mark & ((1 << SITE_BITS) - 1))
    }

    /// Adds a new statement and returns its number; `None` if the dictionary has no room for it.
    #[cold]
    #[inline(never)]
    pub fn meet(&self, statement: &'static Statement) -> Option<u32> {
        let mut sites = self.sites.lock();
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

    /// Returns the longest time a call of this level may wait for room.
    #[inline(always)]
    pub fn wait(&self, level: u8) -> Duration {
        if level >= Level::Error.number() { self.settings.full_wait_grave } else { self.settings.full_wait }
    }

    /// Stores a record made by hand that only lacks its id; returns false if there was no room, which is counted.
    pub fn take_record(&self, identity: &LoggerIdentity, mut record: LogRecord) -> bool {
        record.id = None;
        let (level, reach) = (record.level.number(), identity.reach(record.level));
        let taken = match record::encode(&record, reach) {
            Ok(bytes) if self.record_site != 0 => self.put(self.record_site, 0, &bytes, level),
            _ => Err(Refused::Long),
        };
        // Other refusals have been counted in a ring, and the drainer reports them.
        let is_taken = taken.is_ok() || taken == Err(Refused::Long) && self.take_aside(identity, record);
        self.rings.wake_drainer();
        is_taken
    }

    /// Puts a payload into this thread's ring, or into a file beside it. Returns `Err(Refused::Long)` where that is not
    /// possible. Every other refusal is counted and will be reported.
    pub fn put(&self, site: u32, identity: u32, bytes: &[u8], level: u8) -> Result<(), Refused> {
        match self.rings.claim(bytes.len(), level, self.wait(level)) {
            Ok(mut slot) => {
                slot.put(bytes);
                slot.commit(site, identity);
                Ok(())
            }
            Err(Refused::Long) => {
                let limit = self.settings.queue_bytes as u64;
                self.rings.put_long(bytes, limit, (site, identity), level, self.wait(level))
            }
            Err(other) => Err(other),
        }
    }

    /// Takes a record for which there is no way through the rings: it does not survive the process. Returns
    /// false if the queue was full, which is counted.
    fn take_aside(&self, identity: &LoggerIdentity, mut record: LogRecord) -> bool {
        record.id = Some(self.next_id(identity));
        let level = record.level;
        let data: usize = record.data.iter().map(|datum| datum.name.len() + datum.value.len() + 48).sum();
        let size = record.message.len() + data + size_of::<LogRecord>();
        let reach = identity.reach(level);
        let is_taken = self.commands.push(BackendCommand::Record(Box::new(record), reach), size, self.wait(level.number()));
        if !is_taken {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
            self.unreported[level.ordinal()].fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }

    /// Returns the id of the next record made by hand of this identity.
    pub fn next_id(&self, identity: &LoggerIdentity) -> RecordId {
        RecordId { incarnation: self.life, ring: identity.ring, number: identity.next.fetch_add(1, Ordering::Relaxed) }
    }

    /// The identity of the logging itself.
    pub fn own_identity(&self) -> LoggerIdentity {
        self.own.get_or_init(|| self.identity(self.own_fields(), self.levels(self.settings.source.as_str()))).clone()
    }

    /// Returns the fields of a logger that has stated no other.
    pub fn own_fields(&self) -> LoggerFields {
        LoggerFields { logger: self.settings.source.as_str().to_owned(), ..LoggerFields::default() }
    }

    /// Records dropped at the commands since the last call.
    pub fn take_unreported(&self) -> Vec<(Level, u64)> {
        let counted = Level::ALL.iter().zip(&self.unreported).map(|(level, count)| (*level, count.swap(0, Ordering::Relaxed)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Waits for the lease: asks the outside drainer of this process's rings to release it. Returns `None` if the last
    /// handle is dropped meanwhile.
    pub fn take_lease(&self) -> Option<Drainer> {
        /// Longest single wait.
        const TURN: Duration = Duration::from_millis(200);
        loop {
            match self.rings.drainer_within(TURN) {
                Ok(drainer) => return Some(drainer),
                Err(Busy::Taken) if !self.commands.is_closing() => {}
                Err(Busy::Taken) => return None,
                Err(other) => {
                    eprintln!("tampu-log: {}: the log rings cannot be drained: {other}", self.settings.source);
                    return None;
                }
            }
        }
    }

    /// Returns the present counters.
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
    pub fn named_loggers(&self) -> Vec<(String, Arc<LoggerLevels>)> {
        self.levels.lock().iter().map(|(name, levels)| (name.clone(), levels.clone())).collect()
    }

    /// Returns the repeat limits of a logger of this name.
    pub fn repeat(&self, name: &str) -> RepeatGuard {
        let known = self.levels.lock().get(name).map(|levels| levels.repeat());
        known.unwrap_or_else(|| self.tunable.lock().repeat)
    }

    /// Returns whether the logger of this name prints records of this level, if there is one.
    pub fn prints(&self, name: &str, level: Level) -> Option<bool> {
        self.levels.lock().get(name).map(|levels| levels.prints(level))
    }
}

/// Has a logger publish from this level on for attached readers, or nothing for them.
fn attach(levels: &LoggerLevels, from: Option<Level>) {
    let number = from.map_or(Threshold::Off, Threshold::From).number();
    if levels.attached.swap(number, Ordering::SeqCst) != number {
        levels.renew();
    }
}
