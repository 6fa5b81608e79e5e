//! Events of attributes through the gateway of a real hub, to clients that are slow.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::Shutdown,
    time::Instant,
};

use serde_json::json;
use tampu_bus::{Event, LossReason, ReaderQos, SourceState, gateway::GatewayClient};
use tampu_event::{
    Client, Reason,
    client::{ClientSettings, SubscribeOptions},
};
use tampu_types::{
    PartitionFilter, TopicFilter,
    event::{EventSample, EventView, Kinds, Value},
    gateway::{
        Kind,
        events::events,
        messages::{Big, Missing, Notice, Open, Receipt},
    },
};

use crate::{
    gateway::{self, body_of, client, next, next_of, participant, subscribe},
    roles::role,
    site::{PATIENCE, Site},
};

/// Events that are pushed while a client does not read: far more than the hub keeps for it.
const PUSHED: u64 = 40_000;
const ELEMENTS: usize = 150;
const TOGETHER: u64 = 200;

/// A reading whose elements are all its number.
fn reading(number: u64) -> Vec<u8> {
    let value = vec![number as i32; ELEMENTS];
    let mut event = Vec::new();
    EventSample { kinds: Kinds::CHANGE, ..EventSample::of(0, Value::spectrum(&value)) }.encode(&mut event).unwrap();
    event
}

/// Declares an attribute at a session.
fn declare(server: &mut GatewayClient, name: &str) {
    let config = json!({"attribute": {"name": name, "data_type": "DevLong", "format": "spectrum", "max_x": ELEMENTS}});
    server.send_json(Kind::Declare, 1, &config).unwrap();
    next_of(server, Kind::Opened);
}

/// Pushes all readings from number 1 on, and waits until the hub has them. The viewer only beats.
fn push_all(server: &mut GatewayClient, viewer: &mut GatewayClient) {
    for first in (1..=PUSHED).step_by(TOGETHER as usize) {
        let all: Vec<Vec<u8>> = (first..first + TOGETHER).map(reading).collect();
        let all: Vec<&[u8]> = all.iter().map(Vec::as_slice).collect();
        server.send(Kind::Publish, 0, 1, &body_of(&all)).unwrap();
        viewer.acknowledge().unwrap();
    }
    while next_of(server, Kind::Receipt).json::<Receipt>().written.0 < PUSHED {}
}

/// Takes frames until the last event has come; notes each number that came or is reported missing. True means it came.
fn account(viewer: &mut GatewayClient) -> BTreeMap<u64, bool> {
    viewer.credit(1, 1 << 40).unwrap();
    let mut numbers = BTreeMap::new();
    let end = Instant::now() + PATIENCE;
    while !numbers.contains_key(&PUSHED) {
        assert!(Instant::now() < end, "{} numbers came", numbers.len());
        let got = next(viewer);
        match got.kind {
            Kind::Events => {
                for item in events(&got.body) {
                    let item = item.unwrap();
                    assert!(!item.unknown_before);
                    let event = EventView::parse(item.event).unwrap();
                    if let Some(value) = event.value {
                        let spectrum: Vec<f64> = (0..ELEMENTS).filter_map(|nth| value.number(nth)).collect();
                        assert!(spectrum.iter().all(|element| *element == event.number as f64), "{}", event.number);
                        assert_eq!(numbers.insert(event.number, true), None, "{} came twice", event.number);
                    }
                }
            }
            Kind::Notice => {
                let notice: Notice = got.json();
                assert_eq!(notice.reason, "gap");
                let Some(Missing::Exactly(from, to)) = notice.missed else { panic!("{notice:?}") };
                for number in from.0..to.0 {
                    assert_eq!(numbers.insert(number, false), None, "{number} is reported twice");
                }
            }
            _ => {}
        }
    }
    numbers
}

