//! Two hosts and a cable between them that is cut. Needs root and iproute2, so it belongs to `make test-all`.

use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant, SystemTime},
};

use tampu_bus::{Event, History, Qos, ReaderQos, TypeTag, clock::Gate, connect::Encryption};
use tampu_tls::{Authority, CertificateDir, HostNames, KeyPairChoice};
use tampu_types::{Partition, PartitionFilter, TopicFilter, TopicName};

#[path = "support/hosts.rs"]
mod hosts;
use hosts::{ADDRESSES, Hosts, Process, host, ip, role, say};

/// Duration of the cut.
const CUT: Duration = Duration::from_secs(5);
/// Digits of the boot ids of the two hosts, which also name the directories of their files.
const WRITER: &str = "11";
const READER: &str = "22";
/// Samples that a late reader fetches, and their length: 8 MB, which take 6.7 s at 10 Mbit/s.
const STOCK: (u64, usize) = (2000, 4096);

/// Not a test by itself: what the processes on the two hosts do until their input ends.
#[test]
#[ignore = "a part of the cable test, which make test-all runs"]
fn host_process() {
    let Some((role, over)) = role() else { return };
    match role.as_str() {
        "writer" => write(&over),
        "stock" => write_stock(&over),
        "late" => fetch_stock(&over),
        _ => read(&over),
    }
}

/// Writes a hundred samples a second; says when a reader is matched, and the longest a write ever took.
fn write(over: &AtomicBool) {
    let (_node, participant) = host(true, "writer", Encryption::from_env().unwrap());
    let topic = TopicName::new("cable/numbers").unwrap();
    let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap();
    let (pause, mut matched, mut longest) = (Gate::default(), false, Duration::ZERO);
    say("ready");
    for number in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let begin = Instant::now();
        let written = writer.write(&number.to_le_bytes()).unwrap();
        longest = longest.max(begin.elapsed());
        if written.matched > 0 && !std::mem::replace(&mut matched, true) {
            say("matched");
        }
        assert!(longest < Duration::from_secs(1), "a write took {longest:?}");
        pause.wait_host(0, Duration::from_millis(10));
    }
}

/// Says what it hears of the writer, and every hundredth sample; ends if one is missing or out of order.
fn read(over: &AtomicBool) {
    let (_node, participant) = host(false, "reader", Encryption::from_env().unwrap());
    let topics = TopicFilter::new("cable/**").unwrap();
    let mut reader = participant.reader(&topics, &PartitionFilter::All, ReaderQos::default()).unwrap();
    let mut next = None;
    say("ready");
    while !over.load(Ordering::Relaxed) {
        match reader.next(Duration::from_millis(200)) {
            Some(Event::Sample(sample)) => {
                let number = u64::from_le_bytes(sample.payload.bytes().unwrap().try_into().unwrap());
                assert_eq!(number, next.unwrap_or(number), "in order and without holes");
                next = Some(number + 1);
                if number % 100 == 0 {
                    say("samples");
                }
            }
            Some(Event::Gap(gap)) => say(&format!("gap {gap:?}")),
            Some(Event::Source(change)) => say(&format!("{:?}", change.state)),
            None => {}
        }
    }
}

/// Writes samples before there is a reader, and keeps them.
fn write_stock(over: &AtomicBool) {
    let (_node, participant) = host(true, "writer", Encryption::from_env().unwrap());
    let topic = TopicName::new("cable/stock").unwrap();
    let qos = Qos { keep: 32 << 20, ..Qos::default() };
    let writer = participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, qos).unwrap();
    for number in 0..STOCK.0 {
        let mut sample = vec![7; STOCK.1];
        sample[..8].copy_from_slice(&number.to_le_bytes());
        writer.write(&sample).unwrap();
    }
    say("ready");
    while !over.load(Ordering::Relaxed) {
        Gate::default().wait_host(0, Duration::from_millis(50));
    }
}

/// Reads all samples that the writer keeps.
fn fetch_stock(over: &AtomicBool) {
    let (_node, participant) = host(false, "reader", Encryption::from_env().unwrap());
    let topics = TopicFilter::new("cable/**").unwrap();
    let qos = ReaderQos { history: History::All, ..ReaderQos::default() };
    let mut reader = participant.reader(&topics, &PartitionFilter::All, qos).unwrap();
    let mut next = 0;
    while !over.load(Ordering::Relaxed) {
        match reader.next(Duration::from_millis(200)) {
            Some(Event::Sample(sample)) => {
                let number = u64::from_le_bytes(*sample.payload.bytes().unwrap().first_chunk().unwrap());
                assert_eq!(number, next, "in order and without holes");
                next += 1;
                if next == STOCK.0 {
                    say(&format!("{:?}", reader.stats()));
                    say("all");
                }
            }
            Some(Event::Gap(gap)) => say(&format!("bad gap {gap:?}")),
            Some(Event::Source(_)) | None => {}
        }
    }
}

/// Makes the certificates of both hosts, where each looks for its own.
fn certify(directory: &Path) {
    let now = SystemTime::now();
    let authority = Authority::create(&CertificateDir::new(directory.join("authority")), "two hosts", now).unwrap();
    for ((name, boot), address) in [("writer", WRITER), ("reader", READER)].into_iter().zip(ADDRESSES) {
        let names = HostNames::new(name, &[address.to_owned()]).unwrap();
        let own = CertificateDir::new(directory.join(boot).join("cert"));
        authority.issue(&own, &names, KeyPairChoice::New, now).unwrap();
    }
}

#[test]
#[ignore = "needs root and network namespaces: make test-all"]
fn a_cable_cut_for_five_seconds_loses_nothing_and_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::new();
    let [a, b] = &hosts.names;
    certify(directory.path());
    let mut writer = Process::start(a, "writer", WRITER, directory.path());
    writer.wait("ready");
    let mut reader = Process::start(b, "reader", READER, directory.path());
    writer.wait("matched");
    reader.wait("Appeared");
    reader.wait("samples");

    hosts.cable("down");
    let cut = Instant::now();
    let told = reader.wait("Silent") - cut;
    Gate::default().wait_host(0, CUT.saturating_sub(cut.elapsed()));
    hosts.cable("up");
    let back = Instant::now();
    let returned = reader.wait("Returned") - back;
    for _ in 0..7 {
        reader.wait("samples");
    }
    println!("silence told {told:?} after the cut, return {returned:?} after the cable was back");
    assert!(told < CUT, "the silence was told while it lasted: {told:?}");
    assert!(!reader.seen.iter().any(|line| line.starts_with("gap") || line == "Died"), "{:?}", reader.seen);
}

#[test]
#[ignore = "needs root and network namespaces: make test-all"]
fn a_late_reader_on_a_slow_link_gets_all_that_the_writer_keeps() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::new();
    let [a, b] = &hosts.names;
    certify(directory.path());
    ip(&format!("netns exec {a} tc qdisc replace dev cable root tbf rate 10mbit burst 32kb latency 50ms"));
    let mut writer = Process::start(a, "stock", WRITER, directory.path());
    writer.wait("ready");
    let (begun, before) = (Instant::now(), hosts.bytes());
    let mut reader = Process::start(b, "late", READER, directory.path());
    let took = reader.wait("all") - begun;
    let copies = (hosts.bytes() - before) as f64 / (STOCK.0 * STOCK.1 as u64) as f64;
    println!("{} samples in {took:?} at 10 Mbit/s, {copies:.2} bytes sent for each: {:?}", STOCK.0, reader.seen);
    // Answers that come too late would cross the link for nothing, and again.
    assert!(copies < 1.6, "{copies:.2} bytes sent for each");
}
