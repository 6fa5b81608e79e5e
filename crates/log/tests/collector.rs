//! The collector on the bus: what is acknowledged is durable, what is lost is a record, what is asked is answered.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use tampu_archive::{
    Appended, Archive, ArchiveError, Arrival, BackedUp, Checked, Compacted, Counts, Doing, Found, Grouping, Health, LocalArchive,
    Patterns, PatternsWanted, Scanned, Stop, StreamOffset, Told,
    columns::{ColumnBatch, ColumnTable, ColumnType, ColumnValue, log_columns},
    query::{Field, Query},
};
use tampu_bus::{
    Participant, Qos, QosTable, ReaderQos, TypeTag, Writer,
    access::{Access, Authorise, Denied, Principal, Resource, Verb},
    connect::{Node, NodeSettings, Settings},
    service::{CallError, Limits, Permission, Request, serve},
};
use tampu_log::{
    LogSettings, Logger,
    collector::{Collector, CollectorOptions, IMPORT_TOPIC, ask, quota::Quotas},
};
use tampu_types::{
    Level, LogRecord, Partition, PartitionFilter, SourceName, TopicFilter, TopicName,
    log_batch::{TYPE_ID, VERSION, encode_records},
};

#[path = "../../archive/tests/support/mod.rs"]
mod support;
use support::*;

const LOG_BATCH: TypeTag = TypeTag { id: TYPE_ID, version: VERSION };

/// A node of its own, and processes that meet there. The real engine, because the archive lives in real time.
struct Net {
    _node: Node,
    config: Settings,
    _dir: tempfile::TempDir,
}

impl Net {
    fn new() -> Net {
        let dir = tempfile::tempdir().unwrap();
        let config = Settings::isolated(dir.path().join("run")).in_domain(domain());
        let node = Node::start(NodeSettings::new(config.clone())).unwrap();
        Net { _node: node, config, _dir: dir }
    }

    fn join(&self, name: &str) -> Participant {
        let engine = self.config.open().unwrap();
        Participant::on(engine, domain(), SourceName::new(name).unwrap(), QosTable::default()).unwrap()
    }
}

fn collect(net: &Net, dir: &Path) -> (Arc<LocalArchive>, Collector) {
    let archive = Arc::new(open(dir));
    let options = CollectorOptions::new(dir.join("rejected"));
    let collector = Collector::start(net.join("collector"), archive.clone(), options).unwrap();
    (archive, collector)
}

fn writer(participant: &Participant, topic: &str) -> Writer {
    participant.writer(&TopicName::new(topic).unwrap(), &Partition::everybody(), LOG_BATCH, Qos::default()).unwrap()
}

/// A writer that knows of the collector: what it writes before that is for nobody.
fn heard_writer(participant: &Participant, topic: &str) -> Writer {
    let writer = writer(participant, topic);
    until("the writer knows of its reader", || !writer.readers().is_empty());
    writer
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::yield_now();
    }
}

fn records(participant: &Participant, numbers: std::ops::Range<u64>) -> Vec<LogRecord> {
    numbers.map(|number| record(participant.incarnation(), 0, number)).collect()
}

#[test]
fn what_is_acknowledged_is_durable_and_comes_once() {
    let (net, dir) = (Net::new(), support::dir());
    let antenna = net.join("DV01");
    let (info, import) = (writer(&antenna, "log/info"), writer(&antenna, IMPORT_TOPIC));
    // Written before a collector runs, and kept for it.
    info.write(&encode_records(&records(&antenna, 0..10)).unwrap()).unwrap();
    let (archive, collector) = collect(&net, dir.path());
    for batch in 1..5 {
        info.write(&encode_records(&records(&antenna, batch * 10..batch * 10 + 10)).unwrap()).unwrap();
    }
    import.write(&encode_records(&records(&antenna, 45..60)).unwrap()).unwrap();
    until("all has come", || archive.health().records == 60);
    assert_eq!(archive.health().duplicates, 5);
    until("both are acknowledged", || [&info, &import].iter().all(|writer| writer.flush(Duration::from_millis(100)).complete()));
    let status = collector.status();
    let source = status.sources.iter().find(|source| source.source == "DV01").unwrap();
    assert_eq!((source.received, source.duplicates, source.lost_samples, source.rejected), (60, 5, 0, 0));

    // A restarted collector continues at the archive's offsets.
    drop(collector);
    drop(archive);
    info.write(&encode_records(&records(&antenna, 60..70)).unwrap()).unwrap();
    let (archive, _collector) = collect(&net, dir.path());
    until("the rest has come", || archive.health().records == 70);
    assert_eq!(ids(&*archive).len(), 70);
}

