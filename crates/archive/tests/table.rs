//! A table of other things than log records, kept by the archive's machinery: rows come once, are found in order wherever they lie, and survive
//! compaction, checks, backups, joining of files, a restart and damage.

use std::{path::Path, time::Duration};

use proptest::prelude::*;
use tampu_archive::{
    Arrival, Cell, ColumnSpec, Find, Layout, Options, Row, Schema, Shape, Stop, Swept, TableArchive,
    upkeep::{Done, Upkeep},
};
use tampu_types::{BatchHeader, ClockState, Domain, Incarnation, SourceName, Time};

const TYPE: u32 = 70_000;
const DAY: i64 = 86_400_000_000_000;

static SCHEMA: Schema = Schema {
    layout: Layout {
        name: "toy",
        columns: &[
            ColumnSpec::new("time", Shape::Time),
            ColumnSpec::new("received", Shape::Time),
            ColumnSpec::new("life", Shape::Text),
            ColumnSpec::new("ring", Shape::Number),
            ColumnSpec::new("from", Shape::UnsignedNumber),
            ColumnSpec::new("number", Shape::UnsignedNumber),
            ColumnSpec::new("marks", Shape::Number),
            ColumnSpec::new("name", Shape::Text),
            ColumnSpec::new("value", Shape::OptionalDouble),
            ColumnSpec::new("count", Shape::OptionalNumber),
            ColumnSpec::new("bytes", Shape::Bytes),
        ],
        time: 0,
    },
    type_id: TYPE,
    read,
};
const NAME: usize = 7;

/// Its members, in order.
type Members = (i64, u32, u64, u64, u16, String, Option<u64>, Option<i64>, Vec<u8>);

/// A sample is JSON here: what a table's samples are is its own business.
fn read(header: &BatchHeader, sample: &[u8]) -> Result<Row, String> {
    let (time, ring, from, number, marks, name, bits, count, bytes): Members =
        serde_json::from_slice(sample).map_err(|error| error.to_string())?;
    let cells = vec![
        Cell::Text(name.into_bytes()),
        Cell::Double(bits.map(f64::from_bits)),
        Cell::OptionalNumber(count),
        Cell::Text(bytes),
    ];
    Ok(Row { time: Time(time), received: Time(time + 1), life: header.incarnation, ring, from, number, marks, cells })
}

fn sample(row: &Row) -> Vec<u8> {
    let Row { time, ring, from, number, marks, cells, .. } = row;
    let (Cell::Double(value), Cell::OptionalNumber(count)) = (&cells[1], &cells[2]) else { panic!("{cells:?}") };
    let name = String::from_utf8(cells[0].text().to_vec()).unwrap();
    serde_json::to_vec(&(time.0, ring, from, number, marks, name, value.map(f64::to_bits), count, cells[3].text())).unwrap()
}

const LIFE: Incarnation = Incarnation { boot: 7, pid: 8, start: 9 };

fn row(time: i64, ring: u32, from: u64, number: u64, name: &str, value: Option<f64>) -> Row {
    let cells = vec![
        Cell::Text(name.as_bytes().to_vec()),
        Cell::Double(value),
        Cell::OptionalNumber(number.is_multiple_of(3).then_some(-(number as i64))),
        Cell::Text(vec![number as u8; (number % 5) as usize]),
    ];
    Row { time: Time(time), received: Time(time + 1), life: LIFE, ring, from, number, marks: 1 << (number % 4), cells }
}

fn options() -> Options {
    Options { linger: Duration::ZERO, share: 1.0, ..Options::new(Domain::new("lab").unwrap()) }
}

fn open(dir: &Path) -> TableArchive {
    TableArchive::open(dir, &SCHEMA, options()).unwrap()
}

/// Adds rows; returns how many were new.
fn add(archive: &TableArchive, rows: &[Row]) -> u64 {
    let header = BatchHeader {
        domain: Domain::new("lab").unwrap(),
        source: SourceName::new("source").unwrap(),
        incarnation: LIFE,
        stream: 0,
        first: 0,
        count: rows.len() as u32,
        type_id: TYPE,
        type_version: 1,
        acquired: Time(0),
        sent: Time(0),
        clock: ClockState::Free,
        tai_offset: 37,
        flags: 0,
    };
    let samples: Vec<Vec<u8>> = rows.iter().map(sample).collect();
    let samples: Vec<&[u8]> = samples.iter().map(Vec::as_slice).collect();
    let arrival = Arrival { header: &header, samples: &samples, received: Time(5), advances: None };
    let appended = archive.append(&arrival).unwrap();
    assert!(archive.flush(Duration::from_secs(60)));
    appended.records
}

