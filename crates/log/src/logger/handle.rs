//! The handle through which an application logs.

use std::{
    sync::{Arc, atomic::Ordering},
    thread::JoinHandle,
};

use parking_lot::Mutex;
use tampu_bus::{
    BusError, Participant,
    connect::{BadEnvironment, Settings},
};
use tampu_ring::{Busy, Pool, Refused, RingStorage};
use tampu_text::{Arguments, Payload, Recorder, Rendered, Statement};
use tampu_types::{Level, LogRecord};
use tampu_workers::{OnPanic, WorkerThread};

use crate::logger::{
    backend,
    bus_sink::BusSink,
    fields::LoggerFields,
    identity::LoggerIdentity,
    levels::LoggerLevels,
    packet_sink::PacketSink,
    repeat::RepeatGuard,
    settings::{BadSettings, LogSettings},
    shared::LoggerShared,
    stats::LoggerStats,
    threshold::Threshold,
};

/// A named logger. Clones are cheap and share their levels, so clone a logger instead of making it again. The drop of a
/// process's last handle waits (at most [`LogSettings::close_wait`]) until the records in the rings are sent.
#[derive(Clone)]
pub struct Logger {
    pub(super) levels: Arc<LoggerLevels>,
    near: Near,
    pub(super) identity: LoggerIdentity,
    pub(super) keeper: Arc<Keeper>,
}

/// Copies of the data for a call's fast path, so that it follows no pointers.
#[derive(Clone, Copy)]
struct Near {
    pool: Pool,
    /// First part of the marks of statements that this handle may write by number. Without such statements, a value
    /// that no mark has.
    page: u32,
    identity: u32,
    bell_from: u8,
}

impl Near {
    fn of(shared: &LoggerShared, identity: &LoggerIdentity) -> Near {
        // An identity without a number cannot stand in a ring.
        let page = if identity.id == 0 { u32::MAX } else { shared.page };
        Near { pool: shared.rings.pool(), page, identity: identity.id, bell_from: shared.bell_from }
    }
}

/// Keeps the backend; the last handle's drop ends it.
pub(super) struct Keeper {
    pub(super) shared: Arc<LoggerShared>,
    /// The process that has the backend: a child made by `fork` has none, and the host's node drains its rings.
    pub(super) process: u32,
    backend: Mutex<Option<JoinHandle<backend::Remainder>>>,
}