/// Some at a time: a thousand processes that come and go in a night, not a thousand at once.
#[test]
#[ignore = "takes a minute: make test-all"]
fn a_thousand_sources_are_each_accounted_for() {
    const TOGETHER: usize = 25;
    let (net, dir) = (Net::new(), support::dir());
    let (archive, collector) = collect(&net, dir.path());
    for group in 0..1000 / TOGETHER {
        let sources: Vec<_> = (0..TOGETHER)
            .map(|place| {
                let source = net.join(&format!("DV{:04}", group * TOGETHER + place));
                let writer = writer(&source, "log/info");
                writer.write(&encode_records(&records(&source, 0..10)).unwrap()).unwrap();
                (source, writer)
            })
            .collect();
        let all = (group + 1) * TOGETHER * 10;
        until("they are stored", || archive.health().records as usize == all);
        for (_, writer) in &sources {
            until("each is acknowledged", || writer.flush(Duration::from_millis(100)).complete());
        }
    }
    let status = collector.status();
    let accounts: Vec<_> = status.sources.iter().filter(|source| source.source.starts_with("DV")).collect();
    assert_eq!(accounts.len(), 1000);
    for account in accounts {
        assert_eq!((account.received, account.lost_samples, account.duplicates), (10, 0, 0), "{}", account.source);
    }
    assert_eq!(ids(&*archive).len(), 10_000);
}

#[test]
fn a_writer_that_leaves_in_order_is_not_told_dead() {
    let (net, dir) = (Net::new(), support::dir());
    let (archive, collector) = collect(&net, dir.path());
    for round in 1..=4 {
        let importer = net.join("importer");
        let life = importer.incarnation();
        let (import, last) = (writer(&importer, IMPORT_TOPIC), writer(&importer, "log/info"));
        import.write(&encode_records(&records(&importer, 0..5)).unwrap()).unwrap();
        until("it is stored", || archive.health().records == 10 * round - 5);
        // This stream ends early. The process leaves when another stream has been acknowledged, a few heartbeats later.
        drop(import);
        last.write(&encode_records(&records(&importer, 5..10)).unwrap()).unwrap();
        until("the last is acknowledged", || last.flush(Duration::from_millis(100)).complete());
        until("it is stored", || archive.health().records == 10 * round);
        drop(last);
        drop(importer);
        let state =
            || collector.status().sources.into_iter().find(|source| source.incarnation == life).map(|source| source.state);
        until("it is gone", || state().is_some_and(|state| state == "left" || state == "died"));
        assert_eq!(state().as_deref(), Some("left"));
    }
    assert_eq!(archive.health().records, 40);
    let told = Query { fields: [(Field::Logger, vec!["collector".into()])].into(), ..Query::default() };
    assert_eq!(search(&*archive, &told), []);
}

#[test]
fn what_cannot_be_read_is_set_aside_and_stops_nothing() {
    let (net, dir) = (Net::new(), support::dir());
    let antenna = net.join("DV01");
    let info = writer(&antenna, "log/info");
    let topic = TopicName::new("log/notice").unwrap();
    let foreign = antenna.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
    let (archive, collector) = collect(&net, dir.path());
    info.write(b"no log batch").unwrap();
    foreign.write(b"7.5 m/s").unwrap();
    info.write(&encode_records(&records(&antenna, 0..3)).unwrap()).unwrap();
    until("the good one has come", || archive.health().records == 3 && collector.status().rejected == 2);
    until("the bad ones are acknowledged", || info.flush(Duration::from_millis(100)).complete());
    assert_eq!(collector.status().rejected_kept, 2);
    let reasons = std::fs::read_to_string(dir.path().join("rejected/reasons.jsonl")).unwrap();
    assert_eq!(reasons.lines().count(), 2);
    assert!(reasons.contains("its type is 1"), "{reasons}");
    for line in reasons.lines() {
        let reason: serde_json::Value = serde_json::from_str(line).unwrap();
        let kept = std::fs::read(dir.path().join("rejected").join(reason["file"].as_str().unwrap())).unwrap();
        let (header, _) = tampu_types::BatchHeader::decode(&kept).unwrap();
        assert_eq!(header.source.as_str(), "DV01");
    }
}

