//! Processes and hosts that do not carry their samples by this engine, so that nobody gets them.
//!
//! A process takes the engine of its host's node. One that began before the first node, or before a node with another
//! engine, keeps the engine that it has. Nothing else shows it: presence and questions reach it as before.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tampu_types::{Domain, Incarnation};

use super::{process::OWN, socket::NAME};
use crate::{
    engine::{Engine, EngineError, Guard, Presence, Seen},
    host,
    wire::keys::Keys,
};

/// Time after which a process or host without publishers is reported.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Default)]
struct Found {
    /// Participants of this host: their names, and when they came.
    participants: HashMap<Incarnation, (String, Instant)>,
    /// Processes of this host that publish by this engine.
    publishers: HashSet<Incarnation>,
    /// Nodes of other hosts, by their boot, and when they came.
    nodes: HashMap<u32, Instant>,
    /// Announcements of nodes that forward by this engine.
    forwarding: HashSet<Incarnation>,
}

/// The watch over them.
pub struct Neighbours {
    found: Arc<Mutex<Found>>,
    _guards: Vec<Guard>,
    _engine: Arc<dyn Engine>,
}

impl Neighbours {
    /// Begins to watch.
    pub fn watch(engine: Arc<dyn Engine>, domain: &Domain) -> Result<Neighbours, EngineError> {
        let (keys, found) = (Keys::new(domain), Arc::<Mutex<Found>>::default());
        let patterns = [keys.presences(), keys.publishers(), keys.nodes()];
        let noted = found.clone();
        let seen: Seen = Arc::new(move |presence: Presence| noted.lock().note(&keys, &presence));
        let guards = patterns.iter().map(|pattern| engine.watch(pattern, seen.clone(), None)).collect::<Result<_, _>>()?;
        Ok(Neighbours { found, _guards: guards, _engine: engine })
    }

    /// Returns a sentence for each process and host.
    pub fn trouble(&self) -> Vec<String> {
        self.found.lock().trouble()
    }
}

impl Found {
    fn note(&mut self, keys: &Keys, presence: &Presence) {
        let (key, here) = (&presence.key, presence.here);
        if let Some((process, name)) = keys.parse_presence(key).filter(|(process, _)| process.boot == host::boot()) {
            match here {
                true => _ = self.participants.insert(process, (name.to_string(), Instant::now())),
                false => _ = self.participants.remove(&process),
            }
        } else if let Some((process, kind)) = keys.parse_publisher(key) {
            let known = if kind == OWN { &mut self.publishers } else { &mut self.forwarding };
            // A node announces two places of the kind that is not its own under one incarnation; it withdraws both at its end.
            match here {
                true => _ = known.insert(process),
                false => _ = known.remove(&process),
            }
        } else if let Some(boot) = keys.parse_node(key).filter(|boot| *boot != host::boot()) {
            match here {
                true => _ = self.nodes.insert(boot, Instant::now()),
                false => _ = self.nodes.remove(&boot),
            }
        }
    }

    fn trouble(&self) -> Vec<String> {
        let publishing: HashSet<(u32, u32)> = self.publishers.iter().map(|process| (process.boot, process.pid)).collect();
        let processes = self
            .participants
            .iter()
            .filter(|(process, (_, since))| !publishing.contains(&(process.boot, process.pid)) && since.elapsed() > PATIENCE);
        let mut found: Vec<String> = processes
            .map(|(process, (name, _))| {
                format!(
                    "samples of {name} (process {}) reach nobody, and it gets none: it began with another engine than '{NAME}', that of \
                     this hub; start it again",
                    process.pid
                )
            })
            .collect();
        let forwarding: HashSet<u32> = self.forwarding.iter().map(|process| process.boot).collect();
        let hosts = self.nodes.iter().filter(|(boot, since)| !forwarding.contains(boot) && since.elapsed() > PATIENCE);
        found.extend(hosts.map(|(boot, _)| {
            format!("no samples come from the host with the boot id {boot:08x}: its hub has another engine than '{NAME}', or opens no address")
        }));
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests {
    use tampu_types::SourceName;

    use super::*;

    #[test]
    fn a_process_and_a_host_without_publishers_are_told_after_a_while() {
        let keys = Keys::new(&Domain::new("lab").unwrap());
        let process = |pid, start| Incarnation { boot: host::boot(), pid, start };
        let far = Incarnation { boot: host::boot() ^ 1, pid: 9, start: 9 };
        let mut found = Found::default();
        let mut note = |key: String, here| found.note(&keys, &Presence { key: key.replace('@', "-"), here });
        note(keys.presence(process(1, 1), &SourceName::new("pumps").unwrap()), true);
        note(keys.presence(process(2, 1), &SourceName::new("mount").unwrap()), true);
        note(keys.publisher(process(2, 7), OWN), true);
        note(keys.node(far.boot), true);
        note(keys.node(far.boot ^ 2), true);
        note(keys.publisher(far, "out/x"), true);
        assert_eq!(found.trouble(), Vec::<String>::new(), "they may announce theirs next");
        let before = Instant::now().checked_sub(2 * PATIENCE).unwrap();
        found.participants.values_mut().for_each(|(_, since)| *since = before);
        found.nodes.values_mut().for_each(|since| *since = before);
        let told = found.trouble();
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[0].starts_with(&format!("no samples come from the host with the boot id {:08x}", far.boot ^ 2)), "{told:?}");
        assert!(told[1].starts_with("samples of pumps (process 1) reach nobody"), "{told:?}");
        found.note(
            &keys,
            &Presence { key: keys.presence(process(1, 1), &SourceName::new("pumps").unwrap()).replace('@', "-"), here: false },
        );
        assert_eq!(found.trouble().len(), 1);
    }
}
