//! The handle an application logs through.

use std::{
    sync::{Arc, atomic::Ordering, mpsc},
    thread::JoinHandle,
    time::Duration,
};

use tampu_bus::{
    BusError, Participant, QosTable,
    engine::zenoh::{
        ZenohEngine,
        config::{BadEnvironment, ZenohConfig},
    },
};
use tampu_ring::{Busy, Pool, Refused, Shelter};
use tampu_text::{Arguments, Payload, Recorder, Rendered, Statement};
use tampu_types::{Level, LogRecord};

use crate::logger::{
    backend,
    bus_post::BusPost,
    inlet::Parcel,
    post::Post,
    repeat::RepeatGuard,
    settings::{BadSettings, LogSettings, Threshold},
    shared::{LoggerStats, Shared, lock},
    voice::{Identity, Levels, Voice},
};

/// A named logger. Cheap to clone; clones share its levels, so clone rather than make again. The last handle of
/// a process waits (at most [`LogSettings::close_wait`]) until what is in the rings has gone out.
#[derive(Clone)]
pub struct Logger {
    pub(super) levels: Arc<Levels>,
    near: Near,
    pub(super) voice: Voice,
    pub(super) keeper: Arc<Keeper>,
}

/// Copies of what the fast way of a call needs, so that it follows no pointers to find it.
#[derive(Clone, Copy)]
struct Near {
    pool: Pool,
    /// What the marks of statements begin with that this handle may write by number; no mark's if there are none.
    page: u32,
    voice: u32,
    bell_from: u8,
}

impl Near {
    fn of(shared: &Shared, voice: &Voice) -> Near {
        // A voice without a number has no place in a ring.
        let page = if voice.id == 0 { u32::MAX } else { shared.page };
        Near { pool: shared.rings.pool(), page, voice: voice.id, bell_from: shared.bell_from }
    }
}

/// Keeps the backend; the last handle's drop ends it.
pub(super) struct Keeper {
    pub(super) shared: Arc<Shared>,
    /// The process that has the backend: a child made by `fork` has none, and the host's node drains its rings.
    process: u32,
    backend: std::sync::Mutex<Option<JoinHandle<backend::Remainder>>>,
}

