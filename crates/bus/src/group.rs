//! Multicast of topics between hosts: another carrier of the same batches, beside the engine.
//!
//! ```text
//!   writer ---> node ==> group ==> node ---> reader         ==> datagrams, once on each link
//!     ^           ^ <-- reports --- |          |            --> the engine's messages
//!     '-----------|--- marks, refetches <------'
//! ```
//! A writer whose readers are on two or more hosts, all of which hear the group of its host, sends a batch to its own node.
//! That node sends it to the group, and the nodes of the other hosts pass it to their processes. Everything else goes as
//! without a group: heartbeats, acknowledgements, refetches. So the layer above keeps its promises, and when a host stops
//! hearing the group, its writers send to each host again.
//!
//! Datagrams are numbered by their source, and members report what they have and what they miss. The source keeps the last
//! ones and sends missing ones again, to the group; it has no more under way than its slowest member takes. Without this a
//! sample of 1 MB in 750 datagrams would hardly ever arrive where 1 in 1000 is lost. Nothing is promised: what does not come
//! within 400 ms is given up. See `spec/decisions/0022-groups.md`.

use std::{io, sync::Arc, time::Duration};

use parking_lot::{Condvar, Mutex};
use tampu_types::Domain;
use tampu_workers::{OnPanic, WorkerThread};

use self::carrier::{Carrier, NodeParts};
use crate::{engine::Engine, run_dir::DomainDir};

mod asked;
mod carrier;
pub mod datagram;
mod hearing;
mod incoming;
mod outgoing;
mod sending;
mod settings;
mod socket;
pub(crate) mod table;

pub use carrier::GroupReport;
pub use settings::{BadGroup, BadGroupInterface, GroupInterface, GroupSettings, PORT};

/// Pause before another attempt to join a group.
const AGAIN: Duration = Duration::from_secs(2);

/// The groups of a node. Dropping it leaves them.
pub(crate) struct Groups {
    state: Arc<(Mutex<State>, Condvar)>,
    _table: Arc<table::GroupTableWriter>,
}

struct State {
    joined: Vec<Result<Carrier, String>>,
    is_over: bool,
}

impl Groups {
    /// Joins these groups. One that cannot be joined is tried again: its interface may come later.
    pub fn start(settings: Vec<GroupSettings>, engine: Arc<dyn Engine>, domain: &Domain, dir: &DomainDir) -> io::Result<Groups> {
        let table =
            table::GroupTableWriter::new(dir.path().to_owned(), settings.iter().map(|group| group.topics.as_str().to_owned()))?;
        let joined = settings.iter().map(|_| Err(String::new())).collect();
        let state = Arc::new((Mutex::new(State { joined, is_over: false }), Condvar::new()));
        let (of_worker, domain, directory, of_table) = (state.clone(), domain.clone(), dir.path().to_owned(), table.clone());
        let work = move || {
            let (state, over) = &*of_worker;
            let parts = NodeParts { engine, domain: &domain, directory: &directory, table: of_table };
            let mut state = state.lock();
            while !state.is_over {
                for (number, settings) in settings.iter().enumerate() {
                    if state.joined[number].is_err() {
                        let why = |why| format!("the multicast group {} cannot be joined: {why}", settings.address);
                        state.joined[number] = Carrier::open(number as u32, settings, &parts).map_err(why);
                    }
                }
                if state.joined.iter().all(Result::is_ok) {
                    return;
                }
                over.wait_for(&mut state, AGAIN);
            }
        };
        WorkerThread::named("tampu-group-join").spawn(OnPanic::ReportOnly, work)?;
        Ok(Groups { state, _table: table })
    }

    /// Returns the counters of the groups that are joined.
    pub fn reports(&self) -> Vec<GroupReport> {
        self.state.0.lock().joined.iter().flatten().map(Carrier::report).collect()
    }

    /// Returns what does not work at present.
    pub fn trouble(&self) -> Vec<String> {
        let state = self.state.0.lock();
        let of = |joined: &Result<Carrier, String>| match joined {
            Ok(carrier) => carrier.trouble(),
            Err(why) => vec![why.clone()],
        };
        state.joined.iter().flat_map(of).filter(|why| !why.is_empty()).collect()
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        let mut state = self.state.0.lock();
        state.is_over = true;
        let joined = std::mem::take(&mut state.joined);
        self.state.1.notify_all();
        drop(state);
        drop(joined);
    }
}
