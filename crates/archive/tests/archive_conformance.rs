//! Tests that every archive must pass, written once for all of them.

use std::{collections::HashSet, path::Path, time::Duration};

use proptest::prelude::*;
use tampu_archive::{
    Appended, Archive, ArchiveError, Arrival, BackedUp, Checked, Compacted, Counts, Doing, Found, Grouping, Health, LocalArchive,
    Options, Patterns, PatternsWanted, Scanned, Stop, StreamOffset, Told,
    columns::{ColumnBatch, ColumnType},
    query::{Cursor, Field, Query},
};
use tampu_types::{Incarnation, Level, LogRecord, RecordId, Time, log_batch::encode_records};

mod support;
use support::*;

/// Makes or reopens the archive in a directory.
type Open = dyn Fn(&Path) -> Box<dyn Archive>;

/// The built-in archive that takes everything into Parquet files whenever it is asked to put everything on disk.
struct InParquet(LocalArchive);

impl Archive for InParquet {
    fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        self.0.append(arrival)
    }

    fn committed(&self) -> u64 {
        self.0.committed()
    }

    fn on_commit(&self, told: Told) {
        self.0.on_commit(told);
    }

    fn flush(&self, timeout: Duration) -> bool {
        self.0.compact(&Stop::after(timeout), &mut |_| {}).unwrap();
        let health = self.0.health();
        assert_eq!((health.records, health.waiting), (health.in_files, 0));
        true
    }

    fn search(&self, query: &Query, stop: &Stop, sink: &mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError> {
        self.0.search(query, stop, sink)
    }

    fn columns(
        &self,
        query: &Query,
        schema: &[(&'static str, ColumnType)],
        stop: &Stop,
        sink: &mut dyn FnMut(ColumnBatch) -> bool,
    ) -> Result<Scanned, ArchiveError> {
        self.0.columns(query, schema, stop, sink)
    }

    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
        self.0.count(query, by, stop)
    }

    fn patterns(&self, query: &Query, wanted: &PatternsWanted, stop: &Stop) -> Result<Patterns, ArchiveError> {
        self.0.patterns(query, wanted, stop)
    }

    fn compact(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Compacted, ArchiveError> {
        self.0.compact(stop, doing)
    }

    fn check(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Checked, ArchiveError> {
        self.0.check(stop, doing)
    }

    fn backup(&self, target: &Path, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<BackedUp, ArchiveError> {
        self.0.backup(target, stop, doing)
    }

    fn offsets(&self) -> Vec<StreamOffset> {
        self.0.offsets()
    }

    fn health(&self) -> Health {
        self.0.health()
    }
}

/// The archives that conform, each set small enough that a few hundred records make it use all its parts.
fn archives() -> Vec<(&'static str, Box<Open>)> {
    let options = |roll, compact| Options { linger: Duration::ZERO, roll, compact, share: 1.0, ..Options::new(domain()) };
    vec![
        ("one segment", Box::new(move |dir| Box::new(LocalArchive::open(dir, options(1 << 20, false)).unwrap()))),
        ("a segment a group", Box::new(move |dir| Box::new(LocalArchive::open(dir, options(1, false)).unwrap()))),
        (
            "everything in Parquet",
            Box::new(move |dir| Box::new(InParquet(LocalArchive::open(dir, options(1 << 20, true)).unwrap()))),
        ),
        ("both, as it happens", Box::new(move |dir| Box::new(LocalArchive::open(dir, options(1, true)).unwrap()))),
    ]
}

fn with_each(test: impl Fn(&Path, &Open)) {
    for (name, open) in archives() {
        let dir = support::dir();
        println!("with {name}");
        test(dir.path(), &open);
    }
}

/// Three processes, two streams each, 300 records, batches of several sizes, not in the order of their times.
fn fill(archive: &dyn Archive) -> Vec<LogRecord> {
    let mut records = Vec::new();
    let mut firsts = [[0; 2]; 3];
    for (batch, size) in [1u64, 7, 20, 22, 50].iter().cycle().take(15).enumerate() {
        let (process, stream) = (batch % 3, batch % 2);
        let first = records.len() as u64;
        let life = life(process as u32);
        let new: Vec<_> = (first..first + size).map(|number| record(life, stream as u32, number)).collect();
        append(archive, life, stream as u32, firsts[process][stream], &new).unwrap();
        firsts[process][stream] += 1;
        records.extend(new);
        if batch % 4 == 3 {
            flush(archive);
        }
    }
    flush(archive);
    records.iter_mut().for_each(|record| record.received = Some(Time(5 * SECOND)));
    records
}

#[test]
fn what_was_stored_is_found_in_order_also_after_reopening() {
    with_each(|dir, open| {
        let archive = open(dir);
        let mut records = fill(&*archive);
        records.sort_by_key(Cursor::of);
        assert_eq!(all(&*archive), records);
        drop(archive);

        let archive = open(dir);
        assert_eq!(all(&*archive), records);
        records.reverse();
        assert_eq!(search(&*archive, &Query { newest_first: true, ..Query::default() }), records);
        assert_eq!(archive.health().records, 300);
        assert_eq!(archive.health().faults, []);
    });
}

#[test]
fn offsets_are_those_of_what_is_stored() {
    with_each(|dir, open| {
        let archive = open(dir);
        assert_eq!(archive.offsets(), []);
        fill(&*archive);
        let mut before = archive.offsets();
        before.sort();
        // Fifteen batches over six streams.
        assert_eq!(before.iter().map(|offset| offset.next).sum::<u64>(), 15);
        drop(archive);
        let mut after = open(dir).offsets();
        after.sort();
        assert_eq!(after, before);
    });
}

#[test]
fn a_commit_is_told_and_covers_what_was_taken_before() {
    with_each(|dir, open| {
        let archive = open(dir);
        let (send, told) = std::sync::mpsc::channel();
        archive.on_commit(Box::new(move |ticket| {
            let _ = send.send(ticket);
        }));
        let taken = append(&*archive, life(1), 0, 0, &[record(life(1), 0, 0)]).unwrap();
        assert_eq!((taken.records, taken.duplicates), (1, 0));
        while told.recv_timeout(Duration::from_secs(20)).unwrap() < taken.ticket {}
        assert!(archive.committed() >= taken.ticket);
        assert_eq!(all(&*archive).len(), 1);
    });
}

fn meeting(expression: &str) -> Query {
    Query { expression: Some(expression.parse().unwrap()), ..Query::default() }
}

fn status(record: &LogRecord) -> &str {
    record.data.iter().find(|datum| datum.name == "status").map_or("", |datum| &datum.value)
}

#[test]
fn every_filter_keeps_exactly_what_it_says() {
    type Keep = fn(&LogRecord) -> bool;
    let field = |field, values: &[&str]| {
        let values = values.iter().map(|value| value.to_string()).collect();
        Query { fields: [(field, values)].into(), ..Query::default() }
    };
    let words = |words: &[&str]| Query { words: words.iter().map(|word| word.to_string()).collect(), ..Query::default() };
    let mut several = field(Field::Process, &["*dv01"]);
    several.min_level = Some(Level::Error);
    several.words = vec!["antenna".into()];
    several.since = Some(Time(100 * SECOND));
    let cases: Vec<(Query, Keep)> = vec![
        (Query { since: Some(Time(50 * SECOND)), ..Query::default() }, |r| r.time.0 >= 50 * SECOND),
        (Query { until: Some(Time(50 * SECOND)), ..Query::default() }, |r| r.time.0 < 50 * SECOND),
        (Query { min_level: Some(Level::Warning), ..Query::default() }, |r| r.level >= Level::Warning),
        (Query { levels: vec![Level::Debug, Level::Alert], ..Query::default() }, |r| {
            matches!(r.level, Level::Debug | Level::Alert)
        }),
        (Query { audiences: vec!["operator".into()], ..Query::default() }, |_| true),
        (Query { audiences: vec!["SciLog".into()], ..Query::default() }, |r| r.audiences.is_empty()),
        (field(Field::Process, &["control/dv01"]), |r| r.process == "CONTROL/DV01"),
        (field(Field::Process, &["*01", "*02"]), |r| r.process != "CONTROL/DV00"),
        (field(Field::Routine, &["?etPosition"]), |_| true),
        (field(Field::Routine, &["setposition"]), |r| r.routine == "setPosition"),
        (field(Field::StackId, &["stack-1?"]), |r| r.stack_id.starts_with("stack-1") && r.stack_id.len() == 8),
        (field(Field::RunId, &["*x*"]), |_| false),
        (words(&["POSITION", "antenna"]), |_| true),
        (words(&["antenna 3"]), |r| r.message.contains("antenna 3") || r.message.ends_with(" 3")),
        (words(&["posit"]), |_| false),
        (words(&["tracking"]), |r| !r.data.is_empty()),
        (Query { text: Some("POSITION 12".into()), ..Query::default() }, |r| r.message.contains("position 12")),
        (Query { text: Some("step27".into()), ..Query::default() }, |r| r.data.iter().any(|d| d.value.contains("step27"))),
        (Query { regex: Some("position 1[0-4]$".into()), ..Query::default() }, |r| (10..15).contains(&r.id.unwrap().number)),
        (Query { regex: Some("^antenna 6".into()), ..Query::default() }, |r| r.message.starts_with("antenna 6")),
        (Query { regex: Some("Antenna".into()), ..Query::default() }, |_| false),
        // An expression needs whole records, also of blocks that other queries read by columns.
        (meeting("status = *step9 or routine = getposition"), |r| status(r) == "Tracking step9" || r.routine == "getPosition"),
        (meeting("not status and level >= Warning"), |r| status(r).is_empty() && r.level >= Level::Warning),
        (meeting("status > 3"), |_| false),
        (several, |r| r.process == "CONTROL/DV01" && r.level >= Level::Error && r.time.0 >= 100 * SECOND),
    ];
    with_each(|dir, open| {
        let archive = open(dir);
        let mut records = fill(&*archive);
        records.sort_by_key(Cursor::of);
        for (query, keep) in &cases {
            let expected: Vec<_> = records.iter().filter(|record| keep(record)).cloned().collect();
            let found = search(&*archive, query);
            assert_eq!(found.len(), expected.len(), "{query:?}");
            assert_eq!(found, expected, "{query:?}");
            let by = Grouping { level: true, ..Grouping::default() };
            let counts = archive.count(query, &by, &Stop::default()).unwrap();
            assert_eq!(counts.total, expected.len() as u64, "{query:?}");
            assert!(counts.complete);
        }
    });
}

#[test]
fn pages_joined_are_the_whole_in_both_directions() {
    with_each(|dir, open| {
        let archive = open(dir);
        fill(&*archive);
        for newest_first in [false, true] {
            let whole = search(&*archive, &Query { newest_first, ..Query::default() });
            for limit in [1, 7, 100, 1000] {
                let mut query = Query { newest_first, limit: Some(limit), ..Query::default() };
                let mut joined = Vec::new();
                loop {
                    let mut count = 0;
                    let scanned = archive
                        .search(&query, &Stop::default(), &mut |found| {
                            joined.push(found.record.clone());
                            count += 1;
                            true
                        })
                        .unwrap();
                    assert_eq!(scanned.found, count);
                    assert!(count <= limit);
                    if count == 0 {
                        break;
                    }
                    query.after = scanned.cursor;
                }
                assert_eq!(joined, whole, "{newest_first} {limit}");
            }
        }
    });
}

#[test]
fn the_newest_are_found_without_reading_the_rest() {
    with_each(|dir, open| {
        let archive = open(dir);
        for number in 0..100 {
            append(&*archive, life(1), 0, number, &[record(life(1), 0, number)]).unwrap();
            flush(&*archive);
        }
        let query = Query { newest_first: true, limit: Some(3), ..Query::default() };
        let mut numbers = Vec::new();
        let mut sink = |found: tampu_archive::Found<'_>| {
            numbers.push(found.record.id.unwrap().number);
            true
        };
        let scanned = archive.search(&query, &Stop::default(), &mut sink).unwrap();
        assert_eq!(numbers, [99, 98, 97]);
        assert!(scanned.frames <= 10, "{scanned:?}");
        let query = Query { since: Some(Time(10 * SECOND)), until: Some(Time(12 * SECOND)), ..Query::default() };
        let scanned = archive.search(&query, &Stop::default(), &mut |_| true).unwrap();
        assert_eq!((scanned.found, scanned.complete), (2, true));
        assert!(scanned.frames <= 2, "{scanned:?}");
    });
}

#[test]
fn a_search_ends_when_it_is_stopped_or_its_reader_leaves() {
    with_each(|dir, open| {
        let archive = open(dir);
        fill(&*archive);
        let stop = Stop::default();
        let mut seen = 0;
        let scanned = archive
            .search(&Query::default(), &stop, &mut |_| {
                seen += 1;
                stop.stop();
                true
            })
            .unwrap();
        assert_eq!((seen, scanned.complete), (1, false));
        let scanned = archive.search(&Query::default(), &Stop::default(), &mut |_| false).unwrap();
        assert_eq!((scanned.found, scanned.complete), (1, false));
        assert!(!archive.count(&Query::default(), &Grouping::default(), &stop).unwrap().complete);
    });
}

#[test]
fn a_search_that_ran_out_of_time_goes_on_where_it_ended_also_without_a_match() {
    with_each(|dir, open| {
        let archive = open(dir);
        let life = life(1);
        let records: Vec<_> = (0..300).map(|number| record(life, 0, number)).collect();
        for (batch, some) in records.chunks(5).enumerate() {
            append(&*archive, life, 0, batch as u64, some).unwrap();
            if batch % 10 == 9 {
                flush(&*archive);
            }
        }
        for newest_first in [true, false] {
            // One record, at the far end of the order. No index knows the end of a text.
            let rare = if newest_first { "step3$" } else { "step297$" };
            let rare = Query { newest_first, regex: Some(rare.to_owned()), ..Query::default() };
            let everything = Query { newest_first, ..Query::default() };
            in_pieces(&*archive, &everything, 300);
            let advanced = (0..1000).any(|_| in_pieces(&*archive, &rare, 1) > 0);
            assert!(advanced, "no search advanced without a match");
        }
    });
}

/// Searches with times that are too short at first, each from the cursor of the one before. Returns the number of searches
/// that advanced without a match.
fn in_pieces(archive: &dyn Archive, query: &Query, expected: usize) -> usize {
    let mut query = query.clone();
    let (mut found, mut without_a_match) = (Vec::new(), 0);
    for time in 0.. {
        let stop = Stop::after(Duration::from_micros(10 * time));
        let scanned = archive
            .search(&query, &stop, &mut |one| {
                found.push(Cursor::of(one.record));
                true
            })
            .unwrap();
        if scanned.complete {
            break;
        }
        let (before, after) = (query.after, scanned.cursor.or(query.after));
        let in_order = |one: Cursor, other: Cursor| if query.newest_first { one >= other } else { one <= other };
        assert!(before.is_none_or(|before| in_order(before, after.unwrap())), "{before:?} {after:?}");
        without_a_match += usize::from(scanned.found == 0 && before != after);
        query.after = after;
    }
    assert_eq!(found.len(), expected);
    assert!(found.windows(2).all(|two| if query.newest_first { two[0] > two[1] } else { two[0] < two[1] }));
    without_a_match
}

#[test]
fn counts_are_those_of_the_records() {
    with_each(|dir, open| {
        let archive = open(dir);
        let records = fill(&*archive);
        let by = Grouping { level: true, field: Some(Field::Process), every_s: Some(60), every_ns: None };
        let counts = archive.count(&Query::default(), &by, &Stop::default()).unwrap();
        assert_eq!(counts.total, 300);
        assert_eq!(counts.rows.iter().map(|row| row.count).sum::<u64>(), 300);
        for row in &counts.rows {
            let minute = row.time.unwrap().0;
            let same = |record: &&LogRecord| {
                Some(record.level) == row.level
                    && Some(&record.process) == row.value.as_ref()
                    && (minute..minute + 60 * SECOND).contains(&record.time.0)
            };
            assert_eq!(records.iter().filter(same).count() as u64, row.count, "{row:?}");
        }
        let by_stack = Grouping { field: Some(Field::StackId), ..Grouping::default() };
        let counts = archive.count(&Query::default(), &by_stack, &Stop::default()).unwrap();
        assert_eq!(counts.rows.len(), 31);
    });
}

/// Records of two places, of one place with two spellings, and of texts without a place.
fn of_places(number: u64) -> LogRecord {
    let of = record(life(number as u32 % 3), 0, number);
    let place = |file: &str, line: Option<u32>, routine: &str, message: String| LogRecord {
        level: if number.is_multiple_of(10) { Level::Warning } else { Level::Info },
        file: file.to_owned(),
        line,
        routine: routine.to_owned(),
        message,
        ..of.clone()
    };
    match number % 5 {
        0 => place("src/Mount.rs", Some(7), "step", format!("moved to {number} \"mm\"")),
        1 => place(if number.is_multiple_of(2) { "src/mount.rs" } else { "SRC/mount.rs" }, Some(8), "", "any text".to_owned()),
        2 => place("", Some(8), "", format!("antenna 'DV{number}' is at {number}.5 deg")),
        3 => place("src/mount.rs", None, "", format!("antenna DV is at -{number} deg")),
        _ => place("", None, "7*", ["odd", "even"][(number % 2) as usize].to_owned()),
    }
}

#[test]
fn patterns_are_the_records_that_meet_their_conditions() {
    with_each(|dir, open| {
        let archive = open(dir);
        for batch in 0..10 {
            let records: Vec<_> = (batch * 30..batch * 30 + 30).map(of_places).collect();
            append(&*archive, life(1), 0, batch, &records).unwrap();
            if batch % 4 == 3 {
                flush(&*archive);
            }
        }
        flush(&*archive);
        let wanted = PatternsWanted { limit: 100, bins: 10 };
        let found = archive.patterns(&Query::default(), &wanted, &Stop::default()).unwrap();
        assert_eq!((found.total, found.others, found.exact, found.complete), (300, 0, true, true));
        // Places of numbers that ten divides have two levels; the texts of the last kind are two.
        assert_eq!((found.known, found.patterns.len()), (7, 7), "{found:#?}");
        assert!(found.patterns.is_sorted_by(|a, b| a.count >= b.count));
        for pattern in &found.patterns {
            let condition = pattern.condition.as_deref().unwrap();
            let query = Query { expression: Some(condition.parse().unwrap()), ..Query::default() };
            let records = search(&*archive, &query);
            assert_eq!(records.len() as u64, pattern.count, "{condition}");
            assert_eq!(pattern.bins.iter().sum::<u64>(), pattern.count);
            let newest = records.last().unwrap();
            assert_eq!((&newest.message, newest.time), (&pattern.message, pattern.latest));
            let sources: HashSet<&String> = records.iter().map(|record| &record.process).collect();
            assert_eq!(sources.len() as u64, pattern.sources);
            let again = archive.patterns(&query, &wanted, &Stop::default()).unwrap();
            assert_eq!((again.known, again.total), (1, pattern.count), "{condition}");
        }
        let of_range = Query { since: Some(Time(100 * SECOND)), until: Some(Time(200 * SECOND)), ..Query::default() };
        let ranged = archive.patterns(&of_range, &PatternsWanted { limit: 1, bins: 4 }, &Stop::default()).unwrap();
        assert_eq!((ranged.total, ranged.since, ranged.every_ns), (100, Time(100 * SECOND), 25 * SECOND as u64));
        assert_eq!((ranged.patterns.len(), ranged.others + ranged.patterns[0].count), (1, 100));
        assert!(ranged.patterns[0].bins.iter().all(|bin| *bin > 0), "{ranged:?}");
        let stop = Stop::default();
        stop.stop();
        assert!(!archive.patterns(&Query::default(), &wanted, &stop).unwrap().complete);
    });
}

#[test]
fn what_is_no_batch_is_refused_and_nothing_of_it_kept() {
    with_each(|dir, open| {
        let archive = open(dir);
        let good = encode_records(&[record(life(1), 0, 0)]).unwrap();
        let header = header(life(1), 0, 0, 2);
        let samples: [&[u8]; 2] = [&good, b"no batch at all"];
        let arrival = Arrival::of_stream(&header, &samples, Time(0));
        assert!(matches!(archive.append(&arrival), Err(ArchiveError::Undecodable { sample: 1, .. })));
        assert!(archive.append(&Arrival::of_stream(&header, &[&good, &[]], Time(0))).is_err());
        flush(&*archive);
        assert_eq!(all(&*archive), []);
        // The stream can be advanced past the undecodable sample.
        archive.append(&Arrival { samples: &[], ..arrival }).unwrap();
        flush(&*archive);
        assert_eq!(archive.offsets(), [StreamOffset { incarnation: life(1), stream: 0, next: 2 }]);
    });
}

#[test]
fn a_record_about_a_gap_advances_the_stream_that_has_it() {
    with_each(|dir, open| {
        let archive = open(dir);
        let (collector, writer) = (life(9), life(1));
        let sample = encode_records(&[record(collector, 0, 0)]).unwrap();
        let header = header(collector, u32::MAX, 0, 1);
        let offset = StreamOffset { incarnation: writer, stream: 3, next: 17 };
        let arrival = Arrival { header: &header, samples: &[&sample], received: Time(0), advances: Some(offset) };
        assert_eq!(archive.append(&arrival).unwrap().records, 1);
        flush(&*archive);
        assert_eq!(archive.append(&arrival).unwrap().duplicates, 1);
        assert_eq!(archive.offsets(), [offset]);
        drop(archive);
        assert_eq!(open(dir).offsets(), [offset]);
    });
}

#[test]
fn records_without_an_id_are_all_kept() {
    with_each(|dir, open| {
        let archive = open(dir);
        let mut anonymous = record(life(1), 0, 0);
        anonymous.id = None;
        append(&*archive, life(1), 0, 0, &[anonymous.clone(), anonymous.clone()]).unwrap();
        append(&*archive, life(1), 0, 1, &[anonymous]).unwrap();
        flush(&*archive);
        assert_eq!(all(&*archive).len(), 3);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Batches of any ids, repeated in any way, also by another stream, also after reopening: each id is there once.
    #[test]
    fn each_id_is_kept_once(
        batches in proptest::collection::vec(
            (0u32..3, proptest::collection::vec((0u32..2, 0u64..40), 1..12), 0u32..3, any::<bool>()), 1..25),
    ) {
        for (_, open) in archives() {
            let dir = support::dir();
            let mut archive = open(dir.path());
            let mut expected = HashSet::new();
            let mut nexts = [0u64; 3];
            for (pid, numbers, stream, reopen) in &batches {
                // Life 0 stands for imported records.
                let incarnation = if *pid == 0 { Incarnation::default() } else { life(*pid) };
                let records: Vec<_> = numbers.iter().map(|&(ring, number)| record(incarnation, ring, number)).collect();
                let new = records.iter().filter(|record| expected.insert(record.id.unwrap())).count() as u64;
                let next = &mut nexts[*stream as usize];
                let taken = append(&*archive, life(8), *stream, *next, &records).unwrap();
                *next += 1;
                prop_assert_eq!((taken.records, taken.duplicates), (new, records.len() as u64 - new));
                // The same sample again, as after a lost acknowledgement.
                let again = append(&*archive, life(8), *stream, *next - 1, &records).unwrap();
                prop_assert_eq!((again.records, again.duplicates), (0, records.len() as u64));
                if *reopen {
                    flush(&*archive);
                    drop(archive);
                    archive = open(dir.path());
                }
            }
            flush(&*archive);
            let mut expected: Vec<RecordId> = expected.into_iter().collect();
            expected.sort();
            prop_assert_eq!(ids(&*archive), expected);
        }
    }
}

/// The clock of a process is set while it logs: back by an hour, then forward by ten years.
#[test]
fn records_are_found_and_in_the_order_of_their_stream_whatever_their_clock_did() {
    const HOUR: i64 = 3600 * SECOND;
    let clock = |number: u64| match number {
        0..100 => 2 * HOUR + number as i64 * SECOND,
        100..200 => HOUR + number as i64 * SECOND,
        _ => 10 * 8766 * HOUR + number as i64 * SECOND,
    };
    with_each(|dir, open| {
        let archive = open(dir);
        for batch in 0..30 {
            let stepped = |number| LogRecord { time: Time(clock(number)), ..record(life(1), 0, number) };
            let records: Vec<_> = (batch * 10..batch * 10 + 10).map(stepped).collect();
            append(&*archive, life(1), 0, batch, &records).unwrap();
        }
        flush(&*archive);
        let numbers = |query: &Query| -> Vec<u64> {
            search(&*archive, query).into_iter().map(|record| record.id.unwrap().number).collect()
        };
        // Records sort by their own times; those of one clock setting keep the order in which they were logged.
        let by_time: Vec<u64> = (100..200).chain(0..100).chain(200..300).collect();
        assert_eq!(numbers(&Query::default()), by_time);
        let since = |from, to| Query { since: Some(Time(from)), until: Some(Time(to)), ..Query::default() };
        assert_eq!(numbers(&since(HOUR, 2 * HOUR)), (100..200).collect::<Vec<_>>());
        assert_eq!(numbers(&since(2 * HOUR, 3 * HOUR)), (0..100).collect::<Vec<_>>());
        assert_eq!(numbers(&since(3 * HOUR, i64::MAX)), (200..300).collect::<Vec<_>>());
        assert_eq!(numbers(&Query { newest_first: true, limit: Some(1), ..Query::default() }), [299]);
    });
}

#[test]
fn a_source_is_the_component_or_else_the_process() {
    with_each(|dir, open| {
        let archive = open(dir);
        let mut records = fill(&*archive);
        let of_component = |number: u64| LogRecord {
            source_object: ["CONTROL/DV01/Mount", "CONTROL/DV02"][(number % 2) as usize].to_owned(),
            received: Some(Time(5 * SECOND)),
            ..record(life(1), 7, number)
        };
        let new: Vec<_> = (0..40).map(of_component).collect();
        append(&*archive, life(1), 9, 0, &new).unwrap();
        flush(&*archive);
        records.extend(new);
        records.sort_by_key(Cursor::of);
        for sources in [&["control/dv01"][..], &["*/mount"], &["CONTROL/DV02"], &["CONTROL/DV0?", "nobody"], &["nobody"], &["*"]]
        {
            let query = Query { sources: sources.iter().map(|source| source.to_string()).collect(), ..Query::default() };
            let matcher = query.compile().unwrap();
            let wanted = |record: &&LogRecord| {
                let bytes = encode_records(std::slice::from_ref(*record)).unwrap();
                let view = tampu_types::log_batch::LogBatchView::parse(&bytes).unwrap();
                view.records().flatten().all(|record| matcher.wants(&record))
            };
            let expected: Vec<LogRecord> = records.iter().filter(wanted).cloned().collect();
            let by_hand = |record: &LogRecord| {
                if record.source_object.is_empty() {
                    record.process == "CONTROL/DV01"
                } else {
                    record.source_object == "CONTROL/DV01"
                }
            };
            if sources == ["control/dv01"] {
                assert_eq!(expected, records.iter().filter(|record| by_hand(record)).cloned().collect::<Vec<_>>());
                assert!(!expected.is_empty());
            }
            assert_eq!(search(&*archive, &query), expected, "{sources:?}");
            let counted = archive.count(&query, &Grouping::default(), &Stop::default()).unwrap();
            assert_eq!(counted.total, expected.len() as u64, "{sources:?}");
        }
    });
}
