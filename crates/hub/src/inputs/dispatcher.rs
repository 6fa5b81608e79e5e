//! Turns an input's messages into records of the bus, and counts and logs failures.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_bus::{Participant, clock::Clock};
use tampu_log::{Logger, warning};
use tampu_types::{
    Datum, LogRecord, Time,
    frames::{Frame, Framing},
};

use super::shares::{ShareLimits, Shares};

/// Maximum number of bytes of unacknowledged records of an input; then it waits. It is well below the queue of the
/// input's logger ([`QUEUE`]). So a record never finds that queue full while a collector runs.
const AHEAD: usize = 4 << 20;
/// Size in bytes of the logger queue of an input.
pub(crate) const QUEUE: usize = 16 << 20;
/// Longest wait of an input for an acknowledgement. After it the logger's queue decides, and reports the dropped
/// records.
const HOLD: Duration = Duration::from_secs(60);
/// Longest single wait for an acknowledgement, because the end of the hub must not wait longer.
const LOOK: Duration = Duration::from_secs(1);
/// Shortest period between two log messages about losses.
const PERIOD: Duration = Duration::from_secs(10);
/// Pause of a stream whose address has used its share.
const SHARE_PAUSE: Duration = Duration::from_millis(20);
/// Addresses whose dropped messages are logged one by one at a time; the others are logged as a sum.
const SHED_NAMED: usize = 5;

/// The properties of an input.
#[derive(Clone, Copy)]
pub(crate) struct InputKind {
    /// Its name, which is also the process of records without one.
    pub name: &'static str,
    /// The name under which workers of its connections are counted.
    pub connection_worker: &'static str,
    /// Framing of messages in a stream.
    pub framing: Framing,
    /// Parses a message.
    pub read: fn(&[u8], Time) -> LogRecord,
    /// Maximum length of a message in bytes; the rest is cut.
    pub limit: usize,
    /// Shares of its senders.
    pub limits: ShareLimits,
}

/// Counters of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InputCounts {
    /// Messages that became records.
    pub records: u64,
    /// Bytes of these messages.
    pub bytes: u64,
    /// Messages longer than the bound, which are cut.
    pub cut: u64,
    /// Messages whose stream ended inside of them.
    pub broken_off: u64,
    /// Datagrams that the kernel dropped because its buffer was full.
    pub lost: u64,
    /// Messages that were dropped because their address had sent more than its share.
    pub over_share: u64,
    /// Connections that were closed because too many were open.
    pub refused: u64,
    /// Number of all connections so far.
    pub connections: u64,
}

/// The live counters of an input.
#[derive(Debug, Default)]
pub(crate) struct InputCounters {
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub cut: AtomicU64,
    pub broken_off: AtomicU64,
    pub lost: AtomicU64,
    pub over_share: AtomicU64,
    pub refused: AtomicU64,
    pub connections: AtomicU64,
}

impl InputCounters {
    fn read(&self) -> InputCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        InputCounts {
            records: of(&self.records),
            bytes: of(&self.bytes),
            cut: of(&self.cut),
            broken_off: of(&self.broken_off),
            lost: of(&self.lost),
            over_share: of(&self.over_share),
            refused: of(&self.refused),
            connections: of(&self.connections),
        }
    }
}

/// The counters at the last log message, and its time.
#[derive(Default)]
struct Reported {
    at: Option<Instant>,
    counts: InputCounts,
}

pub(crate) struct Dispatcher {
    pub kind: InputKind,
    pub counters: InputCounters,
    pub stopping: AtomicBool,
    shares: Shares,
    logger: Logger,
    clock: Arc<dyn Clock>,
    /// Bytes of records since the last acknowledgement.
    ahead: Mutex<usize>,
    told: Mutex<Reported>,
}

