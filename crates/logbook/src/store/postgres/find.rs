//! The index of PostgreSQL, for searches.
//!
//! Every query is short, so that a stopped search ends soon. Queries that still take long are cancelled from outside (`watch.rs`).

use std::{
    cell::RefCell,
    sync::{Arc, atomic::AtomicBool},
};

use regex::Regex;
use tampu_types::Time;

use super::{
    PostgresStore,
    database::{Database, SnapshotVersion},
    rank,
    rows::{book_row_of, book_rows, each_entry, load, number, row_of_book},
    session::Session,
    snapshot::{FIRST_SPAN, ROWS, SMALL, Snapshot, together},
    tokens::{is_exact, of_tag},
};
use crate::{
    entry::{Entry, EntryRef},
    query::candidates::{CUT, MAX_EXPANSION, UNLEARNED, Vocabulary, Want},
    search::{Page, Search, Stop},
    store::{
        Result, StoreError,
        book_row::{BookRow, OrderKey, WHEN, row_in},
        index::{Along, EachEntry, EachKey, EachRow, SearchEnd, SearchIndex},
        memory::Remembered,
        page::{PageStart, page, page_of},
        stream::Budget,
        verdicts::{BookState, Verdicts},
    },
    text::MAX_WORD,
};

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/// Each span has twice as many entries as the one before, up to so many times as many, so that it has about [`AIM`] rows if
/// they are as frequent as before.
const MUCH_WIDER: usize = 512;
const AIM: usize = 1024;
/// Number of positions along an order in the first response.
const PLACES: i64 = 64;
/// The condition that an entry's row is of a later second than its date, as in the index `entry_late`.
const LATE: &str =
    "((row >> 12) & 34359738367) - 17179869184 > (date - (date % 1000000000 + 1000000000) % 1000000000) / 1000000000";
/// Maximum number of word endings that are searched for a part of a word, and for a regular expression.
const MAX_PARTS: usize = 4 * MAX_EXPANSION;
const MAX_LOOKED_THROUGH: usize = 10_000;

impl PostgresStore {
    pub(super) fn find_page(&self, search: &Search, stop: &Stop) -> Result<Page> {
        if let Some(why) = stop.within(search.time).reason() {
            return Ok(Page { stopped: Some(why.into()), ..Page::default() });
        }
        self.in_snapshot(search, stop, |snapshot, stop, watched| page(snapshot, search, stop, watched))
    }

    pub(super) fn find_page_of(&self, search: &Search, at: &EntryRef, stop: &Stop) -> Result<Option<PageStart>> {
        self.in_snapshot(search, stop, |snapshot, stop, _| page_of(snapshot, search, at, stop))
    }

    /// Runs a search in a snapshot, with a stop that has the time of the search, and the mark that statements are to be
    /// cancelled by it.
    fn in_snapshot<T>(
        &self,
        search: &Search,
        stop: &Stop,
        run: impl FnOnce(&Snapshot<'_>, &Stop, &AtomicBool) -> Result<T>,
    ) -> Result<T> {
        let stop = stop.within(search.time);
        let session = self.0.searchers.get()?;
        let watching = self.0.watch.over(&session, &stop);
        session.batch(BEGIN)?;
        let snapshot = Snapshot::new(&session, &self.0);
        let found = run(&snapshot, &stop, watching.watched());
        drop(watching);
        let ended = session.batch("COMMIT");
        let found = found?;
        ended.map(|()| found)
    }
}

/// Returns whether a statement was cancelled from outside.
fn is_cancelled(error: &StoreError) -> bool {
    matches!(error, StoreError::Postgres(error) if error.code() == Some(&postgres::error::SqlState::QUERY_CANCELED))
}

impl SearchIndex for Snapshot<'_> {
    const TOGETHER: usize = 128;
    const HELD: usize = 2000;
    const TRIED: usize = PLACES as usize;
    const TRIED_TOGETHER: usize = PLACES as usize;
    const TRIED_FROM: usize = 0;
    // The answers of the index are kept, so a second pass costs little.
    const COUNTS_WITH_PAGE: bool = false;

    fn book_row(&self, name: &str) -> Result<Arc<BookRow>> {
        let folded = name.to_lowercase();
        let (row, text) = row_of_book(self.session, name)?;
        let version = (self.session.made_after(), text);
        let known = self.inner.memory.lock().book(&version, &folded);
        let found = match known {
            Some(known) => known,
            None => {
                let found = Arc::new(book_row_of(&row)?);
                self.inner.memory.lock().keep_book(&version, folded, &found);
                found
            }
        };
        self.version.replace(Some(version));
        Ok(found)
    }

    fn book_rows(&self) -> Result<Vec<BookRow>> {
        book_rows(self.session)
    }

