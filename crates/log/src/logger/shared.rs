//! What all loggers of a process have in common: settings, lanes, the queue to the backend.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
        mpsc::Sender,
    },
    time::Duration,
};

use tampu_types::{Incarnation, Level, LogRecord, RecordId};

use crate::logger::{
    clock::now,
    lane::{Lane, LaneKey, Reach},
    outbox::Outbox,
    packet::Packet,
    settings::LogSettings,
    voice::{Identity, Levels, Voice},
};

/// What travels to the backend.
pub(crate) enum Parcel {
    /// A sealed packet of a lane.
    Packet { lane: Arc<Lane>, bytes: Vec<u8>, records: u32, urgent: bool },
    /// Somebody waits until everything before it is delivered, at most this long.
    Flush(Duration, Sender<bool>),
}

/// Counters a process can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoggerStats {
    /// Records dropped because the queue stayed full; each is also told of in-band.
    pub dropped: u64,
    /// Records handed to the bus.
    pub published: u64,
    /// Bytes handed to the bus.
    pub bytes: u64,
    /// Calls that found the queue full.
    pub waited: u64,
    /// Records handed to the bus, by the level's ordinal.
    pub by_level: [u64; 10],
}

#[derive(Default)]
pub(crate) struct Counters {
    pub dropped: AtomicU64,
    pub published: AtomicU64,
    pub bytes: AtomicU64,
    pub waited: AtomicU64,
    /// The published ones, by the level's ordinal.
    pub by_level: [AtomicU64; 10],
}

pub(crate) struct Shared {
    pub settings: LogSettings,
    pub life: Incarnation,
    pub outbox: Outbox<Parcel>,
    pub counters: Counters,
    lanes: Mutex<Lanes>,
    levels: Mutex<HashMap<String, Arc<Levels>>>,
    next_ring: AtomicU32,
    /// Whether the backend knows that packets are filling.
    awake: AtomicBool,
    /// Voices that have dropped records since the last report.
    losers: Mutex<Vec<Arc<Voice>>>,
    /// Buffers of packets that have gone out, to be filled again.
    spare: Mutex<Vec<Vec<u8>>>,
}

#[derive(Default)]
struct Lanes {
    by_key: HashMap<LaneKey, Arc<Lane>>,
    all: Vec<Arc<Lane>>,
}

/// A process that logs 100 levels and audiences at once still keeps few buffers.
const SPARE_BUFFERS: usize = 32;

impl Shared {
    pub fn new(settings: LogSettings) -> Shared {
        Shared {
            outbox: Outbox::new(settings.queue_bytes),
            settings,
            life: tampu_bus::host::incarnation(),
            counters: Counters::default(),
            lanes: Mutex::default(),
            levels: Mutex::default(),
            next_ring: AtomicU32::new(0),
            awake: AtomicBool::new(false),
            losers: Mutex::default(),
            spare: Mutex::default(),
        }
    }

    /// A new ring for a logger of this identity.
    pub fn voice(&self, identity: Identity) -> Arc<Voice> {
        Arc::new(Voice::new(self.next_ring.fetch_add(1, Ordering::Relaxed), identity))
    }

    /// The levels of a named logger.
    pub fn levels(&self, name: &str) -> Arc<Levels> {
        let mut levels = lock(&self.levels);
        if let Some(known) = levels.get(name) {
            return known.clone();
        }
        let (central, local) = (self.settings.central.number(), self.settings.local.number());
        let fresh = Arc::new(Levels {
            any: AtomicU8::new(central.min(local)),
            central: AtomicU8::new(central),
            local: AtomicU8::new(local),
        });
        levels.insert(name.to_owned(), fresh.clone());
        fresh
    }

    /// The lane a voice's records of a level go through.
    pub fn lane(&self, voice: &Voice, level: Level, reach: Reach) -> Arc<Lane> {
        let key = LaneKey { level, partition: voice.partition(), reach };
        let mut lanes = lock(&self.lanes);
        if let Some(lane) = lanes.by_key.get(&key) {
            return lane.clone();
        }
        let lane = Arc::new(Lane::new(key.clone(), Packet::new(self.life)));
        lanes.by_key.insert(key, lane.clone());
        lanes.all.push(lane.clone());
        lane
    }

    /// All lanes there are now.
    pub fn lanes(&self) -> Vec<Arc<Lane>> {
        lock(&self.lanes).all.clone()
    }

    /// Queues a lane's packet if there is room within the wait; the packet is empty afterwards, or untouched.
    pub fn dispatch(&self, lane: &Arc<Lane>, packet: &mut Packet, wait: Duration) -> bool {
        if self.outbox.is_stalled() {
            return false;
        }
        let (bytes, records) = packet.seal(self.buffer());
        let size = bytes.len();
        let parcel = Parcel::Packet { lane: lane.clone(), bytes, records, urgent: self.is_urgent(lane) };
        match self.outbox.push(size, parcel, wait) {
            Ok(()) => true,
            Err(Parcel::Packet { bytes, records, .. }) => {
                packet.unseal(bytes, records);
                self.counters.waited.fetch_add(1, Ordering::Relaxed);
                false
            }
            Err(Parcel::Flush(..)) => false,
        }
    }

