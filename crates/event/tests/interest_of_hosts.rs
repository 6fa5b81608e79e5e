//! A host gets what its subscribers asked for: two network namespaces, each with its own boot id, so that the processes in
//! them take each other for processes of different hosts. A server with many fast attributes and a few slow ones is on one,
//! a subscriber of one slow attribute on the other, where the bytes at the interface are counted. Needs root and iproute2,
//! so it belongs to `make test-all`. `TAMPU_SECONDS=n` counts for another time than 20 s.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use tampu_bus::{clock::Gate, connect::Encryption};
use tampu_event::{
    Client, Server,
    client::{ClientSettings, Filter, SubscribeOptions},
    server::ServerSettings,
};
use tampu_types::event::{AttributeConfig, AttributePattern, Criteria, DataType, Format, Kinds, Reason, Thresholds, Value};

#[path = "../../bus/tests/support/hosts.rs"]
mod hosts;
use hosts::{Hosts, Process, host, role, say};

/// Fast attributes, and events a second of each.
const FAST: usize = 200;
const RATE: u32 = 50;
/// Elements of the slow spectrum. It is small enough for the stream that all attributes share.
const ELEMENTS: usize = 1000;
/// Elements of a spectrum with a stream of its own, which comes as often as the fast attributes.
const LONG: usize = 4096;
/// Bytes that a declaration of an attribute of a family that nobody asked for may cost a host.
const DECLARATION: u64 = 4;

/// Not a test by itself: what the processes on the two hosts do until their input ends.
#[test]
#[ignore = "a part of the tests below, which make test-all runs"]
fn host_process() {
    let Some((role, over)) = role() else { return };
    match role.split_once(' ') {
        Some(("source", fast)) => publish(fast.parse().unwrap(), &over),
        Some(("many", count)) => declare_many(count.parse().unwrap(), &over),
        Some(("subscriber", name)) => subscribe(name, &over),
        _ => panic!("no role {role}"),
    }
}

fn every_value(name: &str, format: Format, max_x: u32) -> AttributeConfig {
    let change = Thresholds { abs: Some("1e-9".parse().unwrap()), rel: None };
    AttributeConfig {
        max_x,
        criteria: Criteria { change, period_ms: 1_000_000_000, ..Criteria::default() },
        ..AttributeConfig::new(name.parse().unwrap(), DataType::Double, format)
    }
}

/// Publishes fast attributes and, once a second, slow ones.
fn publish(fast: usize, over: &AtomicBool) {
    let (_node, participant) = host(true, "source", Encryption::None);
    let server = Server::start(participant.clone(), ServerSettings::default()).unwrap();
    let declare = |name: &str, format, max_x| server.declare(every_value(name, format, max_x)).unwrap();
    let all: Vec<_> = (0..fast).map(|number| declare(&format!("lab/fast/{number}/value"), Format::Scalar, 1)).collect();
    let scalar = declare("lab/slow/1/scalar", Format::Scalar, 1);
    let spectrum = declare("lab/slow/1/spectrum", Format::Spectrum, ELEMENTS as u32);
    let long = declare("lab/long/1/spectrum", Format::Spectrum, LONG as u32);
    let client = Client::start(participant, ClientSettings::default()).unwrap();
    // A subscriber on this host reads everything, as a display or a history here would.
    let _here = client.subscribe(SubscribeOptions::of([AttributePattern::new("lab/*").unwrap()]), |_| {});
    let pause = Gate::default();
    say("ready");
    let begun = Instant::now();
    for round in 0_u32.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        let value = f64::from(round);
        for attribute in &all {
            attribute.push(Value::scalar(&value)).unwrap();
        }
        long.push(Value::spectrum(&[value; LONG])).unwrap();
        if round % RATE == 0 {
            scalar.push(Value::scalar(&value)).unwrap();
            spectrum.push(Value::spectrum(&[value; ELEMENTS])).unwrap();
        }
        let next = Duration::from_secs(1) * (round + 1) / RATE;
        pause.wait_host(0, next.saturating_sub(begun.elapsed()));
    }
}

/// Declares this many attributes, and publishes one of them ten times a second.
fn declare_many(count: usize, over: &AtomicBool) {
    let (_node, participant) = host(true, "source", Encryption::None);
    let server = Server::start(participant, ServerSettings::default()).unwrap();
    let declare = |name: &str| server.declare(every_value(name, Format::Scalar, 1)).unwrap();
    let _all: Vec<_> = (1..count).map(|number| declare(&format!("lab/many/{number}/value"))).collect();
    let wanted = declare("lab/slow/1/scalar");
    let pause = Gate::default();
    say("ready");
    let begun = Instant::now();
    for round in 0_u32.. {
        if over.load(Ordering::Relaxed) {
            break;
        }
        wanted.push(Value::scalar(&f64::from(round))).unwrap();
        let next = Duration::from_millis(100) * (round + 1);
        pause.wait_host(0, next.saturating_sub(begun.elapsed()));
    }
}

