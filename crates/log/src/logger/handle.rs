//! The handle an application logs through.

use std::{
    fmt::Display,
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
use tampu_types::{Level, LogRecord};

use crate::logger::{
    backend,
    bus_post::BusPost,
    clock::now,
    lane::{Lane, Reach},
    packet::Called,
    post::Post,
    scratch::{Scratch, ThreadMark},
    settings::{LogSettings, Threshold},
    shared::{LoggerStats, Parcel, Shared, lock},
    site::CallSite,
    voice::{Identity, Levels, Voice},
};

/// A named logger. Cheap to clone; clones share its ring and its levels, so clone rather than make again. The last handle of
/// a process waits (at most [`LogSettings::close_wait`]) until what is queued has gone out.
#[derive(Clone)]
pub struct Logger {
    levels: Arc<Levels>,
    voice: Arc<Voice>,
    keeper: Arc<Keeper>,
}

/// Keeps the backend; the last handle's drop ends it.
struct Keeper {
    shared: Arc<Shared>,
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
    pub(crate) fn start(settings: LogSettings, mut post: Box<dyn Post>) -> std::io::Result<Logger> {
        let name = settings.source.as_str().to_owned();
        let shared = Arc::new(Shared::new(settings));
        let worker = shared.clone();
        let work = move || {
            post.attend(worker.clone());
            backend::run(&worker, post)
        };
        let backend = std::thread::Builder::new().name("tampu-log".to_owned()).spawn(work)?;
        let voice = shared.voice(Identity { logger: name.clone(), ..Identity::default() });
        let levels = shared.levels(&name);
        let keeper = Arc::new(Keeper { shared, backend: std::sync::Mutex::new(Some(backend)) });
        Ok(Logger { levels, voice, keeper })
    }

    /// Whether a record of this level would go anywhere: one relaxed load and a comparison.
    #[inline(always)]
    pub fn enabled(&self, level: Level) -> bool {
        level.number() >= self.levels.any.load(Ordering::Relaxed)
    }

    /// Takes a record from a log statement; the macros call it. Never blocks longer than the settings' `full_wait`.
    pub fn submit(&self, site: &'static CallSite, message: std::fmt::Arguments<'_>, values: &[(&'static str, &dyn Display)]) {
        let time = now();
        let texts = Scratch::format(message, values);
        let thread = ThreadMark::current();
        let shared = &*self.keeper.shared;
        shared.take(&self.voice, self.lane(site.level), |packet, number| {
            let called = Called { time, thread, number, site, texts: &texts, values };
            packet.push_call(called, &self.voice, &shared.settings)
        });
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
        shared.take_record(&speaker.voice, speaker.lane(record.level), record);
    }

    fn lane(&self, level: Level) -> &Arc<Lane> {
        let central = self.levels.central.load(Ordering::Relaxed) <= level.number();
        let reach = if central { Reach::Central } else { Reach::Local };
        self.voice.lane(level, reach, || self.keeper.shared.lane(&self.voice, level, reach))
    }

    /// Waits until everything logged before has reached every reader that is there; false if that took longer.
    pub fn flush(&self, timeout: Duration) -> bool {
        let (tell, told) = mpsc::channel();
        self.keeper.shared.outbox.force(0, Parcel::Flush(timeout, tell));
        told.recv_timeout(timeout.saturating_add(Duration::from_millis(100))).unwrap_or(false)
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

    /// What all loggers of this process have done so far.
    pub fn stats(&self) -> LoggerStats {
        self.keeper.shared.counted()
    }

    fn derive(&self, change: impl FnOnce(&mut Identity)) -> Logger {
        let mut identity = self.voice.identity.clone();
        change(&mut identity);
        let voice = self.keeper.shared.voice(identity);
        Logger { levels: self.levels.clone(), voice, keeper: self.keeper.clone() }
    }

    /// A logger of this name, with its own levels; the other fields are kept.
    pub fn named(&self, name: &str) -> Logger {
        let levels = self.keeper.shared.levels(name);
        Logger { levels, ..self.derive(|identity| identity.logger = name.to_owned()) }
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

impl std::fmt::Debug for Logger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logger")
            .field("name", &self.voice.identity.logger)
            .field("ring", &self.voice.ring)
            .finish_non_exhaustive()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.shared.outbox.close();
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
