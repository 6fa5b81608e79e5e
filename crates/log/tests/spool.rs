//! A host whose collector goes and comes back: what is logged meanwhile is on the node's disk, and then in the archive, once.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tampu_archive::{Archive, LocalArchive, Options, Stop, query::Query};
use tampu_bus::{
    Participant, QosPatch, QosTable,
    connect::{Node, NodeSettings, Settings},
};
use tampu_log::{
    LogSettings, Logger,
    collector::{Collector, CollectorOptions, status::SourceReport},
    info,
    spool::{self, Doing, News, Spool, SpoolOptions},
};
use tampu_types::{Domain, Level, LogRecord, SourceName};

const PATIENCE: Duration = Duration::from_secs(60);

/// As by default, but sooner.
fn options() -> SpoolOptions {
    SpoolOptions { after: Duration::from_millis(50), ..SpoolOptions::default() }
}

struct Host {
    dir: tempfile::TempDir,
    config: Settings,
    news: Arc<Mutex<Vec<News>>>,
    qos: QosTable,
    _node: Node,
}

impl Host {
    fn new(qos: Vec<QosPatch>) -> Host {
        let dir = tempfile::Builder::new().prefix("tampu-").tempdir_in("/tmp").unwrap();
        let config = Settings::isolated(dir.path().join("run")).in_domain(Domain::new("spooled").unwrap());
        let node = Node::start(NodeSettings::new(config.clone())).unwrap();
        Host { dir, config, news: Arc::default(), qos: QosTable::new(qos).unwrap(), _node: node }
    }

    fn join(&self, name: &str) -> Participant {
        let engine = self.config.open().unwrap();
        Participant::on(engine, self.config.domain.clone(), SourceName::new(name).unwrap(), self.qos.clone()).unwrap()
    }

    fn spool(&self, options: SpoolOptions) -> Spool {
        let news = self.news.clone();
        Spool::start(self.join("spool"), &self.spool_dir(), options, move |told| news.lock().unwrap().push(told)).unwrap()
    }

    fn spool_dir(&self) -> PathBuf {
        self.dir.path().join("spool")
    }

    fn logger(&self, name: &str) -> Logger {
        let participant = self.join(name);
        let mut settings = LogSettings::isolated(self.config.domain.clone(), participant.source().clone());
        settings.rings = participant.log_rings();
        settings.full_wait = Duration::from_secs(10);
        Logger::on(participant, settings).unwrap()
    }

    fn collect(&self, name: &str) -> (Arc<LocalArchive>, Collector) {
        let dir = self.dir.path().join(name);
        let archive = Arc::new(LocalArchive::open(&dir, Options::new(self.config.domain.clone())).unwrap());
        let options = CollectorOptions::new(dir.join("rejected"));
        let collector = Collector::start(self.join(name), archive.clone(), options).unwrap();
        (archive, collector)
    }
}

fn until(what: &str, done: impl FnMut() -> bool) {
    until_or_say(what, done, String::new);
}

/// As [`until`]; says how things stand if it is in vain.
fn until_or_say(what: &str, mut done: impl FnMut() -> bool, stand: impl Fn() -> String) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what} {}", stand());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn all(archive: &LocalArchive) -> Vec<LogRecord> {
    let mut found = Vec::new();
    let mut take = |record: tampu_archive::Found<'_>| {
        found.push(record.record.clone());
        true
    };
    archive.search(&Query::default(), &Stop::default(), &mut take).unwrap();
    found
}

