//! Log records through the gateway of a real hub: into the archive, and out of it where a client has fallen behind.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tampu_bus::{Qos, TypeTag, gateway::GatewayClient};
use tampu_types::{
    Incarnation, Level, LogRecord, Partition, RecordId, Time, TopicName,
    gateway::{
        Kind,
        messages::{Big, Code, Declare, End, GapInfo, Open, Opened, Receipt},
        question::Ask,
    },
    log_batch::encode_records,
};

use crate::{
    gateway::{MIB, batch, body_of, client, declare, next_of, next_of_any, open, participant, subscribe, until_read},
    site::{PATIENCE, Site},
};

#[test]
fn records_and_questions_reach_the_archive() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let mut java = client(&site, "CONTROL/java");
    let wanted = Declare { type_id: Some(2), receipts: tampu_types::gateway::messages::Receipts::Kept, ..declare("log/warning") };
    java.send_json(Kind::Declare, 1, &wanted).unwrap();
    let opened: Opened = next_of(&mut java, Kind::Opened).json();
    let record = LogRecord {
        id: Some(RecordId { incarnation: opened.incarnation.unwrap(), ring: 0, number: 0 }),
        time: Time(1_795_334_400_123_456_789),
        process: "CONTROL/java".into(),
        ..LogRecord::new(Level::Warning, "said without the bus")
    };
    java.send(Kind::Publish, 1, 1, &body_of(&[&encode_records(&[record]).unwrap()])).unwrap();
    loop {
        let receipt: Receipt = next_of(&mut java, Kind::Receipt).json();
        if receipt.kept == Some(Big(1)) {
            break;
        }
    }
    let found = site.find(1, &["--contains", "without the bus"]);
    assert_eq!(found[0]["process"], "CONTROL/java");

    let mut body = Vec::new();
    let question = br#"{"min_level":"Warning","text":"without the bus"}"#;
    Ask { timeout_ms: 10_000, all: false, service: "log/query", question }.encode(&mut body);
    java.send(Kind::Ask, 0, 2, &body).unwrap();
    let part = next_of(&mut java, Kind::Part);
    let (_, content) = part.body.split_at(16);
    let records = tampu_types::log_batch::decode_records(content).unwrap();
    assert_eq!(records[0].message, "said without the bus");
    assert!(String::from_utf8_lossy(&next_of(&mut java, Kind::Part).body).contains("scanned"));
    assert_eq!(next_of_any(&mut java, Kind::Ended).json::<End>().code, Code::Done);

    let mut body = Vec::new();
    Ask { timeout_ms: 10_000, all: false, service: "log/query", question: b"{\"sinze\":1}" }.encode(&mut body);
    java.send(Kind::Ask, 0, 3, &body).unwrap();
    let end: End = next_of_any(&mut java, Kind::Ended).json();
    assert!(end.code == Code::Failed && end.error.contains("sinze"), "{end:?}");
}

/// Records in the DATA frames of a subscription of logs, until there are this many: their ids, and how many came from the
/// archive; with the gaps that came between them.
fn records(client: &mut GatewayClient, id: u32, count: usize, with: &str) -> (Vec<RecordId>, usize, Vec<GapInfo>) {
    let (mut ids, mut archived, mut gaps) = (Vec::new(), 0, Vec::new());
    let mut granted = 0;
    while ids.len() < count {
        granted += MIB;
        client.credit(id, granted).unwrap();
        let frame = client.next(PATIENCE).unwrap().unwrap_or_else(|| panic!("only {} records came", ids.len()));
        match frame.kind {
            Kind::Data => {
                let (header, samples) = batch(frame.body);
                for record in samples.iter().flat_map(|sample| tampu_types::log_batch::decode_records(sample).unwrap()) {
                    if record.message.contains(with) {
                        ids.push(record.id.unwrap());
                        archived += usize::from(header.stream == u32::MAX);
                    }
                }
            }
            Kind::Gap => gaps.push(serde_json::from_slice(frame.body).unwrap()),
            _ => {}
        }
    }
    (ids, archived, gaps)
}

/// A record of 1 kB.
fn record(incarnation: Incarnation, number: u64, text: &str) -> LogRecord {
    LogRecord {
        id: Some(RecordId { incarnation, ring: 0, number }),
        time: Time(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64),
        process: "CONTROL/java".into(),
        ..LogRecord::new(Level::Warning, format!("{text} {}", "x".repeat(1000)))
    }
}

/// Publishes records with consecutive numbers.
fn say(client: &mut GatewayClient, id: u32, incarnation: Incarnation, numbers: std::ops::Range<u64>, text: &str) {
    for number in numbers {
        let record = record(incarnation, number, text);
        client.send(Kind::Publish, 0, id, &body_of(&[&encode_records(&[record]).unwrap()])).unwrap();
        while client.next(Duration::ZERO).unwrap().is_some() {}
    }
}

