//! The arena of the memory engine: simulated processes, virtual time, every fault.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tampu_bus::{
    QosPatch,
    engine::{
        Class, Engine, Guard,
        memory::{Faults, Kind, MemoryEngine, MemoryNet, Passing},
    },
    wire::keys::Keys,
};
use tampu_types::Domain;

use super::{
    arena::{Arena, DOMAIN, Faulty, Process},
    command::{Command, Reply},
    member::Member,
};

/// Period at which a condition is checked.
const LOOK: Duration = Duration::from_micros(500);

/// A simulated network.
pub struct MemoryArena {
    pub net: MemoryNet,
    /// Directory of the loans; removed with the arena.
    _memory: tempfile::TempDir,
    nodes: Mutex<Vec<Guard>>,
}

/// A simulated process.
pub struct MemoryProcess {
    net: MemoryNet,
    engine: Arc<MemoryEngine>,
    member: Member,
}

impl MemoryArena {
    pub fn seeded(seed: u64) -> MemoryArena {
        let (net, memory) = (MemoryNet::new(seed), tempfile::tempdir().unwrap());
        net.share_memory(memory.path());
        MemoryArena { net, _memory: memory, nodes: Mutex::default() }
    }
}

impl Arena for MemoryArena {
    type Process = MemoryProcess;

    fn new() -> MemoryArena {
        MemoryArena::seeded(1)
    }

    fn start(&self, host: &str, domain: &str, source: &str, patches: Vec<QosPatch>) -> MemoryProcess {
        let engine = self.net.engine(host);
        let member = Member::join(engine.clone(), domain, source, patches).unwrap();
        MemoryProcess { net: self.net.clone(), engine, member }
    }

    fn until(&self, mut is_so: impl FnMut() -> bool, limit: Duration) -> bool {
        let end = self.net.now() + limit.as_nanos() as u64;
        loop {
            if is_so() {
                return true;
            }
            let left = end.saturating_sub(self.net.now());
            if left == 0 {
                return false;
            }
            // Checking takes longer than simulating, so it is done only at intervals.
            self.net.advance(LOOK.min(Duration::from_nanos(left)));
        }
    }

    fn allowed(&self, promised: Duration) -> Duration {
        promised
    }

    fn utc(&self) -> i64 {
        self.net.engine("observer").clock().utc().0
    }
}

impl Faulty for MemoryArena {
    fn cut(&self, one: &str, other: &str) {
        self.net.cut(one, other);
    }

    fn heal(&self, one: &str, other: &str) {
        self.net.heal(one, other);
    }

    fn disturb(&self) {
        let delay = (Duration::from_micros(100), Duration::from_millis(3));
        self.net.set_faults(Faults { loss: 0.05, duplicate: 0.05, reorder: 0.05, delay, ..Faults::default() });
    }

    fn serve(&self, host: &str) {
        let (engine, keys) = (self.net.engine(host), Keys::new(&Domain::new(DOMAIN).unwrap()));
        let node = engine.announce(&keys.node(engine.incarnation().boot)).unwrap();
        self.nodes.lock().unwrap().push(node);
    }

    fn step_clock(&self, process: &MemoryProcess, ns: i64) {
        self.net.step_utc(&process.engine, ns);
    }

    fn lose_data_from(&self, host: Option<&'static str>) {
        self.net.lose_if(host.map(|host| {
            let lose = move |passing: &Passing<'_>| {
                passing.from == host && matches!(passing.kind, Kind::Message(Class::Data | Class::Urgent))
            };
            Arc::new(lose) as _
        }));
    }
}

impl Process for MemoryProcess {
    fn call(&mut self, command: Command) -> Reply {
        self.member.run(command)
    }

    fn stop(&mut self) {
        self.net.stop(&self.engine);
    }

    fn resume(&mut self) {
        self.net.resume(&self.engine);
    }

    fn kill(&mut self) {
        self.net.kill(&self.engine);
    }
}
