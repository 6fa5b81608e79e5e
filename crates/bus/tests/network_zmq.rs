//! The engine ZeroMQ between two hosts: each link carries what was asked for, once, and a cut loses nothing. Needs root and
//! iproute2, so it belongs to `make test-all`.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use tampu_bus::{
    Event, Qos, ReaderQos, TypeTag,
    clock::Gate,
    connect::{Encryption, Settings},
};
use tampu_types::{Partition, PartitionFilter, TopicFilter, TopicName};

#[path = "support/hosts.rs"]
mod hosts;
use hosts::{Hosts, Process, host_on, role, say};

const ENGINE: Option<&str> = Some("zmq");
/// Length of a sample in bytes, and samples after which readers say so.
const SAMPLE: usize = 1000;
const HUNDRED: u64 = 100;
/// Digits of the boot ids of the two hosts.
const WRITER: &str = "11";
const READER: &str = "22";

/// Not a test by itself: what the processes on the two hosts do until their input ends.
#[test]
#[ignore = "a part of the tests between hosts, which make test-all runs"]
fn host_process() {
    let Some((role, over)) = role() else { return };
    match role.as_str() {
        "writer" => write(&over),
        "reader" => {
            let (_node, participant) = host_on(ENGINE, false, "reader", Encryption::None);
            read(&participant, &over);
        }
        _ => {
            let settings = Settings { engine: ENGINE.map(str::to_owned), ..Settings::from_env().unwrap() };
            let source = tampu_types::SourceName::new("neighbour").unwrap();
            read(&tampu_bus::Participant::open(settings, source).unwrap(), &over);
        }
    }
}

/// Writes 500 samples a second on each of two topics, of which one is read.
fn write(over: &AtomicBool) {
    let (_node, participant) = host_on(ENGINE, true, "writer", Encryption::None);
    let writer = |topic| {
        let topic = TopicName::new(topic).unwrap();
        participant.writer(&topic, &Partition::everybody(), TypeTag::OCTETS, Qos::default()).unwrap()
    };
    let (numbers, unwanted) = (writer("cable/numbers"), writer("cable/unwanted"));
    let (pause, mut sample) = (Gate::default(), [7; SAMPLE]);
    say("ready");
    for number in 0_u64.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        sample[..8].copy_from_slice(&number.to_le_bytes());
        numbers.write(&sample).unwrap();
        unwanted.write(&sample).unwrap();
        pause.wait_host(0, Duration::from_millis(2));
    }
}

/// Says every hundredth sample; ends if one is missing or out of order.
fn read(participant: &tampu_bus::Participant, over: &AtomicBool) {
    let topics = TopicFilter::new("cable/numbers").unwrap();
    let mut reader = participant.reader(&topics, &PartitionFilter::All, ReaderQos::default()).unwrap();
    let mut next = None;
    say("ready");
    while !over.load(Ordering::Relaxed) {
        match reader.next(Duration::from_millis(200)) {
            Some(Event::Sample(sample)) => {
                let number = u64::from_le_bytes(*sample.payload.bytes().unwrap().first_chunk().unwrap());
                assert_eq!(number, next.unwrap_or(number), "in order and without holes");
                next = Some(number + 1);
                if number % HUNDRED == 0 {
                    say("samples");
                }
            }
            Some(Event::Gap(gap)) => say(&format!("bad gap {gap:?}")),
            Some(Event::Source(change)) => say(&format!("{:?}", change.state)),
            None => {}
        }
    }
}

#[test]
#[ignore = "needs root and network namespaces: make test-all"]
fn a_link_carries_what_was_asked_for_once_and_a_cut_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::new();
    let [a, b] = &hosts.names;
    let mut writer = Process::start(a, "writer", WRITER, directory.path());
    writer.wait("ready");
    let mut reader = Process::start(b, "reader", READER, directory.path());
    reader.wait("samples");
    let mut neighbour = Process::start(b, "neighbour", READER, directory.path());
    neighbour.wait("samples");
    reader.wait("samples");
    neighbour.wait("samples");
    let before = hosts.bytes();
    for _ in 0..20 {
        reader.wait("samples");
    }
    let copies = (hosts.bytes() - before) as f64 / (20 * HUNDRED * SAMPLE as u64) as f64;
    println!("{copies:.2} bytes on the link for each that two readers of one host got");
    // Two copies, or the other topic, would double it.
    assert!(copies < 1.7, "{copies:.2}");

    hosts.cable("down");
    reader.wait("Silent");
    hosts.cable("up");
    for process in [&mut reader, &mut neighbour] {
        process.wait("Returned");
        for _ in 0..5 {
            process.wait("samples");
        }
    }
}
