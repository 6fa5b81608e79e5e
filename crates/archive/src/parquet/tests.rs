//! Tests of Parquet files: records survive a round trip unchanged; a damaged file gives an error and never another
//! record.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use proptest::{collection::vec, option, prelude::*};
use tampu_types::{
    ClockState, Datum, Incarnation, Level, LogRecord, RecordId, Time, log_batch::encode_records, record::ArchiveParameter,
};

use super::{
    column::Column,
    read::{self, Dictionaries},
    rows::{Rows, Sent},
    table::{Scratch, Table},
    write::write_file,
};
use crate::query::Cursor;

fn by(source: &str, tai_offset: i16) -> Sent {
    Sent { source: source.to_owned(), clock: ClockState::Free, tai_offset }
}

/// Writes all rows as consecutive files; returns the files.
fn write(dir: &Path, rows: &Rows) -> Vec<(Arc<Table>, PathBuf)> {
    let mut tables = Vec::new();
    for (day, places) in rows.by_day().into_iter().enumerate() {
        let path = dir.join(format!("{day}.parquet"));
        let written = write_file(&path, rows, &places, "test", &mut || Ok(())).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(
            (written.bytes, written.sum, written.records),
            (bytes.len() as u64, crc32c::crc32c(&bytes), places.len() as u64)
        );
        tables.push((Arc::new(Table::open(&path, const { &Column::LOG }).unwrap()), path));
    }
    tables
}

fn read_all(table: &Arc<Table>) -> Result<Vec<LogRecord>, super::BadTable> {
    let (mut scratch, dictionaries, mut all) = (Scratch::new()?, Dictionaries::default(), Vec::new());
    for (number, group) in table.index.groups.iter().enumerate() {
        for unit in 0..group.units.len() {
            let rows: Vec<u32> = (0..Table::unit_rows(group, unit) as u32).collect();
            read::records(table, number, unit, &rows, &dictionaries, &mut scratch, |_, record, sent| {
                assert_eq!(sent().unwrap(), by("A/b", -37));
                all.push(record);
            })?;
        }
    }
    Ok(all)
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![2 => Just(String::new()), 3 => "[ab]{1,2}", 1 => ".{0,9}", 1 => Just("\0\"\\\n,ä".to_owned())]
}

fn data() -> impl Strategy<Value = Vec<Datum>> {
    vec((word(), word()), 0..3).prop_map(|data| data.into_iter().map(|(name, value)| Datum { name, value }).collect())
}

