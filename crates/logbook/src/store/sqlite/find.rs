//! The index of SQLite, for searches.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use regex::Regex;
use rusqlite::{Connection, ToSql, params};
use tampu_types::Time;

use super::{
    Result, Searcher, SqliteStore,
    index::known_number,
    rank,
    rows::{book_row, book_rows, each_entry, load_all},
};
use crate::{
    entry::{Entry, EntryRef},
    query::candidates::{Column, EVERY, MAX_EXPANSION, Vocabulary, Want},
    search::{Page, Search, Stop},
    store::{
        StoreError,
        book_row::{BookRow, OrderKey, WHEN, row_in},
        index::{Along, EachEntry, EachKey, EachRow, SearchEnd, SearchIndex},
        memory::{Remembered, SearchMemory},
        page::{PageStart, page, page_of},
        pool::PooledConnection,
        report::StoreCounts,
        stream::Budget,
        verdicts::{BookState, VerdictMemory, Verdicts},
    },
    text::MAX_WORD,
};

/// Maximum number of vocabulary words that are matched against a regular expression.
const MAX_LOOKED_THROUGH: i64 = 20_000;

/// The condition that an entry's row is of a later second than its date, as in the index `entry_late`.
const LATE: &str = "((row >> 12) & 34359738367) - 17179869184 > \
    (date - (date % 1000000000 + 1000000000) % 1000000000) / 1000000000";
/// Steps of SQLite's machine between two checks of the stop signal.
const STEPS: i32 = 2000;

impl SqliteStore {
    pub(super) fn find_page(&self, search: &Search, stop: &Stop) -> Result<Page> {
        self.in_snapshot(search, stop, |snapshot, stop, watched| page(snapshot, search, stop, watched))
    }

    pub(super) fn find_page_of(&self, search: &Search, at: &EntryRef, stop: &Stop) -> Result<Option<PageStart>> {
        self.in_snapshot(search, stop, |snapshot, stop, _| page_of(snapshot, search, at, stop))
    }

    /// Runs a search in a snapshot, with a stop that has the time of the search, and the mark that statements are to be
    /// interrupted by it.
    fn in_snapshot<T>(
        &self,
        search: &Search,
        stop: &Stop,
        run: impl FnOnce(&Snapshot<'_>, &Stop, &AtomicBool) -> Result<T>,
    ) -> Result<T> {
        let stop = stop.within(search.time);
        let watched = Arc::new(AtomicBool::new(true));
        let (signal, still) = (stop.clone(), watched.clone());
        let reader = WatchedReader::new(self.searchers.get()?, move || still.load(Ordering::Relaxed) && signal.is_stopped())?;
        let transaction = ReadTransaction::begin(&reader.0.db)?;
        // The first statement takes the snapshot.
        let version = transaction.0.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        let snapshot =
            Snapshot { db: transaction.0, version, memory: &reader.0.memory, verdicts: &self.verdicts, counts: &self.counts };
        run(&snapshot, &stop, &watched)
    }
}

/// A snapshot of the database, with what earlier searches found in it.
struct Snapshot<'a> {
    db: &'a Connection,
    version: i64,
    memory: &'a RefCell<SearchMemory<i64>>,
    verdicts: &'a VerdictMemory,
    counts: &'a StoreCounts,
}

/// A transaction that only reads, and ends when it is dropped. Its statements are prepared once for a connection.
struct ReadTransaction<'a>(&'a Connection);

impl<'a> ReadTransaction<'a> {
    fn begin(db: &'a Connection) -> Result<ReadTransaction<'a>> {
        db.prepare_cached("BEGIN")?.execute([])?;
        Ok(ReadTransaction(db))
    }
}

impl Drop for ReadTransaction<'_> {
    fn drop(&mut self) {
        // An interrupted statement may have ended the transaction.
        if !self.0.is_autocommit() {
            let _ = self.0.prepare_cached("ROLLBACK").and_then(|mut end| end.execute([]));
        }
    }
}

/// A lent connection whose statements a signal interrupts. It goes back to the pool without the signal, however the
/// search ends, because other searches reuse it.
struct WatchedReader<'a>(PooledConnection<'a, Searcher>);

impl<'a> WatchedReader<'a> {
    fn new(
        mut reader: PooledConnection<'a, Searcher>,
        is_stopped: impl FnMut() -> bool + Send + 'static,
    ) -> Result<WatchedReader<'a>> {
        reader.progress_handler(STEPS, Some(is_stopped))?;
        Ok(WatchedReader(reader))
    }
}

