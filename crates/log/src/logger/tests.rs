//! Tests of the logger against a packet sink that the test controls.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use tampu_bus::Grade;
use tampu_types::{Domain, Level, LogRecord, Partition, SourceName, log_batch};

use crate::logger::{
    LogSettings, Logger, Threshold,
    packet_sink::{PacketSink, Refused},
    stream::StreamKey,
};

mod restrained;
mod when_kept;

/// Packets that were sent, and whether the sink accepts more.
#[derive(Default)]
struct Far {
    state: Mutex<FarState>,
    changed: Condvar,
}

#[derive(Default)]
struct FarState {
    packets: Vec<(StreamKey, bool, Vec<LogRecord>)>,
    /// Grades that callers waited for, by packet.
    awaited: Vec<Option<Grade>>,
    blocked: bool,
    unreachable: bool,
    /// Nobody is there to have packets.
    nobody: bool,
    /// Somebody is, and has acknowledged none.
    unacknowledged: bool,
    /// They are in that one's memory all the same.
    received: bool,
    /// Packets that nobody can get any more.
    lost: u64,
}

struct ToFar(Arc<Far>);

impl PacketSink for ToFar {
    fn publish(&mut self, stream: &StreamKey, urgent: bool, awaited: Option<Grade>, packet: &[u8]) -> Result<u64, Refused> {
        let state = self.0.state.lock().unwrap();
        let mut state = self.0.changed.wait_while(state, |state| state.blocked).unwrap();
        if state.unreachable {
            return Err(Refused::NotYet("no way".into()));
        }
        state.packets.push((stream.clone(), urgent, log_batch::decode_records(packet).unwrap()));
        state.awaited.push(awaited);
        self.0.changed.notify_all();
        Ok(state.packets.len() as u64 - 1)
    }

    fn delivered(&mut self, _lane: &StreamKey) -> Option<u64> {
        let state = self.0.state.lock().unwrap();
        (!state.nobody).then(|| if state.unacknowledged { 0 } else { u64::MAX })
    }

    fn flush(&mut self, _timeout: Duration) -> bool {
        true
    }

    fn published(&mut self) -> Vec<(StreamKey, u64)> {
        let state = self.0.state.lock().unwrap();
        state.packets.iter().enumerate().map(|(number, (stream, ..))| (stream.clone(), number as u64 + 1)).collect()
    }

    fn has_reached(&self, _lane: &StreamKey, _next: u64, grade: Grade) -> bool {
        let state = self.0.state.lock().unwrap();
        !state.nobody && (!state.unacknowledged || state.received && grade == Grade::Received)
    }

    fn lost(&self) -> u64 {
        self.0.state.lock().unwrap().lost
    }
}