#[test]
fn the_archive_fills_the_gaps_of_a_paused_log_without_doubles() {
    const RECORDS: u64 = 6000;
    let site = Site::new();
    // Caches that reach less far than the pause.
    let config = site.file("tampu.toml", "[[topic]]\ntopics = \"log/warning\"\ncache = 262144\nkeep = 0\n");
    let _hub = site.hub_of_roles(&["--config", &config]);
    let mut paused = client(&site, "paused");
    subscribe(&mut paused, 1, &open("log/*", 0));
    let mut java = client(&site, "CONTROL/java");
    java.send_json(Kind::Declare, 1, &Declare { type_id: Some(2), ..declare("log/warning") }).unwrap();
    let opened: Opened = next_of(&mut java, Kind::Opened).json();
    let incarnation = opened.incarnation.unwrap();
    for start in (0..RECORDS).step_by(500) {
        say(&mut java, 1, incarnation, start..start + 500, "while it was paused");
        assert!(!matches!(paused.next(Duration::ZERO), Ok(Some(frame)) if frame.kind == Kind::Data));
    }
    let (ids, archived, gaps) = records(&mut paused, 1, RECORDS as usize, "while it was paused");
    let numbers: std::collections::BTreeSet<u64> = ids.iter().map(|id| id.number).collect();
    assert_eq!((numbers.len() as u64, ids.len() as u64), (RECORDS, RECORDS), "each once");
    assert!(archived > 0, "the caches reached far enough, so nothing was tested");
    // The end of the gap comes after its records.
    say(&mut java, 1, incarnation, RECORDS..RECORDS + 10, "afterwards");
    let (ids, _, later) = records(&mut paused, 1, 10, "afterwards");
    assert_eq!(ids.iter().map(|id| id.number - RECORDS).collect::<Vec<u64>>(), (0..10).collect::<Vec<u64>>());
    let gaps: Vec<GapInfo> = gaps.into_iter().chain(later).collect();
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| gap.filled), "{gaps:?}");

    // A subscription that begins in the archive, with a query.
    let since = Time(1_700_000_000_000_000_000);
    let query = json!({"text": "afterwards", "min_level": "Warning"});
    let from_archive = Open { topics: vec!["log/*".into()], since: Some(since), query: Some(query), ..Open::default() };
    let mut late = client(&site, "late");
    subscribe(&mut late, 1, &from_archive);
    say(&mut java, 1, incarnation, RECORDS + 10..RECORDS + 20, "afterwards, and unlike the rest");
    say(&mut java, 1, incarnation, RECORDS + 20..RECORDS + 25, "not asked for");
    say(&mut java, 1, incarnation, RECORDS + 25..RECORDS + 30, "afterwards");
    let (ids, ..) = records(&mut late, 1, 25, "");
    let numbers: Vec<u64> = ids.iter().map(|id| id.number - RECORDS).collect();
    assert_eq!(numbers, (0..20).chain(25..30).collect::<Vec<u64>>());
}

#[test]
fn the_archive_fills_the_gap_of_a_program_that_has_ended() {
    const RECORDS: u64 = 3000;
    let site = Site::new();
    let config = site.file("tampu.toml", "[[topic]]\ntopics = \"log/warning\"\ncache = 262144\nkeep = 0\n");
    let _hub = site.hub_of_roles(&["--config", &config]);
    let mut paused = client(&site, "paused");
    subscribe(&mut paused, 1, &open("log/*", 0));
    let program = participant(&site, "CONTROL/program");
    let topic = TopicName::new("log/warning").unwrap();
    let qos = Qos { cache: 256 << 10, ..Qos::default() };
    let writer = program.writer(&topic, &Partition::everybody(), TypeTag::LOG_BATCH, qos).unwrap();
    // The collector and the gateway. Without them the small cache would lose the first records.
    until_read(&writer, 2);
    for number in 0..RECORDS {
        writer.write(&encode_records(&[record(program.incarnation(), number, "before it ended")]).unwrap()).unwrap();
    }
    assert_eq!(site.find(RECORDS as usize, &["--contains", "before it ended", "-n", "4000"]).len() as u64, RECORDS);
    drop((writer, program));

    let (ids, archived, mut gaps) = records(&mut paused, 1, RECORDS as usize, "before it ended");
    let numbers: std::collections::BTreeSet<u64> = ids.iter().map(|id| id.number).collect();
    assert_eq!((numbers.len() as u64, ids.len() as u64), (RECORDS, RECORDS), "each once");
    assert!(archived > 0, "the caches reached far enough, so nothing was tested");
    if gaps.is_empty() {
        gaps.push(next_of(&mut paused, Kind::Gap).json());
    }
    assert!(gaps.iter().all(|gap| gap.filled), "{gaps:?}");
}