/// Lets nobody search, nor write what comes from files.
struct LiveOnly;

impl Authorise for LiveOnly {
    fn authorise(&self, principal: &Principal, verb: Verb, resource: &Resource) -> Result<(), Denied> {
        if verb != Verb::Query && resource.name() != IMPORT_TOPIC {
            return Ok(());
        }
        Err(Denied { principal: principal.clone(), verb, resource: resource.clone(), why: "live only".to_owned() })
    }
}

#[test]
fn who_may_not_is_told_so_and_what_it_sends_is_counted_not_kept() {
    let (net, dir) = (Net::new(), support::dir());
    let archive = Arc::new(open(dir.path()));
    let access = Access::new(Arc::new(LiveOnly), Principal::this_user);
    let options = CollectorOptions { access, ..CollectorOptions::new(dir.path().join("rejected")) };
    let collector = Collector::start(net.join("collector"), archive.clone(), options).unwrap();
    let antenna = net.join("DV01");
    let wait = Duration::from_secs(60);

    let denied = match ask::query(&antenna, &Query::default(), wait, &mut |_| true) {
        Err(CallError::Denied(denied)) => denied,
        other => panic!("{other:?}"),
    };
    assert_eq!((denied.principal, denied.verb), (Principal::this_user(), Verb::Query));
    assert_eq!(denied.resource, Resource::Service("log/query".to_owned()));
    // In columns it is the same question.
    let mut table = ColumnTable::new(log_columns(&[]).unwrap());
    let in_columns = ask::columns(&antenna, &Query::default(), wait, &mut table, &mut || true);
    assert!(matches!(in_columns, Err(CallError::Denied(of)) if of.resource == denied.resource && of.verb == Verb::Query));
    assert!(matches!(
        ask::stat(&antenna, &Query::default(), &Grouping::default(), wait),
        Err(CallError::Denied(Denied { verb: Verb::Query, .. }))
    ));

    let (info, import) = (heard_writer(&antenna, "log/info"), heard_writer(&antenna, IMPORT_TOPIC));
    for batch in 0..4 {
        import.write(&encode_records(&records(&antenna, batch * 5..batch * 5 + 5)).unwrap()).unwrap();
    }
    info.write(&encode_records(&records(&antenna, 20..30)).unwrap()).unwrap();
    // A rejected batch counts as done: its writer need not keep it.
    until("both are acknowledged", || [&info, &import].iter().all(|writer| writer.flush(Duration::from_millis(100)).complete()));
    let status = ask::status(&antenna, wait).unwrap();
    let source = status["sources"].as_array().unwrap().iter().find(|source| source["source"] == "DV01").unwrap().clone();
    assert_eq!((source["received"].as_u64(), source["refused"].as_u64()), (Some(10), Some(20)), "{source}");
    assert!(source["refusal"].as_str().unwrap().contains("may not write the topic log-import: live only"), "{source}");

    drop(collector);
    let told = search(&*archive, &Query { fields: [(Field::Logger, vec!["collector".into()])].into(), ..Query::default() });
    let counted =
        |record: &LogRecord| record.data.iter().find(|datum| datum.name == "records").unwrap().value.parse::<u64>().unwrap();
    assert_eq!(told.iter().map(counted).sum::<u64>(), 20, "{told:?}");
    assert!(told[0].message.contains("from DV01 not kept: user"), "{told:?}");
}

