//! A gathered row has the values that it has in its batch.

use proptest::prelude::*;

use super::{super::table::ColumnTable, *};
use crate::columns::ColumnValue;

const SCHEMA: &[(&str, ColumnType)] = &[
    ("text", ColumnType::Text),
    ("name", ColumnType::Name),
    ("other", ColumnType::Name),
    ("time", ColumnType::Time),
    ("integer", ColumnType::Integer),
    ("number", ColumnType::Number),
    ("row", ColumnType::Numbers),
];

/// Values of a row: a number for each column, of which 0 is missing.
type Row = [u8; SCHEMA.len()];

fn batch(rows: &[Row]) -> ColumnBatch {
    let mut table = ColumnTable::new(SCHEMA.iter().copied());
    for row in rows {
        let texts: Vec<String> = row.iter().map(|number| "é".repeat(usize::from(number % 5))).collect();
        let names: Vec<String> = row.iter().map(|number| format!("name {number}")).collect();
        let numbers: Vec<Vec<f64>> = row.iter().map(|number| vec![0.5; usize::from(number % 4)]).collect();
        let value = |column: usize| match (row[column], SCHEMA[column].1) {
            (0, _) => ColumnValue::Missing,
            (_, ColumnType::Text) => ColumnValue::Text(&texts[column]),
            (_, ColumnType::Name) => ColumnValue::Text(&names[column]),
            (number, ColumnType::Time | ColumnType::Integer) => ColumnValue::Integer(number.into()),
            (number, ColumnType::Number) => ColumnValue::Number(number.into()),
            (_, ColumnType::Numbers) => ColumnValue::Numbers(&numbers[column]),
        };
        table.push(&std::array::from_fn::<_, { SCHEMA.len() }, _>(value));
    }
    table.into_batches().pop().unwrap()
}

/// Checks the rows of `found` against those of the batches that they come from.
fn check(found: &[ColumnBatch], parts: &[&ColumnBatch], order: &[(u32, u32)]) {
    let mut rows = order.iter();
    for batch in found {
        for row in 0..batch.rows {
            let (part, theirs) = rows.next().expect("no more rows than wanted");
            for (ours, column) in batch.columns.iter().zip(&parts[*part as usize].columns) {
                assert_eq!(ours.value(row), column.value(*theirs as usize));
            }
        }
        for column in &batch.columns {
            let missing = (0..batch.rows).filter(|row| column.value(*row) == ColumnValue::Missing).count();
            assert_eq!((column.missing, column.present.is_empty()), (missing, missing == 0 || missing == batch.rows));
            assert_eq!(column.data == ColumnData::Missing, missing == batch.rows);
        }
    }
    assert_eq!(rows.next(), None);
}

fn of(columns: &[ColumnBatch], column: usize) -> &Arc<Names> {
    let ColumnData::Names(_, names) = &columns[0].columns[column].data else { panic!("names") };
    names
}

proptest! {
    #[test]
    fn a_gathered_row_has_its_values(
        // Few values, so that columns without any, or with all, come too.
        parts in proptest::collection::vec(
            proptest::collection::vec(any::<[bool; SCHEMA.len()]>().prop_flat_map(|some| {
                let values = any::<Row>();
                values.prop_map(move |row| std::array::from_fn(|at| if some[at] { row[at] } else { 0 }))
            }), 1..40),
            1..5,
        ),
        orders in proptest::collection::vec(proptest::collection::vec((any::<u32>(), any::<u32>(), 1..9u32), 0..40), 1..4),
    ) {
        let parts: Vec<ColumnBatch> = parts.iter().map(|rows| batch(rows)).collect();
        let parts: Vec<&ColumnBatch> = parts.iter().collect();
        let mut gatherer = Gatherer::new(SCHEMA);
        for order in orders {
            let rows = |(part, row, count): (u32, u32, u32)| {
                let part = part % parts.len() as u32;
                let all = parts[part as usize].rows as u32;
                (row % all..all.min(row % all + count)).map(move |row| (part, row))
            };
            let order: Vec<(u32, u32)> = order.into_iter().flat_map(rows).collect();
            check(&gatherer.gather(&parts, order.iter().copied()), &parts, &order);
        }
    }

    #[test]
    fn the_first_rows_are_what_they_were(rows in proptest::collection::vec(any::<Row>(), 1..40), most in 0usize..80) {
        let rows: Vec<Row> = rows.iter().map(|row| row.map(|number| if number < 128 { 0 } else { number })).collect();
        let (whole, second) = (batch(&rows), batch(&rows[..1]));
        let parts = [&whole, &second];
        let order: Vec<(u32, u32)> = (0..rows.len() as u32).map(|row| (0, row)).chain([(1, 0)]).take(most).collect();
        check(&ColumnBatch::first_rows(vec![whole.clone(), second.clone()], most), &parts, &order);
    }
}

