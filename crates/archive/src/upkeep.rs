//! The `log/archive` service: maintenance of the archive at run time.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tampu_types::{Domain, name::escape};

use crate::{Archive, ArchiveError, BackedUp, Checked, Compacted, Doing, Health, Stop};

/// Maintenance request to an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Upkeep {
    /// Report the archive's health.
    Health,
    /// Compact everything into Parquet files now.
    Compact,
    /// Check the archive: read everything and compare it with its description.
    Check,
    /// Make or update a backup in this directory on the collector's host. `--data` can name the directory.
    Backup(PathBuf),
}

impl fmt::Display for Upkeep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upkeep::Health => f.write_str("health"),
            Upkeep::Compact => f.write_str("compact"),
            Upkeep::Check => f.write_str("check"),
            Upkeep::Backup(path) => write!(f, "backup to {}", path.display()),
        }
    }
}

/// Result of an [`Upkeep`] request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // Each variant answers the request of the same name.
pub enum Done {
    Health(Box<serde_json::Value>),
    Compact(Compacted),
    Check(Checked),
    Backup(BackedUp),
}

/// Part of the answer: progress, or the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// Progress of the request.
    Doing(Doing),
    /// Result of the request.
    Done(Done),
}

/// Longest duration of a request.
pub const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// Interval between two progress reports.
const TELL: Duration = Duration::from_millis(500);

/// Lock held while a request runs: two at a time would only be slower.
#[derive(Debug, Default)]
pub struct Turn(Mutex<()>);

impl Turn {
    /// Runs a request. `tell` gets the progress now and then, and returns whether anybody still listens.
    pub fn take(&self, archive: &dyn Archive, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, String> {
        let Some(_turn) = self.0.try_lock() else {
            return Err("the archive is being compacted, checked or backed up already; try again when that is done".to_owned());
        };
        upkeep(archive, what, stop, tell).map_err(|error| error.to_string())
    }
}

/// Runs a request on an open archive.
pub fn upkeep(archive: &dyn Archive, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, ArchiveError> {
    let mut last = Instant::now();
    let mut doing = |now: Doing| {
        if last.elapsed() >= TELL {
            last = Instant::now();
            if !tell(Told::Doing(now)) {
                stop.stop();
            }
        }
    };
    Ok(match what {
        Upkeep::Health => Done::Health(Box::new(health(&archive.health()))),
        Upkeep::Compact => Done::Compact(archive.compact(stop, &mut doing)?),
        Upkeep::Check => Done::Check(archive.check(stop, &mut doing)?),
        Upkeep::Backup(target) => Done::Backup(archive.backup(target, stop, &mut doing)?),
    })
}

fn health(health: &Health) -> serde_json::Value {
    // A state of plain numbers and texts is always JSON.
    serde_json::to_value(health).unwrap_or_default()
}

/// Returns the directory of a domain's archive in the data directory `data`.
pub fn archive_in(data: &Path, domain: &Domain) -> PathBuf {
    data.join(escape(domain.as_str())).join("log")
}