impl Far {
    fn set(&self, change: impl FnOnce(&mut FarState)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits until this many packets have arrived.
    fn packets(&self, count: usize) -> Vec<(StreamKey, bool, Vec<LogRecord>)> {
        let state = self.state.lock().unwrap();
        let wait = |state: &mut FarState| state.packets.len() < count;
        let (state, late) = self.changed.wait_timeout_while(state, Duration::from_secs(20), wait).unwrap();
        assert!(!late.timed_out(), "only {} packets came", state.packets.len());
        state.packets.clone()
    }

    fn records(&self) -> Vec<LogRecord> {
        self.state.lock().unwrap().packets.iter().flat_map(|(_, _, records)| records.clone()).collect()
    }
}

fn logger(change: impl FnOnce(&mut LogSettings)) -> (Logger, Arc<Far>) {
    let far = Arc::new(Far::default());
    let mut settings = LogSettings::isolated(Domain::new("test").unwrap(), SourceName::new("CONTROL/DV01").unwrap());
    // No packet is sent by the passing of time unless a test requests it.
    settings.flush_period = Duration::from_secs(3600);
    change(&mut settings);
    (Logger::start(settings, Box::new(ToFar(far.clone()))).unwrap(), far)
}

#[test]
fn a_statement_becomes_a_record_with_all_it_says() {
    let (logger, far) = logger(|_| {});
    let mount = logger.named("mount").for_object("CONTROL/DV01/Mount").for_audiences(["Operator"]).in_context("scan 7");
    let angle = 269.9;
    crate::warning!(mount, "cable wrap at {angle} of {}", 270; axis = "az", angle = angle);
    assert!(mount.flush(Duration::from_secs(20)));

    let (stream, urgent, records) = far.packets(1).remove(0);
    assert_eq!((stream.level, stream.partition, urgent), (Level::Warning, Partition::of(["operator"]), false));
    let record = &records[0];
    assert_eq!(record.message, "cable wrap at 269.9 of 270");
    assert_eq!(
        record.data.iter().map(|datum| (&*datum.name, &*datum.value)).collect::<Vec<_>>(),
        [("axis", "az"), ("angle", "269.9")]
    );
    assert_eq!((&*record.logger, &*record.source_object, &*record.context), ("mount", "CONTROL/DV01/Mount", "scan 7"));
    assert_eq!(record.audiences, ["Operator"]);
    assert!(record.file.ends_with("tests.rs") && record.line.is_some(), "{record:?}");
    assert!(record.routine.ends_with("a_statement_becomes_a_record_with_all_it_says"), "{}", record.routine);
    assert_eq!(record.process, "CONTROL/DV01");
    assert!(!record.host.is_empty() && !record.thread.is_empty());
    assert!(record.time.0 > 1_700_000_000_000_000_000);
}

#[test]
fn ids_are_contiguous_in_each_ring() {
    let (logger, far) = logger(|settings| settings.packet_records = 7);
    let other = logger.named("other");
    for number in 0..50 {
        crate::info!(logger, "{number}");
        crate::debug!(other, "{number}");
    }
    drop((logger, other));
    let mut rings = std::collections::BTreeMap::<u32, Vec<u64>>::new();
    for record in far.records() {
        let id = record.id.unwrap();
        rings.entry(id.ring).or_default().push(id.number);
    }
    // One thread, one ring: both loggers' records are numbered in it.
    let [numbers] = &mut rings.into_values().collect::<Vec<_>>()[..] else { panic!("one ring") };
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..100), "{numbers:?}");
}

#[test]
fn a_full_packet_leaves_at_once_and_the_last_handle_sends_the_rest() {
    let (logger, far) = logger(|settings| settings.packet_records = 10);
    for number in 0..25 {
        crate::info!(logger, "{number}");
    }
    let sizes: Vec<usize> = far.packets(2).iter().map(|(_, _, records)| records.len()).collect();
    assert_eq!(sizes, [10, 10]);
    drop(logger);
    assert_eq!(far.packets(3)[2].2.len(), 5);
}

#[test]
fn an_immediate_record_waits_for_nobody() {
    let (logger, far) = logger(|_| {});
    crate::info!(logger, "can wait");
    crate::error!(logger, "cannot");
    let (stream, urgent, records) = far.packets(1).remove(0);
    assert_eq!((stream.level, urgent, records.len()), (Level::Error, true, 1));
}

#[test]
fn the_flush_period_bounds_the_wait() {
    let (logger, far) = logger(|settings| settings.flush_period = Duration::from_millis(1));
    for batch in 1..=3 {
        crate::info!(logger, "{batch}");
        assert_eq!(far.packets(batch).len(), batch);
    }
}

#[test]
fn disabled_levels_evaluate_nothing_and_levels_change_in_all_handles() {
    let (logger, far) = logger(|_| {});
    let clone = logger.clone();
    let fail = || -> i32 { panic!("evaluated") };
    crate::trace!(logger, "{}", fail(); value = fail());
    clone.set_central(Threshold::Off);
    crate::emergency!(logger, "unheard");
    clone.set_central(Threshold::From(Level::Trace));
    crate::trace!(logger, "heard");
    drop((logger, clone));
    assert_eq!(far.records().iter().map(|record| &*record.message).collect::<Vec<_>>(), ["heard"]);
}

