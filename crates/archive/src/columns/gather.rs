//! Rows of several batches in another order, a column at a time.
//!
//! Rows that follow each other in their batch are copied together. Nothing is checked again that the batches have
//! passed. Names are not compared row by row: each name of a batch's dictionary is looked up when its first row comes,
//! and a dictionary that served before is known by its address. So the answer's dictionary stays the same from batch to
//! batch, and is sent once.

use std::{ops::Range, sync::Arc};

use super::{
    batch::{Column, ColumnBatch, ColumnData, ColumnType, Names, Presence},
    table::{BYTES, NamesBuilder, ROWS},
    write::MOST_CODES,
};

/// Bytes of names, and dictionaries that they come from, after which the next batches have another dictionary.
const NAMES_BYTES: usize = 1 << 20;
const DICTIONARIES: usize = 64;
/// Code of a name that no row has had yet.
const UNUSED: i32 = -1;

/// Rows of one batch that follow each other: the batch, its first row, their number.
#[derive(Debug, Clone, Copy)]
struct Run {
    part: usize,
    row: usize,
    rows: usize,
}

impl Run {
    fn span(self) -> Range<usize> {
        self.row..self.row + self.rows
    }
}

/// Dictionary of a column, joined of those of several batches.
#[derive(Default)]
struct Joined {
    /// Dictionaries that were met, each with the codes of its names here.
    met: Vec<(Arc<Names>, Vec<i32>)>,
    builder: NamesBuilder,
    complete: Arc<Names>,
}

/// Makes batches of rows of other batches.
pub(crate) struct Gatherer {
    kinds: Vec<ColumnType>,
    names: Vec<Joined>,
}

