//! A book's row in the database, and the layout of an entry's row number.
//!
//! ```text
//! bit  62      47 46                    12 11     0
//!      | book    | second since 1970 + 2^34 | turn  |
//! ```
//! So one book is a range of rows, in the order of dates. Up to 4096 entries of a book can have the same second.
//! Further entries are *late*: they get rows of the next second, and keep their date. A store has an index of late
//! entries alone, so a search by date can check whether there are any.

use tampu_types::Time;

use super::StoreError;
use crate::{
    book::{AttributeKind, Book, number},
    text::fold,
};

const BOOK_BIT: u32 = 47;
/// The lowest bit of the second; the bits below are the turn within it.
pub const SECOND_BIT: u32 = 12;
const EPOCH: i64 = 1 << 34;
/// Books a store can have.
pub const MAX_BOOKS: i64 = 1 << 15;
/// Number of significant characters of a value for its order.
const KEY: usize = 64;

/// A book of the store.
#[derive(Debug, Clone)]
pub struct BookRow {
    pub num: i64,
    pub book: Book,
    pub entries: u64,
    pub next_id: u32,
    /// A number that each change gives a new value, unless it only adds entries after the last one. While it stays, the other entries
    /// stay as they are.
    pub rewrites: u64,
}

/// An entry's position in an order. Entries of several books are ordered by the book before the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderKey {
    /// Its key; empty by date.
    pub key: String,
    /// The entry's row number.
    pub row: i64,
}

impl OrderKey {
    /// The key that orders places of several books.
    pub fn order(&self) -> (&str, i64, i64) {
        (&self.key, when(self.row), self.row)
    }
}

/// The first row of a second in a book. Times beyond the range of `Time` are its ends.
pub fn first_row(book: i64, date: Time) -> i64 {
    (book << BOOK_BIT) | ((date.0.div_euclid(1_000_000_000) + EPOCH) << SECOND_BIT)
}

/// The last row of the second a row is in.
pub fn last_of_second(row: i64) -> i64 {
    row | ((1 << SECOND_BIT) - 1)
}

/// The first row of a book, and the first of the next.
pub fn rows_of(book: i64) -> [i64; 2] {
    [book << BOOK_BIT, (book + 1) << BOOK_BIT]
}

/// The bits of a row that are not its book.
pub const WHEN: i64 = (1 << BOOK_BIT) - 1;

/// A row without its book, which orders rows of several books.
pub fn when(row: i64) -> i64 {
    row & WHEN
}

/// The row of this place in another book.
pub fn row_in(book: i64, when: i64) -> i64 {
    (book << BOOK_BIT) | when
}

/// The book of a row.
pub fn book_of(row: i64) -> i64 {
    row >> BOOK_BIT
}

/// The error for a damaged entry.
pub fn damaged(book: &str, id: u32, why: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(format!("entry {book}/{id}: {why}"))
}

/// A value as JSON. The types written here have no maps and no foreign serializers, so this does not fail.
pub fn json<T: serde::Serialize>(value: &T) -> super::Result<String> {
    serde_json::to_string(value).map_err(|error| StoreError::Damaged(error.to_string()))
}

/// Returns the key of an attribute's values in its order: empty values first, then numbers, then text without case.
pub fn sort_key(kind: AttributeKind, values: &[String]) -> String {
    let Some(first) = values.iter().find(|value| !value.is_empty()) else { return String::new() };
    if kind.is_number()
        && let Some(number) = number(first)
    {
        // Changes the bits of a double so that they sort as numbers.
        let bits = number.to_bits();
        let ordered = if bits >> 63 == 1 { !bits } else { bits | (1 << 63) };
        return format!("0{ordered:016x}");
    }
    let joined = if values.len() > 1 { values.join(" | ") } else { first.clone() };
    let mut key = String::from("1");
    key.extend(fold(&joined).chars().take(KEY));
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ordered_by_book_then_date() {
        let day = |text: &str| text.parse::<Time>().unwrap();
        let dates = [Time(i64::MIN), day("1969-12-31"), day("1970-01-01"), day("2008-09-10"), day("2026-11-22"), Time(i64::MAX)];
        let rows: Vec<i64> = [0, 1, 2, MAX_BOOKS - 1].iter().flat_map(|&book| dates.map(|date| first_row(book, date))).collect();
        assert!(rows.is_sorted() && rows.iter().all(|&row| row >= 0));
        assert!(rows.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(book_of(first_row(7, dates[3])), 7);
        assert_eq!(row_in(7, when(first_row(3, dates[3]))), first_row(7, dates[3]));
    }

    #[test]
    fn keys_are_in_the_order_of_values() {
        let key = |kind, value: &str| sort_key(kind, &[value.to_owned()]);
        let numbers = ["-1e9", "-2.5", "-0.1", "0", "0.1", "7", "10", "1e30", "many"];
        assert!(numbers.map(|number| key(AttributeKind::Numeric, number)).is_sorted());
        let texts = ["Alpha", "beta", "Élan", "Zeta"];
        assert!(texts.map(|text| key(AttributeKind::Text, text)).is_sorted());
        assert_eq!(sort_key(AttributeKind::Text, &[]), "");
    }
}
