//! The records that a viewer keeps, and the visible ones among them.
//!
//! Records are kept in the order of arrival, up to a bound; then the oldest is dropped and counted. The visible ones
//! are a list of numbers in the order of the display, updated record by record. A full sort or filter happens only when
//! the user requests another one. An index in that list moves when an earlier row is added or removed; [`Change`]
//! reports the position.

use std::{cmp::Ordering, collections::VecDeque, sync::Arc};

use tampu_types::LogRecord;

use crate::output::column::Column;

/// Order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sort {
    pub column: Column,
    pub descending: bool,
}

/// Changed part of the list of shown rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Index of a removed row. The removal precedes the addition.
    pub removed: Option<usize>,
    /// Index of an added row.
    pub added: Option<usize>,
}

/// Rows of the viewer.
#[derive(Debug)]
pub struct Rows {
    kept: VecDeque<Arc<LogRecord>>,
    /// The number of the first row kept; rows are numbered in the order of arrival.
    first: u64,
    bound: usize,
    dropped: u64,
    shown: VecDeque<u64>,
    sort: Option<Sort>,
}

impl Rows {
    /// Makes rows that keep at most so many, at least one.
    pub fn new(bound: usize) -> Rows {
        Rows { kept: VecDeque::new(), first: 0, bound: bound.max(1), dropped: 0, shown: VecDeque::new(), sort: None }
    }

    /// Returns the number of kept rows.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Returns the number of shown rows.
    pub fn shown(&self) -> usize {
        self.shown.len()
    }

    /// Returns the number of rows dropped because of the bound.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the order of the rows; `None` is the order of arrival.
    pub fn sort(&self) -> Option<Sort> {
        self.sort
    }

    /// Returns the row of this number, if it is still kept.
    pub fn row(&self, number: u64) -> Option<&Arc<LogRecord>> {
        self.kept.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// The row shown at a place, and its number.
    pub fn at(&self, place: usize) -> Option<(u64, &Arc<LogRecord>)> {
        let number = *self.shown.get(place)?;
        Some((number, self.row(number)?))
    }

    /// All that are shown, in their order.
    pub fn all_shown(&self) -> impl Iterator<Item = &Arc<LogRecord>> {
        self.shown.iter().filter_map(|number| self.row(*number))
    }

    /// Returns all kept rows, in the order of arrival, with their numbers.
    pub fn all_kept(&self) -> impl DoubleEndedIterator<Item = (u64, &Arc<LogRecord>)> + ExactSizeIterator {
        let first = self.first;
        self.kept.iter().enumerate().map(move |(place, row)| (first + place as u64, row))
    }

    /// Returns the place of this row among the shown ones, or its place if it were shown.
    pub fn place_of(&self, number: u64) -> usize {
        self.shown.partition_point(|shown| self.order(*shown, number) == Ordering::Less)
    }

    fn order(&self, one: u64, other: u64) -> Ordering {
        if let Some(Sort { column, descending }) = self.sort
            && let (Some(a), Some(b)) = (self.row(one), self.row(other))
        {
            let order = column.order(a, b);
            return if descending { order.reverse() } else { order }.then(one.cmp(&other));
        }
        one.cmp(&other)
    }

    /// Adds a row; it is shown if it matches.
    pub fn push(&mut self, record: LogRecord, wanted: bool) -> Change {
        let mut change = Change::default();
        if self.kept.len() == self.bound {
            let place = self.place_of(self.first);
            if self.shown.get(place) == Some(&self.first) {
                self.shown.remove(place);
                change.removed = Some(place);
            }
            self.kept.pop_front();
            self.first += 1;
            self.dropped += 1;
        }
        let number = self.first + self.kept.len() as u64;
        self.kept.push_back(Arc::new(record));
        if wanted {
            let place = self.place_of(number);
            self.shown.insert(place, number);
            change.added = Some(place);
        }
        change
    }

    /// Shows the matching rows.
    pub fn show(&mut self, wanted: impl Fn(&LogRecord) -> bool) {
        self.shown = self.all_kept().filter(|(_, row)| wanted(row)).map(|(number, _)| number).collect();
        self.arrange();
    }

    /// Sorts the rows, or restores the order of arrival.
    pub fn sort_by(&mut self, sort: Option<Sort>) {
        self.sort = sort;
        self.arrange();
    }

    fn arrange(&mut self) {
        let mut shown: Vec<u64> = std::mem::take(&mut self.shown).into();
        shown.sort_unstable_by(|one, other| self.order(*one, *other));
        self.shown = shown.into();
    }

    /// Removes all rows. They are not counted as dropped: the user requested it.
    pub fn clear(&mut self) {
        self.first += self.kept.len() as u64;
        self.kept.clear();
        self.shown.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tampu_types::Level;

    use super::*;

    fn record(level: Level, line: u32) -> LogRecord {
        LogRecord { line: Some(line), ..LogRecord::new(level, line.to_string()) }
    }

    #[test]
    fn beyond_the_bound_the_oldest_goes_wherever_it_is_shown() {
        let mut rows = Rows::new(3);
        rows.sort_by(Some(Sort { column: Column::Line, descending: true }));
        for line in [5, 9, 7] {
            rows.push(record(Level::Info, line), true);
        }
        let lines = |rows: &Rows| rows.all_shown().map(|row| row.line.unwrap()).collect::<Vec<_>>();
        assert_eq!(lines(&rows), [9, 7, 5]);
        assert_eq!(rows.push(record(Level::Info, 8), true), Change { removed: Some(2), added: Some(1) });
        assert_eq!(lines(&rows), [9, 8, 7]);
        assert_eq!(rows.push(record(Level::Info, 1), false), Change { removed: Some(0), added: None });
        assert_eq!((rows.kept(), rows.shown(), rows.dropped()), (3, 2, 2));
        rows.sort_by(None);
        assert_eq!(lines(&rows), [7, 8]);
        rows.clear();
        assert_eq!((rows.kept(), rows.shown(), rows.dropped()), (0, 0, 2));
    }

    proptest! {
        /// Incremental updates and a complete update give the same rows.
        #[test]
        fn row_by_row_is_as_all_at_once(
            lines in prop::collection::vec(0u32..20, 1..60),
            bound in 1usize..30,
            sorted in any::<bool>(),
            descending in any::<bool>(),
        ) {
            let wanted = |row: &LogRecord| row.line.is_some_and(|line| line % 3 != 0);
            let mut rows = Rows::new(bound);
            rows.sort_by(sorted.then_some(Sort { column: Column::Line, descending }));
            let mut mirror: Vec<u64> = Vec::new();
            for (number, line) in lines.iter().enumerate() {
                let row = record(Level::Info, *line);
                let change = rows.push(row.clone(), wanted(&row));
                if let Some(place) = change.removed {
                    mirror.remove(place);
                }
                if let Some(place) = change.added {
                    mirror.insert(place, number as u64);
                }
            }
            let shown: Vec<u64> = (0..rows.shown()).map(|place| rows.at(place).unwrap().0).collect();
            prop_assert_eq!(&shown, &mirror);
            rows.show(wanted);
            let again: Vec<u64> = (0..rows.shown()).map(|place| rows.at(place).unwrap().0).collect();
            prop_assert_eq!(shown, again);
            for (place, number) in mirror.iter().enumerate() {
                prop_assert_eq!(rows.place_of(*number), place);
            }
        }
    }
}