    fn vocabulary(&self) -> impl Vocabulary<Error = StoreError> {
        let (budget, tags) = (Budget::new(), RefCell::default());
        Terms { session: self.session, inner: self.inner, version: &self.version, budget, tags }
    }

    fn number(&self, folded: &str) -> Result<Option<u32>> {
        self.inner.known_number(self.session, folded)
    }

    fn load(&self, book_row: &BookRow, rows: &[i64], text: bool) -> Result<Vec<(i64, Entry)>> {
        load(self.session, &book_row.book.name, rows, text)
    }

    fn each_entry(&self, book_row: &BookRow, rows: &[i64], text: bool, act: EachEntry<'_>) -> std::result::Result<(), SearchEnd> {
        each_entry(self.session, &book_row.book.name, rows, text, act)
    }

    fn each_row(
        &self,
        book_row: &BookRow,
        want: &Want,
        (first, last): (i64, i64),
        descending: bool,
        stop: &Stop,
        act: EachRow<'_>,
    ) -> std::result::Result<(), SearchEnd> {
        match want {
            Want::Nothing => Ok(()),
            Want::All => self.all_rows((first, last), descending, stop, act),
            want => self.wanted_rows(book_row, want, (first, last), descending, stop, act),
        }
    }

    fn count_rows(&self, (first, last): (i64, i64)) -> Result<u64> {
        let row = self.session.one("SELECT count(*) FROM entry WHERE row BETWEEN $1 AND $2", &[&first, &last])?;
        row.map_or(Ok(0), |row| number(&row, 0))
    }

    fn along(
        &self,
        book_row: &BookRow,
        order: Along,
        after: Option<&OrderKey>,
        descending: bool,
        act: EachKey<'_>,
    ) -> std::result::Result<(), SearchEnd> {
        let (down, sign) = if descending { ("DESC", "<") } else { ("ASC", ">") };
        let mut limit = PLACES;
        let mut last: Option<OrderKey> = None;
        loop {
            let rows = match order {
                Along::Id => {
                    // Another book's entry can have the id that a page ended with.
                    let begin = match (&last, after) {
                        (Some(last), _) => last.key.parse::<i64>().ok().map(|id| (id, sign.to_owned())),
                        (None, Some(after)) => after.key.parse::<i64>().ok().map(|id| (id, format!("{sign}="))),
                        (None, None) => None,
                    };
                    let (id, sign) = begin.unwrap_or((if descending { i64::MAX } else { 0 }, sign.to_owned()));
                    let sql = format!(
                        "SELECT lpad(id::text, 10, '0'), row FROM entry WHERE book = $1 AND id {sign} $2 ORDER BY id {down} LIMIT $3"
                    );
                    self.session.query(&sql, &[&book_row.num, &id, &limit])
                }
                Along::Thread => {
                    let begin = match (&last, after) {
                        (Some(last), _) => last.key.parse::<i64>().ok().map(|newest| (newest, sign.to_owned())),
                        (None, Some(after)) => after.key.parse::<i64>().ok().map(|newest| (newest, format!("{sign}="))),
                        (None, None) => None,
                    };
                    let (newest, sign) = match begin {
                        Some((newest, sign)) => (row_in(book_row.num, newest), sign),
                        None => (if descending { i64::MAX } else { 0 }, sign.to_owned()),
                    };
                    let sql = format!(
                        "SELECT lpad((newest & {WHEN})::text, 15, '0'), entry.row \
                         FROM thread JOIN entry ON entry.book = thread.book AND entry.id = thread.head \
                         WHERE thread.book = $1 AND newest {sign} $2 ORDER BY newest {down} LIMIT $3"
                    );
                    self.session.query(&sql, &[&book_row.num, &newest, &limit])
                }
                Along::Key(attribute) => match last.as_ref().or(after) {
                    Some(place) => {
                        let sql = format!(
                            "SELECT key, row FROM sorting WHERE attribute = $1 AND book = $2 AND (key, row) {sign} ($3, $4) \
                             ORDER BY key {down}, row {down} LIMIT $5"
                        );
                        self.session.query(&sql, &[&i64::from(attribute), &book_row.num, &place.key, &place.row, &limit])
                    }
                    None => {
                        let sql = format!(
                            "SELECT key, row FROM sorting WHERE attribute = $1 AND book = $2 ORDER BY key {down}, row {down} LIMIT $3"
                        );
                        self.session.query(&sql, &[&i64::from(attribute), &book_row.num, &limit])
                    }
                },
            };
            let rows = rows?;
            for row in &rows {
                let place = OrderKey { key: row.try_get(0).map_err(failed)?, row: row.try_get(1).map_err(failed)? };
                last = Some(place.clone());
                if !act(place)? {
                    return Ok(());
                }
            }
            if (rows.len() as i64) < limit {
                return Ok(());
            }
            limit = (limit * 4).min(ROWS);
        }
    }