#[test]
fn what_finds_no_room_is_counted_and_told() {
    let (logger, far) = logger(|settings| {
        settings.packet_records = 10;
        settings.ring_bytes = 8192;
        settings.full_wait = Duration::from_micros(10);
    });
    far.set(|state| state.blocked = true);
    for number in 0..1000 {
        crate::info!(logger, "record {number}");
    }
    let dropped = logger.stats().dropped;
    assert!(dropped > 0 && dropped < 1000);
    far.set(|state| state.blocked = false);
    assert!(logger.flush(Duration::from_secs(20)));
    drop(logger);

    let records = far.records();
    let (told, kept): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.message.contains("lost here"));
    assert_eq!(kept.len() as u64 + dropped, 1000);
    let lost: u64 = told.iter().map(|record| record.data[0].value.parse::<u64>().unwrap()).sum();
    assert_eq!(lost, dropped, "{told:?}");
    assert_eq!(told[0].level, Level::Warning);
    assert_eq!(told[0].data[1].name, "Info");
}

#[test]
fn nothing_is_lost_while_the_way_out_is_missing_for_a_while() {
    let (logger, far) = logger(|settings| settings.packet_records = 10);
    far.set(|state| state.unreachable = true);
    for number in 0..100 {
        crate::info!(logger, "record {number}");
    }
    far.set(|state| state.unreachable = false);
    drop(logger);
    assert_eq!(far.records().len(), 100);
}

#[test]
fn records_made_by_hand_keep_what_they_say() {
    let (logger, far) = logger(|_| {});
    let mut record = LogRecord::new(Level::Error, "correlator: no data");
    record.stack_id = "chain-1".into();
    record.stack_level = Some(2);
    record.audiences = vec!["SciLog".into()];
    record.host = "elsewhere".into();
    logger.record(record.clone());
    drop(logger);
    let (stream, _, records) = far.packets(1).remove(0);
    assert_eq!(stream.partition, Partition::of(["scilog"]));
    assert_eq!((&*records[0].stack_id, records[0].stack_level, &*records[0].host), ("chain-1", Some(2), "elsewhere"));
    assert_eq!(records[0].logger, "CONTROL/DV01");
    assert!(records[0].id.is_some());
}

#[test]
fn what_was_published_is_counted_by_level() {
    let (logger, _far) = logger(|_| {});
    crate::info!(logger, "one");
    crate::info!(logger, "two");
    crate::error!(logger, "three");
    logger.record(LogRecord::new(Level::Trace, "below what is published"));
    assert!(logger.flush(Duration::from_secs(20)));
    let stats = logger.stats();
    let mut by_level = [0; 10];
    (by_level[Level::Info.ordinal()], by_level[Level::Error.ordinal()]) = (2, 1);
    assert_eq!((stats.by_level, stats.published), (by_level, 3));
    assert!(stats.high_water > 0);
}

#[test]
fn a_record_longer_than_a_ring_goes_out_and_can_be_waited_for() {
    let (logger, far) = logger(|settings| {
        settings.ring_bytes = 8192;
        settings.queue_bytes = 1024;
    });
    crate::info!(logger, "{}", "x".repeat(10_000); scan = 7);
    assert!(logger.flush(Duration::from_secs(20)));
    let record = &far.records()[0];
    assert_eq!((record.message.len(), &*record.data[0].value, record.line.is_some()), (10_000, "7", true));
}

#[test]
fn a_trace_and_a_span_beside_a_message_are_fields_of_the_record() {
    let (logger, far) = logger(|_| {});
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    crate::info!(logger, "in a span"; scan = 7, trace_id = trace, span_id = span);
    crate::info!(logger, "of another kind"; trace_id = 7);
    let mut record = LogRecord::new(Level::Info, "by hand");
    record.data = vec![tampu_types::Datum::new("trace_id", trace)];
    logger.record(record);
    assert!(logger.flush(Duration::from_secs(20)));
    let records = far.records();
    let data = |record: &LogRecord| record.data.iter().map(|datum| datum.name.clone()).collect::<Vec<_>>();
    let shown: Vec<_> =
        records.iter().map(|record| (record.trace_id.is_some(), record.span_id.is_some(), data(record))).collect();
    assert_eq!(
        shown,
        [(true, true, vec!["scan".to_owned()]), (false, false, vec!["trace_id".to_owned()]), (true, false, vec![])]
    );
    assert_eq!(records[0].span_id.unwrap()[0], 0xb7);
}

