use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{Incarnation, Level, RecordId, Time, arbitrary, record::Datum};

fn read(bytes: &[u8]) -> Vec<LogRecord> {
    decode_records(bytes).unwrap()
}

#[test]
fn what_repeats_is_written_once() {
    let mut builder = LogBatchBuilder::new();
    let parts = OriginParts {
        incarnation: Some(Incarnation { boot: 1, pid: 2, start: 3 }),
        logger: "alma.mount",
        host: "te1",
        context: "te1",
        audiences: &["Operator", "Developer"],
        ..OriginParts::default()
    };
    let origin = builder.origin(&parts);
    assert_eq!(builder.origin(&parts), origin);
    let record = RecordParts { message: "m", ..RecordParts::default() };
    builder.push(origin, &record, [("angle", "1")]).unwrap();
    let one = builder.len();
    builder.push(origin, &RecordParts { number: 1, ..record }, [("angle", "2")]).unwrap();
    assert_eq!(builder.len() - one, 60);
    let bytes = builder.finish();
    for text in ["alma.mount", "te1", "angle", "Operator"] {
        assert_eq!(bytes.windows(text.len()).filter(|part| *part == text.as_bytes()).count(), 1, "{text}");
    }
    let view = LogBatchView::parse(&bytes).unwrap();
    let [first, second] = view.records().map(Result::unwrap).collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(first.origin().index(), second.origin().index());
    assert_eq!(second.id().unwrap().to_string(), "00000001-00000002-0000000000000003.0.1");
    assert_eq!(first.origin().audiences().collect::<Vec<_>>(), ["Operator", "Developer"]);
    assert_eq!(second.data().collect::<Vec<_>>(), [("angle", "2")]);
}

#[test]
fn an_origin_stays_known_over_batches_and_its_age_is_told() {
    let mut builder = LogBatchBuilder::new();
    let origin = builder.origin(&OriginParts { logger: "a", ..OriginParts::default() });
    for number in 0..3 {
        builder.push(origin, &RecordParts { number, ..RecordParts::default() }, []).unwrap();
        let batch = builder.finish();
        assert_eq!(LogBatchView::parse(&batch).unwrap().records().next().unwrap().unwrap().origin().logger(), "a");
        assert!(builder.is_empty());
    }
    // More texts than a builder remembers: it forgets at the next reset, and returns an error instead of naming a wrong
    // origin.
    let long = "x".repeat(9 << 20);
    builder.origin(&OriginParts { logger: &long, ..OriginParts::default() });
    builder.push(origin, &RecordParts::default(), []).unwrap();
    builder.reset();
    assert_eq!(builder.push(origin, &RecordParts::default(), []), Err(PushError::StaleOrigin));
    assert_eq!(LogBatchBuilder::new().push(origin, &RecordParts::default(), []), Err(PushError::StaleOrigin));
}

#[test]
fn tables_that_repeat_are_decoded_once() {
    let batch = |logger: &str, message: &str| {
        encode_records(&[LogRecord { logger: logger.to_owned(), ..LogRecord::new(Level::Info, message) }]).unwrap()
    };
    // Messages of all lengths: padding before the tables is no part of them.
    let batches: Vec<Vec<u8>> = (0..20).map(|length| batch(if length < 10 { "a" } else { "b" }, &"x".repeat(length))).collect();
    let mut sequence = BatchSequence::default();
    for (length, bytes) in batches.iter().enumerate() {
        let view = sequence.parse(bytes).unwrap();
        let record = view.records().next().unwrap().unwrap();
        assert_eq!((record.origin().logger(), record.message().len()), (if length < 10 { "a" } else { "b" }, length));
    }
    assert_eq!(sequence.decoded(), 2);
    assert!(sequence.parse(&[]).is_err() && sequence.parse(&batches[19]).is_ok());
}

#[test]
fn equal_bytes_that_align_otherwise_are_other_tables() {
    // The tables of both begin with the same bytes behind the records, but at another multiple of 4.
    let plain = encode_records(&[LogRecord::new(Level::Info, "abc")]).unwrap();
    let moved = |cut| {
        let mut moved = plain.clone();
        moved.insert(cut, 0);
        moved
    };
    let all: Vec<Vec<u8>> = (0..plain.len()).map(moved).collect();
    let mut sequence = BatchSequence::default();
    for (cut, moved) in all.iter().enumerate() {
        sequence.parse(&plain).unwrap();
        assert_eq!(sequence.parse(moved).is_ok(), LogBatchView::parse(moved).is_ok(), "{cut}");
    }
}