    fn count_along(&self, book_row: &BookRow, order: Along, after: &OrderKey, descending: bool) -> Result<u64> {
        rank::count_along(self.session, book_row, order, after, descending)
    }

    fn row_of(&self, book_row: &BookRow, id: u32) -> Result<Option<(i64, Option<i64>)>> {
        rank::row_of(self.session, book_row, id)
    }

    fn last_late(&self, book_row: &BookRow, before: Time) -> Result<Option<i64>> {
        let sql = format!("SELECT max(row) FROM entry WHERE book = $1 AND date < $2 AND {LATE}");
        Ok(self.session.one(&sql, &[&book_row.num, &before.0])?.map_or(Ok(None), |row| row.try_get(0))?)
    }

    fn verdicts(&self, book_row: &BookRow, part: &str) -> Arc<Verdicts> {
        // After an interruption the statements have another snapshot than the book.
        let is_whole = self.version.borrow().is_some();
        if is_whole { self.inner.verdicts.of(BookState::of(self.session.made_after(), book_row), part) } else { Arc::default() }
    }

    fn remembered(&self, key: &str) -> Option<Remembered> {
        let found = self.version.borrow().as_ref().and_then(|version| self.inner.memory.lock().result(version, key));
        found.inspect(|_| self.inner.counts.count_remembered())
    }

    fn remember(&self, key: String, result: Remembered) {
        if let Some(version) = &*self.version.borrow() {
            self.inner.memory.lock().keep_result(version, key, result);
        }
    }

    fn is_interrupted(&self, error: &StoreError) -> bool {
        let interrupted = is_cancelled(error);
        if interrupted {
            // Statements from now on have another snapshot.
            self.version.take();
            // The transaction has failed; the entries found are still to be read. If that fails, reading reports it.
            let _ = self.session.batch("ROLLBACK").and_then(|()| self.session.batch(BEGIN));
        }
        interrupted
    }
}

fn failed(error: postgres::Error) -> SearchEnd {
    SearchEnd::Failed(error.into())
}

/// Returns the reason to stop, if there is one, as an error.
fn stopped(stop: &Stop) -> std::result::Result<(), SearchEnd> {
    stop.reason().map_or(Ok(()), |why| Err(SearchEnd::Stopped(why.into())))
}

impl Snapshot<'_> {
    /// Calls back for every row between two.
    fn all_rows(
        &self,
        (mut first, mut last): (i64, i64),
        descending: bool,
        stop: &Stop,
        act: EachRow<'_>,
    ) -> std::result::Result<(), SearchEnd> {
        let down = if descending { "DESC" } else { "ASC" };
        let sql = together(&format!("SELECT row FROM entry WHERE row BETWEEN $1 AND $2 ORDER BY row {down} LIMIT $3"));
        let mut limit = PLACES;
        loop {
            stopped(stop)?;
            let rows = self.rows(&sql, &[&first, &last, &limit])?;
            for &row in &rows {
                if descending {
                    last = row - 1;
                } else {
                    first = row + 1;
                }
                if !act(row)? {
                    return Ok(());
                }
            }
            if (rows.len() as i64) < limit {
                return Ok(());
            }
            limit = (limit * 4).min(ROWS);
        }
    }

    /// Calls back for the rows between two that the index finds, span by span.
    fn wanted_rows(
        &self,
        book_row: &BookRow,
        want: &Want,
        rows: (i64, i64),
        descending: bool,
        stop: &Stop,
        act: EachRow<'_>,
    ) -> std::result::Result<(), SearchEnd> {
        if let Some(listed) = self.listed(book_row, want)?
            && self.each_listed((book_row, want, &listed), rows, descending, stop, act)?
        {
            return Ok(());
        }
        // The rows of the first and last entry, and the end of the nearest entries. Spans beyond that end are wide and would return
        // all entries.
        let Some((mut first, mut last, mut edge)) = self.extent(book_row, rows, descending)? else { return Ok(()) };
        if book_row.entries <= SMALL {
            edge = None;
        }
        let mut entries = FIRST_SPAN;
        loop {
            stopped(stop)?;
            let (from, to) = match edge {
                None => (first, last),
                Some(edge) if descending => (edge.max(first), last),
                Some(edge) => (first, edge.min(last)),
            };
            let rows = self.ask(want, (from, to), descending)?;
            let mut reached = None;
            for &row in rows.iter() {
                reached = Some(row);
                if !act(row)? {
                    return Ok(());
                }
            }
            // A span with more rows than one response continues after the last of them.
            let cut = rows.len() as i64 >= ROWS;
            match (descending, reached.filter(|_| cut)) {
                (true, Some(row)) => last = row - 1,
                (false, Some(row)) => first = row + 1,
                (true, None) => last = from - 1,
                (false, None) => first = to + 1,
            }
            if first > last {
                return Ok(());
            }
            if !cut {
                entries = entries.saturating_mul((AIM / (rows.len() + 1)).clamp(2, MUCH_WIDER));
                edge =
                    self.inner.milestone(self.session, book_row, if descending { last } else { first }, entries, descending)?;
            }
        }
    }
}

