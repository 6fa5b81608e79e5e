//! The rows of a want from the lists in memory, and from the database what came after them.

use std::{cell::Cell, rc::Rc, sync::Arc};

use super::{
    lists::{GROWTH, List, MOST, Step},
    row_sets::{Listed, RowSet, shape},
    snapshot::{ROWS, Snapshot},
    tokens::spans,
};
use crate::{
    query::candidates::Want,
    search::Stop,
    store::{
        Result,
        book_row::{BookRow, rows_of},
        index::{EachRow, SearchEnd},
        verdicts::BookState,
    },
};

/// Number of steps along the lists between two checks of the stop signal.
const STEPS: u64 = 4096;

impl Snapshot<'_> {
    /// Returns the rows of a want, if the lists of its words are in memory or worth fetching.
    pub fn listed(&self, book_row: &BookRow, want: &Want) -> Result<Option<Rc<Listed>>> {
        // After an interruption the statements have another snapshot than the book.
        if self.version.borrow().is_none() {
            return Ok(None);
        }
        let known = self.listed.borrow().iter().find(|(book, known, _)| (*book, known) == (book_row.num, want)).cloned();
        if let Some((_, _, known)) = known {
            return Ok(known);
        }
        let made = self.list_all(book_row, want)?.map(Rc::new);
        self.listed.borrow_mut().push((book_row.num, want.clone(), made.clone()));
        Ok(made)
    }

    fn list_all(&self, book_row: &BookRow, want: &Want) -> Result<Option<Listed>> {
        let Some((shape, sets)) = shape(want) else { return Ok(None) };
        let state = BookState::of(self.session.made_after(), book_row);
        let Some(steps) = self.inner.lists.next_steps(state, &sets) else { return Ok(None) };
        let [first, end] = rows_of(book_row.num);
        let Some((_, last, _)) = self.extent(book_row, (first, end - 1), true)? else { return Ok(None) };
        let (mut lists, mut until) = (Vec::with_capacity(sets.len()), last);
        for (set, step) in sets.iter().zip(steps) {
            let list = match step {
                Step::Known(list) if book_row.entries <= list.entries + GROWTH => list,
                step => {
                    let (before, limit) = match step {
                        Step::Known(list) => (Some(list), MOST),
                        Step::Fetch(limit) => (None, limit),
                    };
                    let made = self.fetched(set, before.as_ref(), (first, last), limit)?;
                    let made = made.map(|rows| List { rows, until: last, entries: book_row.entries });
                    self.inner.lists.keep(state, set, limit, made.as_ref());
                    let Some(made) = made else { return Ok(None) };
                    made
                }
            };
            until = until.min(list.until);
            lists.push(list.rows);
        }
        Ok(Some(Listed { rows: RowSet::new(&shape, &lists), until }))
    }

    /// Returns the rows of a book that have one of these numbers, or `None` if there are more than `limit`. The rows of a list
    /// from before are not fetched again.
    fn fetched(
        &self,
        numbers: &[i64],
        before: Option<&List>,
        (first, last): (i64, i64),
        limit: usize,
    ) -> Result<Option<Arc<[i64]>>> {
        let (known, first) = before.map_or((&[][..], first), |list| (&*list.rows, list.until + 1));
        // By the spans, so that entries of other books are not looked at. `row + 0`, so that the planner does not scan the rows.
        let sql = "SELECT array_agg(row) FROM (SELECT row FROM word WHERE words && $1 AND words && $2 AND row + 0 BETWEEN $3 AND $4 LIMIT $5) AS found";
        let most = limit.saturating_sub(known.len()) as i64 + 1;
        let mut rows = self.rows(sql, &[&numbers, &spans(first, last), &first, &last, &most])?;
        rows.sort_unstable();
        let all = known.len() + rows.len() <= limit;
        Ok(all.then(|| known.iter().copied().chain(rows).collect()))
    }

    /// Calls back for the rows between two, in order. Returns false, without a call, if there are too many after the lists.
    pub fn each_listed(
        &self,
        (book_row, want, listed): (&BookRow, &Want, &Listed),
        rows: (i64, i64),
        descending: bool,
        stop: &Stop,
        act: EachRow<'_>,
    ) -> std::result::Result<bool, SearchEnd> {
        let Some((first, last, _)) = self.extent(book_row, rows, descending)? else { return Ok(true) };
        let begin = first.max(listed.until + 1);
        let after = if begin <= last { self.ask(want, (begin, last), descending)? } else { Rc::default() };
        if after.len() as i64 >= ROWS {
            return Ok(false);
        }
        if descending && !each(&after, act)? {
            return Ok(true);
        }
        let last = last.min(listed.until);
        let (mut from, steps, ended) = (if descending { last } else { first }, Cell::new(0), Cell::new(None));
        let go_on = || {
            steps.set(steps.get() + 1);
            if steps.get() % STEPS == 0 {
                ended.set(stop.reason());
            }
            ended.get().is_none()
        };
        loop {
            let row = if go_on() { listed.rows.nearest(from, descending, &go_on) } else { None };
            if let Some(why) = ended.get() {
                return Err(SearchEnd::Stopped(why.into()));
            }
            let Some(row) = row.filter(|row| (first..=last).contains(row)) else { break };
            if !act(row)? {
                return Ok(true);
            }
            from = if descending { row - 1 } else { row + 1 };
        }
        if !descending {
            each(&after, act)?;
        }
        Ok(true)
    }
}

/// Calls back for these rows; returns false if a call ended it.
fn each(rows: &[i64], act: EachRow<'_>) -> std::result::Result<bool, SearchEnd> {
    for &row in rows {
        if !act(row)? {
            return Ok(false);
        }
    }
    Ok(true)
}