/// Says each value that it is given.
fn subscribe(name: &str, over: &AtomicBool) {
    let (_node, participant) = host(false, "subscriber", Encryption::None);
    let client = Client::start(participant, ClientSettings::default()).unwrap();
    let (name, filter) = match name.split_once(" moved ") {
        Some((name, abs)) => {
            let moved = Thresholds { abs: Some(abs.parse().unwrap()), rel: None };
            (name, Filter { moved: Some(moved), ..Filter::default() })
        }
        None => (name, Filter::default()),
    };
    let wish = SubscribeOptions::of([AttributePattern::new(name).unwrap()]).kinds(Kinds::CHANGE).filter(filter);
    let (mut count, mut last) = (0, None);
    let _subscription = client.subscribe(wish, move |event| match event.reason {
        Reason::First => last = Some(event.number),
        Reason::Update if last.is_some_and(|last| event.number > last) => {
            (count, last) = (count + 1, Some(event.number));
            say(&format!("value {count}"));
        }
        Reason::SourceHung | Reason::SourceReturned | Reason::Resumed => {}
        reason => say(&format!("bad {reason:?} {} after {last:?}: {:?}", event.number, event.missed)),
    });
    let pause = Gate::default();
    while !over.load(Ordering::Relaxed) {
        pause.wait_host(0, Duration::from_millis(100));
    }
}

/// Returns the bytes at the interface of the subscriber's host while it is given this many values of an attribute.
fn bytes_for(fast: usize, name: &str, values: u64) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::new();
    let [a, b] = &hosts.names;
    let mut source = Process::start(a, &format!("source {fast}"), "11", directory.path());
    source.wait("ready");
    let mut subscriber = Process::start(b, &format!("subscriber {name}"), "22", directory.path());
    // By then everybody knows everybody.
    subscriber.wait("value 5");
    let before = hosts.bytes();
    subscriber.wait(&format!("value {}", 5 + values));
    hosts.bytes() - before
}

#[test]
#[ignore = "needs root and network namespaces: make test-all"]
fn a_host_that_asked_for_a_slow_attribute_is_sent_no_fast_ones() {
    let seconds: u64 = std::env::var("TAMPU_SECONDS").map_or(20, |text| text.parse().unwrap());

    let payload = seconds * 8 * ELEMENTS as u64;
    let bytes = bytes_for(FAST, "lab/slow/1/spectrum", seconds);
    println!("a spectrum of {payload} bytes in {seconds} s beside fast attributes: {bytes} bytes at the interface");
    assert!(bytes <= 2 * payload, "{bytes} bytes for {payload}");

    let alone = bytes_for(0, "lab/slow/1/scalar", seconds);
    let beside = bytes_for(FAST, "lab/slow/1/scalar", seconds);
    println!("a scalar in {seconds} s: {alone} bytes alone, {beside} bytes beside fast attributes");
    assert!(beside <= 2 * alone, "{beside} bytes beside fast attributes, {alone} alone");

    // One of fifty readings a second has moved enough.
    let filtered = bytes_for(FAST, &format!("lab/fast/1/value moved {RATE}"), seconds);
    println!("a fast scalar of which one reading a second is wanted, in {seconds} s: {filtered} bytes");
    assert!(filtered <= 2 * alone, "{filtered} bytes for one reading a second, {alone} for a slow attribute");

    let (long, payload) = (bytes_for(0, &format!("lab/long/1/spectrum moved {RATE}"), seconds), seconds * 8 * LONG as u64);
    println!("a long spectrum of which one reading a second is wanted, {payload} bytes in {seconds} s: {long} bytes");
    assert!(long <= 2 * payload, "{long} bytes for {payload}");
}

/// Returns the bytes at the interface of the subscriber's host from its start until it has some values of one of so many
/// attributes.
fn bytes_to_start(attributes: usize) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let hosts = Hosts::new();
    let [a, b] = &hosts.names;
    let mut source = Process::start(a, &format!("many {attributes}"), "11", directory.path());
    source.wait("ready");
    let before = hosts.bytes();
    let mut subscriber = Process::start(b, "subscriber lab/slow/1/scalar", "22", directory.path());
    subscriber.wait("value 5");
    hosts.bytes() - before
}

#[test]
#[ignore = "needs root and network namespaces: make test-all"]
fn what_a_subscriber_of_one_attribute_is_sent_of_the_others_declarations() {
    const MANY: usize = 10_000;
    let (one, many) = (bytes_to_start(1), bytes_to_start(MANY));
    let each = many.saturating_sub(one) / MANY as u64;
    println!("until the first values of one attribute: {one} bytes; of one beside {MANY} others: {many}, {each} for each other");
    assert!(each <= DECLARATION, "{each} bytes for the declaration of another attribute");
}
