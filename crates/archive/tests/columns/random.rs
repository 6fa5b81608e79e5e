//! Random archives and questions: each row of an answer in columns is the record in JSON, field by field and both ways.
//!
//! Every run has scenes of its own. A failure names the scene, and `TAMPU_SEED=n` plays it alone.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use tampu_archive::columns::{ColumnBatch, ColumnValue};

use super::*;

/// Scenes of a run.
const SCENES: u64 = 12;

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    fn one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

type Fields = BTreeMap<String, Value>;

/// The record in JSON, of which the wanted members, in the forms of the columns.
fn of_record(record: &LogRecord, schema: &Schema) -> Fields {
    let Value::Object(members) = serde_json::to_value(record).unwrap() else { panic!("{record:?}") };
    for name in members.keys() {
        assert!(LOG_COLUMNS.iter().any(|(known, _)| known == name), "'{name}' has no column");
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let form = |(name, value): (String, Value)| {
        let value = match name.as_str() {
            "audiences" => value.as_array().unwrap().iter().map(text).collect::<Vec<_>>().join(",").into(),
            "id" => format!("{}.{}.{}", text(&value["incarnation"]), value["ring"], value["number"]).into(),
            _ => value,
        };
        (name, value)
    };
    members.into_iter().filter(|(name, _)| schema.iter().any(|(wanted, _)| wanted == name)).map(form).collect()
}

/// The row, with the values in the forms of the JSON.
fn of_row(batch: &ColumnBatch, row: usize, schema: &Schema) -> Fields {
    let mut fields = Fields::new();
    for ((name, kind), column) in schema.iter().zip(&batch.columns) {
        let value = match (column.value(row), *kind, *name) {
            (ColumnValue::Missing, ..) => continue,
            (ColumnValue::Integer(number), ColumnType::Time, _) => Time(number).to_rfc3339().into(),
            (ColumnValue::Integer(number), ColumnType::Integer, _) => number.into(),
            (ColumnValue::Text(text), ColumnType::Text, "data" | "attributes" | "archive") => serde_json::from_str(text).unwrap(),
            (ColumnValue::Text(text), ColumnType::Text | ColumnType::Name, _) => text.into(),
            other => panic!("{other:?}"),
        };
        fields.insert((*name).to_owned(), value);
    }
    fields
}

fn word(random: &mut Random) -> String {
    let all = ["", "", "a", "CONTROL/DV01", "Möunt", "\"quoted\\\"", "line\nbreak\t", "\u{1f52d}", "é", "x,y"];
    if random.one_in(40) { "long ".repeat(random.below(60) as usize) } else { random.pick(&all).to_owned() }
}

fn data(random: &mut Random) -> Vec<Datum> {
    (0..random.below(3)).map(|_| Datum::new(word(random), word(random))).collect()
}

fn random_record(random: &mut Random, life_number: u32, ring: u32, number: u64, step: i64) -> LogRecord {
    let mut record = record(life(life_number), ring, number);
    record.time = Time(number as i64 * step);
    if random.one_in(3) {
        record.message = word(random);
        record.logger = word(random);
        record.process = word(random);
        record.thread = word(random);
        record.file = word(random);
        record.line = random.one_in(2).then(|| random.below(1 << 32) as u32);
        record.data = data(random);
    }
    if random.one_in(9) {
        record.context = format!("C{number}");
        record.audiences = (0..random.below(3)).map(|_| random.pick(&["Operator", "a\\b", "c,d"]).to_owned()).collect();
        record.attributes = data(random);
        record.archive = Some(ArchiveParameter { object: word(random), parameter: word(random), r#type: word(random) });
        record.trace_id = Some([random.below(256) as u8; 16]);
        record.span_id = Some([random.below(256) as u8; 8]);
        record.priority = Some(random.below(256) as u8);
        record.stack_level = Some(random.below(1 << 32) as u32 as i32);
        record.uri = word(random);
        record.log_id = word(random);
        record.run_id = word(random);
        record.array = word(random);
        record.antenna = word(random);
    }
    record
}

/// Files and segments whose times overlap, follow each other or are the same.
fn random_archive(random: &mut Random, dir: &std::path::Path) -> (LocalArchive, u64) {
    let archive = LocalArchive::open(dir, Options { compact: true, share: 1.0, ..options() }).unwrap();
    let mut total = 0;
    for part in 0..1 + random.below(4) {
        let life_number = 1 + random.below(3) as u32;
        // Steps of 0 give all records one time.
        let (first, step) = (random.pick(&[0, 2_000, 9_000]), random.pick(&[SECOND, SECOND, SECOND / 3, 0]));
        let all: Vec<LogRecord> = (first..first + 1 + random.below(9_500))
            .map(|number| random_record(random, life_number, part as u32, number, step))
            .collect();
        for (packet, records) in all.chunks(500).enumerate() {
            append(&archive, life(life_number), part as u32, packet as u64, records).unwrap();
        }
        total += all.len() as u64;
        flush(&archive);
        if !random.one_in(3) {
            compact(&archive);
        }
    }
    (archive, total)
}

fn random_query(random: &mut Random) -> Query {
    let mut query = Query { newest_first: random.one_in(3), ..Query::default() };
    let mut time = || Some(Time(random.below(12_000) as i64 * SECOND));
    let (since, until) = (time(), time());
    if random.one_in(3) {
        query.since = since;
    }
    if random.one_in(3) {
        query.until = until;
    }
    if random.one_in(3) {
        query.min_level = Some(random.pick(&Level::ALL));
    }
    if random.one_in(4) {
        query.fields = [(Field::Process, vec![random.pick(&["CONTROL/DV0?", "Möunt", "*1"]).to_owned()])].into();
    }
    if random.one_in(4) {
        query.text = Some(random.pick(&["position 1", "é", "antenna"]).to_owned());
    }
    if random.one_in(3) {
        query.limit = Some(1 + random.below(9_000));
    }
    query
}

fn random_schema(random: &mut Random) -> Schema {
    let mut all = LOG_COLUMNS.to_vec();
    if random.one_in(2) {
        return all;
    }
    (0..1 + random.below(8)).map(|_| all.remove(random.below(all.len() as u64) as usize)).collect()
}

fn play(seed: u64) {
    let (mut random, dir) = (Random(seed), dir());
    let (archive, total) = random_archive(&mut random, dir.path());
    assert_eq!(all(&archive).len() as u64, total);
    for _ in 0..4 {
        let (query, schema, limit) =
            (random_query(&mut random), random_schema(&mut random), random.pick(&[1_000, 30_000, 1 << 20]));
        let expected: Vec<Fields> = search(&archive, &query).iter().map(|record| of_record(record, &schema)).collect();
        let (table, scanned) = column_table(&archive, &query, &schema, limit);
        let batches = table.into_batches();
        let rows = batches.iter().flat_map(|batch| (0..batch.rows).map(|row| of_row(batch, row, &schema)));
        let found: Vec<Fields> = rows.collect();
        let what = format!("{query:?} {schema:?} {limit}");
        assert_eq!((found.len(), scanned.found), (expected.len(), expected.len() as u64), "{what}");
        if let Some(at) = (0..found.len()).find(|at| found[*at] != expected[*at]) {
            panic!("row {at} of {what}: {} is not {}", json!(found[at]), json!(expected[at]));
        }
        let page = 1 + random.below(5_000);
        if query.limit.is_none() && expected.len() < 20 * page as usize {
            let paged = in_pages(&archive, &query, &schema, page);
            assert!(paged == super::records(&archive, &query, &schema), "pages of {page}: {what}");
        }
    }
}

#[test]
fn random_answers_in_columns_are_the_records() {
    let given = std::env::var("TAMPU_SEED").ok().and_then(|seed| seed.parse().ok());
    let first = given.unwrap_or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64);
    for seed in first..first + if given.is_some() { 1 } else { SCENES } {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "TAMPU_SEED={seed} plays this scene again");
    }
}