/// The vocabulary of the database.
struct Terms<'a> {
    session: &'a Session,
    inner: &'a Database,
    version: &'a RefCell<Option<SnapshotVersion>>,
    budget: Budget,
    /// Cached tags, and whether an entry has them.
    tags: RefCell<Vec<(String, bool)>>,
}

impl Terms<'_> {
    /// Returns the words that a statement finds with a given beginning, unless there are more than `most`.
    fn list(&self, sql: &str, with: &str, most: usize) -> Result<Option<Vec<String>>> {
        // Every text with this prefix sorts before the prefix with the last character of Unicode.
        let limit = most as i64 + 1;
        let rows = self.session.query(sql, &[&with, &format!("{with}\u{10ffff}"), &limit])?;
        if rows.len() > most {
            return Ok(None);
        }
        let mut found = rows.iter().map(|row| row.try_get(0)).collect::<std::result::Result<Vec<String>, _>>()?;
        found.sort_unstable();
        found.dedup();
        Ok(Some(found))
    }
}

const WITHIN: &str = "(SELECT term FROM ending WHERE ending >= $1 AND ending <= $2 LIMIT $3) UNION ALL \
                      (SELECT term FROM term WHERE term >= $1 AND term <= $2 LIMIT $3) LIMIT $3";

impl Vocabulary for Terms<'_> {
    type Error = StoreError;

    fn beginning(&self, with: &str) -> Result<Option<Vec<String>>> {
        let sql = "SELECT term FROM term WHERE term >= $1 AND term <= $2 LIMIT $3";
        Ok(self.list(sql, with, MAX_EXPANSION)?.and_then(|found| self.budget.spend(found)))
    }

    fn ending(&self, with: &str) -> Result<Option<Vec<String>>> {
        let sql = "(SELECT term FROM ending WHERE ending = $1 AND $2::text > '' LIMIT $3) UNION ALL SELECT term FROM term WHERE term = $1";
        Ok(self.list(sql, with, MAX_EXPANSION)?.and_then(|found| self.budget.spend(found)))
    }

    fn containing(&self, part: &str) -> Result<Option<Vec<String>>> {
        Ok(self.list(WITHIN, part, MAX_PARTS)?.and_then(|found| self.budget.spend(found)))
    }

    fn matching(&self, part: &str, regex: &Regex) -> Result<Option<Vec<String>>> {
        let Some(mut found) = self.list(WITHIN, part, MAX_LOOKED_THROUGH)? else { return Ok(None) };
        found.retain(|term| regex.is_match(term) || term.chars().nth(MAX_WORD - 1).is_some());
        Ok(self.budget.spend(found))
    }

    fn attribute(&self, name: &str) -> Result<Option<u32>> {
        self.inner.known_number(self.session, &name.to_lowercase())
    }

    fn is_exact(&self, want: &Want) -> bool {
        is_exact(want)
    }

    fn has(&self, tag: &str) -> Result<bool> {
        if let Some((_, has)) = self.tags.borrow().iter().find(|(known, _)| known == tag) {
            return Ok(*has);
        }
        let version = self.version.borrow();
        let known = version.as_ref().and_then(|version| self.inner.memory.lock().tag(version, tag));
        if let Some(has) = known {
            return Ok(has);
        }
        // A query that asks for one of these often asks for the other.
        let sql = "SELECT EXISTS(SELECT 1 FROM word WHERE words && $1), EXISTS(SELECT 1 FROM word WHERE words && $2)";
        let others = [CUT, UNLEARNED];
        let other = others.into_iter().find(|other| *other != tag).unwrap_or(CUT);
        let row = self.session.one(sql, &[&vec![of_tag(tag)], &vec![of_tag(other)]])?;
        let (has, has_other) =
            row.map_or(Ok((false, false)), |row| Ok::<_, postgres::Error>((row.try_get(0)?, row.try_get(1)?)))?;
        if let Some(version) = &*version {
            let mut memory = self.inner.memory.lock();
            memory.keep_tag(version, tag, has);
            memory.keep_tag(version, other, has_other);
        }
        self.tags.borrow_mut().extend([(tag.to_owned(), has), (other.to_owned(), has_other)]);
        Ok(has)
    }
}