fn all<'q>() -> Find<'q> {
    Find { since: None, until: None, marks: u16::MAX, column: NAME, wants: &|_| true, after: None, newest_first: false }
}

fn find(archive: &TableArchive, what: &Find<'_>) -> (Vec<Row>, Swept) {
    let mut found = Vec::new();
    let swept = archive.find(what, &Stop::default(), &mut |row| {
        found.push(row);
        true
    });
    (found, swept.unwrap())
}

fn found(archive: &TableArchive) -> Vec<Row> {
    let (found, swept) = find(archive, &all());
    assert!(swept.complete && swept.damaged == 0 && swept.found == found.len() as u64, "{swept:?}");
    found
}

fn compact(archive: &TableArchive) {
    archive.upkeep(&Upkeep::Compact, &Stop::default(), &|_| true).unwrap();
}

#[track_caller]
fn sound(archive: &TableArchive, records: u64) {
    match archive.upkeep(&Upkeep::Check, &Stop::default(), &|_| true).unwrap() {
        Done::Check(checked) => {
            assert!(checked.complete && checked.faults.is_empty() && checked.records == records, "{checked:?}")
        }
        other => panic!("{other:?}"),
    }
}

/// As bits, because NaN is not equal to itself.
fn bits(rows: &[Row]) -> Vec<Vec<u8>> {
    rows.iter().map(|row| [row.received.0.to_le_bytes().to_vec(), sample(row)].concat()).collect()
}

#[test]
fn rows_are_kept_once_and_found_in_order_in_segments_and_in_files() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    let values = [Some(1.5), None, Some(f64::NAN), Some(-0.0), Some(0.0), Some(f64::INFINITY)];
    let rows: Vec<Row> = (1..=20_000u64)
        .map(|number| {
            // The rows span three days; every other number is skipped and represented by the next.
            let time = number as i64 * (3 * DAY / 20_000);
            row(
                time,
                (number % 7) as u32,
                2 * number - 1,
                2 * number,
                ["a", "b", "c"][number as usize % 3],
                values[number as usize % 6],
            )
        })
        .collect();
    assert_eq!(add(&archive, &rows[..9000]), 9000);
    compact(&archive);
    assert_eq!(add(&archive, &rows[8000..]), 11_000, "what is there is not taken again");
    assert_eq!(bits(&found(&archive)), bits(&rows));
    assert_eq!(archive.last_number(LIFE, 3), rows.iter().filter(|row| row.ring == 3).map(|row| row.number).max());
    assert_eq!(archive.last_number(LIFE, 9), None);
    sound(&archive, 20_000);
    compact(&archive);
    assert_eq!(bits(&found(&archive)), bits(&rows));
    sound(&archive, 20_000);

    let named = Find { since: Some(Time(DAY)), until: Some(Time(2 * DAY)), wants: &|name| name == b"b", marks: 0b0101, ..all() };
    let expected: Vec<Row> = rows
        .iter()
        .filter(|row| (DAY..2 * DAY).contains(&row.time.0) && row.cells[0].text() == b"b" && row.marks & 0b0101 != 0)
        .cloned()
        .collect();
    assert_eq!(bits(&find(&archive, &named).0), bits(&expected));
    let newest = find(&archive, &Find { newest_first: true, ..named });
    assert_eq!(bits(&newest.0), bits(&expected.iter().rev().cloned().collect::<Vec<_>>()));
    // The same search page by page.
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let mut page = Vec::new();
        let swept = archive
            .find(&Find { after, ..all() }, &Stop::default(), &mut |row| {
                page.push(row);
                page.len() < 999
            })
            .unwrap();
        paged.append(&mut page);
        if swept.complete {
            break;
        }
        after = swept.cursor;
    }
    assert_eq!(bits(&paged), bits(&rows));

    drop(archive);
    let archive = open(dir.path());
    assert_eq!(add(&archive, &rows[..100]), 0);
    assert_eq!(bits(&found(&archive)), bits(&rows));
}

