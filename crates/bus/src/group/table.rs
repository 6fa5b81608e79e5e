//! Groups of a node, as the processes of its host see them: which hosts a group reaches at present.
//!
//! The node writes them into the run-time directory. A process looks at the file with its heartbeats.

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tampu_types::{TopicFilter, TopicName};

use crate::{
    run_dir::GROUPS,
    watched_file::{self, Missing, WatchedFile},
};

/// Longest batch for a group, in bytes. A longer one would hold up all others.
pub const LONGEST: usize = 16 << 20;

/// All groups of a node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupTable {
    /// The groups, by their number.
    pub groups: BTreeMap<u32, GroupRoute>,
}

/// A group as the processes of its host see it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupRoute {
    /// Topics that go to it.
    pub topics: String,
    /// Boots of the hosts that hear it.
    pub boots: Vec<u32>,
    /// Proved names of the hosts that have its key.
    pub hosts: Vec<String>,
}

impl GroupTable {
    /// Returns the number of the group for a topic, with the group.
    pub fn of(&self, topic: &TopicName) -> Option<(u32, &GroupRoute)> {
        let takes = |route: &GroupRoute| TopicFilter::new(route.topics.as_str()).is_ok_and(|topics| topics.matches(topic));
        self.groups.iter().find(|(_, route)| takes(route)).map(|(number, route)| (*number, route))
    }
}

/// The file of the node's groups, as a process reads it.
pub type GroupTableFile = WatchedFile<GroupTable>;

/// Watches the file in the domain's part of the run-time directory.
pub fn watch(directory: &std::path::Path) -> GroupTableFile {
    WatchedFile::new(directory, GROUPS, Missing::Default)
}

/// The file of the node's groups, as the node writes it. Dropping it removes the file.
pub struct GroupTableWriter {
    directory: PathBuf,
    written: Mutex<GroupTable>,
}

impl GroupTableWriter {
    /// Writes a file with these groups, which reach nobody yet.
    pub fn new(directory: PathBuf, topics: impl Iterator<Item = String>) -> io::Result<Arc<GroupTableWriter>> {
        let groups =
            topics.enumerate().map(|(number, topics)| (number as u32, GroupRoute { topics, ..GroupRoute::default() })).collect();
        let writer = GroupTableWriter { directory, written: Mutex::new(GroupTable { groups }) };
        writer.write(&writer.written.lock())?;
        Ok(Arc::new(writer))
    }

    fn write(&self, groups: &GroupTable) -> io::Result<()> {
        watched_file::publish(&self.directory, GROUPS, groups)
    }

    /// Writes which hosts a group reaches, if that has changed.
    pub fn publish(&self, number: u32, boots: Vec<u32>, hosts: Vec<String>) -> io::Result<()> {
        let mut written = self.written.lock();
        let Some(route) = written.groups.get_mut(&number) else { return Ok(()) };
        if (&route.boots, &route.hosts) == (&boots, &hosts) && self.directory.join(GROUPS).exists() {
            return Ok(());
        }
        (route.boots, route.hosts) = (boots, hosts);
        self.write(&written)
    }
}

impl Drop for GroupTableWriter {
    fn drop(&mut self) {
        // Without the file, processes send to each host.
        let _ = std::fs::remove_file(self.directory.join(GROUPS));
    }
}