impl Dispatcher {
    pub fn new(kind: InputKind, participant: &Participant, logger: Logger) -> Dispatcher {
        Dispatcher {
            shares: Shares::new(kind.limits),
            kind,
            counters: InputCounters::default(),
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

    pub fn counts(&self) -> InputCounts {
        self.counters.read()
    }

    /// Returns true if the share of a datagram's address has room for it. A datagram without room is counted.
    pub fn admits_datagram(&self, peer: IpAddr, bytes: usize) -> bool {
        let admitted = self.admits(peer, bytes);
        if !admitted {
            self.shed(peer);
        }
        admitted
    }

    /// Waits until the share of a stream's address has room for one message. Returns false if it has none and the
    /// stream is `gone`.
    pub fn wait_for_share(&self, peer: IpAddr, bytes: usize, gone: &dyn Fn() -> bool) -> bool {
        loop {
            let admitted = self.admits(peer, bytes);
            if admitted || self.is_stopping() {
                return true;
            }
            if gone() {
                return false;
            }
            std::thread::park_timeout(SHARE_PAUSE);
        }
    }

    fn admits(&self, peer: IpAddr, bytes: usize) -> bool {
        self.shares.admit(peer.to_canonical(), bytes, Instant::now())
    }

    /// Counts a message of an address that is dropped because the address sent more than its share.
    pub fn shed(&self, peer: IpAddr) {
        self.counters.over_share.fetch_add(1, Ordering::Relaxed);
        self.shares.shed(peer.to_canonical(), 1, Instant::now());
    }

    /// Accepts one message; waits while too many bytes are unacknowledged, unless its sender is `gone`.
    pub fn take(&self, frame: Frame<'_>, peer: IpAddr, gone: &dyn Fn() -> bool) {
        let mut record = (self.kind.read)(frame.bytes, self.clock.utc());
        let peer = peer.to_canonical().to_string();
        if frame.whole > frame.bytes.len() as u64 {
            // Both a broken and a truncated message carry their full length.
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
        self.keep_pace(&record, gone);
        self.logger.record(record);
    }

    fn keep_pace(&self, record: &LogRecord, gone: &dyn Fn() -> bool) {
        let data: usize = record.data.iter().map(|datum| datum.name.len() + datum.value.len() + size_of::<Datum>()).sum();
        let mut ahead = loop {
            match self.ahead.try_lock_for(SHARE_PAUSE) {
                Some(ahead) => break ahead,
                // Another worker holds it while it waits for an acknowledgement.
                None if gone() => return,
                None => {}
            }
        };
        *ahead += size_of::<LogRecord>() + record.message.len() + data;
        if *ahead < AHEAD {
            return;
        }
        *ahead = 0;
        let until = Instant::now() + HOLD;
        while !self.is_stopping() && !gone() && Instant::now() < until {
            let asked = Instant::now();
            // An early failure means that no collector runs; the writer's cache then holds the records.
            if self.logger.flush(LOOK) || asked.elapsed() < LOOK {
                return;
            }
        }
    }

    /// Logs losses since the last message: the first at once, later ones once a period, and all of them with `now`.
    pub fn tell(&self, now: bool) {
        let mut told = self.told.lock();
        let (counts, before) = (self.counts(), told.counts);
        if !now && told.at.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        let mut news = false;
        for (count, before, what) in [
            (counts.lost, before.lost, "datagrams lost: the kernel's receive buffer was full (receive_buffer)"),
            (
                counts.refused,
                before.refused,
                "connections closed, the longest silent ones: too many were open (connections, connections_per_address)",
            ),
            (counts.cut, before.cut, "messages cut: they were longer than the bound"),
            (counts.broken_off, before.broken_off, "messages broke off with their connection"),
        ] {
            let count = count - before;
            if count > 0 {
                news = true;
                warning!(self.logger, "{count} {what}"; input = self.kind.name);
            }
        }
        news |= self.log_shed();
        told.counts = counts;
        // After a quiet period the next loss is logged at once.
        told.at = if news { Some(Instant::now()) } else { None };
    }

    /// Logs dropped messages by the addresses that sent too many. Returns true if there are any.
    fn log_shed(&self) -> bool {
        let shed = self.shares.take_shed();
        let why = "it sent more than its share (of messages a second, or of [quota])";
        for &(peer, messages) in shed.iter().take(SHED_NAMED) {
            let peer = peer.map_or_else(|| "further addresses".to_owned(), |peer| peer.to_string());
            warning!(self.logger, "{messages} messages of {peer} dropped: {why}"; input = self.kind.name, peer = peer);
        }
        let others = shed.iter().skip(SHED_NAMED).map(|&(_, messages)| messages);
        let sum = others.fold(0, u64::saturating_add);
        if sum > 0 {
            let addresses = shed.len() - SHED_NAMED;
            warning!(self.logger, "{sum} messages of {addresses} more addresses dropped: each {why}"; input = self.kind.name);
        }
        !shed.is_empty()
    }
}