fn record() -> impl Strategy<Value = LogRecord> {
    let id = option::of((0u32..2, any::<u32>(), any::<u64>()));
    let time = prop_oneof![0i64..5, any::<i64>()];
    let numbers =
        (0usize..10, option::of(any::<u8>()), option::of(any::<u32>()), option::of(any::<i32>()), option::of(any::<i64>()));
    let names = vec(word(), 15);
    let traces = (option::of(any::<[u8; 16]>()), option::of(any::<[u8; 8]>()));
    let rest = (word(), data(), data(), vec(word(), 0..3), option::of((word(), word(), word())), vec(any::<u32>(), 0..3));
    (id, time, numbers, names, traces, rest).prop_map(|(id, time, numbers, names, traces, rest)| {
        let mut names = names.into_iter();
        let mut name = || names.next().unwrap();
        let unknown = |count: usize| rest.5.iter().take(count).flat_map(|number| number.to_le_bytes()).collect();
        LogRecord {
            id: id.map(|(pid, ring, number)| RecordId { incarnation: Incarnation { boot: 0, pid, start: 0 }, ring, number }),
            time: Time(time),
            received: Some(Time(numbers.4.unwrap_or(77))),
            level: Level::ALL[numbers.0],
            // The number is never that of a level, so the two can be told apart.
            priority: numbers.1.map(|number| number | 0x80),
            message: rest.0,
            logger: name(),
            file: name(),
            line: numbers.2,
            routine: name(),
            host: name(),
            process: name(),
            thread: name(),
            context: name(),
            source_object: name(),
            audiences: rest.3,
            array: name(),
            antenna: name(),
            stack_id: name(),
            stack_level: numbers.3,
            log_id: name(),
            uri: name(),
            run_id: name(),
            trace_id: traces.0,
            span_id: traces.1,
            data: rest.1,
            archive: rest.4.map(|(object, parameter, r#type)| ArchiveParameter { object, parameter, r#type }),
            attributes: rest.2,
            unknown: unknown(2),
            unknown_origin: unknown(1),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn records_lead_back(mut records in vec(record(), 1..40)) {
        let dir = tempfile::tempdir().unwrap();
        let mut rows = Rows::default();
        for half in records.chunks(records.len().div_ceil(2)) {
            prop_assert_eq!(rows.push_sample(&by("A/b", -37), &encode_records(half).unwrap(), Time(77)), 0);
        }
        records.sort_by_key(Cursor::of);
        let tables = write(dir.path(), &rows);
        let back: Vec<LogRecord> = tables.iter().flat_map(|(table, _)| read_all(table).unwrap()).collect();
        prop_assert_eq!(back, records);
    }

    #[test]
    fn a_damaged_file_gives_an_error_or_the_same_records(changes in vec((any::<usize>(), 1u8..), 1..4), cut in option::of(any::<usize>())) {
        let dir = tempfile::tempdir().unwrap();
        let (rows, records) = many(50);
        let (_, path) = write(dir.path(), &rows).remove(0);
        let mut bytes = fs::read(&path).unwrap();
        for (at, change) in changes {
            let at = at % bytes.len();
            bytes[at] ^= change;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut % bytes.len());
        }
        fs::write(&path, &bytes).unwrap();
        if let Ok(table) = Table::open(&path, const { &Column::LOG })
            && let Ok(back) = read_all(&Arc::new(table))
        {
            prop_assert_eq!(back, records);
        }
    }
}

/// Makes so many records a millisecond apart. Some columns have as many different values as records, others few.
fn many(count: u64) -> (Rows, Vec<LogRecord>) {
    let mut records = Vec::new();
    for number in 0..count {
        let mut record = LogRecord::new(Level::ALL[(number % 10) as usize], format!("message {number}"));
        record.id = Some(RecordId { incarnation: Incarnation { boot: 0, pid: number as u32 % 5, start: 0 }, ring: 0, number });
        record.time = Time(number as i64 * 1_000_000);
        record.received = Some(Time(1_000_000_000 + number as i64 / 100));
        record.process = format!("P{}", number % 300);
        record.context = format!("C{number}");
        record.line = (number % 3 > 0).then_some(number as u32 % 50);
        if number % 1000 == 999 {
            record.stack_id = format!("s{number}");
            record.stack_level = Some(3);
        }
        records.push(record);
    }
    let mut rows = Rows::default();
    for few in records.chunks(500) {
        assert_eq!(rows.push_sample(&by("A/b", -37), &encode_records(few).unwrap(), Time(0)), 0);
    }
    (rows, records)
}

#[test]
fn many_row_groups_lead_back() {
    let dir = tempfile::tempdir().unwrap();
    let (rows, records) = many(super::GROUP as u64 + 3 * super::UNIT as u64 + 17);
    let (table, _) = write(dir.path(), &rows).remove(0);
    assert_eq!(table.index.groups.len(), 2);
    assert_eq!(table.index.groups[1].units.len(), 4);
    // Records are compared one by one: a message with all of them would fill the screen.
    let back = read_all(&table).unwrap();
    assert_eq!(back.len(), records.len());
    for (back, record) in back.iter().zip(&records) {
        assert_eq!(back, record);
    }
}

#[test]
fn a_single_record_is_taken_out_of_the_middle() {
    let dir = tempfile::tempdir().unwrap();
    let (rows, records) = many(5000);
    let (table, _) = write(dir.path(), &rows).remove(0);
    let (mut scratch, mut found) = (Scratch::new().unwrap(), BTreeMap::new());
    let wanted = [0, 4095, 4096, 4999];
    read::records(&table, 0, 0, &wanted, &Dictionaries::default(), &mut scratch, |_, record, _| {
        found.insert(record.id.unwrap().number as u32, record);
    })
    .unwrap();
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), wanted);
    assert!(found.iter().all(|(&number, record)| *record == records[number as usize]));
}
