//! The collector's role in a hub.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use tampu_bus::Participant;
use tampu_log::{
    archive::{Archive, ArchiveError, Options, Segments},
    collector::{Collector, CollectorError, CollectorOptions},
};

use crate::config::Config;

/// A collector at work.
pub(crate) struct Collecting {
    directory: PathBuf,
    // Ends before its archive does.
    collector: Collector,
    archive: Arc<Segments>,
}

/// Why there is no collector.
#[derive(Debug, thiserror::Error)]
pub enum CollectingError {
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The collector.
    #[error(transparent)]
    Collector(#[from] CollectorError),
}

impl Collecting {
    pub fn start(config: &Config, participant: Participant) -> Result<Collecting, CollectingError> {
        let directory = config.domain_data().join("log");
        let options = Options {
            roll: config.collector.segment_mb << 20,
            linger: config.commit_period(),
            ..Options::new(config.domain.clone())
        };
        let archive = Arc::new(Segments::open(directory.join("segments"), options)?);
        let options = CollectorOptions::new(directory.join("rejected"));
        let collector = Collector::start(participant, archive.clone(), options)?;
        Ok(Collecting { directory, collector, archive })
    }

    /// Where records are kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// How many records were there at the start, and what was found wrong with the files.
    pub fn found(&self) -> (u64, Vec<String>) {
        let health = self.archive.health();
        let fault = |fault: &tampu_log::archive::Fault| format!("{}: {}", fault.file.display(), fault.what);
        (health.records, health.faults.iter().map(fault).collect())
    }

    /// Batches that could not be read so far.
    pub fn rejected(&self) -> u64 {
        self.collector.status().rejected
    }
}
