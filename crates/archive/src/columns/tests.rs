//! Full dictionaries of a table are followed by others.

use super::*;

const SCHEMA: &[(&str, ColumnType)] = &[("name", ColumnType::Name), ("other", ColumnType::Name), ("number", ColumnType::Integer)];

fn small() -> ColumnTable {
    let mut table = ColumnTable::new(SCHEMA.iter().copied());
    table.names_bytes = 100;
    table
}

fn name(number: usize) -> String {
    format!("{:>30}", number % 37)
}

fn push(table: &mut ColumnTable, number: usize) {
    table.push(&[ColumnValue::Text(&name(number)), ColumnValue::Text("always"), ColumnValue::Integer(number as i64)]);
}

/// Checks that the rows have the values that they were given, in several dictionaries.
fn check(batches: &[ColumnBatch], rows: usize) {
    let mut number = 0;
    for batch in batches {
        for row in 0..batch.rows {
            assert_eq!(batch.columns[0].value(row), ColumnValue::Text(&name(number)));
            assert_eq!(batch.columns[1].value(row), ColumnValue::Text("always"));
            assert_eq!(batch.columns[2].value(row), ColumnValue::Integer(number as i64));
            number += 1;
        }
        let ColumnData::Names(_, names) = &batch.columns[0].data else { panic!("names") };
        assert!(names.bytes.len() <= 100 + 30 * 50, "{}", names.bytes.len());
    }
    assert!(number == rows && batches.len() > 1);
}

#[test]
fn full_dictionaries_are_followed_by_others() {
    let mut table = small();
    (0..500).for_each(|number| push(&mut table, number));
    check(&table.into_batches(), 500);
}

#[test]
fn full_dictionaries_are_followed_by_others_also_in_an_answer() {
    let mut sent = ColumnTable::new(SCHEMA.iter().copied());
    (0..500).for_each(|number| push(&mut sent, number));
    let (mut writer, mut reader, mut table) = (ColumnWriter::new(SCHEMA.to_vec(), 1500), ColumnReader::default(), small());
    reader.read(&writer.begin(), &mut table).unwrap();
    for batch in sent.into_batches() {
        assert!(writer.batch(&batch, &mut |message| reader.read(&message, &mut table).is_ok()));
    }
    check(&table.into_batches(), 500);
}
