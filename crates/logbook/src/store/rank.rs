//! The place of an entry in the order of a search, and the number of entries before it.
//!
//! The entries before a position are those after it in the reverse order. Where a search finds all entries of a book,
//! the index of the order counts them. Otherwise the index of words says which rows can match, and the order is stepped
//! through without reading an entry; only those that must be checked themselves, for a regular expression, are read.

use std::collections::HashSet;

use super::{
    Result,
    book_row::{OrderKey, when},
    index::{SearchEnd, SearchIndex},
    stream::{Batch, Stream},
};
use crate::{query::candidates::Want, search::Sort};

impl<I: SearchIndex> Stream<'_, I> {
    /// Returns the position of an entry in the order, whether the search finds it or not; `None` if it has none there.
    pub fn place(&self, id: u32) -> Result<Option<OrderKey>> {
        let Some((row, newest)) = self.index.row_of(self.book_row, id)? else { return Ok(None) };
        let key = match (self.order()?, self.sort) {
            (None, _) | (_, Sort::Date) => Some(String::new()),
            (_, Sort::Id) => Some(format!("{id:010}")),
            (_, Sort::Thread) => newest.map(|newest| format!("{:015}", when(newest))),
            (_, Sort::Attribute(_)) => self.index.load(self.book_row, &[row], false)?.first().map(|(_, entry)| self.key(entry)),
        };
        Ok(key.map(|key| OrderKey { key, row }))
    }

    /// Returns the number of entries after a position.
    pub fn count_after(&self, after: &OrderKey) -> std::result::Result<u64, SearchEnd> {
        self.counted_after(after).map_err(|end| self.stopped(end))
    }

    fn counted_after(&self, after: &OrderKey) -> std::result::Result<u64, SearchEnd> {
        match self.order()? {
            Some(order) if self.has_everything() && !self.is_narrow() => {
                Ok(self.index.count_along(self.book_row, order, after, self.descending)?)
            }
            Some(order) => self.count_in_order(order, after),
            None if after.key.is_empty() => self.count_by_date(Some(after)),
            // In a book without the attribute, no entry has a value.
            None if self.descending => self.count_by_date(None),
            None => Ok(0),
        }
    }

    fn count_by_date(&self, after: Option<&OrderKey>) -> std::result::Result<u64, SearchEnd> {
        let (mut first, mut last) = self.rows;
        match (after, self.descending) {
            (Some(place), true) => last = last.min(place.row - 1),
            (Some(place), false) => first = first.max(place.row + 1),
            (None, _) => {}
        }
        if self.has_everything() {
            return Ok(if first > last { 0 } else { self.index.count_rows((first, last))? });
        }
        let mut counted = 0;
        let mut batch = Batch::new(I::TOGETHER);
        let mut count = |_| {
            counted += 1;
            Ok(true)
        };
        self.each_row(first, last, self.descending, |row| match self.open {
            [] => count(row),
            open if batch.add(row) => self.look(&mut batch, open, &mut count),
            _ => Ok(true),
        })?;
        self.look(&mut batch, self.open, &mut count)?;
        Ok(counted)
    }

    fn count_in_order(&self, order: super::index::Along, after: &OrderKey) -> std::result::Result<u64, SearchEnd> {
        // The rows that can match; `None` stands for all.
        let mut rows: Option<HashSet<i64>> = None;
        if *self.want != Want::All || self.is_narrow() {
            let mut found = HashSet::new();
            self.each_row(self.rows.0, self.rows.1, true, |row| {
                found.insert(row);
                Ok(true)
            })?;
            if found.is_empty() {
                return Ok(0);
            }
            rows = Some(found);
        }
        let mut counted = 0;
        let mut batch = Batch::new(if self.open.is_empty() { 1 } else { I::TOGETHER });
        let mut count = |_| {
            counted += 1;
            Ok(true)
        };
        self.along(order, Some(after), &mut |place| {
            let is_out = self.is_passed(&place, Some(after)) || rows.as_ref().is_some_and(|rows| !rows.contains(&place.row));
            Ok(is_out || !batch.add(place) || self.look(&mut batch, self.open, &mut count)?)
        })?;
        self.look(&mut batch, self.open, &mut count)?;
        Ok(counted)
    }
}
