//! Rows that cannot be read: a search for columns loses and counts what a search for records does.

use std::path::Path;

use tampu_types::{ClockState, Datum, Incarnation, Level, LogRecord, RecordId, Time, log_batch::encode_records};

use super::*;
use crate::{
    columns::{ColumnTable, log_columns, push_record},
    manifest::FileEntry,
    parquet::{
        Column, Rows, Sent,
        stored::{Stored, Tables},
        write_file,
    },
    query::Field,
};

/// A file of 20 000 records, some of which are spoilt before it is written.
fn damaged(dir: &Path) -> Contents {
    damaged_files(dir, 1)
}

/// So many files that have one record after the other in turn.
fn damaged_files(dir: &Path, files: usize) -> Contents {
    let record = |number: u64| {
        let text = match number {
            5 => "spoilt message".to_owned(),
            12_000 => "cut here<<".to_owned(),
            12_001 => ">>cut here".to_owned(),
            _ => format!("message {number} \u{e9}"),
        };
        let mut record = LogRecord::new(Level::ALL[(number % 10) as usize], text);
        record.id = Some(RecordId { incarnation: Incarnation { boot: 0, pid: 7, start: 0 }, ring: 0, number });
        record.time = Time(number as i64 * 1_000_000);
        record.received = Some(record.time);
        record.process = format!("P{}", number % 3);
        if number == 9_000 {
            record.data = vec![Datum::new("scan", "spoilt value")];
        }
        record
    };
    let sent = Sent { source: "A".to_owned(), clock: ClockState::Free, tai_offset: 0 };
    let mut rows = Rows::default();
    for first in (0..20_000).step_by(500) {
        let records: Vec<LogRecord> = (first..first + 500).map(record).collect();
        assert_eq!(rows.push_sample(&sent, &encode_records(&records).unwrap(), Time(0)), 0);
    }
    rows.spoil(b"spoilt message", b"spoilt \xff\xffssage");
    rows.spoil(b"\"spoilt value\"", b"{spoilt value}");
    // Both messages together are UTF-8.
    rows.spoil(b"<<>>", b"<\xc3\xa9>");
    let tables = Arc::new(Tables::new(const { &Column::LOG }));
    let write = |(number, places): (usize, Vec<u32>)| {
        let file = format!("{number}.parquet");
        let written = write_file(&dir.join(&file), &rows, &places, "test", &mut || Ok(())).unwrap();
        Stored::new(dir, FileEntry::new(file, &written), &tables)
    };
    let places: Vec<u32> = rows.by_day().into_iter().flatten().collect();
    let of_file = |number: usize| places.iter().skip(number).step_by(files).copied().collect();
    let files = (0..files).map(|number| write((number, of_file(number)))).collect();
    Contents { segments: Vec::new(), files: Arc::new(files) }
}

fn texts(table: ColumnTable) -> Vec<String> {
    let batches = table.into_batches();
    let row = |batch: &ColumnBatch, row: usize| {
        format!("{:?}", batch.columns.iter().map(|column| column.value(row)).collect::<Vec<_>>())
    };
    batches.iter().flat_map(|batch| (0..batch.rows).map(|at| row(batch, at))).collect()
}

/// Rows and damage of both ways.
fn both(contents: &Contents, query: &Query, columns: &[&str]) -> [(Vec<String>, u64, u64); 2] {
    let schema = log_columns(&columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    let (mut of_records, mut of_columns) = (ColumnTable::new(schema.clone()), Vec::new());
    let mut take = |found: Found<'_>| {
        push_record(&mut of_records, found.record);
        true
    };
    let records = search(contents, query, &Stop::default(), &mut Sink::Records(&mut take)).unwrap();
    let mut take = |batch: ColumnBatch| {
        let mut table = ColumnTable::new(schema.clone());
        for row in 0..batch.rows {
            table.push(&batch.columns.iter().map(|column| column.value(row)).collect::<Vec<_>>());
        }
        of_columns.extend(texts(table));
        true
    };
    let found = search(contents, query, &Stop::default(), &mut Sink::Columns(&schema, &mut take)).unwrap();
    [(texts(of_records), records.found, records.damaged), (of_columns, found.found, found.damaged)]
}

#[test]
fn a_bad_row_costs_itself_alone_in_records_and_in_columns() {
    let dir = tempfile::tempdir().unwrap();
    let contents = damaged(dir.path());
    let [records, columns] = both(&contents, &Query::default(), &[]);
    assert_eq!((records.1, records.2), (20_000 - 4, 2), "two of three units have bad rows");
    assert!(records == columns, "{:?} and {:?}", (records.1, records.2), (columns.1, columns.2));
    for newest_first in [false, true] {
        for limit in [1, 5, 6, 7, 8_190, 8_500, 8_192, 9_500, 19_996, 30_000] {
            let query = Query { newest_first, limit: Some(limit), ..Query::default() };
            let [records, columns] = both(&contents, &query, &[]);
            assert_eq!((records.1, columns.1), (limit.min(19_996), limit.min(19_996)), "{limit}");
            assert!(records.0 == columns.0, "{newest_first} {limit}");
            assert_eq!(records.2, columns.2, "{newest_first} {limit}");
        }
    }
    let query = Query { since: Some(Time(8_900_000_000)), min_level: Some(Level::ALL[0]), ..Query::default() };
    let [records, columns] = both(&contents, &query, &["message", "time", "id"]);
    assert!(records.1 == 11_100 - 3 && records.2 == 1, "{:?}", (records.1, records.2));
    assert!(records == columns);
    // Values that nobody wants to have cost nothing.
    let [_, columns] = both(&contents, &Query::default(), &["time", "process", "level", "id", "line"]);
    assert_eq!((columns.1, columns.2), (20_000, 0));
}

#[test]
fn files_that_overlap_are_put_in_order_and_lose_what_records_lose() {
    for files in [2, 3, 7, 40] {
        let dir = tempfile::tempdir().unwrap();
        let contents = damaged_files(dir.path(), files);
        for newest_first in [false, true] {
            for limit in [None, Some(1), Some(8_192), Some(8_193), Some(9_001), Some(19_995)] {
                let query = Query { newest_first, limit, ..Query::default() };
                let [records, columns] = both(&contents, &query, &[]);
                assert_eq!(records.1, limit.unwrap_or(19_996).min(19_996), "{files} {query:?}");
                assert!(records.0 == columns.0, "{files} {query:?}");
                assert_eq!((records.1, records.2), (columns.1, columns.2), "{files} {query:?}");
            }
        }
        let query = Query { fields: [(Field::Process, vec!["P1".to_owned()])].into(), ..Query::default() };
        let [records, columns] = both(&contents, &query, &["message", "process", "time", "id"]);
        assert!(records == columns && records.1 > 6_000, "{files}: {} and {}", records.1, columns.1);
    }
}