#[test]
fn small_files_are_joined_and_a_backup_is_as_good() {
    let (dir, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let archive = open(dir.path());
    let rows: Vec<Row> = (1..=60).map(|number| row(number as i64, 0, number, number, "x", Some(number as f64))).collect();
    for few in rows.chunks(6) {
        assert_eq!(add(&archive, few), 6);
        compact(&archive);
    }
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while archive.health().files > 5 {
        assert!(std::time::Instant::now() < until, "{:?}", archive.health());
        std::thread::yield_now();
    }
    assert_eq!(bits(&found(&archive)), bits(&rows));
    sound(&archive, 60);
    archive.upkeep(&Upkeep::Backup(copy.path().to_owned()), &Stop::default(), &|_| true).unwrap();
    let again = open(copy.path());
    assert_eq!(bits(&found(&again)), bits(&rows));
    sound(&again, 60);
}

#[test]
fn what_stands_for_no_number_may_come_again_and_what_stands_for_some_new_ones_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    let word = row(10, 1, 0, 0, "word", None);
    assert_eq!(add(&archive, &[word.clone(), word]), 2);
    assert_eq!(add(&archive, &[row(20, 1, 3, 9, "gap", None)]), 1);
    assert_eq!(add(&archive, &[row(21, 1, 4, 9, "within", None)]), 0);
    assert_eq!(add(&archive, &[row(22, 1, 9, 10, "beyond", None)]), 1);
    // A jump of the numbers allocates no memory.
    assert_eq!(add(&archive, &[row(23, 1, 11, u64::MAX - 1, "jump", None)]), 1);
    assert_eq!(archive.last_number(LIFE, 1), Some(u64::MAX - 1));
    assert_eq!(found(&archive).len(), 5);
}

#[test]
fn samples_that_are_none_of_the_table_are_refused_and_a_log_archive_is_no_table() {
    let dir = tempfile::tempdir().unwrap();
    {
        let archive = open(dir.path());
        let header = BatchHeader {
            domain: Domain::new("lab").unwrap(),
            source: SourceName::new("source").unwrap(),
            incarnation: LIFE,
            stream: 0,
            first: 0,
            count: 1,
            type_id: TYPE,
            type_version: 1,
            acquired: Time(0),
            sent: Time(0),
            clock: ClockState::Free,
            tai_offset: 0,
            flags: 0,
        };
        let bad = |header: &BatchHeader, sample: &[u8]| {
            archive.append(&Arrival { header, samples: &[sample], received: Time(0), advances: None }).unwrap_err().to_string()
        };
        assert!(bad(&header, b"nothing").contains("sample 0 cannot be read"));
        let good = sample(&row(1, 1, 1, 1, "x", None));
        assert!(bad(&BatchHeader { type_id: 2, ..header.clone() }, &good).contains("not belong to the table 'toy'"));
        add(&archive, &[row(1, 1, 1, 1, "x", None)]);
    }
    let error = tampu_archive::LocalArchive::open(dir.path(), options()).err().unwrap();
    assert!(error.to_string().contains("tampu toy archive"), "{error}");
}

#[test]
fn a_damaged_file_gives_its_good_rows_or_an_error_and_never_another_row() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(dir.path());
    let rows: Vec<Row> = (1..=5000).map(|number| row(number as i64, 0, number, number, "x", Some(number as f64))).collect();
    add(&archive, &rows);
    compact(&archive);
    drop(archive);
    let file = walk(&dir.path().join("parquet")).pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&file, &damaged).unwrap();
        let archive = TableArchive::open(dir.path(), &SCHEMA, Options { compact: false, ..options() }).unwrap();
        let (found, swept) = find(&archive, &all());
        let whole: std::collections::HashSet<Vec<u8>> = bits(&rows).into_iter().collect();
        assert!(bits(&found).iter().all(|row| whole.contains(row)), "byte {at}");
        assert!(found.len() == rows.len() || swept.damaged > 0, "byte {at}: {swept:?}");
        match archive.upkeep(&Upkeep::Check, &Stop::default(), &|_| true).unwrap() {
            Done::Check(checked) => assert!(!checked.faults.is_empty(), "byte {at}"),
            other => panic!("{other:?}"),
        }
    }
}

fn walk(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whatever_rows_come_in_whatever_order_they_lead_back_sorted(
        rows in proptest::collection::vec(
            (0i64..2 * DAY, 0u32..3, "[a-c]?", proptest::option::of(any::<u64>()), proptest::option::of(any::<i64>()),
             proptest::collection::vec(any::<u8>(), 0..20)),
            1..60,
        ),
        cut in 0usize..60,
    ) {
        let rows: Vec<Row> = rows.into_iter().enumerate().map(|(number, (time, ring, name, value, count, bytes))| Row {
            cells: vec![Cell::Text(name.into_bytes()), Cell::Double(value.map(f64::from_bits)), Cell::OptionalNumber(count), Cell::Text(bytes)],
            ..row(time, ring, number as u64 + 1, number as u64 + 1, "", None)
        }).collect();
        let dir = tempfile::tempdir().unwrap();
        let archive = open(dir.path());
        let (before, behind) = rows.split_at(cut.min(rows.len()));
        add(&archive, before);
        compact(&archive);
        add(&archive, behind);
        let mut expected = rows.clone();
        expected.sort_by_key(Row::place);
        prop_assert_eq!(bits(&found(&archive)), bits(&expected));
        compact(&archive);
        prop_assert_eq!(bits(&found(&archive)), bits(&expected));
        sound(&archive, rows.len() as u64);
    }
}