#[test]
fn batches_with_the_tables_of_the_batch_before_are_those_of_a_new_builder() {
    let mut builder = LogBatchBuilder::new();
    let names = ["a", "b"];
    let origins = names.map(|logger| builder.origin(&OriginParts { logger, host: "h", ..OriginParts::default() }));
    // For each batch the origins of its records, and whether a record has a value with a name.
    let plan: [(&[usize], bool); 12] = [
        (&[0], false),
        (&[0], false),
        (&[], false),
        (&[0], true),
        (&[0], false),
        (&[1], false),
        (&[1, 0], false),
        (&[0], false),
        (&[0, 0], false),
        (&[0, 1], true),
        (&[], false),
        (&[0], false),
    ];
    for (number, (of, named)) in plan.into_iter().enumerate() {
        let mut fresh = LogBatchBuilder::new();
        let record = RecordParts { number: number as u64, message: "m", ..RecordParts::default() };
        let value = named.then_some(("name", "1"));
        for &which in of {
            builder.push(origins[which], &record, value).unwrap();
            fresh.append(&OriginParts { logger: names[which], host: "h", ..OriginParts::default() }, &record, value).unwrap();
        }
        assert_eq!((builder.len(), builder.is_empty()), (fresh.len(), of.is_empty()), "{number}");
        assert_eq!(builder.finish(), fresh.finish(), "{number}");
    }
}

#[test]
fn a_batch_beyond_its_bound_is_refused_and_stays_whole() {
    let mut builder = LogBatchBuilder::with_limit(10_000);
    let large = LogRecord::new(Level::Info, "x".repeat(6_000));
    builder.push_record(&large).unwrap();
    let length = builder.len();
    assert!(matches!(builder.push_record(&large), Err(PushError::Full { record: 1, .. })));
    assert_eq!((builder.len(), builder.count()), (length, 1));
    assert_eq!(builder.seal().len(), length);
}

#[test]
fn sealing_does_not_end_a_batch() {
    let mut builder = LogBatchBuilder::new();
    builder.push_record(&LogRecord::new(Level::Info, "one")).unwrap();
    assert_eq!(read(builder.seal()).len(), 1);
    builder.push_record(&LogRecord::new(Level::Error, "two")).unwrap();
    let two = builder.seal().to_vec();
    assert_eq!(builder.seal(), two);
    assert_eq!(read(&two).iter().map(|record| &*record.message).collect::<Vec<_>>(), ["one", "two"]);
}

#[test]
fn seven_is_read_as_error_and_kept() {
    let mut bytes = encode_records(&[LogRecord::new(Level::Error, "")]).unwrap();
    let level = 16 + 28;
    assert_eq!(bytes[level], 8);
    bytes[level] = 7;
    let record = &read(&bytes)[0];
    assert_eq!((record.level, record.priority), (Level::Error, Some(7)));
    let again = encode_records(std::slice::from_ref(record)).unwrap();
    assert_eq!(&read(&again)[0], record);
    bytes[level] = 12;
    assert_eq!(decode_records(&bytes).unwrap_err().to_string(), "at byte 45: a number that is not a level (1 to 11)");
}

#[test]
fn a_bad_record_does_not_hide_the_next() {
    let records = ["one", "two", "three"].map(|text| LogRecord::new(Level::Info, text));
    let mut bytes = encode_records(&records).unwrap();
    let at = bytes.windows(3).position(|part| part == b"two").unwrap();
    bytes[at] = 0xff;
    let view = LogBatchView::parse(&bytes).unwrap();
    let read: Vec<_> = view.records().map(|record| record.map(|record| record.message().to_owned())).collect();
    assert_eq!((&read[0], &read[2]), (&Ok("one".to_owned()), &Ok("three".to_owned())));
    assert_eq!(read[1], Err(BadCdr { at, what: "a string is not UTF-8" }));
}

#[test]
fn members_of_a_later_release_are_carried_on() {
    let mut record = LogRecord::new(Level::Notice, "from the future");
    record.data.push(Datum::new("odd", "12345"));
    record.unknown = vec![1, 2, 3];
    record.unknown_origin = vec![4, 5, 6, 7, 8];
    let records = [record, LogRecord::new(Level::Info, "of today")];
    let bytes = encode_records(&records).unwrap();
    assert_eq!(read(&bytes), records);
    assert_eq!(encode_records(&read(&bytes)).unwrap(), bytes);
}

#[test]
fn what_a_batch_claims_does_not_make_us_allocate() {
    // Counts of four thousand million in every table of an otherwise empty batch.
    let empty = LogBatchBuilder::new().finish();
    assert_eq!(empty.len(), 40);
    for count in [12, 20, 28, 36] {
        let mut bytes = empty.clone();
        bytes[count..count + 4].fill(0xff);
        let error = LogBatchView::parse(&bytes).unwrap_err();
        assert_eq!(error, BadCdr { at: count, what: "more elements are announced than there are bytes for" });
    }
}

