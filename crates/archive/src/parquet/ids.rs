//! The ids in a file. The archive reads them to rebuild its set of ids, or to check it.

use std::sync::Arc;

use tampu_types::{Incarnation, RecordId};

use super::{
    BadTable, GroupScan,
    table::{Scratch, Table},
};
use crate::{ids::seen::Run, query::Query};

/// Reads all ids, as runs in the order of the rows.
pub(crate) fn ids(table: &Arc<Table>) -> Result<Vec<(Incarnation, Run)>, BadTable> {
    let mut runs: Vec<(Incarnation, Run)> = Vec::new();
    let mut scratch = Scratch::new()?;
    let all = Query::default().compile().map_err(std::io::Error::other)?;
    for group in 0..table.index.groups.len() {
        let Some(scan) = GroupScan::new(table, group, &all, &mut scratch)? else { continue };
        for unit in 0..scan.units() {
            let selection = scan.select(unit, &all, &mut scratch)?;
            for (place, _) in scan.places(unit, &selection, &mut scratch)? {
                let RecordId { incarnation, ring, number } = place.id;
                // All zero means "no id"; the id of a record from a file is a hash.
                if place.id == RecordId::default() {
                    continue;
                }
                let continued = runs.last_mut().is_some_and(|(life, run)| *life == incarnation && run.extend(ring, number));
                if !continued {
                    runs.push((incarnation, Run { ring, first: number, count: 1 }));
                }
            }
        }
    }
    Ok(runs)
}
