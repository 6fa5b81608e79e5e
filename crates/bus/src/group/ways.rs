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
pub struct Ways {
    /// The groups, by their number.
    pub ways: BTreeMap<u32, Way>,
}

/// A group as the processes of its host see it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Way {
    /// Topics that go to it.
    pub topics: String,
    /// Boots of the hosts that hear it.
    pub boots: Vec<u32>,
    /// Proved names of the hosts that have its key.
    pub hosts: Vec<String>,
}

impl Ways {
    /// Returns the number of the group for a topic, with the group.
    pub fn of(&self, topic: &TopicName) -> Option<(u32, &Way)> {
        let takes = |way: &Way| TopicFilter::new(way.topics.as_str()).is_ok_and(|topics| topics.matches(topic));
        self.ways.iter().find(|(_, way)| takes(way)).map(|(number, way)| (*number, way))
    }
}

/// The file of the node's groups, as a process reads it.
pub type WaysFile = WatchedFile<Ways>;

/// Watches the file in the domain's part of the run-time directory.
pub fn watch(directory: &std::path::Path) -> WaysFile {
    WatchedFile::new(directory, GROUPS, Missing::Default)
}

/// The file of the node's groups, as the node writes it. Dropping it removes the file.
pub struct Board {
    directory: PathBuf,
    written: Mutex<Ways>,
}

impl Board {
    /// Writes a file with these groups, which reach nobody yet.
    pub fn new(directory: PathBuf, topics: impl Iterator<Item = String>) -> io::Result<Arc<Board>> {
        let ways = topics.enumerate().map(|(number, topics)| (number as u32, Way { topics, ..Way::default() })).collect();
        let board = Board { directory, written: Mutex::new(Ways { ways }) };
        board.write(&board.written.lock())?;
        Ok(Arc::new(board))
    }

    fn write(&self, ways: &Ways) -> io::Result<()> {
        watched_file::publish(&self.directory, GROUPS, ways)
    }

    /// Writes which hosts a group reaches, if that has changed.
    pub fn tell(&self, number: u32, boots: Vec<u32>, hosts: Vec<String>) -> io::Result<()> {
        let mut written = self.written.lock();
        let Some(way) = written.ways.get_mut(&number) else { return Ok(()) };
        if (&way.boots, &way.hosts) == (&boots, &hosts) && self.directory.join(GROUPS).exists() {
            return Ok(());
        }
        (way.boots, way.hosts) = (boots, hosts);
        self.write(&written)
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        // Without the file, processes send to each host.
        let _ = std::fs::remove_file(self.directory.join(GROUPS));
    }
}