#[test]
fn many_threads_share_a_logger() {
    let (logger, far) = logger(|settings| {
        settings.full_wait = Duration::from_secs(20);
    });
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let logger = logger.clone();
            scope.spawn(move || (0..1000).for_each(|number| crate::info!(logger, "{worker} {number}"; worker = worker)));
        }
    });
    drop(logger);
    let records = far.records();
    assert_eq!(records.len(), 8000);
    let ids: std::collections::BTreeSet<_> = records.iter().map(|record| record.id.unwrap()).collect();
    assert_eq!(ids.len(), 8000, "each has a name of its own");
    for worker in 0..8 {
        let of_one: Vec<&str> =
            records.iter().filter(|record| record.data[0].value == worker.to_string()).map(|r| &*r.message).collect();
        assert!(of_one.iter().copied().eq((0..1000).map(|number| format!("{worker} {number}"))), "in the order of its calls");
    }
}

#[test]
fn a_lane_keeps_its_order_while_packets_fill_and_the_period_ends_and_somebody_flushes() {
    let (logger, far) = logger(|settings| {
        settings.packet_records = 3;
        settings.flush_period = Duration::from_micros(50);
        settings.full_wait = Duration::from_secs(20);
        settings.full_wait_grave = Duration::from_secs(20);
        settings.ring_bytes = 16 << 10;
    });
    let other = logger.named("other");
    std::thread::scope(|scope| {
        scope.spawn(|| (0..20).for_each(|_| assert!(logger.flush(Duration::from_secs(20)))));
        scope.spawn(|| (0..3000).for_each(|number| crate::info!(logger, "{number}")));
        scope.spawn(|| (0..1000).for_each(|number| crate::error!(other, "{number}")));
    });
    assert_eq!(logger.stats().dropped, 0);
    drop((logger, other));
    for level in [Level::Info, Level::Error] {
        let numbers = far.records().into_iter().filter(|record| record.level == level).map(|record| record.id.unwrap().number);
        assert!(numbers.eq(0..if level == Level::Info { 3000 } else { 1000 }), "{level} out of order");
    }
}

#[test]
fn an_urgent_record_does_not_wait_for_what_other_threads_have_logged_before() {
    const MANY: usize = 10_000;
    let (logger, far) = logger(|settings| {
        settings.ring_bytes = 4 << 20;
        settings.full_wait = Duration::from_secs(20);
    });
    let (ask, asked) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let logger = &logger;
        let errs = scope.spawn(move || {
            for text in asked {
                crate::error!(logger, "{text}");
            }
        });
        ask.send("before").unwrap();
        far.packets(1);
        far.set(|state| state.blocked = true);
        (0..MANY).for_each(|number| crate::info!(logger, "{number}"));
        ask.send("urgent").unwrap();
        drop(ask);
        errs.join().unwrap();
        far.set(|state| state.blocked = false);
    });
    assert!(logger.flush(Duration::from_secs(20)));
    let records = far.records();
    assert_eq!((records.len(), logger.stats().dropped), (MANY + 2, 0));
    let place = records.iter().position(|record| record.message == "urgent").unwrap();
    assert!(place < MANY / 2, "it came after {place} records of another thread");
    let numbers =
        records.iter().filter(|record| record.level == Level::Info).map(|record| record.message.parse::<usize>().unwrap());
    assert!(numbers.eq(0..MANY), "those stay in order");
}

/// A directory for rings, and a means to find their contents.
fn sheltered(change: impl FnOnce(&mut LogSettings)) -> (Logger, Arc<Far>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let rings = dir.path().join("rings");
    let (logger, far) = logger(|settings| {
        settings.rings = Some(rings);
        change(settings);
    });
    (logger, far, dir)
}

