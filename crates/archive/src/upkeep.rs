//! The `log/archive` service: maintenance of the archive at run time.

use std::{
    fmt,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tampu_types::{Domain, name::escape};

use crate::{Archive, ArchiveError, BackedUp, BackupPlaces, Checked, Compacted, Doing, Health, Keep, Retention, Stop};

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

/// Limits of an archive, as the question for the data that they would remove has them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Age in seconds beyond which data are removed; `None` for no limit.
    pub age_s: Option<u64>,
    /// Size limit in bytes; `None` for no limit.
    pub bytes: Option<u64>,
    /// Age in seconds below which nothing is removed.
    pub at_least_s: u64,
    /// Space in bytes that stays free on the disk.
    pub min_free: u64,
}

impl From<&Retention> for Limits {
    fn from(Retention { keep, min_free }: &Retention) -> Limits {
        let age_s = keep.age.map(|age| age.as_secs());
        Limits { age_s, bytes: keep.bytes, at_least_s: keep.at_least.as_secs(), min_free: *min_free }
    }
}

impl From<&Limits> for Retention {
    fn from(limits: &Limits) -> Retention {
        let age = limits.age_s.map(Duration::from_secs);
        let keep = Keep { age, bytes: limits.bytes, at_least: Duration::from_secs(limits.at_least_s) };
        Retention { keep, min_free: limits.min_free }
    }
}

impl Upkeep {
    /// Reports if it only reads the size and the faults of an archive, a state that everybody may read.
    pub fn only_reads(&self) -> bool {
        matches!(self, Upkeep::Health)
    }

    /// Makes a request of another process one for this archive. A backup names a data directory by its whole path, and
    /// `archive_in` returns the archive's directory there. An asker who is not the user of this host gets backups only at
    /// these places. Returns the reason for a refusal.
    pub fn admitted(
        self,
        places: &BackupPlaces,
        is_local: bool,
        archive_in: impl FnOnce(&Path) -> PathBuf,
    ) -> Result<Upkeep, String> {
        let Upkeep::Backup(data) = self else { return Ok(self) };
        if !data.is_absolute() {
            return Err(format!("{}: a backup needs a whole path, on the hub's host", data.display()));
        }
        let target = archive_in(&data);
        if !is_local {
            places.check(&target)?;
        }
        Ok(Upkeep::Backup(target))
    }
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

impl Told {
    /// Passes progress to `doing`, until it returns `false`, and ends with the result.
    pub fn judged(self, doing: &mut dyn FnMut(Doing) -> bool) -> ControlFlow<Option<Done>> {
        match self {
            Told::Done(done) => ControlFlow::Break(Some(done)),
            Told::Doing(now) if doing(now) => ControlFlow::Continue(()),
            Told::Doing(_) => ControlFlow::Break(None),
        }
    }
}

/// Longest duration of a request.
pub const LONGEST: Duration = Duration::from_secs(12 * 3600);
/// Interval between two progress reports.
const TELL: Duration = Duration::from_millis(500);

/// Lock held while a request runs that does more than read the state: two at a time would only be slower.
#[derive(Debug, Default)]
pub struct Turn(Mutex<()>);

impl Turn {
    /// Runs a request. `tell` gets the progress now and then, and returns whether anybody still listens.
    pub fn take(&self, archive: &dyn Archive, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, String> {
        let turn = self.0.try_lock();
        if turn.is_none() && !what.only_reads() {
            return Err("the archive is being compacted, checked or backed up already; try again when that is done".to_owned());
        }
        // A state that is only read does not keep others waiting.
        let _turn = turn.filter(|_| !what.only_reads());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_of_others_goes_to_a_permitted_place_by_its_whole_path() {
        let directory = tempfile::tempdir().unwrap();
        let places = BackupPlaces::new([directory.path().to_owned()]);
        let of = |data: &Path, is_local| Upkeep::Backup(data.to_owned()).admitted(&places, is_local, |data| data.join("log"));
        let inside = directory.path().join("data");
        assert_eq!(of(&inside, false), Ok(Upkeep::Backup(inside.join("log"))));
        assert_eq!(of(Path::new("/elsewhere"), true), Ok(Upkeep::Backup(PathBuf::from("/elsewhere/log"))));
        assert!(of(Path::new("/elsewhere"), false).is_err_and(|why| why.contains("backups")));
        assert!(of(Path::new("data"), true).is_err_and(|why| why.contains("whole path")));
        assert_eq!(Upkeep::Check.admitted(&places, false, Path::to_owned), Ok(Upkeep::Check));
        assert!(Upkeep::Health.only_reads() && !Upkeep::Compact.only_reads());
    }

    #[test]
    fn the_state_is_told_while_another_request_runs() {
        let directory = tempfile::tempdir().unwrap();
        let options = crate::Options::new(Domain::new("lab").unwrap());
        let (archive, turn) = (crate::LocalArchive::open(directory.path(), options).unwrap(), Turn::default());
        let take = |what: &Upkeep| turn.take(&archive, what, &Stop::default(), &|_| true);
        let _running = turn.0.lock();
        assert!(take(&Upkeep::Check).is_err_and(|why| why.contains("already")));
        assert!(matches!(take(&Upkeep::Health), Ok(Done::Health(_))));
    }
}