#[test]
fn what_is_over_a_sources_quota_is_counted_and_told_exactly() {
    let (net, dir) = (Net::new(), support::dir());
    let archive = Arc::new(open(dir.path()));
    let quotas = Quotas { records_per_s: 5, ..Quotas::none() };
    let options = CollectorOptions { quotas, ..CollectorOptions::new(dir.path().join("rejected")) };
    let collector = Collector::start(net.join("collector"), archive.clone(), options).unwrap();
    let (looper, neighbour) = (net.join("looper"), net.join("neighbour"));
    let sent = 1000;
    let flood = heard_writer(&looper, "log/debug");
    for batch in 0..sent / 10 {
        flood.write(&encode_records(&records(&looper, batch * 10..batch * 10 + 10)).unwrap()).unwrap();
    }
    let (alarm, other) = (heard_writer(&looper, "log/alert"), heard_writer(&neighbour, "log/debug"));
    alarm.write(&encode_records(&records(&looper, sent..sent + 1)).unwrap()).unwrap();
    other.write(&encode_records(&records(&neighbour, 0..10)).unwrap()).unwrap();
    let writers = [&flood, &alarm, &other];
    until("all is acknowledged", || writers.iter().all(|writer| writer.flush(Duration::from_millis(100)).complete()));

    let status = collector.status();
    let of = |name: &str| status.sources.iter().find(|source| source.source == name).unwrap();
    let (kept, over) = (of("looper").received, of("looper").over_quota);
    assert_eq!(kept + over, sent + 1);
    // The burst may span two periods of the quota, or more on a host that was suspended.
    assert!(over > 0 && kept >= 51, "{status:?}");
    assert_eq!((of("neighbour").received, of("neighbour").over_quota), (10, 0));
    assert!(ids(&*archive).iter().any(|id| id.number == sent), "the alarm is kept");

    drop(collector);
    let told = search(&*archive, &Query { fields: [(Field::Logger, vec!["collector".into()])].into(), ..Query::default() });
    let value = |record: &LogRecord, name: &str| record.data.iter().find(|datum| datum.name == name).unwrap().value.clone();
    assert_eq!(told.iter().map(|record| value(record, "records").parse::<u64>().unwrap()).sum::<u64>(), over);
    assert!(told.iter().all(|record| value(record, "why") == "over its quota of 5 records/s"), "{told:?}");
}

#[test]
fn a_gap_becomes_a_record_that_names_it() {
    let (net, dir) = (Net::new(), support::dir());
    let antenna = net.join("DV01");
    let topic = TopicName::new("log/info").unwrap();
    // A cache that holds a few batches, and a collector that returns after many.
    let small = Qos { batch: 4 << 10, cache: 32 << 10, keep: 32 << 10, credit: 4 << 10, ..Qos::default() };
    let qos = Qos { max_wait: Duration::ZERO, ..small };
    let info = antenna.writer(&topic, &Partition::everybody(), LOG_BATCH, qos).unwrap();
    let (archive, collector) = collect(&net, dir.path());
    info.write(&encode_records(&records(&antenna, 0..5)).unwrap()).unwrap();
    until("the first has come", || archive.health().records == 5);
    drop(collector);
    drop(archive);
    for number in 1..200 {
        info.write(&encode_records(&records(&antenna, number * 5..number * 5 + 5)).unwrap()).unwrap();
    }
    let (archive, collector) = collect(&net, dir.path());
    until("the last has come", || ids(&*archive).iter().any(|id| id.number == 999));
    let query = Query { fields: [(Field::Logger, vec!["collector".into()])].into(), ..Query::default() };
    let told = search(&*archive, &query);
    assert_eq!(told.len(), 1, "{told:?}");
    let gap = &told[0];
    assert_eq!((gap.level, gap.process.as_str()), (Level::Warning, "collector"));
    let value = |name: &str| gap.data.iter().find(|datum| datum.name == name).unwrap().value.clone();
    assert_eq!((value("source").as_str(), value("from").as_str()), ("DV01", "1"));
    let lost = value("to").parse::<u64>().unwrap() - 1;
    assert!(gap.message.starts_with(&format!("{lost} samples of log/info from DV01 lost")), "{}", gap.message);
    // Stored records and reported losses add up to all records.
    assert_eq!(archive.health().records - 1 + lost * 5, 1000);
    let status = collector.status();
    assert_eq!(status.sources.iter().find(|source| source.source == "DV01").unwrap().lost_samples, lost);
}

