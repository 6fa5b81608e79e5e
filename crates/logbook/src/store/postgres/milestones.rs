//! Rows at regular distances in a book, by which a search sets the size of its next question.

use std::sync::Arc;

use super::{
    database::{Database, Milestones},
    session::Session,
    snapshot::FIRST_SPAN,
};
use crate::store::{
    Result,
    book_row::{BookRow, rows_of},
};

impl Database {
    /// Returns a row about `entries` entries away from another, or `None` if the book ends before it.
    pub fn milestone(
        &self,
        session: &Session,
        book_row: &BookRow,
        from: i64,
        entries: usize,
        descending: bool,
    ) -> Result<Option<i64>> {
        let milestones = match self.milestones_of(book_row) {
            Some(known) => known,
            None => {
                let sql = "SELECT row FROM (SELECT row, row_number() OVER (ORDER BY row) AS nth FROM entry WHERE row >= $1 AND row < $2) \
                           AS numbered WHERE nth % $3 = 0 ORDER BY row";
                let [first, end] = rows_of(book_row.num);
                let rows = session.query(sql, &[&first, &end, &(FIRST_SPAN as i64)])?;
                let rows = rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<_, _>>()?;
                let made = Arc::new(Milestones { entries: book_row.entries, rows });
                self.milestones.lock().insert(book_row.num, made.clone());
                made
            }
        };
        Ok(milestones.step(from, entries, descending))
    }

    /// Returns the milestones of a book, if they are known.
    pub fn milestones_of(&self, book_row: &BookRow) -> Option<Arc<Milestones>> {
        let known = self.milestones.lock().get(&book_row.num).cloned();
        // Milestones are reused until the number of entries changes by a tenth: they only set the size of each request.
        known.filter(|known| known.entries.abs_diff(book_row.entries) <= book_row.entries / 10)
    }
}

impl Milestones {
    /// Returns a row about `entries` entries away from another, or `None` if the book ends before it.
    pub fn step(&self, from: i64, entries: usize, descending: bool) -> Option<i64> {
        let (rows, steps) = (&self.rows, entries / FIRST_SPAN);
        let at = rows.partition_point(|row| *row < from);
        if descending { at.checked_sub(steps).map(|at| rows[at]) } else { rows.get(at + steps).copied() }
    }
}
