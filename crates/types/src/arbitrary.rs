//! Records for property tests: any record that a program could make, including unusual ones.

use proptest::{collection::vec, option, prelude::*};

use crate::{
    identity::{Incarnation, RecordId},
    level::Level,
    record::{ArchiveParameter, Datum, LogRecord},
    time::Time,
};

/// Text as found in logs, with a good share of characters that break writers.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-zA-Z0-9 :/.()_-]{0,24}",
        1 => "\\PC{0,12}",
        1 => vec(prop_oneof![
            Just("]]>"), Just("<![CDATA["), Just("&amp;"), Just("&"), Just("<"), Just(">"), Just("\""), Just("'"), Just("\r"),
            Just("\n"), Just("\t"), Just(" "), Just("\\"), Just("\0"), Just("\u{1b}"), Just("\u{fffe}"), Just("\u{85}"), Just("é"),
            Just("N/A"), Just(","), Just("</Info>"), Just("<Info TimeStamp=\"2000-01-01T00:00:00.000\">"), Just("\\x41"), Just("x"),
        ], 0..6).prop_map(|parts| parts.concat()),
    ]
}

/// Text that is often the same.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 3 => "[ab]{1,2}", 1 => text()]
}

fn data(name: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<Datum>> {
    vec((name, prop_oneof![text(), Just("N/A".to_owned()), Just(String::new())]), 0..4)
        .prop_map(|data| data.into_iter().map(|(name, value)| Datum { name, value }).collect())
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-zA-Z]{1,6}",
        1 => prop_oneof![Just("logName".to_owned()), Just("Line".to_owned()), Just("URI".to_owned()), Just("x:y".to_owned())],
        1 => text(),
    ]
}

fn id() -> impl Strategy<Value = RecordId> {
    (0u32..3, 0u32..2, any::<u64>(), any::<u32>(), any::<u64>()).prop_map(|(boot, pid, start, ring, number)| RecordId {
        incarnation: Incarnation { boot, pid, start: start % 3 },
        ring,
        number,
    })
}

/// A record with arbitrary values in every field.
pub fn record() -> impl Strategy<Value = LogRecord> {
    let times = (any::<i64>(), option::of(any::<i64>()), option::of(id()));
    let gravity = (0usize..10, option::weighted(0.2, any::<u8>()));
    let place = (word(), word(), option::of(any::<u32>()), word(), word(), word(), word(), word(), word());
    let whom = (vec("[a-zA-Z, ]{1,8}", 0..3), word(), word(), word(), option::of(any::<i32>()), word(), word(), word());
    let traces = (option::weighted(0.2, any::<[u8; 16]>()), option::weighted(0.2, any::<[u8; 8]>()));
    let archive = option::weighted(0.2, (word(), word(), word()));
    let rest = (text(), data(names()), archive, data(names()));
    (times, gravity, place, whom, traces, rest).prop_map(|(times, gravity, place, whom, traces, rest)| {
        let (logger, file, line, routine, host, process, thread, context, source_object) = place;
        let (audiences, array, antenna, stack_id, stack_level, log_id, uri, run_id) = whom;
        let level = Level::ALL[gravity.0];
        LogRecord {
            id: times.2,
            time: Time(times.0),
            received: times.1.map(Time),
            level,
            priority: gravity.1.filter(|&priority| priority != level.number()),
            message: rest.0,
            logger,
            file,
            line,
            routine,
            host,
            process,
            thread,
            context,
            source_object,
            audiences,
            array,
            antenna,
            stack_id,
            stack_level,
            log_id,
            uri,
            run_id,
            trace_id: traces.0,
            span_id: traces.1,
            data: rest.1,
            archive: rest.2.map(|(object, parameter, r#type)| ArchiveParameter { object, parameter, r#type }),
            attributes: rest.3,
            unknown: Vec::new(),
            unknown_origin: Vec::new(),
        }
    })
}