/// Counts the records in the rings of the one process that has rings there.
fn in_rings(dir: &tempfile::TempDir) -> u64 {
    let life = std::fs::read_dir(dir.path().join("rings")).unwrap().next().unwrap().unwrap().path();
    // Rings made ahead of threads end in `.new`, and may be incomplete at any moment.
    let is_ring = |name: &str| name.starts_with("ring-") && !name.ends_with(".new");
    let rings = std::fs::read_dir(life).unwrap().flatten().filter(|file| is_ring(&file.file_name().to_string_lossy()));
    let mut unread = 0;
    for ring in rings {
        let mut image = tampu_ring::RingSnapshot::parse(&std::fs::read(ring.path()).unwrap()).unwrap();
        while let Some(Ok(_)) = image.next_entry() {
            unread += 1;
        }
    }
    unread
}

#[test]
fn a_record_stays_in_its_ring_until_it_is_acknowledged() {
    let (logger, far, dir) = sheltered(|settings| settings.packet_records = 10);
    assert!(logger.storage().is_crash_safe(), "{:?}", logger.storage());
    far.set(|state| state.unacknowledged = true);
    for number in 0..100 {
        crate::info!(logger, "{number}");
    }
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!((far.records().len(), in_rings(&dir)), (100, 100), "all are out, none is acknowledged");
    far.set(|state| state.unacknowledged = false);
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!(in_rings(&dir), 0);
}

#[test]
fn records_that_no_statement_makes_and_long_ones_stay_too() {
    let (logger, far, dir) = sheltered(|settings| settings.ring_bytes = 8192);
    far.set(|state| state.unacknowledged = true);
    let long = "x".repeat(10_000);
    logger.record(LogRecord::new(Level::Info, "by hand"));
    crate::info!(logger.in_stack("chain-1", 2), "of a {}", "chain");
    logger.record(LogRecord::new(Level::Info, long.clone()));
    crate::info!(logger, "{long}"; scan = 7);
    assert!(logger.flush(Duration::from_secs(20)));
    let life = std::fs::read_dir(dir.path().join("rings")).unwrap().next().unwrap().unwrap().path();
    let files = || {
        let names = std::fs::read_dir(&life).unwrap().flatten();
        names.filter(|file| file.file_name().to_string_lossy().starts_with("long-")).count()
    };
    assert_eq!((in_rings(&dir), files()), (4, 2));
    let records = far.records();
    assert_eq!(records.iter().map(|record| record.id.unwrap().number).collect::<Vec<_>>(), [0, 1, 2, 3]);
    assert_eq!((&*records[1].message, &*records[1].stack_id, records[1].stack_level), ("of a chain", "chain-1", Some(2)));
    assert_eq!((records[2].message.len(), &*records[3].data[0].value), (10_000, "7"));
    far.set(|state| state.unacknowledged = false);
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!((in_rings(&dir), files(), logger.stats().dropped), (0, 0, 0));
}

#[test]
fn while_nobody_listens_records_stay_until_the_ring_is_half_full() {
    let (logger, far, dir) = sheltered(|settings| settings.ring_bytes = 64 << 10);
    far.set(|state| state.nobody = true);
    crate::info!(logger, "early");
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!(in_rings(&dir), 1);
    for number in 0..10_000 {
        crate::info!(logger, "{number}");
        if number % 200 == 0 {
            assert!(logger.flush(Duration::from_secs(20)));
        }
    }
    assert_eq!(logger.stats().dropped, 0, "what has been published makes room");
    let (rings, overflow) = (in_rings(&dir), in_overflow(&dir));
    assert!((1..10_001).contains(&rings));
    assert!(overflow.iter().copied().eq(0..overflow.len() as u64), "in order, without holes");
    assert!(overflow.len() as u64 + rings >= 10_001, "{} in the overflow and {rings} in rings", overflow.len());
    // A reader that takes all records has appeared.
    far.set(|state| state.nobody = false);
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!((in_rings(&dir), in_overflow(&dir).len()), (0, 0));
}

