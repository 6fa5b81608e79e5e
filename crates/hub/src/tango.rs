//! The bridge to Tango: events of unmodified Tango servers become events on the bus, and Tampu's attributes are devices to unmodified Tango
//! clients.
//!
//! ```text
//! Tango servers -> PyTango -> lines of JSON -> inward: declared and published as the source tango@INSTANCE -> the bus
//! the bus -> outward: all but what bridges published -> lines of JSON -> PyTango, a device server -> Tango clients
//! ```
//! Tango itself is not linked: PyTango runs in processes of its own (`crates/hub/python/`, `spec/wire/tango-bridge.md`), one for each
//! direction. A Tango that blocks or crashes is started again, with everything it was asked before.
//!
//! | subject | module |
//! |-|-|
//! | what a site says | [`settings`] |
//! | the lines, and the values in them | [`line`], [`ask`], [`value`] |
//! | a process, and its lives | [`process`], `life` |
//! | the two directions | `inward`, `outward` |
//! | what finds no room on the way to Tango | `pushes` |
//! | what is counted and told | [`news`] |

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tampu_bus::{BusError, Participant, clock::Gate};
use tampu_event::{Client, Server, client::ClientSettings, server::ServerSettings};

pub use self::news::{Direction, News, Report};
use self::{
    inward::Inward,
    line::Hello,
    news::Counts,
    outward::Outward,
    process::{NoProcess, Process},
    settings::{BadTango, Database, Tango},
};

pub mod ask;
mod inward;
mod life;
pub mod line;
pub mod news;
mod outward;
pub mod process;
mod pushes;
pub mod settings;
pub mod value;

/// How the names of bridges on the bus begin; what such a source publishes came from Tango.
pub const SOURCE: &str = "tango@";

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What both directions share.
struct Shared {
    settings: Tango,
    database: Database,
    counts: Counts,
    tell: Box<dyn Fn(News) + Send + Sync>,
    stop: AtomicBool,
    gate: Gate,
}

impl Shared {
    fn tell(&self, news: News) {
        (self.tell)(news);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Waits; says whether everything ends.
    fn wait(&self, longest: Duration) -> bool {
        let seen = self.gate.openings();
        if !self.stopped() {
            self.gate.wait_host(seen, longest);
        }
        self.stopped()
    }
}

/// Why there is no bridge.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The settings are wrong.
    #[error(transparent)]
    Settings(#[from] BadTango),
    /// The bus says no.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The system has no more threads.
    #[error("the bridge to Tango has no worker: {0}")]
    Worker(std::io::Error),
}

/// Sees at once whether Python, PyTango and the Tango database are there.
pub fn check(settings: &Tango, database: &Database) -> Result<Hello, NoProcess> {
    let mut process = Process::start(&settings.python, database)?;
    if let Database::At(address) = database {
        process.check_database(address)?;
    }
    Ok(process.hello.clone())
}

/// A bridge at work. Dropping it ends it.
pub struct Bridge {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

impl Bridge {
    /// Starts it. The participant's name should begin with [`SOURCE`]. Whatever is missing on Tango's side is told, and tried again.
    pub fn start(
        participant: &Participant,
        settings: Tango,
        database: Database,
        tell: impl Fn(News) + Send + Sync + 'static,
    ) -> Result<Bridge, BridgeError> {
        settings.check(&database)?;
        let shared = Arc::new(Shared {
            settings,
            database,
            counts: Counts::default(),
            tell: Box::new(tell),
            stop: AtomicBool::new(false),
            gate: Gate::default(),
        });
        let mut bridge = Bridge { shared: shared.clone(), workers: Vec::new() };
        if !shared.settings.subscribe.is_empty() {
            let server = Server::start(participant.clone(), ServerSettings::default())?;
            let mut inward = Inward::new(shared.clone(), server);
            bridge.work("tango in", move |shared| life::live(&mut inward, shared))?;
        }
        if !shared.settings.serve.is_empty() {
            let client = Client::start(participant.clone(), ClientSettings::default())?;
            let mut outward = Outward::new(shared.clone(), client);
            bridge.work("tango out", move |shared| life::live(&mut outward, shared))?;
        }
        Ok(bridge)
    }

    fn work(&mut self, name: &str, work: impl FnOnce(&Shared) + Send + 'static) -> Result<(), BridgeError> {
        let shared = self.shared.clone();
        let begun = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared));
        self.workers.push(begun.map_err(BridgeError::Worker)?);
        Ok(())
    }

    /// What it has counted.
    pub fn report(&self) -> Report {
        self.shared.counts.report()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.gate.open();
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
    }
}