#[test]
fn a_short_batch_does_not_become_long_records() {
    // One text of 1 MiB, named by each of 200 records: a batch of little more than that, records of 200 times.
    let long = "x".repeat(1 << 20);
    let mut records = vec![LogRecord { context: long.clone(), ..LogRecord::default() }; 200];
    let bytes = encode_records(&records).unwrap();
    assert!(bytes.len() < (1 << 20) + 20_000);
    assert_eq!(decode_records(&bytes).unwrap_err().what, "the records take more than 64 times the batch");
    assert_eq!(LogBatchView::parse(&bytes).unwrap().records().filter(Result::is_ok).count(), 200);

    records.truncate(1);
    records[0].data = vec![Datum::new(&long[..], ""); 65];
    let bytes = encode_records(&records).unwrap();
    assert_eq!(decode_records(&bytes).unwrap_err().what, "the names of a record's data take more than 64 MiB");
    records[0] = LogRecord { audiences: vec![long; 65], ..LogRecord::default() };
    let bytes = encode_records(&records).unwrap();
    assert_eq!(LogBatchView::parse(&bytes).unwrap_err().what, "an origin's texts take more than 64 MiB");
}

#[test]
fn indexes_outside_their_tables_are_errors() {
    let mut record = LogRecord::new(Level::Info, "");
    record.id = Some(RecordId { incarnation: Incarnation { boot: 9, pid: 9, start: 9 }, ring: 0, number: 0 });
    record.logger = "l".into();
    record.audiences = vec!["a".into()];
    record.data = vec![Datum::new("n", "v")];
    let bytes = encode_records(&[record]).unwrap();
    // Every place of the small numbers 0 to 3, tried as an index.
    let mut told = std::collections::BTreeSet::new();
    for at in (16..bytes.len() - 3).step_by(4) {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&77u32.to_le_bytes());
        if let Err(error) = decode_records(&bytes) {
            told.insert(error.what);
        }
    }
    for what in [
        "a record's origin is not in the table",
        "an origin's incarnation is not in the table",
        "a string's index is not in the table",
        "a name's index is not in the table",
    ] {
        assert!(told.contains(what), "{what}: {told:?}");
    }
}

proptest! {
    #[test]
    fn records_lead_back(records in vec(arbitrary::record(), 0..8)) {
        let bytes = encode_records(&records).unwrap();
        prop_assert_eq!(read(&bytes), records);
    }

    #[test]
    fn the_length_is_known_before_sealing(records in vec(arbitrary::record(), 0..8)) {
        let mut builder = LogBatchBuilder::new();
        for record in &records {
            builder.push_record(record).unwrap();
        }
        let length = builder.len();
        prop_assert_eq!(builder.seal().len(), length);
        prop_assert_eq!(builder.len(), length);
    }

    #[test]
    fn garbled_batches_are_errors_never_panics(
        records in vec(arbitrary::record(), 1..4), changes in vec((any::<usize>(), any::<u8>()), 1..8), cut in any::<usize>()
    ) {
        let mut bytes = encode_records(&records).unwrap();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - cut % 16);
        if let Ok(view) = LogBatchView::parse(&bytes) {
            for record in view.records().flatten() {
                record.to_record();
            }
        }
    }

    #[test]
    fn batches_in_sequence_are_read_as_each_alone(
        records in vec(arbitrary::record(), 1..4), order in vec((any::<usize>(), "[a-z]{0,5}"), 1..12),
        change in any::<Option<(usize, usize, u8)>>(),
    ) {
        let mut batches: Vec<Vec<u8>> = order
            .iter()
            .map(|(which, message)| {
                let record = LogRecord { message: message.clone(), ..records[which % records.len()].clone() };
                encode_records(&[record]).unwrap()
            })
            .collect();
        if let Some((batch, at, byte)) = change {
            let batch = batch % batches.len();
            let at = at % batches[batch].len();
            batches[batch][at] = byte;
        }
        let records = |view: &LogBatchView<'_>| view.records().map(|record| record.map(|record| record.to_record())).collect::<Vec<_>>();
        let mut sequence = BatchSequence::default();
        for batch in &batches {
            let alone = LogBatchView::parse(batch).map(|view| (view.unknown().to_vec(), records(&view)));
            let found = sequence.parse(batch).map(|view| (view.unknown().to_vec(), records(view)));
            prop_assert_eq!(found, alone);
            if let Ok(view) = LogBatchView::parse(batch) {
                prop_assert_eq!(LogBatchView::claimed(batch), Ok(view.count()));
            }
        }
    }

    #[test]
    fn a_time_of_any_sign_is_kept(ns: i64) {
        let mut record = LogRecord::new(Level::Info, "");
        record.time = Time(ns);
        prop_assert_eq!(read(&encode_records(&[record.clone()]).unwrap()), [record]);
    }
}