/// The numbers of the records in the overflow (`spec/log-ring.md`).
fn in_overflow(dir: &tempfile::TempDir) -> Vec<u64> {
    let life = std::fs::read_dir(dir.path().join("rings")).unwrap().next().unwrap().unwrap().path();
    let mut numbers = Vec::new();
    for name in ["packets-0", "packets-1"] {
        let bytes = std::fs::read(life.join(name)).unwrap_or_default();
        let mut rest = &bytes[..];
        while let Some((head, behind)) = rest.split_first_chunk::<8>() {
            let (packet, behind) = behind.split_at(u32::from_le_bytes(*head.first_chunk().unwrap()) as usize);
            numbers.extend(log_batch::decode_records(packet).unwrap().iter().map(|record| record.id.unwrap().number));
            rest = behind;
        }
    }
    numbers
}

#[test]
fn loggers_of_one_process_do_not_take_each_other_s_statements() {
    let ((one, at_one), (two, at_two)) = (logger(|_| {}), logger(|_| {}));
    for batch in 0..10 {
        for speaker in [&one, &two] {
            crate::info!(speaker, "batch {batch}");
        }
        crate::debug!(two, "only here");
    }
    drop((one, two));
    assert_eq!((at_one.records().len(), at_two.records().len()), (10, 20));
    assert!(at_one.records().iter().all(|record| record.message.starts_with("batch")));
}

/// A statement as a front end of another language makes it.
fn described(text: &str) -> &'static tampu_text::Statement {
    let site = tampu_text::Site {
        level: 6,
        file: "mount.cpp".into(),
        line: 7,
        routine: "slew".into(),
        ..tampu_text::Site::parse(text).unwrap()
    };
    Box::leak(Box::new(tampu_text::Statement::of_site(site)))
}

#[test]
fn a_payload_written_between_claim_and_commit_becomes_a_record() {
    let (logger, far) = logger(|_| {});
    let statement = described("az {:.2f}");
    let mut payload = vec![14, 0, 0, 0, 0, 0, 0, 0];
    payload.extend(12.125f64.to_le_bytes());
    for batch in 0..3 {
        let mut claim = logger.claim(statement, payload.len()).unwrap();
        assert_eq!(claim.bytes().len(), payload.len());
        claim.bytes().copy_from_slice(&payload);
        // The second claim is dropped: it leaves no record.
        if batch != 1 {
            claim.commit();
        }
    }
    assert!(logger.flush(Duration::from_secs(20)));
    let records = far.records();
    assert_eq!(records.iter().map(|record| &*record.message).collect::<Vec<_>>(), ["az 12.12", "az 12.12"]);
    assert_eq!((&*records[0].file, records[0].line, &*records[0].routine), ("mount.cpp", Some(7), "slew"));
    assert_eq!(records[1].id.unwrap().number, records[0].id.unwrap().number + 1);
}

#[test]
fn a_claim_longer_than_a_ring_takes_the_slow_way_and_one_beyond_all_bounds_is_none() {
    let (logger, far) = logger(|settings| settings.ring_bytes = 4096);
    let statement = described("{}");
    let text = "x".repeat(5000);
    let mut claim = logger.claim(statement, 8 + 4 + text.len()).unwrap();
    let (head, tail) = claim.bytes().split_at_mut(12);
    head.copy_from_slice(&[15, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x13, 0, 0]);
    tail.copy_from_slice(text.as_bytes());
    claim.commit();
    assert!(logger.claim(statement, crate::logger::PAYLOAD_MAX + 1).is_none());
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!(far.records()[0].message, text);
}

#[test]
fn the_threshold_follows_the_levels() {
    let (logger, _far) = logger(|_| {});
    let threshold = || logger.threshold().load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(threshold(), Level::Delouse.number());
    logger.set_central(Threshold::From(Level::Error));
    assert_eq!(threshold(), Level::Error.number());
    logger.set_local(Threshold::From(Level::Info));
    assert_eq!(threshold(), Level::Info.number());
}
