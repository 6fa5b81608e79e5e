//! Tests of the bridges: records of the `log` crate and of `tracing`, as a reader gets them.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::{Cell, RefCell},
    fmt,
    process::Command,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use tampu_bus::{Event, Participant, QosTable, Reader, ReaderQos, SourceState, engine::memory::MemoryNet};
use tampu_log::{
    LogSettings, Logger, Threshold,
    bridge::{self, TARGETS_MAX, log::LogBridge},
};
use tampu_types::{Domain, Level, LogRecord, PartitionFilter, SourceName, TopicFilter, log_batch::decode_records};
use tracing_subscriber::{Layer as _, Registry, layer::SubscriberExt};

#[path = "../examples/with_log.rs"]
mod with_log;
#[path = "../examples/with_tracing.rs"]
mod with_tracing;

/// Counts what the calling thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Longest wait of a test for an expected event; longer than any machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A logger, and a reader of all it publishes.
struct Bench {
    net: MemoryNet,
    logger: Logger,
    reader: Reader,
    _viewer: Participant,
}

impl Bench {
    fn new() -> Bench {
        let net = MemoryNet::new(1);
        let domain = Domain::new("test").unwrap();
        let join = |name: &str| {
            Participant::on(net.engine("host"), domain.clone(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
        };
        let (antenna, viewer) = (join("CONTROL/DV01"), join("viewer"));
        let topics = TopicFilter::new("log/*").unwrap();
        let reader = viewer.reader(&topics, &PartitionFilter::All, ReaderQos::default()).unwrap();
        net.advance(Duration::from_millis(10));
        let mut settings = LogSettings::isolated(domain, SourceName::new("CONTROL/DV01").unwrap());
        // Time stops on the bus when a test is over, and a wait for an acknowledgement would not end.
        settings.close_wait = Duration::ZERO;
        let logger = Logger::on(antenna, settings).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
        Bench { net, logger, reader, _viewer: viewer }
    }

    /// So many records, in the order in which they were logged.
    fn records(&mut self, count: usize) -> Vec<LogRecord> {
        let (mut records, begun) = (Vec::new(), Instant::now());
        while records.len() < count {
            assert!(begun.elapsed() < PATIENCE, "{count} were logged, only these came: {records:#?}");
            self.net.advance(Duration::from_millis(1));
            match self.reader.next(Duration::from_millis(100)) {
                Some(Event::Sample(sample)) => records.extend(decode_records(sample.payload.bytes().unwrap()).unwrap()),
                Some(Event::Gap(gap)) => panic!("{gap:?}"),
                _ => {}
            }
        }
        // Each level has a stream of its own, and records of different streams have no order.
        records.sort_by_key(|record| record.id.unwrap().number);
        assert_eq!(records.len(), count, "{records:#?}");
        records
    }

    fn record(&mut self) -> LogRecord {
        self.records(1).remove(0)
    }
}

/// Returns whether a record lay in a ring, where it survives its process: all do, statements and whole records.
fn through_a_ring(record: &LogRecord) -> bool {
    record.id.unwrap().ring < 1 << 31
}

fn data(record: &LogRecord) -> Vec<(&str, &str)> {
    record.data.iter().map(|datum| (&*datum.name, &*datum.value)).collect()
}

#[test]
fn a_record_of_the_log_crate_keeps_all_it_says() {
    let mut bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    let line = line!() + 1;
    log::warn!(logger: bridge, target: "mount", axis = "az", limit = 270; "cable wrap at {}", 269.9);
    log::info!(logger: bridge, "plain");

    let [record, plain] = &bench.records(2)[..] else { panic!() };
    assert_eq!((record.level, &*record.logger, &*record.message), (Level::Warning, "mount", "cable wrap at 269.9"));
    assert_eq!(data(record), [("axis", "az"), ("limit", "270")]);
    assert_eq!((record.file.ends_with("tests/bridges.rs"), record.line, &*record.routine), (true, Some(line), module_path!()));
    assert_eq!(record.process, "CONTROL/DV01");
    assert_eq!((&*plain.logger, &*plain.message, data(plain)), (module_path!(), "plain", vec![]));
    assert!(through_a_ring(record) && through_a_ring(plain));
}

#[test]
fn levels_of_the_log_crate_are_these() {
    let mut bench = Bench::new();
    bench.logger.named(module_path!()).set_central(Threshold::From(Level::Trace));
    let bridge = LogBridge::new(&bench.logger);
    for level in log::Level::iter() {
        log::log!(logger: bridge, level, "{level}");
    }
    let levels = bench.records(5).into_iter().map(|record| record.level);
    assert!(levels.eq([Level::Error, Level::Warning, Level::Info, Level::Debug, Level::Trace]));
}

#[test]
fn levels_of_the_named_logger_hold_and_nothing_is_formatted_below_them() {
    struct Loud;
    impl fmt::Display for Loud {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("formatted");
        }
    }

    let mut bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    let mount = bench.logger.named("mount");
    mount.set_central(Threshold::From(Level::Error));
    log::warn!(logger: bridge, target: "mount", "{Loud}");
    assert!(!log::log_enabled!(logger: bridge, target: "mount", log::Level::Warn));
    assert!(log::log_enabled!(logger: bridge, target: "mount", log::Level::Error));
    assert!(log::log_enabled!(logger: bridge, target: "other", log::Level::Warn));
    tracing::subscriber::with_default(subscriber(&bench), || tracing::warn!(target: "mount", "{Loud}"));
    mount.set_central(Threshold::From(Level::Warning));
    log::warn!(logger: bridge, target: "mount", "heard");
    assert_eq!(bench.record().message, "heard");
}

#[test]
fn one_place_may_speak_with_other_values_targets_and_levels() {
    let mut bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    let say = |target: &str, level, values: &[(&str, i32)], text: &str| {
        let arguments = format_args!("{text}");
        let mut record = log::Record::builder();
        record.target(target).level(level).line(Some(7)).key_values(&values);
        log::Log::log(&bridge, &record.args(arguments).build());
    };
    say("a", log::Level::Info, &[("x", 1)], "0");
    say("a", log::Level::Info, &[("y", 2)], "1");
    say("a", log::Level::Info, &[("x", 3), ("y", 4)], "2");
    say("b", log::Level::Info, &[("x", 5)], "3");
    say("a", log::Level::Warn, &[("x", 6)], "4");
    say("a", log::Level::Info, &[("x", 7)], "5");
    let records = bench.records(6);
    let seen: Vec<_> = records.iter().map(|record| (&*record.logger, record.level, data(record))).collect();
    let expected = [
        ("a", Level::Info, vec![("x", "1")]),
        ("a", Level::Info, vec![("y", "2")]),
        ("a", Level::Info, vec![("x", "3"), ("y", "4")]),
        ("b", Level::Info, vec![("x", "5")]),
        ("a", Level::Warning, vec![("x", "6")]),
        ("a", Level::Info, vec![("x", "7")]),
    ];
    assert_eq!(seen, expected);
    assert!(records.iter().all(|record| record.line == Some(7) && record.file.is_empty() && through_a_ring(record)));
}

/// A call with any number of values says them all, whichever way it goes.
fn says_every_value(bench: &mut Bench, bridge: &LogBridge, text: &str, values: &[(String, String)]) -> Result<(), TestCaseError> {
    let pairs: Vec<(&str, &str)> = values.iter().map(|(name, value)| (&**name, &**value)).collect();
    let mut record = log::Record::builder();
    record.target("any").level(log::Level::Error).key_values(&pairs);
    log::Log::log(bridge, &record.args(format_args!("{text}")).build());
    let record = bench.record();
    prop_assert_eq!(&record.message, text);
    prop_assert_eq!(data(&record), pairs);
    prop_assert!(through_a_ring(&record));
    prop_assert_eq!(&record.logger, "any");
    prop_assert_eq!(record.line, None);
    Ok(())
}

#[test]
fn every_number_of_values_is_said() {
    let mut bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    let bench = RefCell::new(&mut bench);
    let config = ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(text: String, values in prop::collection::vec(any::<(String, String)>(), 0..20))| {
        says_every_value(&mut bench.borrow_mut(), &bridge, &text, &values)?;
    });
}