/// Why a process cannot log.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The environment says where the hub is, and says it wrongly.
    #[error(transparent)]
    Environment(#[from] BadEnvironment),
    /// The system gives no more threads.
    #[error("starting the logger's worker: {0}")]
    Worker(#[from] std::io::Error),
}

impl Logger {
    /// Logs to this host's hub, or to the one the environment names. The hub may come later.
    pub fn open(settings: LogSettings) -> Result<Logger, OpenError> {
        let (domain, source) = (settings.domain.clone(), settings.source.clone());
        let config = ZenohConfig::from_env()?.in_domain(domain.clone());
        let join = move || {
            let engine = Arc::new(ZenohEngine::open(config.clone())?);
            Participant::on(engine, domain.clone(), source.clone(), QosTable::default())
        };
        Ok(Logger::joining(join, settings)?)
    }

    /// Logs on a bus that is there.
    pub fn on(participant: Participant, settings: LogSettings) -> std::io::Result<Logger> {
        Logger::joining(move || Ok(participant.clone()), settings)
    }

    /// Logs on a bus that may come later: the backend asks for it until it is had, and keeps records as far as the queue
    /// goes. Never waits itself.
    pub fn joining(
        open: impl FnMut() -> Result<Participant, BusError> + Send + 'static,
        settings: LogSettings,
    ) -> std::io::Result<Logger> {
        Logger::start(settings, Box::new(BusPost::new(Box::new(open))))
    }

    /// Starts a process's logging over this way out.
    pub(crate) fn start(settings: LogSettings, post: Box<dyn Post>) -> std::io::Result<Logger> {
        let shared = Arc::new(Shared::new(settings)?);
        let drainer = match shared.rings.drainer() {
            Ok(drainer) => Some(drainer),
            // The host's node was faster. It lets go when it is asked to, and nobody waits for that here.
            Err(Busy::Taken) => None,
            Err(other) => return Err(std::io::Error::other(other)),
        };
        let worker = shared.clone();
        let work = move || match drainer.map_or_else(|| worker.take_lease(), Some) {
            Some(drainer) => backend::run(worker, post, drainer),
            None => backend::Remainder::default(),
        };
        let backend = std::thread::Builder::new().name("tampu-log".to_owned()).spawn(work)?;
        let levels = shared.levels(shared.settings.source.as_str());
        let voice = shared.own_voice();
        let keeper = Arc::new(Keeper { shared, process: std::process::id(), backend: std::sync::Mutex::new(Some(backend)) });
        let near = Near::of(&keeper.shared, &voice);
        Ok(Logger { levels, near, voice, keeper })
    }

    /// Whether a record of this level would go anywhere: one relaxed load and a comparison.
    #[inline(always)]
    pub fn enabled(&self, level: Level) -> bool {
        level.number() >= self.levels.any.load(Ordering::Relaxed)
    }

    /// A call that the fast way does not take: of a statement that is met for the first time, or in a thread whose ring has to be
    /// looked after or is full.
    #[cold]
    #[inline(never)]
    fn record_slowly<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        let shared = &*self.keeper.shared;
        let level = statement.level();
        let known = Shared::marked(shared.page, statement).or_else(|| shared.meet(statement));
        if let (Some(site), voice @ 1..) = (known, self.voice.id) {
            match shared.rings.claim(payload.length(), level, shared.wait(level)) {
                Ok(mut slot) => {
                    // SAFETY: the payload writes as many bytes as it has just said it takes, which is what was claimed.
                    unsafe { slot.fill(payload.length(), |place| payload.write(place)) };
                    slot.commit(site, voice);
                    return;
                }
                Err(Refused::Long) => {}
                // Counted in the ring, and told there.
                Err(_) => return,
            }
        }
        // What no ring can take is made into text here, and goes its way like a record made by hand.
        let mut bytes = Vec::new();
        payload.append_to(&mut bytes);
        self.record_aside(statement, &bytes);
    }

    /// The same for a payload in bytes: too long for a ring, or of a logger or a statement without a number.
    pub(super) fn record_aside(&self, statement: &'static Statement, payload: &[u8]) {
        let shared = &*self.keeper.shared;
        if let (Some(site), voice @ 1..) = (shared.meet(statement), self.voice.id)
            && shared.put(site, voice, payload, statement.level()) != Err(Refused::Long)
        {
            return shared.rings.ring_bell();
        }
        let Some(level) = Level::from_number(statement.level()) else { return };
        let mut rendered = Rendered::default();
        let site = statement.site();
        // What cannot be shown is left out; the rest is there.
        let _ = rendered.render(&site, payload);
        let mut record = LogRecord::new(level, rendered.message());
        record.data = rendered.values().map(|(name, value)| tampu_types::Datum::new(name, value)).collect();
        record.line = site.known_line();
        record.file = site.file.into_owned();
        record.routine = site.routine.into_owned();
        self.record(record);
    }

    #[cold]
    #[inline(never)]
    fn ring_bell(&self) {
        self.keeper.shared.rings.ring_bell();
    }

    /// Takes a record made by hand. What it leaves empty is filled in: its id, the time if 0, and this logger's own fields.
    pub fn record(&self, mut record: LogRecord) {
        if !self.enabled(record.level) {
            return;
        }
        let shared = &*self.keeper.shared;
        self.voice.identity.complete(&mut record, &shared.settings);
        let other_audiences = record.audiences != self.voice.identity.audiences;
        let speaker = if other_audiences { self.for_audiences(record.audiences.clone()) } else { self.clone() };
        shared.take_record(&speaker.voice, record);
    }

    /// Waits until everything logged before has reached every reader that is there; false if that took longer.
    pub fn flush(&self, timeout: Duration) -> bool {
        self.wait_for(timeout, Parcel::Flush)
    }

    /// Waits until a collector has committed everything that was published before; false if that took longer, also because there
    /// is none. Who is attached or only looks is not waited for. What a collector does not keep on purpose (a quota, a rule) it
    /// acknowledges as well, and tells of in the log.
    pub fn flush_to_archive(&self, timeout: Duration) -> bool {
        self.wait_for(timeout, Parcel::Keep)
    }

    fn wait_for(&self, timeout: Duration, parcel: fn(Duration, mpsc::Sender<bool>) -> Parcel) -> bool {
        if self.keeper.process != std::process::id() {
            return self.keeper.shared.rings.wait_until_drained(timeout);
        }
        let (tell, told) = mpsc::channel();
        self.keeper.shared.inlet.force(parcel(timeout, tell));
        self.keeper.shared.rings.ring_bell();
        told.recv_timeout(timeout.saturating_add(Duration::from_millis(100))).unwrap_or(false)
    }

    /// Whether a record of this level is published for everybody.
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

    /// Changes what is done about this named logger's statements that repeat themselves, in all its handles.
    pub fn set_repeat_guard(&self, guard: RepeatGuard) {
        *lock(&self.levels.repeat) = guard;
        self.keeper.shared.tuned.fetch_add(1, Ordering::Release);
    }

    /// Reads the configuration once more: levels and guards of all loggers of the process become what it says by now, also where
    /// they were changed since it began.
    pub fn refresh(&self) -> Result<(), BadSettings> {
        self.keeper.shared.refresh()
    }

    /// What all loggers of this process have done so far.
    pub fn stats(&self) -> LoggerStats {
        self.keeper.shared.counted()
    }

    /// Whether what is logged survives the process, and if not, why.
    pub fn shelter(&self) -> Shelter {
        self.keeper.shared.rings.shelter()
    }

    fn derive(&self, change: impl FnOnce(&mut Identity)) -> Logger {
        self.derive_with(self.levels.clone(), change)
    }

    fn derive_with(&self, levels: Arc<Levels>, change: impl FnOnce(&mut Identity)) -> Logger {
        let mut identity = Identity::clone(&self.voice.identity);
        change(&mut identity);
        let voice = self.keeper.shared.voice(identity, levels.clone());
        let near = Near::of(&self.keeper.shared, &voice);
        Logger { levels, near, voice, keeper: self.keeper.clone() }
    }

    /// A logger of this name, with its own levels; the other fields are kept.
    pub fn named(&self, name: &str) -> Logger {
        let levels = self.keeper.shared.levels(name);
        self.derive_with(levels, |identity| identity.logger = name.to_owned())
    }

    /// The same logger speaking for a component.
    pub fn for_object(&self, source_object: &str) -> Logger {
        self.derive(|identity| identity.source_object = source_object.to_owned())
    }

    /// The same logger speaking to these audiences only; to everybody if there are none.
    pub fn for_audiences(&self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Logger {
        self.derive(|identity| identity.audiences = audiences.into_iter().map(Into::into).collect())
    }

    /// The same logger in a context.
    pub fn in_context(&self, context: &str) -> Logger {
        self.derive(|identity| identity.context = context.to_owned())
    }

    /// The same logger for an antenna of an array.
    pub fn for_antenna(&self, antenna: &str, array: &str) -> Logger {
        self.derive(|identity| {
            identity.antenna = antenna.to_owned();
            identity.array = array.to_owned();
        })
    }

    /// The same logger during a run or observation.
    pub fn in_run(&self, run_id: &str) -> Logger {
        self.derive(|identity| identity.run_id = run_id.to_owned())
    }

    /// The same logger within an error chain, at this depth (0 the outermost).
    pub fn in_stack(&self, stack_id: &str, stack_level: i32) -> Logger {
        self.derive(|identity| {
            identity.stack_id = stack_id.to_owned();
            identity.stack_level = Some(stack_level);
        })
    }
}

impl Recorder for Logger {
    #[inline(always)]
    fn wants(&self, level: u8) -> bool {
        level >= self.levels.any.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn record_call<A: Arguments>(&self, statement: &'static Statement, payload: Payload<A>) {
        let near = &self.near;
        // No closures: the compiler may leave each in a unit of its own, and call it.
        if let Some(site) = Shared::marked(near.page, statement)
            // SAFETY: the handle keeps the rings. The payload makes no record of its own: what had to be formatted has been, when
            // it was made.
            && let Some(room) = unsafe { near.pool.room(payload.length()) }
        {
            // SAFETY: the payload writes as many bytes as it says.
            unsafe {
                payload.write(room.place());
                room.commit(site, near.voice);
            }
        } else {
            self.record_slowly(statement, payload);
        }
        if statement.level() >= near.bell_from {
            self.ring_bell();
        }
    }
}

impl std::fmt::Debug for Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger").field("name", &self.voice.identity.logger).field("voice", &self.voice.id).finish_non_exhaustive()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // In a child the backend is none of its threads, and its locks may be held for ever.
            std::mem::forget(self.backend.get_mut().map(Option::take));
            return;
        }
        self.shared.inlet.close();
        self.shared.rings.ring_bell();
        let Some(backend) = lock(&self.backend).take() else { return };
        if let Ok(remainder) = backend.join()
            && remainder.records > 0
        {
            // There is no channel left to tell it in, and silence would be a lie.
            eprintln!(
                "tampu-log: {}: {} records could not be delivered before the process ended",
                self.shared.settings.source, remainder.records
            );
        }
    }
}
