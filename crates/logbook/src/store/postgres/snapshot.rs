//! A search's snapshot of the database, and its questions to the index. A page and its count begin with the same questions, which
//! are asked once.

use std::{cell::RefCell, rc::Rc};

use super::{
    database::{Database, SnapshotVersion},
    row_sets::Listed,
    session::{Session, Values},
    tokens::{question, spans},
};
use crate::{
    query::candidates::Want,
    store::{Result, book_row::BookRow},
};

/// Number of entries in the newest span that is queried. Rejected: a wider one for searches that are counted, because it
/// returns twice the rows that a count of a frequent word needs.
pub const FIRST_SPAN: usize = 512;
/// Number of answers of the index that a search remembers.
const ANSWERS: usize = 4;
/// A book with at most this number of entries is queried as a whole.
pub const SMALL: u64 = 2048;
/// Maximum number of rows in one response.
pub const ROWS: i64 = 4096;

/// A transaction with a consistent snapshot.
pub struct Snapshot<'a> {
    pub session: &'a Session,
    pub inner: &'a Database,
    /// Known with the first book, until a statement is interrupted.
    pub version: RefCell<Option<SnapshotVersion>>,
    /// The first answers of the index, at most [`ANSWERS`].
    answers: RefCell<Vec<(IndexAsked, Rc<[i64]>)>>,
    extents: RefCell<Vec<(ExtentAsked, Option<Extent>)>>,
    /// Wants in a book, with their rows if those are listed.
    pub listed: RefCell<Vec<KnownWant>>,
}

/// A book, a want, and its rows if those are listed.
type KnownWant = (i64, Want, Option<Rc<Listed>>);
/// A question to the index: what is wanted, between which rows, and whether the last rows come first.
type IndexAsked = (Want, (i64, i64), bool);
/// Two rows, and whether the last rows come first.
type ExtentAsked = (i64, i64, bool);
/// The first and last row between two, and the end of the nearest entries if there are more than a first span has.
type Extent = (i64, i64, Option<i64>);

impl<'a> Snapshot<'a> {
    pub fn new(session: &'a Session, inner: &'a Database) -> Snapshot<'a> {
        Snapshot {
            session,
            inner,
            version: RefCell::default(),
            answers: RefCell::default(),
            extents: RefCell::default(),
            listed: RefCell::default(),
        }
    }
}

impl Snapshot<'_> {
    /// Returns the first and the last row between two, and about where the first span of the nearest entries ends if there
    /// are more.
    pub fn extent(&self, book_row: &BookRow, (first, last): (i64, i64), descending: bool) -> Result<Option<Extent>> {
        let asked = (first, last, descending);
        if let Some((_, known)) = self.extents.borrow().iter().find(|(known, _)| *known == asked) {
            return Ok(*known);
        }
        let ends =
            "(SELECT min(row) FROM entry WHERE row BETWEEN $1 AND $2), (SELECT max(row) FROM entry WHERE row BETWEEN $1 AND $2)";
        // After many posts the last of them would all lie after the last milestone.
        let known = self.inner.milestones_of(book_row).filter(|known| known.entries.abs_diff(book_row.entries) <= SMALL);
        let found = if let Some(milestones) = known {
            let version = self.version.borrow();
            let remembered = version.as_ref().and_then(|version| self.inner.memory.lock().ends(version, (first, last)));
            let ends = match remembered {
                Some(ends) => ends,
                None => {
                    let row = self.session.one(&format!("SELECT {ends}"), &[&first, &last])?;
                    let ends = row.map(|row| Ok::<_, postgres::Error>((row.try_get(0)?, row.try_get(1)?))).transpose()?;
                    let ends = ends.and_then(|(first, last): (Option<i64>, Option<i64>)| first.zip(last));
                    if let Some(version) = &*version {
                        self.inner.memory.lock().keep_ends(version, (first, last), ends);
                    }
                    ends
                }
            };
            let edge = |from| milestones.step(from, FIRST_SPAN, descending);
            ends.map(|(first, last)| (first, last, edge(if descending { last } else { first })))
        } else {
            let down = if descending { "DESC" } else { "ASC" };
            let sql = format!(
                "SELECT {ends}, (SELECT row FROM entry WHERE row BETWEEN $1 AND $2 ORDER BY row {down} OFFSET $3 LIMIT 1)"
            );
            let row = self.session.one(&sql, &[&first, &last, &(FIRST_SPAN as i64)])?;
            let found =
                row.map(|row| Ok::<_, postgres::Error>((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).transpose()?;
            found.and_then(|(first, last, edge): (Option<i64>, Option<i64>, _)| Some((first?, last?, edge)))
        };
        self.extents.borrow_mut().push((asked, found));
        Ok(found)
    }

    pub fn ask(&self, want: &Want, (first, last): (i64, i64), descending: bool) -> Result<Rc<[i64]>> {
        let known = self
            .answers
            .borrow()
            .iter()
            .find(|((known, rows, down), _)| (*rows, *down) == ((first, last), descending) && known == want)
            .map(|(_, rows)| rows.clone());
        if let Some(rows) = known {
            return Ok(rows);
        }
        let question = question(want, spans(first, last));
        let (at, down) = (question.lists.len(), if descending { "DESC" } else { "ASC" });
        // `row + 0`, so that the planner uses the index and does not scan the rows.
        let sql = together(&format!(
            "SELECT row FROM word WHERE {} AND row + 0 BETWEEN ${} AND ${} ORDER BY row + 0 {down} LIMIT {ROWS}",
            question.condition,
            at + 1,
            at + 2
        ));
        let mut values: Vec<&(dyn postgres::types::ToSql + Sync)> = Vec::with_capacity(at + 2);
        values.extend(question.lists.iter().map(|list| list as &(dyn postgres::types::ToSql + Sync)));
        values.extend([&first as &(dyn postgres::types::ToSql + Sync), &last]);
        let rows: Rc<[i64]> = self.rows(&sql, &values)?.into();
        let mut answers = self.answers.borrow_mut();
        if answers.len() < ANSWERS {
            answers.push(((want.clone(), (first, last), descending), rows.clone()));
        }
        Ok(rows)
    }

    /// The numbers of a statement made by [`together`].
    pub fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<i64>> {
        let row = self.session.one(sql, values)?;
        let rows: Option<Vec<i64>> = row.map_or(Ok(None), |row| row.try_get(0))?;
        Ok(rows.unwrap_or_default())
    }
}

/// Makes a statement that returns a column of numbers as one array, in their order. Thousands of rows cost both ends
/// more than the search for them.
pub fn together(sql: &str) -> String {
    format!("SELECT array_agg(row) FROM ({sql}) AS found")
}