#[test]
fn what_the_bus_says_of_itself_is_not_carried_by_it() {
    let mut bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    log::error!(logger: bridge, target: "zenoh::net", "not taken");
    tracing::subscriber::with_default(subscriber(&bench), || {
        let _span = tracing::error_span!(target: "zenoh_transport", "link", peer = 1).entered();
        tracing::error!(target: "zenoh_transport", "not taken");
        tracing::error!("taken");
    });
    let record = bench.record();
    assert_eq!((&*record.message, &*record.context, data(&record)), ("taken", "", vec![]));
}

fn subscriber(bench: &Bench) -> impl tracing::Subscriber + Send + Sync + use<> {
    let layer = bridge::tracing::Layer::new(&bench.logger);
    let wanted = layer.wanted();
    Registry::default().with(layer.with_filter(wanted))
}

#[test]
fn an_event_says_what_it_and_its_spans_say() {
    let mut bench = Bench::new();
    let line = line!() + 5;
    tracing::subscriber::with_default(subscriber(&bench), || {
        let outer = tracing::info_span!("observation", project = "2026.1", scan = tracing::field::Empty);
        let _outer = outer.enter();
        let _inner = tracing::debug_span!(target: "elsewhere", "slew", axis = "el", r#type = ?Some(1)).entered();
        tracing::warn!(target: "mount", axis = "az", limit = 270, absent = None::<i32>, "cable wrap at {}", 269.9);
        outer.record("scan", 7);
        tracing::info!("later");
        tracing::info!(parent: None, angle = 1.5);
    });
    let [record, later, alone] = &bench.records(3)[..] else { panic!() };
    assert_eq!((record.level, &*record.logger, &*record.message), (Level::Warning, "mount", "cable wrap at 269.9"));
    assert_eq!(record.context, "observation:slew");
    assert_eq!(data(record), [("axis", "az"), ("limit", "270"), ("type", "Some(1)"), ("project", "2026.1")]);
    assert_eq!((record.file.ends_with("tests/bridges.rs"), record.line, &*record.routine), (true, Some(line), module_path!()));
    assert_eq!((&*later.logger, &*later.context), (module_path!(), "observation:slew"));
    assert_eq!(data(later), [("axis", "el"), ("type", "Some(1)"), ("project", "2026.1"), ("scan", "7")]);
    assert_eq!((&*alone.message, &*alone.context, data(alone)), ("", "", vec![("angle", "1.5")]));
    assert!([record, later, alone].into_iter().all(through_a_ring));
}

#[test]
fn ids_of_a_trace_are_fields_of_the_record_in_both_bridges() {
    let mut bench = Bench::new();
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    tracing::subscriber::with_default(subscriber(&bench), || {
        let _scan = tracing::info_span!("scan", scan = 7, trace_id = trace, span_id = span).entered();
        tracing::info!(axis = "az", "in the span");
    });
    let bridge = LogBridge::new(&bench.logger);
    let values = vec![("axis", "el"), ("trace_id", trace), ("span_id", "of nothing")];
    log::Log::log(
        &bridge,
        &log::Record::builder().target("any").level(log::Level::Info).key_values(&values).args(format_args!("by log")).build(),
    );
    let [event, record] = &bench.records(2)[..] else { panic!() };
    assert_eq!(
        (event.trace_id.unwrap()[0], event.span_id.unwrap()[0], data(event)),
        (0x0a, 0xb7, vec![("axis", "az"), ("scan", "7")])
    );
    assert_eq!((record.trace_id, record.span_id), (event.trace_id, None));
    assert_eq!(data(record), [("axis", "el"), ("span_id", "of nothing")]);
}

#[test]
fn an_event_may_lie_in_other_spans_each_time() {
    let mut bench = Bench::new();
    let speak = |text: &str| tracing::info!("{text}");
    tracing::subscriber::with_default(subscriber(&bench), || {
        speak("alone");
        for scan in 0..2 {
            tracing::info_span!("scan", scan).in_scope(|| speak("in a scan"));
        }
        tracing::info_span!("slew").in_scope(|| speak("in a slew"));
        tracing::info_span!("scan").in_scope(|| tracing::info_span!("slew").in_scope(|| speak("in both")));
        speak("alone again");
    });
    let records = bench.records(6);
    let seen: Vec<_> = records.iter().map(|record| (&*record.message, &*record.context, data(record))).collect();
    let expected = [
        ("alone", "", vec![]),
        ("in a scan", "scan", vec![("scan", "0")]),
        ("in a scan", "scan", vec![("scan", "1")]),
        ("in a slew", "slew", vec![]),
        ("in both", "scan:slew", vec![]),
        ("alone again", "", vec![]),
    ];
    assert_eq!(seen, expected);
    assert!(records.iter().all(through_a_ring));
}

#[test]
fn a_span_of_many_fields_is_said_whole() {
    let mut bench = Bench::new();
    tracing::subscriber::with_default(subscriber(&bench), || {
        let _span =
            tracing::info_span!("many", a = 0, b = 1, c = 2, d = 3, e = 4, f = 5, g = 6, h = 7, i = 8, j = 9, k = 10, l = 11)
                .entered();
        tracing::error!(target: "any", o = 12, p = 13, q = 14, "fifteen");
        tracing::error!(target: "any", o = 12, p = 13, q = 14, r = 15, "sixteen");
    });
    let [fifteen, sixteen] = &bench.records(2)[..] else { panic!() };
    let (fifteen, sixteen) = if fifteen.message == "fifteen" { (fifteen, sixteen) } else { (sixteen, fifteen) };
    assert_eq!((fifteen.data.len(), through_a_ring(fifteen)), (15, true));
    assert_eq!((sixteen.data.len(), through_a_ring(sixteen)), (16, true));
    for record in [fifteen, sixteen] {
        assert_eq!((&*record.logger, &*record.context, record.line.is_some()), ("any", "many", true));
        let values = record.data.iter().map(|datum| datum.value.parse::<usize>().unwrap());
        assert_eq!(values.collect::<std::collections::BTreeSet<_>>(), (0..record.data.len()).collect());
    }
}

#[test]
fn targets_without_end_are_told_apart_and_only_so_many_get_loggers() {
    let mut bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    let targets: Vec<String> = (0..TARGETS_MAX + 5).map(|number| format!("target-{number}")).collect();
    for target in &targets {
        log::info!(logger: bridge, target: &**target, "{target}");
    }
    let records = bench.records(targets.len());
    assert!(records.iter().all(|record| record.logger == record.message && record.line.is_some()));
    assert!(records.iter().all(through_a_ring));
    // A separate logger has levels of its own.
    bench.logger.set_central(Threshold::Off);
    for target in &targets {
        log::info!(logger: bridge, target: &**target, "{target}");
    }
    assert_eq!(bench.records(TARGETS_MAX).len(), TARGETS_MAX);
}

#[test]
fn levels_of_tracing_are_these_and_spans_count_at_every_level() {
    let mut bench = Bench::new();
    let quiet = bench.logger.named(module_path!());
    quiet.set_central(Threshold::From(Level::Warning));
    tracing::subscriber::with_default(subscriber(&bench), || {
        let _span = tracing::trace_span!("deep").entered();
        tracing::info!("not wanted");
        tracing::warn!("a");
        quiet.set_central(Threshold::From(Level::Trace));
        tracing::error!("b");
        tracing::info!("c");
        tracing::debug!("d");
        tracing::trace!("e");
    });
    let records = bench.records(5);
    let seen = records.iter().map(|record| (&*record.message, record.level, &*record.context));
    let levels = [Level::Warning, Level::Error, Level::Info, Level::Debug, Level::Trace];
    assert!(
        seen.eq(["a", "b", "c", "d", "e"].into_iter().zip(levels).map(|(text, level)| (text, level, "deep"))),
        "{records:#?}"
    );
}

#[test]
fn an_error_is_told_with_its_causes() {
    #[derive(Debug, thiserror::Error)]
    #[error("no lock")]
    struct NoLock(#[source] std::fmt::Error);

    let mut bench = Bench::new();
    tracing::subscriber::with_default(subscriber(&bench), || {
        let error = NoLock(std::fmt::Error);
        tracing::error!(error = &error as &dyn std::error::Error, "reference");
    });
    assert_eq!(data(&bench.record()), [("error", format!("no lock: {}", std::fmt::Error).as_str())]);
}

#[test]
fn an_event_made_of_a_record_of_the_log_crate_is_understood() {
    let mut bench = Bench::new();
    tracing::subscriber::with_default(subscriber(&bench), || {
        // The event that tracing-log makes of `log::warn!(target: "mount", "cable wrap")`.
        tracing::warn!(
            target: "log",
            { log.target = "mount", log.module_path = "app::mount", log.file = "src/mount.rs", log.line = 52 },
            "cable wrap"
        );
    });
    let record = bench.record();
    assert_eq!((&*record.logger, &*record.message, data(&record)), ("mount", "cable wrap", vec![]));
    assert_eq!((&*record.file, record.line, &*record.routine), ("src/mount.rs", Some(52), "app::mount"));
}

#[test]
fn a_value_may_log_while_it_is_formatted() {
    struct Talkative(LogBridge);
    impl fmt::Display for Talkative {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            log::info!(logger: self.0, "inner {}", 1);
            f.write_str("outer")
        }
    }

    let mut bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    log::info!(logger: bridge, "{}", Talkative(bridge.clone()));
    let records = bench.records(2);
    assert!(records.iter().map(|record| &*record.message).eq(["inner 1", "outer"]));
}

#[test]
fn a_call_allocates_nothing_once_its_place_is_known() {
    let bench = Bench::new();
    let bridge = LogBridge::new(&bench.logger);
    let through_log = || {
        for number in 0..100 {
            log::info!(logger: bridge, target: "mount", axis = "az", number = number; "az {:.3}", f64::from(number) / 7.0);
        }
    };
    through_log();
    assert_eq!(allocations(through_log), 0);
    assert_eq!(allocations(|| log::trace!(logger: bridge, target: "mount", "{}", "disabled")), 0);

    tracing::subscriber::with_default(subscriber(&bench), || {
        let _outer = tracing::info_span!("observation", project = "2026.1").entered();
        let _inner = tracing::info_span!("scan", scan = 7).entered();
        let through_tracing = || {
            for number in 0..100 {
                tracing::info!(target: "mount", axis = "az", number, "az {:.3}", f64::from(number) / 7.0);
            }
        };
        through_tracing();
        assert_eq!(allocations(through_tracing), 0);
        assert_eq!(allocations(|| tracing::trace!(target: "mount", "{}", "disabled")), 0);
    });
    assert_eq!(bench.logger.stats().dropped, 0);
}

#[test]
fn a_bridge_that_is_dropped_lets_its_logger_end() {
    let mut bench = Bench::new();
    let (bridge, layer) = (LogBridge::new(&bench.logger), bridge::tracing::Layer::new(&bench.logger));
    log::info!(logger: bridge, "one");
    tracing::subscriber::with_default(Registry::default().with(layer), || {
        let _span = tracing::info_span!("scan").entered();
        tracing::info!("two");
    });
    assert_eq!(bench.records(2).len(), 2);
    let Bench { net, logger, mut reader, _viewer } = bench;
    drop((logger, bridge));
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < PATIENCE, "the logger goes on");
        net.advance(Duration::from_millis(1));
        if let Some(Event::Source(change)) = reader.next(Duration::from_millis(100))
            && change.state == SourceState::Left
        {
            break;
        }
    }
}

