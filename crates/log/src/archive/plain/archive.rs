//! The archive of a table.

use std::path::{Path, PathBuf};

use tampu_types::Incarnation;

use super::{Find, Row, Schema, Swept, find::find};
use crate::{
    archive::{Appended, Archive, ArchiveError, Arrival, Health, LocalArchive, News, Options, Stop, content::Content},
    collector::upkeep::{self, Done, Told, Turn, Upkeep},
};

/// A table's rows on a local disk: what [`LocalArchive`] is to log records.
pub struct TableArchive {
    local: LocalArchive,
    schema: &'static Schema,
}

impl TableArchive {
    /// Opens the archive in `dir`, making it where there is none.
    pub fn open(dir: impl Into<PathBuf>, schema: &'static Schema, options: Options) -> Result<TableArchive, ArchiveError> {
        Ok(TableArchive { local: LocalArchive::open_with(dir.into(), options, Content::Plain(schema))?, schema })
    }

    /// Takes samples, each one row. What stands for numbers that are all there already is not taken again.
    pub fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        self.local.append(arrival)
    }

    /// Waits until everything taken so far is durable; returns whether it is.
    pub fn flush(&self, timeout: std::time::Duration) -> bool {
        self.local.flush(timeout)
    }

    /// The last number of a series that was ever kept, whether or not its row still is.
    pub fn last_number(&self, life: Incarnation, ring: u32) -> Option<u64> {
        self.local.shared.gathering().seen.last(life, ring)
    }

    /// Calls `sink` with the rows asked for, in order, until it returns `false` or `stop` is. A row is found as soon as it is
    /// committed, wherever it lies.
    pub fn find(&self, what: &Find<'_>, stop: &Stop, sink: &mut dyn FnMut(Row) -> bool) -> Result<Swept, ArchiveError> {
        find(self.schema, &self.local.shared.contents(), what, stop, sink)
    }

    /// Looks after it: health, compaction, check, backup.
    pub fn upkeep(&self, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, ArchiveError> {
        upkeep::upkeep(&self.local, what, stop, tell)
    }

    /// The same, unless it is being looked after already.
    pub fn upkeep_in_turn(&self, turn: &Turn, what: &Upkeep, stop: &Stop, tell: &dyn Fn(Told) -> bool) -> Result<Done, String> {
        turn.take(&self.local, what, stop, tell)
    }

    /// How it is.
    pub fn health(&self) -> Health {
        self.local.health()
    }

    /// Why nothing can be written now.
    pub fn stuck(&self) -> Option<String> {
        self.local.stuck()
    }

    /// Why nothing can be compacted now.
    pub fn compaction_stuck(&self) -> Option<String> {
        self.local.compaction_stuck()
    }

    /// What has happened since this was last asked that somebody should read of.
    pub fn news(&self) -> Vec<News> {
        self.local.news()
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.local.shared.dir
    }
}