#[test]
fn a_client_that_does_not_read_loses_no_event_that_its_server_still_has() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let (mut server, mut viewer) = (client(&site, "fast"), client(&site, "slow"));
    declare(&mut server, "sr/bpm/1/x");
    let open = Open { attributes: vec!["sr/bpm/*".parse().unwrap()], credit: Some(1), ..Open::default() };
    subscribe(&mut viewer, 1, &open);
    next_of(&mut viewer, Kind::Events);
    push_all(&mut server, &mut viewer);
    let numbers = account(&mut viewer);
    let lost = numbers.values().filter(|came| !**came).count();
    assert_eq!((numbers.len() as u64, lost), (PUSHED, 0), "of all events none is missing");
}

#[test]
fn an_unreliable_subscription_is_told_exactly_what_it_lost() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let (mut server, mut viewer) = (client(&site, "fast"), client(&site, "slow"));
    declare(&mut server, "sr/bpm/1/x");
    let open = json!({"attributes": ["sr/bpm/*"], "credit": 1, "reliable": false});
    viewer.send_json(Kind::Open, 1, &open).unwrap();
    assert_eq!(next(&mut viewer).kind, Kind::Opened);
    next_of(&mut viewer, Kind::Events);
    push_all(&mut server, &mut viewer);
    let numbers = account(&mut viewer);
    let all: Vec<u64> = numbers.keys().copied().collect();
    assert_eq!(all, (1..=PUSHED).collect::<Vec<_>>(), "each came or is reported");
    assert!(numbers.values().any(|came| !came), "the hub keeps less than all");
}

/// Sessions without a connection that a hub keeps.
const DETACHED: usize = 256;

#[test]
fn readers_hear_at_once_of_a_client_that_is_gone_and_of_its_death() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let native = participant(&site, "native");
    let mut reader = native.reader(&TopicFilter::new("weather/*").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    let events = Client::start(native.clone(), ClientSettings::default()).unwrap();
    let stream = events.stream(SubscribeOptions::of(["sr/bpm/1/x".parse().unwrap()]), 100);
    let mut state = || loop {
        match reader.next(PATIENCE).expect("news of the source") {
            Event::Source(change) => return change.state,
            Event::Sample(_) => {}
            // What a dead program had not passed on is not known.
            Event::Gap(gap) => assert_eq!((gap.to, gap.why), (None, LossReason::WriterDied)),
        }
    };
    let reason = |of: Reason| loop {
        let update = stream.next(PATIENCE).expect("an event");
        if update.reason == of {
            return;
        }
        assert!(!matches!(update.reason, Reason::SourceLeft | Reason::SourceDied), "{update:?}");
    };
    let mut vanishing = client(&site, "vanishing");
    declare(&mut vanishing, "sr/bpm/1/x");
    vanishing.send_json(Kind::Declare, 2, &gateway::declare("weather/wind")).unwrap();
    next_of(&mut vanishing, Kind::Opened);
    vanishing.send(Kind::Publish, 1, 2, &body_of(&[b"7 m/s"])).unwrap();
    vanishing.send(Kind::Publish, 0, 1, &body_of(&[&reading(1)])).unwrap();
    assert_eq!(state(), SourceState::Appeared);
    reason(Reason::First);

    // The kernel closes the socket of a killed process in the same way.
    vanishing.socket().shutdown(Shutdown::Both).unwrap();
    assert_eq!(state(), SourceState::Silent);
    reason(Reason::SourceHung);
    assert!(vanishing.resume().unwrap());
    assert_eq!(state(), SourceState::Returned);
    reason(Reason::SourceReturned);

    // The hub gives up the session that is alone longest when there are too many of them.
    drop(vanishing);
    assert_eq!(state(), SourceState::Silent);
    reason(Reason::SourceHung);
    (0..DETACHED).for_each(|_| drop(client(&site, "another")));
    assert_eq!(state(), SourceState::Died);
    reason(Reason::SourceDied);

    let mut polite = client(&site, "polite");
    polite.send_json(Kind::Declare, 2, &gateway::declare("weather/rain")).unwrap();
    next_of(&mut polite, Kind::Opened);
    polite.send(Kind::Publish, 1, 2, &body_of(&[b"no"])).unwrap();
    assert_eq!(state(), SourceState::Appeared);
    polite.bye().unwrap();
    assert_eq!(state(), SourceState::Left);
}