/// Set in the processes that run an example.
const EXAMPLE: &str = "TAMPU_TEST_EXAMPLE";

/// Not a test: what a process does that was started for an example.
#[test]
fn example() {
    match std::env::var(EXAMPLE).as_deref() {
        Ok("with_log") => with_log::main().unwrap(),
        Ok("with_tracing") => with_tracing::main().unwrap(),
        _ => {}
    }
}

/// Returns the output of an example when no collector takes its records.
fn printed(example: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", "example", "--nocapture"]).env(EXAMPLE, example);
    program.env("TAMPU_RUN_DIR", directory.path()).env("TAMPU_DOMAIN", "test").env("TAMPU_LOG_LOCAL", "Debug");
    let output = program.env_remove("TAMPU_HUB").env_remove("TAMPU_LOG_LEVEL").output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    told
}

/// The lines hold these texts, in this order.
#[track_caller]
fn assert_told(told: &str, expected: &[&str]) {
    let mut lines = told.lines();
    for text in expected {
        assert!(lines.any(|line| line.contains(text)), "'{text}' is not in its place in:\n{told}");
    }
}

#[test]
fn the_example_with_log_logs() {
    assert_told(
        &printed("with_log"),
        &[
            "Info      observation: scan 7 begins",
            "with_log::mount: following 268.2 axis=az",
            "with_log::mount: following 269.9 axis=az",
        ],
    );
}

#[test]
fn the_example_with_tracing_logs() {
    assert_told(
        &printed("with_tracing"),
        &[
            "Info      observation: scan begins scan=7",
            "with_tracing::mount: following 268.2 axis=az target=268.2 scan=7",
            "with_tracing::mount: following 269.9 axis=az target=269.9 scan=7",
        ],
    );
}