impl Drop for WatchedReader<'_> {
    fn drop(&mut self) {
        // The removal of a handler does not fail.
        let _ = self.0.progress_handler(0, None::<fn() -> bool>);
    }
}

impl SearchIndex for Snapshot<'_> {
    // A statement is looked up once for so many entries.
    const TOGETHER: usize = 16;
    const HELD: usize = 20_000;
    const TRIED: usize = 64;
    const TRIED_TOGETHER: usize = 16;
    // The index is faster than reading entries one by one, unless it has many rows.
    const TRIED_FROM: usize = 1000;
    const COUNTS_WITH_PAGE: bool = true;

    fn book_row(&self, name: &str) -> Result<Arc<BookRow>> {
        let folded = name.to_lowercase();
        if let Some(known) = self.memory.borrow_mut().book(&self.version, &folded) {
            return Ok(known);
        }
        let found = Arc::new(book_row(self.db, name)?);
        self.memory.borrow_mut().keep_book(&self.version, folded, &found);
        Ok(found)
    }

    fn book_rows(&self) -> Result<Vec<BookRow>> {
        book_rows(self.db)
    }

    fn vocabulary(&self) -> impl Vocabulary<Error = StoreError> {
        Terms { snapshot: self, budget: Budget::new(), tags: RefCell::default() }
    }

    fn number(&self, folded: &str) -> Result<Option<u32>> {
        known_number(self.db, folded)
    }

    fn load(&self, book_row: &BookRow, rows: &[i64], text: bool) -> Result<Vec<(i64, Entry)>> {
        load_all(self.db, &book_row.book.name, rows, text)
    }

    fn each_entry(&self, book_row: &BookRow, rows: &[i64], text: bool, act: EachEntry<'_>) -> std::result::Result<(), SearchEnd> {
        each_entry(self.db, &book_row.book.name, rows, text, act)
    }

    fn each_row(
        &self,
        _: &BookRow,
        want: &Want,
        (first, last): (i64, i64),
        descending: bool,
        _: &Stop,
        act: EachRow<'_>,
    ) -> std::result::Result<(), SearchEnd> {
        let database = |error: rusqlite::Error| SearchEnd::Failed(error.into());
        let order = if descending { "DESC" } else { "ASC" };
        let text = expression(want);
        let (sql, parameters): (String, Vec<&dyn ToSql>) = match &text {
            Expression::Nothing => return Ok(()),
            Expression::All => {
                (format!("SELECT row FROM entry WHERE row BETWEEN ?1 AND ?2 ORDER BY row {order}"), vec![&first, &last])
            }
            Expression::Match(text) => (
                format!("SELECT rowid FROM words WHERE rowid BETWEEN ?1 AND ?2 AND words MATCH ?3 ORDER BY rowid {order}"),
                vec![&first, &last, text],
            ),
        };
        let mut query = self.db.prepare_cached(&sql).map_err(database)?;
        let mut rows = query.query(parameters.as_slice()).map_err(database)?;
        while let Some(row) = rows.next().map_err(database)? {
            if !act(row.get(0).map_err(database)?)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn count_rows(&self, (first, last): (i64, i64)) -> Result<u64> {
        // There is a row for each entry, and they are short.
        let mut query = self.db.prepare_cached("SELECT count(*) FROM words_docsize WHERE id BETWEEN ?1 AND ?2")?;
        Ok(query.query_row([first, last], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    fn along(
        &self,
        book_row: &BookRow,
        order: Along,
        after: Option<&OrderKey>,
        descending: bool,
        act: EachKey<'_>,
    ) -> std::result::Result<(), SearchEnd> {
        let database = |error: rusqlite::Error| SearchEnd::Failed(error.into());
        let (down, sign) = if descending { ("DESC", "<") } else { ("ASC", ">") };
        let book = book_row.num;
        let (sql, id, number);
        let mut parameters: Vec<&dyn ToSql> = vec![&book];
        match order {
            Along::Id => {
                id = after.and_then(|place| place.key.parse::<i64>().ok());
                let condition = if id.is_some() { format!("AND id {sign}= ?2") } else { String::new() };
                sql = format!("SELECT printf('%010d', id), row FROM entry WHERE book = ?1 {condition} ORDER BY id {down}");
                parameters.extend(id.as_ref().map(|id| id as &dyn ToSql));
            }
            Along::Thread => {
                id = after.and_then(|place| place.key.parse::<i64>().ok()).map(|newest| row_in(book, newest));
                let condition = if id.is_some() { format!("AND newest {sign}= ?2") } else { String::new() };
                sql = threads(&condition, down);
                parameters.extend(id.as_ref().map(|id| id as &dyn ToSql));
            }
            Along::Key(attribute) => {
                number = attribute;
                let condition = if after.is_some() { format!("AND (key, row) {sign} (?3, ?4)") } else { String::new() };
                sql = format!(
                    "SELECT key, row FROM sorting WHERE book = ?1 AND attribute = ?2 {condition} \
                     ORDER BY key {down}, row {down}"
                );
                parameters.push(&number);
                if let Some(place) = after {
                    parameters.extend([&place.key as &dyn ToSql, &place.row]);
                }
            }
        }
        let mut query = self.db.prepare_cached(&sql).map_err(database)?;
        let mut rows = query.query(parameters.as_slice()).map_err(database)?;
        while let Some(row) = rows.next().map_err(database)? {
            let place = OrderKey { key: row.get(0).map_err(database)?, row: row.get(1).map_err(database)? };
            if !act(place)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn count_along(&self, book_row: &BookRow, order: Along, after: &OrderKey, descending: bool) -> Result<u64> {
        rank::count_along(self.db, book_row, order, after, descending)
    }

    fn row_of(&self, book_row: &BookRow, id: u32) -> Result<Option<(i64, Option<i64>)>> {
        rank::row_of(self.db, book_row, id)
    }

    fn last_late(&self, book_row: &BookRow, before: Time) -> Result<Option<i64>> {
        let sql = format!("SELECT max(row) FROM entry INDEXED BY entry_late WHERE book = ?1 AND date < ?2 AND {LATE}");
        Ok(self.db.prepare_cached(&sql)?.query_row([book_row.num, before.0], |row| row.get(0))?)
    }

    fn verdicts(&self, book_row: &BookRow, part: &str) -> Arc<Verdicts> {
        self.verdicts.of(BookState::of(0, book_row), part)
    }

    fn remembered(&self, key: &str) -> Option<Remembered> {
        self.memory.borrow_mut().result(&self.version, key).inspect(|_| self.counts.count_remembered())
    }

    fn remember(&self, key: String, result: Remembered) {
        self.memory.borrow_mut().keep_result(&self.version, key, result);
    }

    fn is_interrupted(&self, error: &StoreError) -> bool {
        matches!(error, StoreError::Database(error)
            if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted))
    }
}

/// The statement for the first entries of a book's threads, by the newest entry of each.
fn threads(condition: &str, down: &str) -> String {
    format!(
        "SELECT printf('%015d', newest & {WHEN}), entry.row \
         FROM thread INDEXED BY thread_newest CROSS JOIN entry ON entry.book = thread.book AND entry.id = thread.head \
         WHERE thread.book = ?1 {condition} ORDER BY newest {down}"
    )
}

/// A query of FTS5.
pub enum Expression {
    All,
    Nothing,
    Match(String),
}

/// Converts a want into a query of FTS5.
pub fn expression(want: &Want) -> Expression {
    match want {
        Want::All => Expression::All,
        Want::Nothing => Expression::Nothing,
        want => {
            let mut text = String::new();
            write(want, &mut text);
            Expression::Match(text)
        }
    }
}

/// Writes a want as text. Words are letters, digits and `§` alone, so nothing has to be escaped inside the quotation
/// marks.
fn write(want: &Want, out: &mut String) {
    match want {
        Want::All | Want::Nothing => out.push_str(&format!("\"{EVERY}\"")),
        Want::Phrase(column, words) => {
            // A tag has a character that no word has, so the other columns need no filter, which would cost each row.
            let column = match column {
                Column::Both | Column::Tags => "",
                Column::Text => "text : ",
            };
            out.push_str(&format!("{column}\"{}\"", words.join(" ")));
        }
        Want::Or(wants) => several(wants.iter(), " OR ", out),
        Want::Not(inner) => several([&Want::All, inner].into_iter(), " NOT ", out),
        Want::And(wants) => {
            let nots: Vec<&Want> =
                wants.iter().filter_map(|want| if let Want::Not(inner) = want { Some(&**inner) } else { None }).collect();
            let others: Vec<&Want> = wants.iter().filter(|want| !matches!(want, Want::Not(_))).collect();
            let all = Want::All;
            let others = if others.is_empty() { vec![&all] } else { others };
            if nots.is_empty() {
                return several(others.into_iter(), " AND ", out);
            }
            out.push('(');
            several(others.into_iter(), " AND ", out);
            out.push_str(" NOT ");
            several(nots.into_iter(), " OR ", out);
            out.push(')');
        }
    }
}

fn several<'a>(wants: impl Iterator<Item = &'a Want>, between: &str, out: &mut String) {
    out.push('(');
    for (nth, want) in wants.enumerate() {
        if nth > 0 {
            out.push_str(between);
        }
        write(want, out);
    }
    out.push(')');
}

/// The vocabulary of the index, for one query.
struct Terms<'a> {
    snapshot: &'a Snapshot<'a>,
    budget: Budget,
    /// Tags that this query asked for, and whether an entry has them.
    tags: RefCell<Vec<(String, bool)>>,
}

impl Terms<'_> {
    fn list(&self, sql: &str, with: &str) -> Result<Option<Vec<String>>> {
        let most = MAX_EXPANSION;
        let mut query = self.snapshot.db.prepare_cached(sql)?;
        // Every text with this prefix sorts before the prefix with the last character of Unicode.
        let rows = query.query_map(params![with, format!("{with}\u{10ffff}"), most as i64 + 1], |row| row.get(0))?;
        let found = rows.collect::<rusqlite::Result<Vec<String>>>()?;
        Ok(self.budget.spend(found))
    }
}

impl Vocabulary for Terms<'_> {
    type Error = StoreError;

    fn beginning(&self, with: &str) -> Result<Option<Vec<String>>> {
        self.list("SELECT term FROM term WHERE term >= ?1 AND term <= ?2 LIMIT ?3", with)
    }

    fn ending(&self, with: &str) -> Result<Option<Vec<String>>> {
        let sql = "SELECT term FROM ending WHERE ending = ?1 AND ?2 > '' UNION SELECT term FROM term WHERE term = ?1 LIMIT ?3";
        self.list(sql, with)
    }

    fn containing(&self, part: &str) -> Result<Option<Vec<String>>> {
        let sql = "SELECT term FROM ending WHERE ending >= ?1 AND ending <= ?2 UNION \
                   SELECT term FROM term WHERE term >= ?1 AND term <= ?2 LIMIT ?3";
        self.list(sql, part)
    }

    fn matching(&self, part: &str, regex: &Regex) -> Result<Option<Vec<String>>> {
        let sql = "SELECT term FROM ending WHERE ending >= ?1 AND ending <= ?2 UNION ALL \
                   SELECT term FROM term WHERE term >= ?1 AND term <= ?2 LIMIT ?3";
        let mut query = self.snapshot.db.prepare_cached(sql)?;
        let mut rows = query.query(params![part, format!("{part}\u{10ffff}"), MAX_LOOKED_THROUGH + 1])?;
        let (mut found, mut looked) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            looked += 1;
            let term = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
            if regex.is_match(term) || term.chars().nth(MAX_WORD - 1).is_some() {
                found.push(term.to_owned());
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(if looked <= MAX_LOOKED_THROUGH { self.budget.spend(found) } else { None })
    }

    fn attribute(&self, name: &str) -> Result<Option<u32>> {
        self.snapshot.number(&name.to_lowercase())
    }

    fn has(&self, tag: &str) -> Result<bool> {
        let known = self.tags.borrow().iter().find(|(known, _)| known == tag).map(|(_, has)| *has);
        let Snapshot { db, version, memory, .. } = self.snapshot;
        if let Some(has) = known.or_else(|| memory.borrow().tag(version, tag)) {
            return Ok(has);
        }
        let mut query = db.prepare_cached("SELECT 1 FROM words WHERE words MATCH ?1 LIMIT 1")?;
        let has = query.exists([format!("\"{tag}\"")])?;
        memory.borrow_mut().keep_tag(version, tag, has);
        self.tags.borrow_mut().push((tag.to_owned(), has));
        Ok(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::SqliteStore;

    #[test]
    fn threads_are_read_along_an_index_and_not_sorted() {
        let dir = tempfile::tempdir().unwrap();
        drop(SqliteStore::open(dir.path()).unwrap());
        let db = Connection::open(dir.path().join("book.db")).unwrap();
        for (condition, down) in [("", "DESC"), ("AND newest <= ?2", "DESC"), ("AND newest >= ?2", "ASC")] {
            let sql = format!("EXPLAIN QUERY PLAN {}", threads(condition, down));
            let mut plan = db.prepare(&sql).unwrap();
            let parameters = vec![1; plan.parameter_count()];
            let steps = plan.query_map(rusqlite::params_from_iter(parameters), |row| row.get(3)).unwrap();
            let steps: Vec<String> = steps.map(|step| step.unwrap()).collect();
            assert!(steps.len() == 2 && steps.iter().all(|step| step.contains("USING") && !step.contains("TEMP")), "{steps:?}");
        }
    }
}