#[test]
fn questions_are_answered_whole() {
    let (net, dir) = (Net::new(), support::dir());
    let antenna = net.join("DV01");
    let asker = net.join("asker");
    let (archive, _collector) = collect(&net, dir.path());
    // More than one part.
    let mut all = records(&antenna, 0..8000);
    all[17].message = "long ".repeat(300_000);
    let info = writer(&antenna, "log/info");
    for packet in all.chunks(500) {
        let packet = encode_records(packet).unwrap();
        until("there is room", || info.write(&packet).is_ok());
    }
    until("all has come", || archive.health().records == 8000);
    let wait = Duration::from_secs(60);
    let mut found = Vec::new();
    let scanned = ask::query(&asker, &Query { newest_first: true, ..Query::default() }, wait, &mut |record| {
        found.push(record);
        true
    });
    assert_eq!(scanned.unwrap().found, 8000);
    found.reverse();
    assert!(found.iter().all(|record| record.received.is_some()));
    found.iter_mut().for_each(|record| record.received = None);
    assert_eq!(found, all);

    // The same records in columns, among them the long one.
    let mut table = ColumnTable::new(log_columns(&["time", "message", "level"].map(str::to_owned)).unwrap());
    let scanned = ask::columns(&asker, &Query::default(), wait, &mut table, &mut || true).unwrap();
    assert_eq!((scanned.found, scanned.complete), (8000, true));
    let batches = table.into_batches();
    let values = |batch: &ColumnBatch, row: usize| [0, 1, 2].map(|at| format!("{:?}", batch.columns[at].value(row)));
    let found: Vec<_> = batches.iter().flat_map(|batch| (0..batch.rows).map(move |row| values(batch, row))).collect();
    let expected = |record: &LogRecord| {
        let texts = [&record.message, record.level.name()].map(ColumnValue::Text);
        [ColumnValue::Integer(record.time.0), texts[0], texts[1]].map(|value| format!("{value:?}"))
    };
    assert!(found.into_iter().eq(all.iter().map(expected)));
    // An asker that wants no more gets no error.
    let mut table = ColumnTable::new(log_columns(&[]).unwrap());
    let scanned = ask::columns(&asker, &Query::default(), wait, &mut table, &mut || false).unwrap();
    assert!(!scanned.complete);

    let by = Grouping { level: true, ..Grouping::default() };
    let counts = ask::stat(&asker, &Query::default(), &by, wait).unwrap();
    assert_eq!((counts.total, counts.rows.len()), (8000, 10));
    let patterns = ask::patterns(&asker, &Query::default(), PatternsWanted { limit: 3, bins: 0 }, wait).unwrap();
    assert_eq!((patterns.total, patterns.patterns.len(), patterns.complete), (8000, 3, true));
    let status = ask::status(&asker, wait).unwrap();
    assert_eq!(status["archive"]["records"], 8000);
    assert_eq!(status["collector"], "collector");

    let bad = Query { regex: Some("(".into()), ..Query::default() };
    let error = ask::query(&asker, &bad, wait, &mut |_| true).unwrap_err().to_string();
    assert!(error.contains("unclosed"), "{error}");
    let mut table = ColumnTable::new([("colour", ColumnType::Text)]);
    let error = ask::columns(&asker, &Query::default(), wait, &mut table, &mut || true).unwrap_err().to_string();
    assert!(error.contains("records have no column 'colour'"), "{error}");
}

/// A collector without answers in columns refuses the member that it does not know. One of another make skips it.
#[test]
fn of_an_older_collector_columns_are_made_of_its_records() {
    for refuses in [true, false] {
        let net = Net::new();
        let (older, asker) = (net.join("older"), net.join("asker"));
        let all = records(&older, 0..300);
        let kept = all.clone();
        let answer = move |request: Request| {
            let mut question: serde_json::Value = request.json().unwrap();
            if !refuses {
                question.as_object_mut().unwrap().remove("columns");
            }
            let query = Query::from_json(question.to_string().as_bytes());
            match query.and_then(|query| query.compile().map(|_| query)) {
                Ok(query) => {
                    let found = &kept[..query.limit.map_or(300, |limit| limit.min(300) as usize)];
                    request.part(&encode_records(found).unwrap());
                    let scanned = Scanned { found: found.len() as u64, complete: found.len() == 300, ..Scanned::default() };
                    request.answer(&serde_json::json!({ "scanned": scanned }));
                }
                Err(why) => request.refuse(why),
            }
        };
        let limits = Limits::inline();
        let _serving = serve(&older, &TopicName::new("log/query").unwrap(), Permission::Everybody, &limits, answer).unwrap();
        let wait = Duration::from_secs(60);
        for limit in [None, Some(70)] {
            let mut table = ColumnTable::new(log_columns(&["message".to_owned(), "id".to_owned()]).unwrap());
            let query = Query { limit, ..Query::default() };
            let mut answered = None;
            until("the service is found", || {
                answered = ask::columns(&asker, &query, wait, &mut table, &mut || true).ok();
                answered.is_some()
            });
            let wanted = limit.unwrap_or(300) as usize;
            assert_eq!(answered.map(|scanned| scanned.found), Some(wanted as u64), "{refuses}");
            let batch = table.into_batches().remove(0);
            assert_eq!(batch.rows, wanted);
            for (row, record) in all[..wanted].iter().enumerate() {
                let id = record.id.unwrap().to_string();
                let expected = [&record.message, &id].map(|text| ColumnValue::Text(text));
                assert_eq!([0, 1].map(|column: usize| batch.columns[column].value(row)), expected);
            }
        }
        // Other refusals stay errors.
        let mut table = ColumnTable::new(log_columns(&[]).unwrap());
        let bad = Query { regex: Some("(".into()), ..Query::default() };
        let error = ask::columns(&asker, &bad, wait, &mut table, &mut || true).unwrap_err().to_string();
        assert!(error.contains("unclosed"), "{error}");
    }
}

