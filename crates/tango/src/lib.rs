//! The bridge to Tango. Events of unmodified Tango servers become events on the bus, and Tampu's attributes become devices for
//! unmodified Tango clients.
//!
//! ```text
//! Tango servers -> PyTango -> lines of JSON -> from_tango: declares and publishes as the source tango@INSTANCE -> the bus
//! the bus -> to_tango: everything except events of bridges -> lines of JSON -> PyTango, a device server -> Tango clients
//! ```
//! Tango itself is not linked: PyTango runs in two processes of its own, one for each direction. Their Python files
//! (`crates/tango/python`) are part of this program; `spec/wire/tango-bridge.md` is the contract between the halves.
//! When Tango blocks or crashes, the process is restarted and gets all earlier requests again.
//!
//! Rejected: linking Tango's C++ library. A crash in it would end the hub, and every site would need the same version.
//!
//! | subject | module |
//! |-|-|
//! | settings of a site | [`settings`] |
//! | lines from and to Python, and the values in them | [`line`], [`request`], [`value`] |
//! | a Python process, and restarting it | [`process`], `supervisor` |
//! | the two directions | `from_tango`, `to_tango` |
//! | events for Tango that find no room in the queue | `pushes` |
//! | counters and notices for the log | [`notice`] |

use std::{sync::Arc, thread::JoinHandle, time::Duration};

use tampu_bus::{BusError, Participant};
use tampu_event::{Client, Server, client::ClientSettings, server::ServerSettings};
use tampu_workers::WorkerThread;

use self::{
    bridge_state::BridgeState,
    from_tango::FromTango,
    line::Hello,
    process::{Process, ProcessError},
    settings::{BadTangoSettings, Database, TangoSettings},
    to_tango::ToTango,
};
pub use self::{
    bridge_state::SOURCE,
    notice::{BridgeNotice, BridgeReport, Direction},
};

mod bridge_state;
mod from_tango;
pub mod line;
pub mod notice;
pub mod process;
mod pushes;
pub mod request;
pub mod settings;
mod supervisor;
mod to_tango;
pub mod value;

/// Pause before a direction that panicked starts again.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Errors of starting a bridge.
#[derive(Debug, thiserror::Error)]
pub enum BridgeError {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] BadTangoSettings),
    /// The bus rejected a stream or a service.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// The system could not start a thread.
    #[error("cannot start a thread of the bridge to Tango: {0}")]
    Worker(std::io::Error),
}

/// Checks that Python, PyTango and the Tango database are there, and returns their versions.
pub fn check(settings: &TangoSettings, database: &Database) -> Result<Hello, ProcessError> {
    let mut process = Process::start(&settings.python, database)?;
    if let Database::At(address) = database {
        process.check_database(address)?;
    }
    Ok(process.hello.clone())
}

/// A running bridge. Dropping it ends it.
pub struct Bridge {
    shared: Arc<BridgeState>,
    workers: Vec<JoinHandle<()>>,
}

impl Bridge {
    /// Starts a bridge. The participant's name should begin with [`SOURCE`]. Problems on Tango's side are reported and retried.
    pub fn start(
        participant: &Participant,
        settings: TangoSettings,
        database: Database,
        report: impl Fn(BridgeNotice) + Send + Sync + 'static,
    ) -> Result<Bridge, BridgeError> {
        settings.check(&database)?;
        let shared = Arc::new(BridgeState::new(settings, database, report));
        let mut bridge = Bridge { shared: shared.clone(), workers: Vec::new() };
        if !shared.settings.subscribe.is_empty() {
            let server = Server::start(participant.clone(), ServerSettings::default())?;
            let mut from_tango = FromTango::new(shared.clone(), server);
            bridge.work("tango in", move |shared| supervisor::run(&mut from_tango, shared))?;
        }
        if !shared.settings.serve.is_empty() {
            let client = Client::start(participant.clone(), ClientSettings::default())?;
            let mut to_tango = ToTango::new(shared.clone(), client);
            bridge.work("tango out", move |shared| supervisor::run(&mut to_tango, shared))?;
        }
        Ok(bridge)
    }

    fn work(&mut self, name: &str, mut work: impl FnMut(&BridgeState) + Send + 'static) -> Result<(), BridgeError> {
        let shared = self.shared.clone();
        let begun = WorkerThread::named(name).spawn_restarting(RESTART_PAUSE, move || work(&shared));
        self.workers.push(begun.map_err(BridgeError::Worker)?);
        Ok(())
    }

    /// Returns the counters.
    pub fn report(&self) -> BridgeReport {
        self.shared.counts.report()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.shared.stop();
        self.workers.drain(..).for_each(|worker| drop(worker.join()));
    }
}
