//! The number of entries after a position in an order, counted by the index of that order, as in `store/sqlite/rank.rs`.

use super::{
    rows::number,
    session::{Session, Values},
};
use crate::store::{
    Result, StoreError,
    book_row::{BookRow, OrderKey, row_in},
    index::Along,
};

/// Returns the number of entries of a book after a position.
pub fn count_along(session: &Session, book_row: &BookRow, order: Along, after: &OrderKey, descending: bool) -> Result<u64> {
    let of_key = || after.key.parse::<i64>().map_err(|error| StoreError::Damaged(format!("key {:?}: {error}", after.key)));
    let (book, sign) = (book_row.num, if descending { "<" } else { ">" });
    match order {
        Along::Id => {
            let sql = format!(
                "SELECT (SELECT count(*) FROM entry WHERE book = $1 AND id {sign} $2) + \
                 (SELECT count(*) FROM entry WHERE book = $1 AND id = $2 AND row {sign} $3)"
            );
            count(session, &sql, &[&book, &of_key()?, &after.row])
        }
        Along::Thread => {
            let sql = format!(
                "SELECT (SELECT count(*) FROM thread WHERE book = $1 AND newest {sign} $2) + \
                 (SELECT count(*) FROM thread JOIN entry ON entry.book = thread.book AND entry.id = thread.head \
                  WHERE thread.book = $1 AND newest = $2 AND entry.row {sign} $3)"
            );
            count(session, &sql, &[&book, &row_in(book, of_key()?), &after.row])
        }
        Along::Key(attribute) => {
            let sql = format!("SELECT count(*) FROM sorting WHERE attribute = $1 AND book = $2 AND (key, row) {sign} ($3, $4)");
            count(session, &sql, &[&i64::from(attribute), &book, &after.key, &after.row])
        }
    }
}

fn count(session: &Session, sql: &str, values: Values<'_>) -> Result<u64> {
    session.one(sql, values)?.map_or(Ok(0), |row| number(&row, 0))
}

/// Returns the row of an entry and, if a thread begins with it, the row of the thread's newest entry.
pub fn row_of(session: &Session, book_row: &BookRow, id: u32) -> Result<Option<(i64, Option<i64>)>> {
    let sql = "SELECT entry.row, newest FROM entry LEFT JOIN thread ON thread.book = entry.book AND thread.head = entry.id \
               WHERE entry.book = $1 AND entry.id = $2";
    let row = session.one(sql, &[&book_row.num, &i64::from(id)])?;
    Ok(row.map(|row| Ok::<_, postgres::Error>((row.try_get(0)?, row.try_get(1)?))).transpose()?)
}
