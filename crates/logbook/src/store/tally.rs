//! The count of a search that goes on where its page ends, so that the index is asked once for both.

use super::{
    book_row::OrderKey,
    index::{SearchEnd, SearchIndex},
    stream::{AtRow, Batch, Stream},
};
use crate::search::{Count, Stopped};

/// A row that the index found, with its number among those rows.
struct Numbered {
    row: i64,
    nth: u64,
}

impl AtRow for Numbered {
    fn row(&self) -> i64 {
        self.row
    }
}

/// The limits of a count.
#[derive(Debug, Clone, Copy)]
pub struct CountLimits {
    /// Number of entries up to which they are counted.
    pub most: u64,
    /// Number of rows that may be looked at, if the index alone does not decide; [`u64::MAX`] otherwise.
    pub looks: u64,
}

/// The entries of a page, and the count of all.
struct Tally<'a> {
    found: &'a mut Vec<OrderKey>,
    /// Length of `found` with the whole page.
    enough: usize,
    limits: CountLimits,
    count: u64,
    /// True if an entry after the last counted one was found.
    is_full: bool,
}

impl Tally<'_> {
    fn has_page(&self) -> bool {
        self.found.len() >= self.enough
    }

    /// Takes an entry; returns true if further ones are needed.
    fn take(&mut self, one: Numbered) -> bool {
        if !self.has_page() {
            self.found.push(OrderKey { key: String::new(), row: one.row });
        }
        if one.nth <= self.limits.looks {
            self.is_full |= self.count >= self.limits.most;
            self.count += u64::from(!self.is_full);
        }
        !self.has_page() || !self.is_full && one.nth <= self.limits.looks
    }
}

/// Finds the first `most` entries of a search, the newest first, into `found`, and counts all of them. Both results are
/// those of a search for the page and of another one for the count. The second one is the reason for an early end of the
/// count alone.
pub fn find_and_count<I: SearchIndex>(
    stream: &Stream<'_, I>,
    most: usize,
    limits: CountLimits,
    found: &mut Vec<OrderKey>,
) -> Result<(Count, Option<Stopped>), SearchEnd> {
    let (first, last) = stream.rows;
    let enough = found.len().saturating_add(most);
    let mut tally = Tally { found, enough, limits, count: 0, is_full: false };
    let mut batch = Batch::new(I::TOGETHER);
    let parts = stream.open;
    let mut rows = 0;
    let mut go_on = true;
    let done = stream.each_row(first, last, true, |row| {
        rows += 1;
        let one = Numbered { row, nth: rows };
        if stream.open.is_empty() {
            go_on = tally.take(one);
        } else if rows > limits.looks && tally.has_page() {
            go_on = false;
            stream.look(&mut batch, parts, &mut |one| Ok(tally.take(one)))?;
        } else if batch.add(one) {
            go_on = stream.look(&mut batch, parts, &mut |one| Ok(tally.take(one)))?;
        }
        Ok(go_on)
    });
    let done = done.and_then(|()| match go_on {
        true => stream.look(&mut batch, parts, &mut |one| Ok(tally.take(one))).map(|_| ()),
        false => Ok(()),
    });
    let is_cut = tally.is_full || rows > limits.looks;
    let count = |is_cut| if is_cut { Count::AtLeast(tally.count) } else { Count::Exactly(tally.count) };
    match done.map_err(|end| stream.stopped(end)) {
        Ok(()) => Ok((count(is_cut), None)),
        Err(SearchEnd::Stopped(why)) if tally.has_page() => Ok((count(true), Some(why))),
        Err(end) => Err(end),
    }
}