impl Gatherer {
    /// Makes a gatherer of rows of this schema.
    pub(crate) fn new(schema: &[(&'static str, ColumnType)]) -> Gatherer {
        let kinds: Vec<ColumnType> = schema.iter().map(|(_, kind)| *kind).collect();
        Gatherer { names: kinds.iter().map(|_| Joined::default()).collect(), kinds }
    }

    /// Makes batches of these rows; each is named by its batch and its number in it.
    pub(crate) fn gather(&mut self, parts: &[&ColumnBatch], order: impl IntoIterator<Item = (u32, u32)>) -> Vec<ColumnBatch> {
        let (mut batches, mut runs, mut rows) = (Vec::new(), Vec::<Run>::new(), 0);
        for (part, row) in order {
            if rows == ROWS {
                self.put(parts, &runs, rows, &mut batches);
                runs.clear();
                rows = 0;
            }
            let (part, row) = (part as usize, row as usize);
            match runs.last_mut() {
                Some(last) if last.part == part && last.row + last.rows == row => last.rows += 1,
                _ => runs.push(Run { part, row, rows: 1 }),
            }
            rows += 1;
        }
        self.put(parts, &runs, rows, &mut batches);
        batches
    }

    /// Makes a batch of these rows, or one of each half if a column would be too long.
    fn put(&mut self, parts: &[&ColumnBatch], runs: &[Run], rows: usize, batches: &mut Vec<ColumnBatch>) {
        if rows == 0 {
            return;
        }
        let is_too_long = |number: usize| {
            let lengths = runs.iter().map(|run| length(&parts[run.part].columns[number], run.span()));
            lengths.sum::<usize>() > BYTES
        };
        if rows > 1 && (0..self.kinds.len()).any(is_too_long) {
            let (first, second) = halves(runs, rows / 2);
            self.put(parts, &first, rows / 2, batches);
            return self.put(parts, &second, rows - rows / 2, batches);
        }
        let columns = self.kinds.iter().zip(&mut self.names).enumerate().map(|(number, (kind, names))| {
            let columns: Vec<&Column> = parts.iter().map(|part| &part.columns[number]).collect();
            gather_column(*kind, &columns, names, runs, rows)
        });
        let columns = columns.collect();
        batches.push(ColumnBatch { rows, columns });
    }
}

/// Divides runs behind so many rows.
fn halves(runs: &[Run], rows: usize) -> (Vec<Run>, Vec<Run>) {
    let (mut first, mut second, mut left) = (Vec::new(), Vec::new(), rows);
    for run in runs {
        let rows = run.rows.min(left);
        left -= rows;
        first.extend((rows > 0).then_some(Run { rows, ..*run }));
        second.extend((rows < run.rows).then_some(Run { row: run.row + rows, rows: run.rows - rows, ..*run }));
    }
    (first, second)
}

/// Returns the bytes that these rows add to a column whose ends or names are counted in 32 bits.
fn length(column: &Column, rows: Range<usize>) -> usize {
    match &column.data {
        ColumnData::Texts(ends, _) => (ends[rows.end] - ends[rows.start]) as usize,
        ColumnData::Rows(ends, _) => 8 * (ends[rows.end] - ends[rows.start]) as usize,
        // Only the names of a large dictionary are counted, each as often as rows have it.
        ColumnData::Names(codes, names) if names.bytes.len() > BYTES => {
            codes[rows].iter().map(|code| names.get(*code as usize).len()).sum()
        }
        _ => 0,
    }
}

fn gather_column(kind: ColumnType, columns: &[&Column], names: &mut Joined, runs: &[Run], rows: usize) -> Column {
    if runs.iter().all(|run| columns[run.part].data == ColumnData::Missing) {
        return Column::missing(rows);
    }
    let data = match kind {
        ColumnType::Text => {
            let bytes = runs.iter().map(|run| length(columns[run.part], run.span())).sum();
            let (mut ends, mut all) = (Vec::with_capacity(rows + 1), Vec::with_capacity(bytes));
            ends.push(0);
            for run in runs {
                match &columns[run.part].data {
                    ColumnData::Texts(theirs, bytes) => put_spans(&mut ends, &mut all, theirs, bytes, run.span()),
                    _ => ends.resize(ends.len() + run.rows, all.len() as i32),
                }
            }
            ColumnData::Texts(ends, all)
        }
        ColumnType::Numbers => {
            let (mut ends, mut all) = (Vec::with_capacity(rows + 1), Vec::new());
            ends.push(0);
            for run in runs {
                match &columns[run.part].data {
                    ColumnData::Rows(theirs, numbers) => put_spans(&mut ends, &mut all, theirs, numbers, run.span()),
                    _ => ends.resize(ends.len() + run.rows, all.len() as i32),
                }
            }
            ColumnData::Rows(ends, all)
        }
        ColumnType::Time | ColumnType::Integer => {
            let mut all = Vec::with_capacity(rows);
            for run in runs {
                match &columns[run.part].data {
                    ColumnData::Integers(theirs) => all.extend_from_slice(&theirs[run.span()]),
                    _ => all.resize(all.len() + run.rows, 0),
                }
            }
            ColumnData::Integers(all)
        }
        ColumnType::Number => {
            let mut all = Vec::with_capacity(rows);
            for run in runs {
                match &columns[run.part].data {
                    ColumnData::Numbers(theirs) => all.extend_from_slice(&theirs[run.span()]),
                    _ => all.resize(all.len() + run.rows, 0.0),
                }
            }
            ColumnData::Numbers(all)
        }
        ColumnType::Name => names.gather(columns, runs, rows),
    };
    let mut present = Presence::default();
    for run in runs {
        let column = columns[run.part];
        if column.present.is_empty() {
            present.push_all(run.rows, column.data != ColumnData::Missing);
        } else {
            present.extend(&column.present, run.row, run.rows);
        }
    }
    present.column(data)
}

/// Adds these spans of a row's bytes or numbers.
fn put_spans<T: Copy>(ends: &mut Vec<i32>, all: &mut Vec<T>, theirs: &[i32], from: &[T], rows: Range<usize>) {
    let (first, last) = (theirs[rows.start], theirs[rows.end]);
    let base = all.len() as i32 - first;
    all.extend_from_slice(&from[first as usize..last as usize]);
    ends.extend(theirs[rows.start + 1..=rows.end].iter().map(|end| base + end));
}

impl Joined {
    fn gather(&mut self, columns: &[&Column], runs: &[Run], rows: usize) -> ColumnData {
        let mut all = Vec::with_capacity(rows);
        if let Some(names) = only_dictionary(columns, runs) {
            for run in runs {
                match &columns[run.part].data {
                    ColumnData::Names(codes, _) => all.extend_from_slice(&codes[run.span()]),
                    _ => all.resize(all.len() + run.rows, 0),
                }
            }
            return ColumnData::Names(all, names);
        }
        if self.builder.names().len() + rows > MOST_CODES || self.builder.bytes() > NAMES_BYTES || self.met.len() > DICTIONARIES {
            *self = Joined::default();
        }
        // Places of the batches' dictionaries among those that were met.
        let mut places = vec![None; columns.len()];
        for run in runs {
            let column = columns[run.part];
            let ColumnData::Names(codes, names) = &column.data else {
                all.resize(all.len() + run.rows, 0);
                continue;
            };
            let place = *places[run.part].get_or_insert_with(|| self.place_of(names));
            let (_, known) = &mut self.met[place];
            for row in run.span() {
                let is_present = column.present.is_empty() || column.present[row / 8] >> (row % 8) & 1 == 1;
                let code = codes[row] as usize;
                all.push(match known.get_mut(code).filter(|_| is_present) {
                    None => 0,
                    Some(ours) => {
                        if *ours == UNUSED {
                            *ours = self.builder.code(names.get(code));
                        }
                        *ours
                    }
                });
            }
        }
        if self.complete.len() != self.builder.names().len() {
            self.complete = Arc::new(self.builder.names().clone());
        }
        ColumnData::Names(all, self.complete.clone())
    }

    fn place_of(&mut self, names: &Arc<Names>) -> usize {
        let known = self.met.iter().position(|(met, _)| Arc::ptr_eq(met, names));
        known.unwrap_or_else(|| {
            self.met.push((names.clone(), vec![UNUSED; names.len()]));
            self.met.len() - 1
        })
    }
}

/// Returns the dictionary of all these rows, if they have one.
fn only_dictionary(columns: &[&Column], runs: &[Run]) -> Option<Arc<Names>> {
    let mut only: Option<&Arc<Names>> = None;
    for run in runs {
        if let ColumnData::Names(_, names) = &columns[run.part].data
            && !only.replace(names).is_none_or(|before| Arc::ptr_eq(before, names))
        {
            return None;
        }
    }
    only.cloned()
}

#[cfg(test)]
mod tests;
