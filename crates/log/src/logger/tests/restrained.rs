//! Tests of printing, of rate and repeat limits, and of settings that change.

use super::*;

#[test]
fn records_are_printed_and_published_and_those_that_are_only_printed_go_no_further() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let (logger, far) = logger(|settings| {
        settings.output = path.to_str().unwrap().parse().unwrap();
        settings.central = Threshold::From(Level::Info);
        settings.local = Threshold::From(Level::Debug);
    });
    let quiet = logger.named("quiet");
    quiet.set_local(Threshold::Off);
    crate::debug!(logger, "here only"; axis = "az");
    crate::info!(logger, "here and there");
    crate::info!(quiet, "there only");
    crate::trace!(logger, "nowhere");
    logger.record(LogRecord::new(Level::Debug, "by hand, here only"));
    let mut foreign = LogRecord::new(Level::Info, "by hand, here and there");
    foreign.logger = "somebody else's".into();
    logger.record(foreign);
    assert!(logger.flush(Duration::from_secs(20)));
    let printed = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = printed.lines().map(|line| &line[24..]).collect();
    assert_eq!(
        lines,
        [
            "Debug     CONTROL/DV01: here only axis=az",
            "Info      CONTROL/DV01: here and there",
            "Debug     CONTROL/DV01: by hand, here only",
            "Info      somebody else's: by hand, here and there"
        ]
    );
    let mut published: Vec<String> = far.records().into_iter().map(|record| record.message).collect();
    published.sort();
    assert_eq!(published, ["by hand, here and there", "here and there", "there only"]);
    let stats = logger.stats();
    assert_eq!((stats.published, stats.dropped, stats.unprinted), (3, 0, 0));
}

#[test]
fn what_cannot_be_printed_is_counted_and_told_in_the_log() {
    let (logger, far) = logger(|settings| {
        settings.output = "/dev/full".parse().unwrap();
        settings.local = Threshold::From(Level::Info);
    });
    crate::info!(logger, "unseen");
    drop(logger);
    let records = far.records();
    let told: Vec<&LogRecord> = records.iter().filter(|record| record.message.contains("could not be written")).collect();
    assert_eq!(told[0].message, "1 records could not be written to /dev/full: No space left on device (os error 28)");
    assert_eq!((told[0].level, &*told[0].data[0].name, &*told[0].data[0].value), (Level::Warning, "unprinted", "1"));
    assert!(records.iter().any(|record| record.message == "unseen"));
}

#[test]
fn without_a_flush_period_only_a_full_packet_or_a_flush_sends() {
    let (logger, far) = logger(|settings| {
        settings.flush_period = Duration::ZERO;
        settings.packet_records = 3;
    });
    (0..4).for_each(|number| crate::info!(logger, "{number}"));
    assert_eq!(far.packets(1).len(), 1);
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!(far.records().len(), 4);
}

fn datum<'r>(record: &'r LogRecord, name: &str) -> Option<&'r str> {
    record.data.iter().find(|datum| datum.name == name).map(|datum| &*datum.value)
}

#[test]
fn repetitions_are_suppressed_counted_and_told_by_the_next_and_at_last() {
    let (logger, far) = logger(|settings| settings.repeat.count = 3);
    let other = logger.named("other");
    let said = |logger: &Logger, number: i32| crate::warning!(logger, "no lock after {number} tries"; try_number = number);
    (0..7).for_each(|number| said(&logger, number));
    said(&other, 0);
    crate::warning!(logger, "another statement");
    // Statements without text of their own are distinguished by the rendered text.
    for text in ["a", "a", "b"] {
        crate::warning!(logger, "{}", text);
    }
    let mut by_hand = LogRecord::new(Level::Warning, "by hand");
    by_hand.source_object = "CONTROL/DV01/Mount".into();
    (0..3).for_each(|_| logger.record(by_hand.clone()));
    let stats = || logger.stats().suppressed;
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!(stats(), 3 + 2 + 1 + 2);
    drop((logger, other));
    let records = far.records();
    let passed: Vec<(&str, &str, Option<&str>)> =
        records.iter().map(|record| (&*record.logger, &*record.message, datum(record, "repeatCount"))).collect();
    for expected in [
        ("CONTROL/DV01", "no lock after 0 tries", None),
        ("CONTROL/DV01", "no lock after 4 tries", Some("3")),
        ("CONTROL/DV01", "2 repetitions suppressed of: no lock after {} tries", Some("2")),
        ("other", "no lock after 0 tries", None),
        ("CONTROL/DV01", "another statement", None),
        ("CONTROL/DV01", "a", None),
        ("CONTROL/DV01", "b", None),
        ("CONTROL/DV01", "1 repetition suppressed of: a", Some("1")),
        ("CONTROL/DV01", "by hand", None),
        ("CONTROL/DV01", "2 repetitions suppressed of: by hand", Some("2")),
    ] {
        assert_eq!(passed.iter().filter(|found| **found == expected).count(), 1, "{expected:?} in {passed:?}");
    }
    assert_eq!(passed.len(), 10);
    let summary = records.iter().find(|record| record.message.contains("of: no lock")).unwrap();
    assert!(summary.file.ends_with("restrained.rs") && summary.line.is_some() && summary.id.is_some() && summary.time.0 > 0);
    let summary = records.iter().find(|record| record.message.contains("of: by hand")).unwrap();
    assert_eq!(summary.source_object, "CONTROL/DV01/Mount");
    let ids: std::collections::BTreeSet<_> = records.iter().map(|record| record.id.unwrap()).collect();
    assert_eq!(ids.len(), records.len());
}

