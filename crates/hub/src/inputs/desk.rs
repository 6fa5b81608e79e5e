//! Where an input's messages become records of the bus, and what goes wrong with them is counted and told.

use std::{
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tampu_bus::{Participant, clock::Clock};
use tampu_log::{Logger, warning};
use tampu_types::{
    Datum, LogRecord, Time,
    frames::{Frame, Framing},
};

/// Bytes of records that an input may be ahead of their acknowledgement; then it waits. Well below what its logger may queue
/// ([`QUEUE`]), so that a record never finds that queue full while somebody keeps records.
const AHEAD: usize = 4 << 20;
/// Bytes that may wait in the logger of an input.
pub(crate) const QUEUE: usize = 16 << 20;
/// How long an input waits for the acknowledgement of what it is ahead, while somebody is there to give one. Beyond it the logger's
/// queue decides, and tells what found no room.
const HOLD: Duration = Duration::from_secs(60);
/// How long one look for that acknowledgement takes: an end of the hub must not wait longer.
const LOOK: Duration = Duration::from_secs(1);
/// How often losses are told.
const PERIOD: Duration = Duration::from_secs(10);

/// What distinguishes inputs.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Its name, and the process of records that name none.
    pub name: &'static str,
    /// How messages follow one another in a stream.
    pub framing: Framing,
    /// What a message says.
    pub read: fn(&[u8], Time) -> LogRecord,
    /// Bytes of a message that are kept.
    pub limit: usize,
}

/// What an input has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages that became records.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages longer than the bound, which are cut.
    pub cut: u64,
    /// Messages whose stream ended inside of them.
    pub broken_off: u64,
    /// Datagrams that the kernel had no room for.
    pub lost: u64,
    /// Connections closed because too many were open.
    pub refused: u64,
    /// Connections there were.
    pub connections: u64,
}

/// The same, while it counts.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub cut: AtomicU64,
    pub broken_off: AtomicU64,
    pub lost: AtomicU64,
    pub refused: AtomicU64,
    pub connections: AtomicU64,
}

impl Counters {
    fn read(&self) -> Counts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            records: of(&self.records),
            bytes: of(&self.bytes),
            cut: of(&self.cut),
            broken_off: of(&self.broken_off),
            lost: of(&self.lost),
            refused: of(&self.refused),
            connections: of(&self.connections),
        }
    }
}

/// What was last told, and when.
#[derive(Default)]
struct Told {
    at: Option<Instant>,
    counts: Counts,
}

pub(crate) struct Desk {
    pub kind: Kind,
    pub counters: Counters,
    pub stopping: AtomicBool,
    logger: Logger,
    clock: Arc<dyn Clock>,
    /// Bytes of records since the last acknowledgement that was waited for.
    ahead: Mutex<usize>,
    told: Mutex<Told>,
}

impl Desk {
    pub fn new(kind: Kind, participant: &Participant, logger: Logger) -> Desk {
        Desk {
            kind,
            counters: Counters::default(),
            stopping: AtomicBool::new(false),
            logger,
            clock: participant.clock(),
            ahead: Mutex::default(),
            told: Mutex::default(),
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub fn counts(&self) -> Counts {
        self.counters.read()
    }

    /// Takes one message from this host; waits while too much is ahead of its acknowledgement.
    pub fn take(&self, frame: Frame<'_>, peer: IpAddr) {
        let mut record = (self.kind.read)(frame.bytes, self.clock.utc());
        let peer = peer.to_canonical().to_string();
        if frame.whole > frame.bytes.len() as u64 {
            // A message that broke off and one that was cut both say how long it should have been.
            let counter = if frame.broken_off { &self.counters.broken_off } else { &self.counters.cut };
            counter.fetch_add(1, Ordering::Relaxed);
            record.data.push(Datum::new("cut_from_bytes", frame.whole.to_string()));
        }
        for (field, otherwise) in
            [(&mut record.host, peer.as_str()), (&mut record.process, self.kind.name), (&mut record.thread, "-")]
        {
            if field.is_empty() {
                otherwise.clone_into(field);
            }
        }
        record.data.push(Datum::new("peer", peer));
        self.counters.records.fetch_add(1, Ordering::Relaxed);
        self.counters.bytes.fetch_add(frame.whole, Ordering::Relaxed);
        self.keep_pace(&record);
        self.logger.record(record);
    }

    fn keep_pace(&self, record: &LogRecord) {
        let data: usize = record.data.iter().map(|datum| datum.name.len() + datum.value.len() + size_of::<Datum>()).sum();
        let mut ahead = lock(&self.ahead);
        *ahead += size_of::<LogRecord>() + record.message.len() + data;
        if *ahead < AHEAD {
            return;
        }
        *ahead = 0;
        let until = Instant::now() + HOLD;
        while !self.is_stopping() && Instant::now() < until {
            let asked = Instant::now();
            // Where the answer is no before its time, nobody is there who keeps records: then the writer's cache has to do.
            if self.logger.flush(LOOK) || asked.elapsed() < LOOK {
                return;
            }
        }
    }

    /// Tells what went wrong since it was last told: the first time at once, then once a period, and `now` in any case.
    pub fn tell(&self, now: bool) {
        let mut told = lock(&self.told);
        let (counts, before) = (self.counts(), told.counts);
        if !now && told.at.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        let mut news = false;
        for (count, before, what) in [
            (counts.lost, before.lost, "datagrams lost: the kernel's receive buffer was full (receive_buffer)"),
            (counts.refused, before.refused, "connections closed: too many were open (connections)"),
            (counts.cut, before.cut, "messages cut: they were longer than the bound"),
            (counts.broken_off, before.broken_off, "messages broke off with their connection"),
        ] {
            let count = count - before;
            if count > 0 {
                news = true;
                warning!(self.logger, "{count} {what}"; input = self.kind.name);
            }
        }
        told.counts = counts;
        // A quiet period makes the next loss news again.
        told.at = if news { Some(Instant::now()) } else { None };
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
