//! `log/archive`: looking after the archive while it runs.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, TryLockError},
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tampu_types::{Domain, name::escape};

use crate::archive::{Archive, ArchiveError, BackedUp, Checked, Compacted, Doing, Health, Stop};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Upkeep {
    /// Tell how it is.
    Health,
    /// Put everything into Parquet files now.
    Compact,
    /// Read everything and hold it against what is said of it.
    Check,
    /// Make this directory, on the collector's host, one that `--data` can name; or bring it up to date.
    Backup(PathBuf),
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // Each answers what is asked for by the same name.
pub enum Done {
    Health(Box<serde_json::Value>),
    Compact(Compacted),
    Check(Checked),
    Backup(BackedUp),
}

/// One part of the answer: how far it is, or the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// It goes on.
    Doing(Doing),
    /// It is done.
    Done(Done),
}

/// The longest that one of them may take.
pub const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// How often it tells how far it is.
const TELL: Duration = Duration::from_millis(500);

/// Held while one of them goes on: two at a time would only be slower.
#[derive(Debug, Default)]
pub struct Turn(Mutex<()>);

impl Turn {
    /// Does it; `tell` is told now and then how far it is, and returns whether anybody listens.
    pub fn take(&self, archive: &dyn Archive, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, String> {
        let _turn = match self.0.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                return Err(
                    "the archive is being compacted, checked or backed up already; try again when that is done".to_owned()
                );
            }
        };
        upkeep(archive, what, stop, tell).map_err(|error| error.to_string())
    }
}

/// Does it, where the archive is at hand.
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

/// Where in a directory that `--data` can name the archive of a domain is.
pub fn archive_in(data: &Path, domain: &Domain) -> PathBuf {
    data.join(escape(domain.as_str())).join("log")
}