#[test]
fn what_is_over_the_limit_of_a_second_is_counted_by_level_and_told() {
    let (logger, far) = logger(|settings| settings.max_per_s = std::num::NonZeroU64::new(5));
    for number in 0..20 {
        crate::info!(logger, "{number}");
        crate::debug!(logger, "{number}");
        crate::error!(logger, "{number}");
    }
    logger.record(LogRecord::new(Level::Info, "by hand"));
    assert!(logger.flush(Duration::from_secs(20)));
    let suppressed = logger.stats().suppressed;
    drop(logger);
    let records = far.records();
    let (told, passed): (Vec<_>, Vec<_>) = records.iter().partition(|record| record.message.contains("suppressed here"));
    assert!(passed.len() >= 10, "both shares of a second");
    assert_eq!(passed.len() as u64 + suppressed, 61);
    assert_eq!(told[0].level, Level::Warning);
    let sum =
        |name: &str| told.iter().filter_map(|record| datum(record, name)).map(|count| count.parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(sum("suppressed"), suppressed, "{told:?}");
    for (level, said) in [(Level::Info, 21), (Level::Debug, 20), (Level::Error, 20)] {
        let there = passed.iter().filter(|record| record.level == level).count() as u64;
        assert_eq!(there + sum(level.name()), said, "{level}");
    }
}

#[test]
fn a_configuration_read_once_more_beats_what_was_changed_meanwhile() {
    let now = Arc::new(Mutex::new("[log]\nlevel = \"Info\"\n"));
    let read = |text: &str| {
        let mut settings = LogSettings::isolated(Domain::new("test").unwrap(), SourceName::new("CONTROL/DV01").unwrap());
        let file = crate::logger::config::LogFile::parse(text, std::path::Path::new("log.toml"));
        file.map_err(|why| crate::logger::BadSettings::new("TAMPU_LOG_CONFIG", why))?.apply(&mut settings);
        Ok(settings)
    };
    let file = now.clone();
    let (logger, _far) = logger(|settings| {
        settings.reread = Some(crate::logger::Reread::new(move || read(*file.lock().unwrap())));
    });
    let mount = logger.named("mount");
    mount.set_central(Threshold::Off);
    logger.refresh().unwrap();
    assert!(mount.enabled(Level::Info) && !mount.enabled(Level::Debug));
    *now.lock().unwrap() = "[log]\nlevel = \"Error\"\n[[logger]]\nname = \"mount\"\nlevel = \"Trace\"\nrepeat = { count = 2 }\n";
    logger.refresh().unwrap();
    assert!(mount.enabled(Level::Trace) && !logger.enabled(Level::Warning) && logger.enabled(Level::Error));
    assert!(!logger.named("named later").enabled(Level::Warning));
    (0..2).for_each(|_| crate::info!(mount, "again"));
    assert!(logger.flush(Duration::from_secs(20)));
    assert_eq!(logger.stats().suppressed, 1);
    *now.lock().unwrap() = "[log]\nlevel = 3\n";
    assert!(logger.refresh().unwrap_err().to_string().starts_with("TAMPU_LOG_CONFIG: log.toml, line 2"));
    assert!(mount.enabled(Level::Trace), "what cannot be read changes nothing");
}

#[test]
fn an_acknowledged_call_returns_when_it_is_kept_and_says_when_it_is_not() {
    let (logger, far) = logger(|settings| {
        settings.local = Threshold::From(Level::Trace);
        settings.output = "/dev/null".parse().unwrap();
    });
    let sure = logger.acknowledged(Duration::from_secs(20));
    crate::info!(sure, "kept"; wind = 22.5);
    assert_eq!(far.records().len(), 1, "it has gone out when the call returns");
    assert!(sure.is_confirmed());
    far.set(|state| state.unacknowledged = true);
    let sure = logger.acknowledged(Duration::from_millis(20));
    crate::info!(sure, "sent");
    assert_eq!((sure.unconfirmed(), far.records().len()), (1, 2));
    assert!(!logger.flush_to_archive(Duration::from_millis(20)));
    crate::trace!(sure, "only printed, so nobody is waited for");
    assert_eq!(sure.unconfirmed(), 1);
}
