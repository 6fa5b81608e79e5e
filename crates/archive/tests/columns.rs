//! Answers in columns have the rows of a search for records, in its order, from files and segments.

use tampu_archive::{
    Archive, LocalArchive, Options, Scanned, Stop,
    columns::{ColumnReader, ColumnTable, ColumnType, ColumnWriter, LOG_COLUMNS, log_columns, push_record},
    query::{Condition, Field, Mode, Query},
};
use tampu_types::{Datum, Level, LogRecord, Time, record::ArchiveParameter};

mod support;
use support::*;

#[path = "../../../fuzz/src/columns.rs"]
mod demands;
#[path = "../../../fuzz/src/mutations.rs"]
mod mutations;
#[path = "../../types/tests/support/page.rs"]
mod page;
#[path = "columns/random.rs"]
mod random;

type Schema = Vec<(&'static str, ColumnType)>;

/// Rows as texts, which `{:?}` makes of their values.
fn rows(table: ColumnTable) -> Vec<String> {
    let batches = table.into_batches();
    let row = |batch: usize, row: usize| batches[batch].columns.iter().map(move |column| format!("{:?}", column.value(row)));
    let all = batches.iter().enumerate().flat_map(|(number, batch)| (0..batch.rows).map(move |row| (number, row)));
    all.map(|(number, at)| row(number, at).collect::<Vec<_>>().join(" | ")).collect()
}

/// Asks for columns, as messages of at most this length that are read again.
fn columns(archive: &dyn Archive, query: &Query, schema: &Schema, limit: usize) -> (Vec<String>, Scanned) {
    let (table, scanned) = column_table(archive, query, schema, limit);
    (rows(table), scanned)
}

fn column_table(archive: &dyn Archive, query: &Query, schema: &Schema, limit: usize) -> (ColumnTable, Scanned) {
    let (mut writer, mut reader) = (ColumnWriter::new(schema.clone(), limit), ColumnReader::default());
    let mut table = ColumnTable::new(schema.clone());
    assert_eq!(reader.read(&writer.begin(), &mut table), Ok(0));
    let mut read = |message: &[u8]| {
        let rows = reader.read(message, &mut table).unwrap();
        assert!(message.len() <= limit || rows == 1, "{} bytes of {rows} rows", message.len());
        true
    };
    let scanned = archive
        .columns(query, schema, &Stop::default(), &mut |batch| writer.batch(&batch, &mut |message| read(&message)))
        .unwrap();
    assert_eq!(reader.read(&ColumnWriter::end(), &mut table), Ok(0));
    assert!(reader.has_ended());
    (table, scanned)
}

/// Rows with names of many lengths, of which each row has its own, and with nothing else.
fn long_names(rows: usize) -> (Schema, ColumnTable) {
    let schema = log_columns(&["process", "host", "line", "message"].map(str::to_owned)).unwrap();
    let mut table = ColumnTable::new(schema.clone());
    for number in 0..rows {
        let mut record = LogRecord::new(Level::Info, "");
        record.process = format!("{number}{}", "n".repeat(number % 900));
        push_record(&mut table, &record);
    }
    (schema, table)
}

#[test]
fn no_message_is_longer_than_the_limit_also_of_names() {
    for (limit, rows) in [(10_000, 3_000), (100_000, 3_000), (1 << 20, 40_000)] {
        let (schema, table) = long_names(rows);
        let (mut writer, mut reader) = (ColumnWriter::new(schema.clone(), limit), ColumnReader::default());
        let mut read = ColumnTable::new(schema);
        reader.read(&writer.begin(), &mut read).unwrap();
        let (mut messages, mut bytes) = (0, 0);
        for batch in table.into_batches() {
            assert!(writer.batch(&batch, &mut |message| {
                assert!(message.len() <= limit, "{} bytes", message.len());
                (messages, bytes) = (messages + 1, bytes + message.len());
                reader.read(&message, &mut read).is_ok()
            }));
        }
        assert_eq!(crate::rows(read), crate::rows(long_names(rows).1));
        // Halves fit at the latest.
        assert!(messages <= 6 * bytes / limit + 6, "{messages} messages of {bytes} bytes");
    }
}

#[test]
fn a_long_name_of_one_row_is_a_message_alone() {
    let schema = log_columns(&["process".to_owned()]).unwrap();
    let mut table = ColumnTable::new(schema.clone());
    let lengths = [3, 20_000, 5, 30_000];
    for length in lengths {
        let mut record = LogRecord::new(Level::Info, "");
        record.process = "n".repeat(length);
        push_record(&mut table, &record);
    }
    let mut writer = ColumnWriter::new(schema, 1_000);
    let mut long = Vec::new();
    for batch in table.into_batches() {
        assert!(writer.batch(&batch, &mut |message| {
            long.extend((message.len() > 1_000).then_some(message.len() / 10_000));
            true
        }));
    }
    assert_eq!(long, [2, 3]);
}

fn records(archive: &dyn Archive, query: &Query, schema: &Schema) -> Vec<String> {
    let mut table = ColumnTable::new(schema.clone());
    search(archive, query).iter().for_each(|record| push_record(&mut table, record));
    rows(table)
}

/// Asks page by page, each after the last row of the one before.
fn in_pages(archive: &dyn Archive, query: &Query, schema: &Schema, page: u64) -> Vec<String> {
    let (mut all, mut query) = (Vec::new(), Query { limit: Some(page), ..query.clone() });
    loop {
        let (rows, scanned) = columns(archive, &query, schema, 1 << 20);
        assert_eq!(scanned.found, rows.len() as u64);
        all.extend(rows);
        if scanned.complete || scanned.found == 0 {
            return all;
        }
        query.after = scanned.cursor;
    }
}

/// A record in which nearly all fields differ from others.
fn odd(number: u64) -> LogRecord {
    let mut record = record(life(2), 1, number);
    if number.is_multiple_of(4) {
        record.source_object = format!("CONTROL/DV{number:02}/Möunt");
        record.audiences = vec!["Sci,Log".to_owned(), "Oper\\ator".to_owned()];
        record.attributes = vec![Datum::new("quote\"", "line\nbreak"), Datum::new("ä", "")];
        record.archive = Some(ArchiveParameter { object: "o".into(), parameter: "p".into(), r#type: "t".into() });
        record.trace_id = Some([7; 16]);
        record.span_id = Some([9; 8]);
        record.priority = Some(3);
        record.stack_level = Some(2);
        record.line = Some(number as u32);
        record.message = String::new();
        record.uri = format!("uid://{number}");
        record.id = if number.is_multiple_of(8) { None } else { record.id };
    }
    record
}

/// Two files whose records alternate, a file of one process, and records that are in segments.
fn archive(dir: &std::path::Path) -> LocalArchive {
    let archive = LocalArchive::open(dir, Options { compact: true, share: 1.0, ..options() }).unwrap();
    let mut stream = 0;
    let mut send = |life_number: u32, all: Vec<LogRecord>| {
        for records in all.chunks(500) {
            append(&archive, life(life_number), life_number, stream, records).unwrap();
            stream += 1;
        }
        flush(&archive);
    };
    let compact = || {
        archive.compact(&Stop::default(), &mut |_| {}).unwrap();
    };
    send(1, (0..9_000).step_by(2).map(|number| record(life(1), 0, number)).collect());
    compact();
    send(3, (1..9_000).step_by(2).map(|number| record(life(3), 0, number)).collect());
    compact();
    // Of this one each unit is clear of others.
    send(4, (30_000..48_000).map(|number| record(life(4), 0, number)).collect());
    compact();
    send(2, (8_500..10_000).map(odd).collect());
    archive
}

#[test]
fn columns_are_those_of_the_records() {
    let dir = dir();
    let archive = archive(dir.path());
    let schema = log_columns(&[]).unwrap();
    let at = |second: i64| Some(Time(second * SECOND));
    let only = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let queries = [
        Query::default(),
        Query { newest_first: true, limit: Some(10_345), ..Query::default() },
        Query { since: at(4_000), until: at(41_000), ..Query::default() },
        Query { min_level: Some(Level::Warning), ..Query::default() },
        Query { fields: [(Field::Process, only(&["CONTROL/DV0[34]", "control/dv04"]))].into(), ..Query::default() },
        Query { words: only(&["position", "step39999"]), ..Query::default() },
        Query { text: Some("antenna 3".into()), limit: Some(3_000), ..Query::default() },
        Query { sources: only(&["*Möunt"]), ..Query::default() },
        Query { mode: Mode::Operator, ..Query::default() },
        Query {
            without: vec![Condition { regex: Some("^antenna [0-4]".into()), ..Condition::default() }],
            since: at(29_990),
            ..Query::default()
        },
        Query { since: at(60_000), ..Query::default() },
    ];
    for query in queries {
        let expected = records(&archive, &query, &schema);
        // A short message cuts batches, and dictionaries to the names that are used.
        for limit in [1 << 20, 3000].into_iter().take(if expected.len() < 12_000 { 2 } else { 1 }) {
            let (found, scanned) = columns(&archive, &query, &schema, limit);
            assert_eq!(found.len(), expected.len(), "{query:?}");
            let different = found.iter().zip(&expected).position(|(found, expected)| found != expected);
            assert_eq!(different.map(|at| (&found[at], &expected[at])), None, "{query:?}");
            assert_eq!(scanned.found, expected.len() as u64);
            assert_eq!(scanned.complete, query.limit != Some(scanned.found), "{query:?}");
        }
    }
}

/// A unit of one file ends within the records of a time, at which another file begins.
#[test]
fn records_of_one_time_stay_in_order() {
    let dir = dir();
    let archive = LocalArchive::open(dir.path(), Options { compact: true, share: 1.0, ..options() }).unwrap();
    // Of one time, the other file's records come first.
    for (process, begin) in [(3, 0), (1, 2)] {
        let at = |number: u64| Time((begin + (number / 3_000) as i64) * SECOND);
        let all: Vec<LogRecord> =
            (0..20_000).map(|number| LogRecord { time: at(number), ..record(life(process), 0, number) }).collect();
        for (part, records) in all.chunks(500).enumerate() {
            append(&archive, life(process), process, part as u64, records).unwrap();
        }
        flush(&archive);
        archive.compact(&Stop::default(), &mut |_| {}).unwrap();
    }
    let schema = log_columns(&["id".to_owned(), "time".to_owned()]).unwrap();
    let expected = records(&archive, &Query::default(), &schema);
    assert_eq!(expected.len(), 40_000);
    for page in [3_500, 8_192, 50_000] {
        let found = in_pages(&archive, &Query::default(), &schema, page);
        assert_eq!(found.len(), expected.len(), "pages of {page}");
        assert!(found == expected, "pages of {page}");
    }
}

/// At the edge of two files only the units that overlap are put in order row by row; those behind them are given out as they are.
#[test]
fn only_units_that_overlap_are_put_in_order() {
    let dir = dir();
    let archive = LocalArchive::open(dir.path(), Options { compact: true, share: 1.0, ..options() }).unwrap();
    for (process, numbers) in [(1, 0..20_000), (3, 19_990..60_000)] {
        let all: Vec<LogRecord> = numbers.map(|number| record(life(process), 0, number)).collect();
        for (part, records) in all.chunks(500).enumerate() {
            append(&archive, life(process), process, part as u64, records).unwrap();
        }
        flush(&archive);
        archive.compact(&Stop::default(), &mut |_| {}).unwrap();
    }
    let schema = log_columns(&["id".to_owned()]).unwrap();
    let mut sizes = Vec::new();
    let take = &mut |batch: tampu_archive::columns::ColumnBatch| {
        sizes.push(batch.rows);
        true
    };
    archive.columns(&Query::default(), &schema, &Stop::default(), take).unwrap();
    // The last unit of the first file has 3616 rows, and is given out with the first one of the second file.
    assert_eq!(sizes, [8192, 8192, 8192, 3616, 8192, 8192, 8192, 7242]);
}

#[test]
fn a_column_is_not_asked_for_twice() {
    let twice = |names: &[&str]| log_columns(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    assert_eq!(twice(&["time", "message", "time"]).unwrap_err().to_string(), "the column 'time' is asked for twice");
    assert!(twice(&["data"; 100_000]).is_err());
}

#[test]
fn pages_continue_where_the_one_before_ends() {
    let dir = dir();
    let archive = archive(dir.path());
    let schema = log_columns(&["id".to_owned(), "data".to_owned(), "line".to_owned()]).unwrap();
    for query in [
        // Records without an id share their place; here each has one.
        Query { without: vec![Condition { sources: vec!["*Möunt".into()], ..Condition::default() }], ..Query::default() },
        Query { since: Some(Time(30_000 * SECOND)), text: Some("step".into()), ..Query::default() },
    ] {
        let expected = records(&archive, &query, &schema);
        for page in [4_999, 8_192, 20_000] {
            assert_eq!(in_pages(&archive, &query, &schema, page), expected, "{page}");
        }
    }
}

#[test]
fn an_unknown_column_is_named() {
    let error = log_columns(&["colour".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("'colour'") && error.contains("message, logger"), "{error}");
}

/// The table of the page's stream.
fn example() -> (Schema, ColumnTable) {
    let schema = log_columns(&["time", "process", "message", "line"].map(str::to_owned)).unwrap();
    let mut table = ColumnTable::new(schema.clone());
    for (second, process, line) in [(1, "CONTROL/DV01", Some(52)), (2, "", None), (3, "CONTROL/DV01", None)] {
        let mut record = LogRecord::new(Level::Info, format!("moved {second}"));
        record.time = Time(second * SECOND);
        record.process = process.to_owned();
        record.line = line;
        push_record(&mut table, &record);
    }
    (schema, table)
}

fn stream(schema: &Schema, table: ColumnTable) -> Vec<u8> {
    let mut writer = ColumnWriter::new(schema.clone(), 1 << 20);
    let mut bytes = writer.begin();
    for batch in table.into_batches() {
        assert!(writer.batch(&batch, &mut |message| {
            bytes.extend(message);
            true
        }));
    }
    bytes.extend(ColumnWriter::end());
    bytes
}

#[test]
fn the_pages_stream_is_written_and_read() {
    let (schema, table) = example();
    let written = stream(&schema, table);
    let dump = page::hex_dump("wire/columns.md", 0);
    let print = |bytes: &[u8]| {
        let line = |(number, bytes): (usize, &[u8])| {
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:>4}: {}", number * 16, bytes.join(" "))
        };
        bytes.chunks(16).enumerate().map(line).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(print(&written), print(&dump), "left: written; right: the page's");
    let (mut reader, mut read) = (ColumnReader::default(), ColumnTable::new(schema));
    assert_eq!(reader.read(&dump, &mut read), Ok(3));
    assert_eq!(rows(read), rows(example().1));
}

#[test]
fn a_reader_skips_columns_that_it_does_not_know_and_lacks_others() {
    let (schema, table) = example();
    let bytes = stream(&schema, table);
    let asked = log_columns(&["line".to_owned(), "host".to_owned(), "process".to_owned()]).unwrap();
    let (mut reader, mut read) = (ColumnReader::default(), ColumnTable::new(asked));
    assert_eq!(reader.read(&bytes, &mut read), Ok(3));
    assert_eq!(rows(read)[0], "Integer(52) | Missing | Text(\"CONTROL/DV01\")");
    // The same name with another type.
    let mut other = ColumnTable::new([("line", ColumnType::Text)]);
    assert!(ColumnReader::default().read(&bytes, &mut other).is_err());
}

#[test]
fn every_column_is_a_key_of_the_records_json() {
    let json = serde_json::to_value(odd(12)).unwrap();
    let mut known: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    // Keys that this record leaves out, because their values are missing.
    known.extend(["received", "logger", "file", "thread", "context", "array", "antenna", "log_id", "run_id"]);
    known.extend(["stack_id", "routine"]);
    for (name, _) in LOG_COLUMNS {
        assert!(known.contains(name), "{name}: {known:?}");
    }
}

#[test]
fn damaged_messages_are_an_error_or_other_values() {
    mutations::hold("columns", demands::columns);
    // Each byte of a message counts.
    let (schema, table) = example();
    let good = stream(&schema, table);
    for place in 0..good.len() {
        for change in [1, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[place] ^= change;
            demands::columns(&bytes);
        }
        demands::columns(&good[..place]);
    }
}
