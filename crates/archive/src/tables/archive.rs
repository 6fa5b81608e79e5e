//! The archive of a table.

use std::path::{Path, PathBuf};

use tampu_types::Incarnation;

use super::{Find, Row, Schema, Swept, find::find};
use crate::{
    Appended, Archive, ArchiveError, Arrival, Health, LocalArchive, News, Options, Removal, Retention, Stop,
    upkeep::{self, Done, Told, Turn, Upkeep},
    wal::content::Content,
};

/// Archive of a table's rows on a local disk, the counterpart of [`LocalArchive`].
pub struct TableArchive {
    local: LocalArchive,
    schema: &'static Schema,
}

impl TableArchive {
    /// Opens the archive in `dir` and creates it if it is missing.
    pub fn open(dir: impl Into<PathBuf>, schema: &'static Schema, options: Options) -> Result<TableArchive, ArchiveError> {
        Ok(TableArchive { local: LocalArchive::open_with(dir.into(), options, Content::Plain(schema))?, schema })
    }

    /// Changes the retention, as [`LocalArchive::set_retention`].
    pub fn set_retention(&self, retention: Retention) {
        self.local.set_retention(retention);
    }

    /// Stores samples, each one row. A row is skipped if all its numbers are stored already.
    pub fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        self.local.append(arrival)
    }

    /// Waits until every accepted row is durable; returns whether it is.
    pub fn flush(&self, timeout: std::time::Duration) -> bool {
        self.local.flush(timeout)
    }

    /// Returns the last number of a series that was ever stored, even if its row has been removed.
    pub fn last_number(&self, life: Incarnation, ring: u32) -> Option<u64> {
        self.local.shared.gathering().seen.last(life, ring)
    }

    /// Calls `sink` with the matching rows, in order, until it returns `false` or `stop` is set. A search finds a row
    /// as soon as it is committed.
    pub fn find(&self, what: &Find<'_>, stop: &Stop, sink: &mut dyn FnMut(Row) -> bool) -> Result<Swept, ArchiveError> {
        find(self.schema, &self.local.shared.contents(), what, stop, sink)
    }

    /// Runs a maintenance request: health, compaction, check, backup.
    pub fn upkeep(&self, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, ArchiveError> {
        upkeep::upkeep(&self.local, what, stop, tell)
    }

    /// Runs a maintenance request, unless another one is running.
    pub fn upkeep_in_turn(&self, turn: &Turn, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, String> {
        turn.take(&self.local, what, stop, tell)
    }

    /// Returns the data that limits would remove at once.
    pub fn removal(&self, retention: &Retention) -> Removal {
        self.local.removal(retention)
    }

    pub fn health(&self) -> Health {
        self.local.health()
    }

    /// Returns the reason why nothing can be written at present.
    pub fn stuck(&self) -> Option<String> {
        self.local.stuck()
    }

    /// Returns the reason why nothing can be compacted at present.
    pub fn compaction_stuck(&self) -> Option<String> {
        self.local.compaction_stuck()
    }

    /// Returns events of the archive since the last call, and forgets them. They belong in the log.
    pub fn news(&self) -> Vec<News> {
        self.local.news()
    }

    pub fn directory(&self) -> &Path {
        &self.local.shared.dir
    }
}