/// Reason why a process cannot log.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Invalid address of the hub in the environment.
    #[error(transparent)]
    Environment(#[from] BadEnvironment),
    /// The system refused another thread.
    #[error("starting the logger's worker: {0}")]
    Worker(#[from] std::io::Error),
}

impl Logger {
    /// Opens a logger for this host's hub, or for the one that the environment names. The hub may start later.
    pub fn open(settings: LogSettings) -> Result<Logger, OpenError> {
        let (domain, source) = (settings.domain.clone(), settings.source.clone());
        let config = Settings::from_env()?.in_domain(domain.clone());
        let join = move || {
            let engine = config.open()?;
            Participant::on(engine, domain.clone(), source.clone(), config.qos.clone())
        };
        Ok(Logger::joining(join, settings)?)
    }

    /// Logs on a bus that is there.
    pub fn on(participant: Participant, settings: LogSettings) -> std::io::Result<Logger> {
        Logger::joining(move || Ok(participant.clone()), settings)
    }

    /// Opens a logger on a bus that may start later. The backend retries until it is joined, and the queue keeps
    /// records up to its bound. Never waits itself.
    pub fn joining(
        open: impl FnMut() -> Result<Participant, BusError> + Send + 'static,
        settings: LogSettings,
    ) -> std::io::Result<Logger> {
        let sink = BusSink::new(Box::new(open)).with(&settings);
        Logger::start(settings, Box::new(sink))
    }

    /// Starts a process's logging over this way out.
    pub(crate) fn start(settings: LogSettings, sink: Box<dyn PacketSink>) -> std::io::Result<Logger> {
        let shared = Arc::new(LoggerShared::new(settings)?);
        let drainer = match shared.rings.drainer() {
            Ok(drainer) => Some(drainer),
            // The host's node was faster. It releases the lease on request, and this call does not wait for that.
            Err(Busy::Taken) => None,
            Err(other) => return Err(std::io::Error::other(other)),
        };
        let worker = shared.clone();
        let work = move || match drainer.map_or_else(|| worker.take_lease(), Some) {
            Some(drainer) => backend::run(worker, sink, drainer),
            None => backend::Remainder::default(),
        };
        let backend = WorkerThread::named("tampu-log").spawn(OnPanic::ReportOnly, work)?;
        let levels = shared.levels(shared.settings.source.as_str());
        let identity = shared.own_identity();
        let keeper = Arc::new(Keeper { shared, process: std::process::id(), backend: Mutex::new(Some(backend)) });
        let near = Near::of(&keeper.shared, &identity);
        Ok(Logger { levels, near, identity, keeper })
    }

    /// Returns whether a record of this level would be published or printed: one relaxed load and a comparison.
    #[inline(always)]
    pub fn enabled(&self, level: Level) -> bool {
        level.number() >= self.levels.any.load(Ordering::Relaxed)
    }

    /// Makes a call outside the fast path: the first call of a statement, or a call in a thread whose ring is full or
    /// needs maintenance.
    #[cold]
    #[inline(never)]
    fn record_slowly<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) -> bool {
        let shared = &*self.keeper.shared;
        let level = statement.level();
        let known = LoggerShared::marked(shared.page, statement).or_else(|| shared.meet(statement));
        if let (Some(site), identity @ 1..) = (known, self.identity.id) {
            match shared.rings.claim(payload.length(), level, shared.wait(level)) {
                Ok(mut slot) => {
                    // SAFETY: the payload writes exactly `length()` bytes, and that many were claimed.
                    unsafe { slot.fill(payload.length(), |place| payload.write(place)) };
                    slot.commit(site, identity);
                    return true;
                }
                Err(Refused::Long) => {}
                // The ring counts the record, and the drainer reports it.
                Err(_) => return false,
            }
        }
        // A record that no ring can hold is made into text here, and sent like a record made by hand.
        let mut bytes = Vec::new();
        payload.append_to(&mut bytes);
        self.record_aside(statement, &bytes)
    }

    /// Logs a payload in bytes that does not fit into a ring, or whose logger or statement has no number. Returns false if
    /// there was no room for it.
    pub(super) fn record_aside(&self, statement: &'static Statement, payload: &[u8]) -> bool {
        let shared = &*self.keeper.shared;
        if let (Some(site), identity @ 1..) = (shared.meet(statement), self.identity.id) {
            let put = shared.put(site, identity, payload, statement.level());
            if put != Err(Refused::Long) {
                shared.rings.wake_drainer();
                return put.is_ok();
            }
        }
        let Some(level) = Level::from_number(statement.level()) else { return true };
        let mut rendered = Rendered::default();
        let site = statement.site();
        // An argument that cannot be shown is left out; the rest is kept.
        let _ = rendered.render(&site, payload);
        let mut record = LogRecord::new(level, rendered.message());
        record.data = rendered.values().map(|(name, value)| tampu_types::Datum::new(name, value)).collect();
        record.line = site.known_line();
        record.file = site.file.into_owned();
        record.routine = site.routine.into_owned();
        self.take(record)
    }

    #[cold]
    #[inline(never)]
    fn wake_drainer(&self) {
        self.keeper.shared.rings.wake_drainer();
    }

    /// Logs a record made by hand. Completes its empty fields: its id, the time if 0, and this logger's own fields.
    pub fn record(&self, record: LogRecord) {
        self.take(record);
    }

    /// Logs a record made by hand; returns false if there was no room for it.
    fn take(&self, mut record: LogRecord) -> bool {
        if !self.enabled(record.level) {
            return true;
        }
        let shared = &*self.keeper.shared;
        self.identity.fields.complete(&mut record, &shared.settings);
        let other_audiences = record.audiences != self.identity.fields.audiences;
        let speaker = if other_audiences { self.for_audiences(record.audiences.clone()) } else { self.clone() };
        shared.take_record(&speaker.identity, record)
    }

    /// Returns whether a record of this level is published for all readers.
    pub fn publishes(&self, level: Level) -> bool {
        level.number() >= self.levels.central.load(Ordering::Relaxed)
    }

    /// Changes from which level on this named logger publishes, in all its handles.
    pub fn set_central(&self, threshold: Threshold) {
        self.levels.central.store(threshold.number(), Ordering::SeqCst);
        self.levels.renew();
    }

    /// Changes from which level on this named logger's records are printed, in all its handles.
    pub fn set_local(&self, threshold: Threshold) {
        self.levels.local.store(threshold.number(), Ordering::SeqCst);
        self.levels.renew();
    }

    /// Changes the repeat limit of this named logger's statements, in all its handles.
    pub fn set_repeat_guard(&self, guard: RepeatGuard) {
        *self.levels.repeat.lock() = guard;
        self.keeper.shared.tuned.fetch_add(1, Ordering::Release);
    }

    /// Reads the configuration again: levels and guards of all loggers of the process become those of the
    /// configuration, also where they were changed since the start.
    pub fn refresh(&self) -> Result<(), BadSettings> {
        self.keeper.shared.refresh()
    }

    /// Returns the counters of all loggers of this process.
    pub fn stats(&self) -> LoggerStats {
        self.keeper.shared.counted()
    }

    /// Returns whether records survive the process, and if not, the reason.
    pub fn storage(&self) -> RingStorage {
        self.keeper.shared.rings.storage()
    }

    fn derive(&self, change: impl FnOnce(&mut LoggerFields)) -> Logger {
        self.derive_with(self.levels.clone(), change)
    }

    fn derive_with(&self, levels: Arc<LoggerLevels>, change: impl FnOnce(&mut LoggerFields)) -> Logger {
        let mut fields = LoggerFields::clone(&self.identity.fields);
        change(&mut fields);
        let identity = self.keeper.shared.identity(fields, levels.clone());
        let near = Near::of(&self.keeper.shared, &identity);
        Logger { levels, near, identity, keeper: self.keeper.clone() }
    }

    /// A logger of this name, with its own levels; the other fields are kept.
    pub fn named(&self, name: &str) -> Logger {
        let levels = self.keeper.shared.levels(name);
        self.derive_with(levels, |fields| fields.logger = name.to_owned())
    }

    /// Returns the same logger for a component.
    pub fn for_object(&self, source_object: &str) -> Logger {
        self.derive(|fields| fields.source_object = source_object.to_owned())
    }

    /// Returns the same logger for these audiences only; for everybody if there are none.
    pub fn for_audiences(&self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Logger {
        self.derive(|fields| fields.audiences = audiences.into_iter().map(Into::into).collect())
    }

    /// Returns the same logger in a context.
    pub fn in_context(&self, context: &str) -> Logger {
        self.derive(|fields| fields.context = context.to_owned())
    }

    /// Returns the same logger for an antenna of an array.
    pub fn for_antenna(&self, antenna: &str, array: &str) -> Logger {
        self.derive(|fields| {
            fields.antenna = antenna.to_owned();
            fields.array = array.to_owned();
        })
    }

    /// Returns the same logger during a run or observation.
    pub fn in_run(&self, run_id: &str) -> Logger {
        self.derive(|fields| fields.run_id = run_id.to_owned())
    }

    /// Returns the same logger within an error chain, at this depth (0 the outermost).
    pub fn in_stack(&self, stack_id: &str, stack_level: i32) -> Logger {
        self.derive(|fields| {
            fields.stack_id = stack_id.to_owned();
            fields.stack_level = Some(stack_level);
        })
    }
}

impl Logger {
    /// Records a call; returns false if there was no room for it, which is counted and reported.
    #[inline(always)]
    pub(super) fn try_record<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) -> bool {
        let near = &self.near;
        // No closures: the compiler may leave each in a unit of its own, and call it.
        let is_taken = if let Some(site) = LoggerShared::marked(near.page, statement)
            // SAFETY: the handle keeps the rings. The payload makes no record of its own: its arguments were formatted when it was
            // made.
            && let Some(room) = unsafe { near.pool.room(payload.length()) }
        {
            // SAFETY: the payload writes exactly `length()` bytes.
            unsafe {
                payload.write(room.place());
                room.commit(site, near.identity);
            }
            true
        } else {
            self.record_slowly(statement, payload)
        };
        if statement.level() >= near.bell_from {
            self.wake_drainer();
        }
        is_taken
    }
}

impl Recorder for Logger {
    #[inline(always)]
    fn wants(&self, level: u8) -> bool {
        level >= self.levels.any.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        self.try_record(statement, payload);
    }
}

impl std::fmt::Debug for Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger")
            .field("name", &self.identity.fields.logger)
            .field("identity", &self.identity.id)
            .finish_non_exhaustive()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // A child process does not have the backend's thread, and its locks may be held for ever.
            std::mem::forget(self.backend.get_mut().take());
            return;
        }
        self.shared.commands.close();
        self.shared.rings.wake_drainer();
        let Some(backend) = self.backend.lock().take() else { return };
        // A function that was told about its records may hold the last handle. Then the backend ends by itself.
        if backend.thread().id() == std::thread::current().id() {
            return;
        }
        let remainder = backend.join();
        self.shared.rings.end();
        if let Ok(remainder) = remainder
            && remainder.records > 0
        {
            // No channel is left for this report, so it goes to standard error.
            eprintln!(
                "tampu-log: {}: {} records could not be delivered before the process ended",
                self.shared.settings.source, remainder.records
            );
        }
    }
}
