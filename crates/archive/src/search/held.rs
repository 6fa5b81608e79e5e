//! Units whose rows are held in columns until all of them have been given out.
//!
//! If files overlap in time, the rows of a unit go out in many chunks. Each unit is read once for all of them, as
//! long as the units that are held stay below a bound. Beyond it, a unit is read again for each chunk.

use std::collections::BTreeMap;

use super::units::{FetchedColumns, Unit};
use crate::columns::{ColumnBatch, ColumnType, Gatherer};

/// Bytes of held rows after which no more units are held.
const HELD: usize = 64 << 20;
/// Most units that are held. Each may keep the dictionaries of its file, which the bytes do not count.
const MOST: usize = 256;
/// Units that one chunk may add, of any size.
const MORE: usize = 4;

/// A unit with matches that wait.
pub(super) struct Waiting {
    pub(super) unit: Unit,
    /// Its matching rows, in order. Only units of files have them, and only for an answer in columns.
    pub(super) rows: Vec<u32>,
    /// Number of matches that wait, at most.
    pub(super) left: usize,
}

/// Rows that a chunk has of a unit: the unit's number, and each row's place in the unit and in the chunk.
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) unit: u32,
    pub(super) places: Vec<(u32, u32, usize)>,
}

/// Rows of a unit, read for this chunk and those that follow.
struct HeldUnit {
    batches: Vec<ColumnBatch>,
    /// The number of each row in the unit.
    rows: Vec<u32>,
}

/// Held units, and the dictionaries of the answer.
pub(super) struct Held {
    units: BTreeMap<u32, HeldUnit>,
    bytes: usize,
    gatherer: Gatherer,
}

impl Held {
    pub(super) fn new(schema: &[(&'static str, ColumnType)]) -> Held {
        Held { units: BTreeMap::new(), bytes: 0, gatherer: Gatherer::new(schema) }
    }

    /// Returns what must be read for these rows: the rows of each unit that is not held, and whether it will be held.
    /// Then the rows are all that match in it, each with its number among them. Units of the rows that come next are
    /// read with them, so that several threads have work.
    pub(super) fn plan(
        &self,
        wanted: &[Wanted],
        next: impl Iterator<Item = u32>,
        units: &[Waiting],
        goes_on: bool,
    ) -> Vec<(Wanted, bool)> {
        let mut more = if goes_on && self.bytes < HELD && self.units.len() < MOST { MORE } else { 0 };
        let whole = |unit: u32| {
            let rows = units[unit as usize].rows.iter().enumerate();
            Wanted { unit, places: rows.map(|(number, row)| (0, *row, number)).collect() }
        };
        let mut known = vec![false; units.len()];
        self.units.keys().for_each(|unit| known[*unit as usize] = true);
        let mut plan = Vec::new();
        for wanted in wanted {
            let waiting = &units[wanted.unit as usize];
            if std::mem::replace(&mut known[wanted.unit as usize], true) {
                continue;
            }
            if more == 0 || waiting.rows.is_empty() || waiting.left <= wanted.places.len() {
                plan.push((wanted.clone(), false));
            } else {
                more -= 1;
                plan.push((whole(wanted.unit), true));
            }
        }
        if plan.is_empty() {
            return plan;
        }
        for unit in next {
            if more == 0 {
                break;
            }
            if !std::mem::replace(&mut known[unit as usize], true) && !units[unit as usize].rows.is_empty() {
                more -= 1;
                plan.push((whole(unit), true));
            }
        }
        plan
    }

    /// Takes a unit that was read with all its matching rows.
    pub(super) fn hold(&mut self, unit: u32, fetched: FetchedColumns, rows: &[u32]) {
        let rows = fetched.numbers.iter().filter_map(|number| rows.get(*number)).copied().collect();
        self.bytes += size(&fetched.batches);
        self.units.insert(unit, HeldUnit { batches: fetched.batches, rows });
    }

    pub(super) fn drop(&mut self, unit: u32) {
        if let Some(held) = self.units.remove(&unit) {
            self.bytes -= size(&held.batches);
        }
    }

    pub(super) fn clear(&mut self) {
        self.units.clear();
        self.bytes = 0;
    }

    /// Puts the rows of a chunk of this length in their order: those of held units, and those that were `fetched`
    /// without being held. Rows that could not be read are left out; the numbers of their held units are returned.
    pub(super) fn in_order(
        &mut self,
        wanted: &[Wanted],
        mut fetched: Vec<FetchedColumns>,
        count: usize,
    ) -> (Vec<ColumnBatch>, Vec<u32>) {
        if let ([FetchedColumns { batches, numbers, .. }], [_]) = (fetched.as_mut_slice(), wanted)
            && numbers.is_sorted()
        {
            return (std::mem::take(batches), Vec::new());
        }
        let (mut order, mut parts, mut damaged) = (vec![None; count], Vec::new(), Vec::new());
        for FetchedColumns { batches, numbers, .. } in &fetched {
            let mut numbers = numbers.iter();
            for batch in batches {
                for (row, number) in (0..batch.rows as u32).zip(&mut numbers) {
                    order[*number] = Some((parts.len() as u32, row));
                }
                parts.push(batch);
            }
        }
        for Wanted { unit, places } in wanted {
            let Some(held) = self.units.get(unit) else { continue };
            let first = parts.len() as u32;
            parts.extend(&held.batches);
            let is_whole = held.find(places, |number, batch, row| order[number] = Some((first + batch, row)));
            damaged.extend((!is_whole).then_some(*unit));
        }
        (self.gatherer.gather(&parts, order.into_iter().flatten()), damaged)
    }
}

impl HeldUnit {
    /// Calls `put` for each of these rows, which are in order, with its number, and its batch and row here. Returns false
    /// if some are not here.
    fn find(&self, wanted: &[(u32, u32, usize)], mut put: impl FnMut(usize, u32, u32)) -> bool {
        let mut at = wanted.first().map_or(0, |(_, row, _)| self.rows.partition_point(|known| known < row));
        let (mut batch, mut first, mut is_whole) = (0, 0, true);
        for (_, row, number) in wanted {
            at += self.rows[at..].iter().take_while(|known| *known < row).count();
            if self.rows.get(at) != Some(row) {
                is_whole = false;
                continue;
            }
            while at >= first + self.batches[batch].rows {
                first += self.batches[batch].rows;
                batch += 1;
            }
            put(*number, batch as u32, (at - first) as u32);
        }
        is_whole
    }
}

fn size(batches: &[ColumnBatch]) -> usize {
    batches.iter().map(ColumnBatch::size).sum()
}