#[test]
fn the_attributes_of_a_session_are_one_stream() {
    let site = Site::new();
    let hub = site.hub_of_roles(&[]);
    let native = participant(&site, "native");
    let events = Client::start(native.clone(), ClientSettings::default()).unwrap();
    let stream = events.stream(SubscribeOptions::of(["sr/bpm/*".parse().unwrap()]), 10_000);
    let mut server = client(&site, "many");
    declare(&mut server, "sr/bpm/0/x");
    assert_eq!(stream.next(PATIENCE).expect("its first value").reason, Reason::First);
    let mut viewer = client(&site, "viewer");
    subscribe(&mut viewer, 1, &Open { attributes: vec!["sr/bpm/*".parse().unwrap()], credit: Some(1 << 30), ..Open::default() });
    next_of(&mut viewer, Kind::Events);
    let threads = || fs::read_dir(format!("/proc/{}/task", role(&hub, "gateway"))).unwrap().count();
    let before = (native.acquaintances().streams, threads());
    for number in 2..=500 {
        let name = format!("sr/bpm/{number}/x");
        let attribute = json!({"name": name, "data_type": "DevDouble", "format": "scalar"});
        server.send_json(Kind::Declare, number, &json!({ "attribute": attribute })).unwrap();
        next_of(&mut server, Kind::Opened);
    }
    for number in 2..=500 {
        let mut event = Vec::new();
        EventSample { kinds: Kinds::CHANGE, ..EventSample::of(0, Value::scalar(&1.0)) }.encode(&mut event).unwrap();
        server.send(Kind::Publish, 0, number, &body_of(&[&event])).unwrap();
    }
    let mut names = BTreeSet::new();
    while names.len() < 499 {
        let update = stream.next(PATIENCE).expect("a value of each");
        if update.reading().is_some_and(|reading| reading.value.is_some()) {
            names.insert(update.attribute.config.name.to_string());
        }
    }
    // The hub's own processes may have come meanwhile.
    let after = (native.acquaintances().streams, threads());
    assert!(after.0 < before.0 + 20 && after.1 < before.1 + 20, "{before:?} {after:?}");
}

#[test]
fn a_receipt_is_settled_when_the_last_reader_leaves() {
    let site = Site::new();
    let _hub = site.hub_of_roles(&[]);
    let native = participant(&site, "native");
    let mut reader = native.reader(&TopicFilter::new("weather/*").unwrap(), &PartitionFilter::All, ReaderQos::default()).unwrap();
    let mut server = client(&site, "station");
    server.send_json(Kind::Declare, 1, &gateway::declare("weather/wind")).unwrap();
    next_of(&mut server, Kind::Opened);
    // The hub learns of the reader some time after the writer is there, and what was written before that is not awaited.
    let receipt = |server: &mut GatewayClient| next_of(server, Kind::Receipt).json::<Receipt>();
    let end = Instant::now() + PATIENCE;
    let mut before = 0;
    loop {
        server.send(Kind::Publish, 1, 1, &body_of(&[b"0"])).unwrap();
        before += 1;
        if receipt(&mut server).readers == 1 {
            break;
        }
        assert!(Instant::now() < end, "the hub does not see the reader");
    }
    server.send(Kind::Publish, 1, 1, &body_of(&[b"1", b"2", b"3"])).unwrap();
    loop {
        if let Some(Event::Sample(sample)) = reader.next(PATIENCE)
            && sample.payload.bytes() == Some(&b"2"[..])
        {
            break;
        }
    }
    // The reader has not asked for the sample after "2", so it has confirmed "1" at most.
    drop(reader);
    let end = Instant::now() + PATIENCE;
    let last = loop {
        let receipt = receipt(&mut server);
        if receipt.readers == 0 {
            break receipt;
        }
        assert!(Instant::now() < end, "{receipt:?}");
    };
    assert_eq!((last.written, last.unconfirmed), (Big(before + 3), Some(Big(before + 3))));
    assert!(last.delivered.is_none_or(|delivered| delivered.0 <= before + 1), "{last:?}");
}
