//! Columns from an archive that finds records only.

use super::{
    batch::{ColumnBatch, ColumnType},
    record::push_record,
    table::ColumnTable,
};
use crate::{ArchiveError, Found, Scanned};

/// Records of a batch.
const ROWS: usize = 8192;

/// Gives the records that `search` finds to `sink`, in columns.
pub(crate) fn of_records(
    schema: &[(&'static str, ColumnType)],
    sink: &mut dyn FnMut(ColumnBatch) -> bool,
    search: impl FnOnce(&mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError>,
) -> Result<Scanned, ArchiveError> {
    let mut table = ColumnTable::new(schema.iter().copied());
    let mut give = |table: &mut ColumnTable| {
        let full = std::mem::replace(table, ColumnTable::new(schema.iter().copied()));
        full.into_batches().into_iter().all(&mut *sink)
    };
    let scanned = search(&mut |found| {
        push_record(&mut table, found.record);
        table.rows() < ROWS || give(&mut table)
    })?;
    give(&mut table);
    Ok(scanned)
}