#[test]
fn an_acknowledged_call_is_in_the_archive_when_it_returns_and_a_viewer_s_word_is_not_enough() {
    let (net, dir) = (Net::new(), support::dir());
    let source = SourceName::new("DV01").unwrap();
    let logger = Logger::on(net.join("DV01"), LogSettings::isolated(domain(), source)).unwrap();
    // A viewer that only reads, and acknowledges the records it has seen.
    let (viewer, over) = (net.join("viewer"), std::sync::atomic::AtomicBool::new(false));
    std::thread::scope(|scope| {
        let over = &over;
        let mut reader = viewer.reader(&TopicFilter::new("log/*").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
        scope.spawn(move || {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                reader.next(Duration::from_millis(10));
            }
        });
        let sure = logger.acknowledged(Duration::from_millis(300));
        tampu_log::info!(sure, "nobody keeps this yet");
        assert_eq!(sure.unconfirmed(), 1);
        assert!(logger.flush(Duration::from_secs(60)), "the viewer has it");
        let (archive, _collector) = collect(&net, dir.path());
        assert!(logger.flush_to_archive(Duration::from_secs(60)));
        let sure = logger.acknowledged(Duration::from_secs(60));
        for number in 0..10 {
            tampu_log::warning!(sure, "kept {number}");
            let kept = all(&*archive).iter().filter(|record| record.message.starts_with("kept")).count();
            assert_eq!(kept, number + 1, "when the call returns");
        }
        assert!(sure.is_confirmed());
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// An archive in which every search goes on until it is stopped.
struct Endless {
    archive: LocalArchive,
    running: std::sync::atomic::AtomicUsize,
    appends: std::sync::atomic::AtomicUsize,
}

impl Endless {
    fn at(dir: &Path) -> Arc<Endless> {
        Arc::new(Endless { archive: open(dir), running: Default::default(), appends: Default::default() })
    }
}

impl Archive for Endless {
    fn append(&self, arrival: &Arrival<'_>) -> Result<Appended, ArchiveError> {
        self.appends.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        self.archive.append(arrival)
    }

    fn committed(&self) -> u64 {
        self.archive.committed()
    }

    fn on_commit(&self, told: Told) {
        self.archive.on_commit(told);
    }

    fn flush(&self, timeout: Duration) -> bool {
        self.archive.flush(timeout)
    }

    fn search(&self, _: &Query, stop: &Stop, _: &mut dyn FnMut(Found<'_>) -> bool) -> Result<Scanned, ArchiveError> {
        use std::sync::atomic::Ordering;
        self.running.fetch_add(1, Ordering::SeqCst);
        while !stop.is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(Scanned::default())
    }

    fn columns(
        &self,
        query: &Query,
        schema: &[(&'static str, ColumnType)],
        stop: &Stop,
        sink: &mut dyn FnMut(ColumnBatch) -> bool,
    ) -> Result<Scanned, ArchiveError> {
        self.archive.columns(query, schema, stop, sink)
    }

    fn count(&self, query: &Query, by: &Grouping, stop: &Stop) -> Result<Counts, ArchiveError> {
        self.archive.count(query, by, stop)
    }

    fn patterns(&self, query: &Query, wanted: &PatternsWanted, stop: &Stop) -> Result<Patterns, ArchiveError> {
        self.archive.patterns(query, wanted, stop)
    }

    fn compact(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Compacted, ArchiveError> {
        self.archive.compact(stop, doing)
    }

    fn check(&self, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<Checked, ArchiveError> {
        self.archive.check(stop, doing)
    }

    fn backup(&self, target: &Path, stop: &Stop, doing: &mut dyn FnMut(Doing)) -> Result<BackedUp, ArchiveError> {
        self.archive.backup(target, stop, doing)
    }

    fn offsets(&self) -> Vec<StreamOffset> {
        self.archive.offsets()
    }

    fn health(&self) -> Health {
        self.archive.health()
    }
}

#[test]
fn a_search_without_end_ends_at_its_limit_or_with_who_asked_for_it() {
    use std::sync::atomic::Ordering;
    let (net, dir) = (Net::new(), support::dir());
    let archive = Endless::at(dir.path());
    let start = |search_time| {
        let options = CollectorOptions { search_time, ..CollectorOptions::new(dir.path().join("rejected")) };
        Collector::start(net.join("collector"), archive.clone(), options).unwrap()
    };
    let collector = start(Duration::from_millis(50));
    let scanned = ask::query(&net.join("asker"), &Query::default(), Duration::from_secs(60), &mut |_| true).unwrap();
    assert!(!scanned.complete);
    drop(collector);
    // Longer than any test waits: only the end of the asker can end it.
    let _collector = start(Duration::from_secs(3600));
    let asker = net.join("asker");
    let question = Query { asker: Some(asker.incarnation()), ..Query::default() };
    let question = serde_json::to_vec(&question).unwrap();
    let begun = Instant::now();
    let answers = loop {
        let answers =
            asker.ask(&TopicName::new("log/query").unwrap(), question.clone().into(), Duration::from_secs(3600)).unwrap();
        let asked = Instant::now();
        while archive.running.load(Ordering::SeqCst) == 0 && asked.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if archive.running.load(Ordering::SeqCst) > 0 {
            break answers;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "nobody searches");
    };
    drop((answers, asker));
    until("the search ends", || archive.running.load(Ordering::SeqCst) == 0);
}

#[test]
fn packets_of_one_batch_are_appended_together_and_each_is_judged_for_itself() {
    let (net, dir) = (Net::new(), support::dir());
    let archive = Endless::at(dir.path());
    let quotas = serde_json::from_str(r#"{"records_per_s": 0, "source": [{"names": "looper", "records_per_s": 1}]}"#).unwrap();
    let options = CollectorOptions { quotas, ..CollectorOptions::new(dir.path().join("rejected")) };
    let collector = Collector::start(net.join("collector"), archive.clone(), options).unwrap();
    // The first packet is sent at once. The others wait for a flush, and share a batch.
    let send = |participant: &Participant, topic: &str, packets: &[Vec<u8>]| {
        let qos = Qos { linger: Duration::from_secs(3600), ..Qos::default() };
        let writer = participant.writer(&TopicName::new(topic).unwrap(), &Partition::everybody(), LOG_BATCH, qos).unwrap();
        until("the writer knows of its reader", || !writer.readers().is_empty());
        for packet in packets {
            writer.write(packet).unwrap();
        }
        // One receipt for all: a later one would be about nothing.
        assert!(writer.flush(Duration::from_secs(60)).complete());
        assert_eq!(writer.stats().batches, 2);
        archive.appends.swap(0, std::sync::atomic::Ordering::SeqCst)
    };
    let (antenna, looper) = (net.join("DV01"), net.join("looper"));
    let one = |participant: &Participant, number| encode_records(&records(participant, number..number + 1)).unwrap();
    let packets: Vec<_> = (0..100).map(|number| one(&antenna, number)).collect();
    assert_eq!(send(&antenna, "log/info", &packets), 2, "a batch is one arrival");
    let mut packets: Vec<_> = (100..105).map(|number| one(&antenna, number)).collect();
    packets[2] = b"no packet".to_vec();
    send(&antenna, "log/debug", &packets);
    let packets: Vec<_> = (0..31).map(|number| one(&looper, number)).collect();
    send(&looper, "log/info", &packets);

    let status = collector.status();
    let of = |name: &str| status.sources.iter().find(|source| source.source == name).unwrap();
    assert_eq!((of("DV01").received, of("DV01").rejected, of("DV01").over_quota), (104, 1, 0));
    let kept = of("looper").received;
    assert!(matches!(kept, 10..=11) && of("looper").over_quota == 31 - kept, "of two spans at most: {status:?}");
    let found = ids(&archive.archive);
    let of = |participant: &Participant| {
        let of_life = found.iter().filter(|id| id.incarnation == participant.incarnation());
        of_life.map(|id| id.number).collect::<Vec<_>>()
    };
    assert_eq!(of(&antenna), (0..105).filter(|&number| number != 102).collect::<Vec<_>>());
    assert_eq!(of(&looper), (0..kept).collect::<Vec<_>>(), "the oldest");
}