    /// Queues all that a lane holds, whatever waits already; false where somebody has the lane now. Through the queue and under
    /// the lane's lock, because a full packet of the same lane may have been queued a moment ago and goes first.
    pub fn seal(&self, lane: &Arc<Lane>) -> bool {
        let Some(mut packet) = lane.try_lock() else { return false };
        while !packet.is_empty() {
            let (bytes, records) = packet.seal(self.buffer());
            let size = bytes.len();
            self.outbox.force(size, Parcel::Packet { lane: lane.clone(), bytes, records, urgent: self.is_urgent(lane) });
        }
        true
    }

    fn is_urgent(&self, lane: &Lane) -> bool {
        self.settings.immediate.passes(lane.key.level)
    }

    /// Finds room in a lane's packet and has it filled; drops and counts the record where there is none, or it fits none.
    pub fn take(&self, voice: &Arc<Voice>, lane: &Arc<Lane>, fill: impl FnOnce(&mut Packet, u64) -> bool) {
        let level = lane.key.level;
        let mut packet = lane.lock();
        let wait = || if level >= Level::Error { self.settings.full_wait_grave } else { self.settings.full_wait };
        if packet.is_full(&self.settings) && !self.dispatch(lane, &mut packet, wait()) {
            drop(packet);
            self.count_dropped(voice, level);
            return;
        }
        let first = packet.is_empty();
        let number = voice.next.fetch_add(1, Ordering::Relaxed);
        if !fill(&mut packet, number) {
            drop(packet);
            self.count_dropped(voice, level);
            return;
        }
        if packet.is_full(&self.settings) {
            // Where the queue is full now, the next record of this lane will wait for it.
            self.dispatch(lane, &mut packet, Duration::ZERO);
        }
        drop(packet);
        if first {
            self.rouse();
        }
        if self.settings.immediate.passes(level) && lane.mark_urgent() {
            self.outbox.ring();
        }
    }

    /// Takes a record made by hand and complete but for its id.
    pub fn take_record(&self, voice: &Arc<Voice>, lane: &Arc<Lane>, mut record: LogRecord) {
        self.take(voice, lane, |packet, number| {
            record.id = Some(RecordId { incarnation: self.life, ring: voice.ring, number });
            packet.push_record(&record)
        });
    }

    /// Says something in a voice's name, whatever its levels are.
    pub fn speak_for(&self, voice: &Arc<Voice>, mut record: LogRecord) {
        voice.identity.complete(&mut record, &self.settings);
        let lane = voice.lane(record.level, Reach::Central, || self.lane(voice, record.level, Reach::Central));
        self.take_record(voice, lane, record);
    }

    /// Makes sure the backend knows that a packet has begun to fill.
    pub fn rouse(&self) {
        if !self.awake.swap(true, Ordering::AcqRel) {
            self.outbox.ring();
        }
    }

    /// Called by the backend before it empties all lanes.
    pub fn settle(&self) {
        self.awake.store(false, Ordering::Release);
    }

    /// Counts a record that found no room.
    pub fn count_dropped(&self, voice: &Arc<Voice>, level: Level) {
        self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        voice.dropped[level.ordinal()].fetch_add(1, Ordering::Relaxed);
        let now = now().0.max(1) as u64;
        if voice.dropped_since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            lock(&self.losers).push(voice.clone());
            self.rouse();
        }
    }

    /// The voices that have lost records since the last call.
    pub fn take_losers(&self) -> Vec<Arc<Voice>> {
        std::mem::take(&mut *lock(&self.losers))
    }

    /// A buffer to fill, used before if possible.
    pub fn buffer(&self) -> Vec<u8> {
        lock(&self.spare).pop().unwrap_or_default()
    }

    /// Gives a buffer back.
    pub fn recycle(&self, mut buffer: Vec<u8>) {
        let mut spare = lock(&self.spare);
        if spare.len() < SPARE_BUFFERS && buffer.capacity() <= 4 * self.settings.packet_bytes {
            buffer.clear();
            spare.push(buffer);
        }
    }

    /// What has been counted so far.
    pub fn counted(&self) -> LoggerStats {
        let counters = &self.counters;
        LoggerStats {
            dropped: counters.dropped.load(Ordering::Relaxed),
            published: counters.published.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            waited: counters.waited.load(Ordering::Relaxed),
            by_level: std::array::from_fn(|ordinal| counters.by_level[ordinal].load(Ordering::Relaxed)),
        }
    }

    /// The named loggers there are now, in no order.
    pub fn named_loggers(&self) -> Vec<(String, Arc<Levels>)> {
        lock(&self.levels).iter().map(|(name, levels)| (name.clone(), levels.clone())).collect()
    }

    /// Whether any named logger prints records of this level.
    pub fn any_prints(&self, level: Level) -> bool {
        lock(&self.levels).values().any(|levels| levels.prints(level))
    }

    /// Whether the logger of this name prints records of this level, if there is one.
    pub fn prints(&self, name: &str, level: Level) -> Option<bool> {
        lock(&self.levels).get(name).map(|levels| levels.prints(level))
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