#[test]
fn a_dictionary_stays_until_it_is_full() {
    let rows = |from: u8| (from..from + 100).map(|name| [name; SCHEMA.len()]).collect::<Vec<Row>>();
    let (first, second) = (batch(&rows(1)), batch(&rows(100)));
    let (parts, order) = ([&first, &second], (0..100).flat_map(|row| [(0, row), (1, row)]).collect::<Vec<_>>());
    let mut gatherer = Gatherer::new(SCHEMA);
    let once = gatherer.gather(&parts, order.iter().copied());
    let again = gatherer.gather(&parts, order.iter().rev().copied());
    assert!(Arc::ptr_eq(of(&once, 1), of(&again, 1)), "the same names are the same dictionary");
    assert_eq!(of(&once, 1).len(), 199);
    // Rows of one batch keep its dictionary.
    let alone = gatherer.gather(&parts, [(0, 5), (0, 7)]);
    assert!(Arc::ptr_eq(of(&alone, 1), of(std::slice::from_ref(&first), 1)));
    // Rows without end come in batches, and each has no more names than codes.
    let long: Vec<(u32, u32)> = (0..1000).flat_map(|_| order.iter().copied()).collect();
    let batches = gatherer.gather(&parts, long.iter().copied());
    assert_eq!(batches.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [65_536, 65_536, 65_536, 3_392]);
    check(&batches, &parts, &long);
}

#[test]
fn names_beyond_the_codes_begin_another_dictionary() {
    let schema = &SCHEMA[1..2];
    let part = |from: usize| {
        let mut table = ColumnTable::new(schema.iter().copied());
        (from..from + 8_000).for_each(|number| table.push(&[ColumnValue::Text(&number.to_string())]));
        table.into_batches().pop().unwrap()
    };
    let all: Vec<ColumnBatch> = (0..10).map(|number| part(number * 8_000)).collect();
    let mut gatherer = Gatherer::new(schema);
    for pair in all.windows(2) {
        let (parts, order) = ([&pair[0], &pair[1]], (0..4_000).flat_map(|row| [(0, row), (1, row)]).collect::<Vec<_>>());
        let found = gatherer.gather(&parts, order.iter().copied());
        check(&found, &parts, &order);
        assert!(of(&found, 0).len() <= MOST_CODES);
    }
}

#[test]
fn a_column_that_would_be_too_long_is_divided() {
    let schema = &SCHEMA[..1];
    let mut table = ColumnTable::new(schema.iter().copied());
    let text = "t".repeat(30 << 20);
    table.push(&[ColumnValue::Text(&text)]);
    let part = table.into_batches().pop().unwrap();
    let order: Vec<(u32, u32)> = vec![(0, 0); 5];
    let found = Gatherer::new(schema).gather(&[&part], order.iter().copied());
    assert_eq!(found.iter().map(|batch| batch.rows).collect::<Vec<_>>(), [2, 1, 2]);
    check(&found, &[&part], &order);
}
