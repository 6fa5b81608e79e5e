//! The number of entries after a position in an order, counted by the index of that order.

use rusqlite::{Connection, OptionalExtension, ToSql};

use super::{Result, StoreError};
use crate::store::{
    book_row::{BookRow, OrderKey, row_in},
    index::Along,
};

/// Returns the number of entries of a book after a position.
pub fn count_along(db: &Connection, book_row: &BookRow, order: Along, after: &OrderKey, descending: bool) -> Result<u64> {
    let number = || after.key.parse::<i64>().map_err(|error| StoreError::Damaged(format!("key {:?}: {error}", after.key)));
    let (key, attribute): (Box<dyn ToSql>, Option<u32>) = match order {
        Along::Id => (Box::new(number()?), None),
        Along::Thread => (Box::new(row_in(book_row.num, number()?)), None),
        Along::Key(attribute) => (Box::new(after.key.clone()), Some(attribute)),
    };
    let mut values: Vec<&dyn ToSql> = vec![&book_row.num, &key, &after.row];
    values.extend(attribute.as_ref().map(|attribute| attribute as &dyn ToSql));
    let mut query = db.prepare_cached(&statement(order, descending))?;
    Ok(query.query_row(values.as_slice(), |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// The entry of another book that has the same key is after the position by its row.
fn statement(order: Along, descending: bool) -> String {
    let sign = if descending { "<" } else { ">" };
    match order {
        Along::Id => format!(
            "SELECT (SELECT count(*) FROM entry WHERE book = ?1 AND id {sign} ?2) + \
             (SELECT count(*) FROM entry WHERE book = ?1 AND id = ?2 AND row {sign} ?3)"
        ),
        Along::Thread => format!(
            "SELECT (SELECT count(*) FROM thread INDEXED BY thread_newest WHERE book = ?1 AND newest {sign} ?2) + \
             (SELECT count(*) FROM thread JOIN entry ON entry.book = thread.book AND entry.id = thread.head \
              WHERE thread.book = ?1 AND newest = ?2 AND entry.row {sign} ?3)"
        ),
        Along::Key(_) => {
            format!("SELECT count(*) FROM sorting WHERE attribute = ?4 AND book = ?1 AND (key, row) {sign} (?2, ?3)")
        }
    }
}

/// Returns the row of an entry and, if a thread begins with it, the row of the thread's newest entry.
pub fn row_of(db: &Connection, book_row: &BookRow, id: u32) -> Result<Option<(i64, Option<i64>)>> {
    let sql = "SELECT entry.row, newest FROM entry LEFT JOIN thread ON thread.book = entry.book AND thread.head = entry.id \
               WHERE entry.book = ?1 AND entry.id = ?2";
    let mut query = db.prepare_cached(sql)?;
    Ok(query.query_row((book_row.num, id), |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::SqliteStore;

    #[test]
    fn orders_are_counted_by_their_indexes() {
        let dir = tempfile::tempdir().unwrap();
        drop(SqliteStore::open(dir.path()).unwrap());
        let db = Connection::open(dir.path().join("book.db")).unwrap();
        for order in [Along::Id, Along::Thread, Along::Key(1)] {
            for descending in [false, true] {
                let sql = format!("EXPLAIN QUERY PLAN {}", statement(order, descending));
                let mut plan = db.prepare(&sql).unwrap();
                let values = vec![1; plan.parameter_count()];
                let steps = plan.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
                let steps: Vec<String> = steps.map(|step| step.unwrap()).collect();
                // The plan names the columns by which each index is searched.
                let bound = ["id>", "id<", "newest>", "newest<", "(key,row)>", "(key,row)<"];
                let is_bound = steps.iter().any(|step| bound.iter().any(|bound| step.contains(bound)));
                assert!(
                    is_bound && !steps.iter().any(|step| step.contains("SCAN entry") || step.contains("SCAN thread")),
                    "{steps:?}"
                );
            }
        }
    }
}