fn numbers(archive: &LocalArchive) -> Vec<u64> {
    let number = |record: LogRecord| record.message.strip_prefix("number ").and_then(|number| number.parse().ok());
    let mut numbers: Vec<u64> = all(archive).into_iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

fn of(collector: &Collector, source: &str) -> SourceReport {
    collector.status().sources.into_iter().find(|report| report.source == source).unwrap_or_default()
}

#[test]
fn what_is_logged_without_a_collector_outlives_its_process_and_node_and_comes_once() {
    let host = Host::new(Vec::new());
    let spool = host.spool(options());
    let logger = host.logger("DV01");
    (0..100).for_each(|number| info!(logger, "number {number}"));
    // The spool has the record, but no collector has committed it.
    let sure = logger.acknowledged(Duration::from_millis(300));
    info!(sure, "number {}", 100);
    assert!(!sure.is_confirmed());
    until("all is spooled", || spool.report().records == 101);
    assert_eq!(spool.report().doing, Doing::Spooling);
    drop(logger);
    drop(spool);
    // Another node on the same disk.
    let spool = host.spool(options());
    assert_eq!((spool.report().records, spool.report().sources.len()), (101, 1));

    let (archive, collector) = host.collect("collector");
    until("all has come", || numbers(&archive).len() == 101);
    until("the spool is empty", || spool.report().bytes == 0);
    assert_eq!(numbers(&archive), (0..=100).collect::<Vec<_>>());
    let report = of(&collector, "DV01");
    assert_eq!((report.spooled, report.received, report.lost_samples, report.lost_in_spool), (101, 101, 0, 0));
    assert!(report.spooled_since.is_some() && report.spooled_bytes > 0);
    assert_eq!(spool.report().replayed, 101);
    let files = std::fs::read_dir(host.spool_dir()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(files.filter(|path| path.extension().is_some_and(|extension| extension == "wal")).count(), 0);
}

#[test]
fn a_collector_away_for_longer_than_caches_hold_misses_nothing_and_tells_no_loss() {
    // A hundredth of the records that are logged during the absence.
    let small = QosPatch {
        topics: "log/*".into(),
        cache: Some(64 << 10),
        keep: Some(64 << 10),
        credit: Some(32 << 10),
        // A slow disk must not cause a loss in this test.
        max_wait_ms: Some(10_000),
        wait_period_ms: Some(10_000),
        ..QosPatch::default()
    };
    let host = Host::new(vec![small]);
    let spool = host.spool(options());
    let (archive, collector) = host.collect("collector");
    let logger = host.logger("DV01");
    (0..100).for_each(|number| info!(logger, "number {number}"));
    assert!(logger.flush_to_archive(PATIENCE));
    until("the spool has left it to the collector", || spool.report().doing == Doing::Watching && spool.report().bytes == 0);
    drop((archive, collector));
    until("the spool has taken over", || spool.report().doing == Doing::Spooling);
    // A writer waits only for readers it knows. Earlier records stay in its cache, up to its size.
    info!(logger, "number {}", 100);
    until("the writer knows of the spool", || spool.report().records >= 1);
    (101..60_000).for_each(|number| info!(logger, "number {number}"));
    // The spool begins where the collector stopped.
    let stand = || format!("{:?} {:?} {:?}", spool.report(), logger.stats(), host.news.lock().unwrap());
    until_or_say("all is spooled", || spool.report().records >= 59_900, stand);
    assert_eq!(spool.report().records, 59_900);
    let (archive, collector) = host.collect("collector");
    until("it is given back", || spool.report().bytes == 0 && spool.report().doing == Doing::Watching);
    (60_000..60_100).for_each(|number| info!(logger, "number {number}"));
    until("all has come", || archive.health().records >= 60_100);
    assert!(numbers(&archive).into_iter().eq(0..60_100));
    // The stream of the writer lacks records that its cache could not hold, but no loss is reported.
    assert_eq!(all(&archive).iter().filter(|record| record.level >= Level::Warning).count(), 0);
    assert_eq!(of(&collector, "DV01").lost_samples, 0);
}

#[test]
fn what_finds_no_room_is_counted_exactly_and_told() {
    let host = Host::new(Vec::new());
    let spool = host.spool(SpoolOptions { per_source: 256 << 10, ..options() });
    until("it takes", || spool.report().doing == Doing::Spooling);
    let (loud, quiet) = (host.logger("loud"), host.logger("quiet"));
    (0..20_000).for_each(|number| info!(loud, "number {number}"));
    (20_000..20_100).for_each(|number| info!(quiet, "number {number}"));
    let lost = |source: &str| spool.report().sources.into_iter().find(|of| of.source == source).map_or(0, |of| of.lost.records);
    until("all has come there", || spool.report().records + lost("loud") == 20_100);
    let report = spool.report();
    assert!(lost("loud") > 1000 && lost("quiet") == 0 && report.bytes <= (256 << 10) + 20_000, "{report:?}");
    let lost = lost("loud");

    let (archive, collector) = host.collect("collector");
    let stand = || format!("{:?}, {:?}, {:?}", spool.report(), host.news.lock().unwrap(), of(&collector, "loud"));
    until_or_say("it is given back", || spool.report().bytes == 0, stand);
    until("the collector is told", || of(&collector, "loud").lost_in_spool > 0);
    assert_eq!(of(&collector, "loud").lost_in_spool, lost);
    until("it is told", || {
        let told = |news: &News| if let News::Refused { records, .. } = news { *records } else { 0 };
        host.news.lock().unwrap().iter().map(told).sum::<u64>() == lost
    });
    // Records still in the writers' caches replace some of the loss.
    until("the quiet one's are all there", || numbers(&archive).iter().filter(|number| **number >= 20_000).count() == 100);
    let kept = numbers(&archive);
    assert!(kept.len() as u64 >= 20_100 - lost && kept.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn two_collectors_get_everything_and_the_end_of_one_is_nothing_to_the_other() {
    let host = Host::new(Vec::new());
    let (one, first) = host.collect("one");
    let (other, _second) = host.collect("two");
    let spool = host.spool(SpoolOptions::default());
    let logger = host.logger("DV01");
    (0..1000).for_each(|number| info!(logger, "number {number}"));
    until("both have it", || [&one, &other].iter().all(|archive| archive.health().records >= 1000));
    drop(first);
    (1000..2000).for_each(|number| info!(logger, "number {number}"));
    assert!(logger.flush_to_archive(PATIENCE));
    assert!(numbers(&other).into_iter().eq(0..2000));
    // A collector keeps the records, so the spool stays empty.
    assert_eq!((spool.report().records, spool.report().replayed), (0, 0));
    drop(one);
    let (one, _first) = host.collect("one");
    until("the first has caught up", || one.health().records >= 2000);
    assert!(numbers(&one).into_iter().eq(0..2000));
}

#[test]
fn a_full_disk_acknowledges_nothing_that_is_not_on_it() {
    let host = Host::new(Vec::new());
    // A directory has the name of the next file, so no file can be made there.
    let hurdle = host.spool_dir().join("spool-00000001.wal");
    let spool = host.spool(options());
    std::fs::create_dir_all(hurdle.join("x")).unwrap();
    let logger = host.logger("DV01");
    (0..10).for_each(|number| info!(logger, "number {number}"));
    until("it is stuck", || spool.report().stuck.is_some());
    assert_eq!(spool.report().records, 0);
    std::fs::remove_dir_all(&hurdle).unwrap();
    until("it goes on by itself", || spool.report().records == 10 && spool.report().stuck.is_none());
    let told: Vec<News> = host.news.lock().unwrap().clone();
    assert!(told.contains(&News::Stuck(None)) && told.iter().any(|news| matches!(news, News::Stuck(Some(_)))), "{told:?}");
    let asker = host.join("asker");
    let answers = spool::reports(&asker, PATIENCE).unwrap();
    assert_eq!((answers.len(), answers[0]["records"].as_u64(), answers[0]["doing"].as_str()), (1, Some(10), Some("spooling")));
}
