//! One sender, a distributor, many receivers behind it.

mod support;

/// The transport to the distributor.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

use std::time::Duration;

use support::{
    Log, Told, WAIT, bytes_of,
    caller::{Caller, a_dead_life, data, start},
    eventually, pattern,
};
use tampu_bulk::{
    Distributor, Receiver,
    distributor::through,
    frame::{Header, Kind},
    handler::Handler,
    message::{Cause, Transport},
    receiver::{FlowSettings, Identity, ReceiverSettings},
    sender::{SendFlow, Slow},
    state::LinkStatus,
};

fn distributor(input: &str, output: &str, change: impl FnOnce(&mut SendFlow)) -> Distributor {
    let (taken, mut given) = through("spectra".parse().unwrap());
    given.ack_wait = WAIT;
    given.wait = WAIT;
    given.transport = Some(Transport::Tcp);
    change(&mut given);
    let identity = Identity::alone("test", "relay");
    let settings = ReceiverSettings::default();
    Distributor::open(identity, input.parse().unwrap(), output.parse().unwrap(), settings, vec![(taken, given)]).unwrap()
}

fn behind(distributor: &Distributor, output: &str) -> (Receiver, Log) {
    let log = Log::default();
    let handler: Box<dyn Handler> = Box::new(log.clone());
    let flows = vec![(FlowSettings::new("spectra".parse().unwrap()), handler)];
    let receiver =
        Receiver::open(Identity::alone("test", "behind"), output.parse().unwrap(), ReceiverSettings::default(), flows).unwrap();
    let before = distributor.sender().flows()[0].connected();
    distributor.sender().connect(&receiver.target()).unwrap();
    assert!(distributor.sender().flows()[0].wait_for(before + 1, WAIT));
    (receiver, log)
}

#[test]
fn all_receivers_behind_get_the_same_in_the_same_pieces_and_a_late_one_the_next() {
    let relay = distributor("correlator", "quicklook", |_| ());
    let receivers: Vec<(Receiver, Log)> = (0..5).map(|_| behind(&relay, "quicklook")).collect();
    let sender = support::sender(|_| ());
    sender.connect(&relay.receiver().target()).unwrap();
    let flow = &sender.flows()[0];
    assert_eq!(flow.start(b"uid").unwrap().receivers, 1, "the sender has one receiver, however many there are behind");
    flow.send(pattern(1, 700_000)).unwrap();
    let (_late, late_log) = behind(&relay, "quicklook");
    flow.send(pattern(2, 10)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete() && report.deliveries[0].faults.is_empty(), "{report:?}");
    let sent = [pattern(1, 700_000), pattern(2, 10)].concat();
    for (_, log) in &receivers {
        let told = log.take_until_stop();
        assert_eq!(told[0], Told::Start(b"uid".to_vec()));
        assert!(bytes_of(&told) == sent);
        assert!(matches!(told.last(), Some(Told::Stop { complete: true, .. })));
    }
    flow.start(b"next").unwrap();
    flow.stop().unwrap();
    assert_eq!(late_log.take_until_stop()[0], Told::Start(b"next".to_vec()));
    assert_eq!(relay.state().output.flows[0].receivers.len(), 6);
}

#[test]
fn distributors_stand_in_a_row() {
    let first = distributor("correlator", "one", |_| ());
    let second = distributor("one", "two", |flow| flow.transport = None);
    first.sender().connect(&second.receiver().target()).unwrap();
    let (_receiver, log) = behind(&second, "two");
    let sender = support::sender(|_| ());
    sender.connect(&first.receiver().target()).unwrap();
    assert!(first.sender().flows()[0].wait_for(1, WAIT));
    let flow = &sender.flows()[0];
    log.has(1000);
    // The first sender knows the bytes that the last receiver already has.
    assert_eq!(flow.start(b"p").unwrap().from, 1000);
    flow.begin_at(1000).unwrap();
    flow.send(pattern(3, 900_000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert!(bytes_of(&log.take_until_stop()) == pattern(3, 900_000));
}

#[test]
fn a_slow_receiver_behind_touches_neither_the_others_nor_the_sender_and_knows_what_it_missed() {
    let relay = distributor("correlator", "out", |flow| {
        flow.window = 1 << 20;
        flow.wait = Duration::from_millis(300);
        flow.slow = Slow::Skip;
    });
    let (_good, good_log) = behind(&relay, "out");
    let (_slow, slow_log) = behind(&relay, "out");
    let sender = support::sender(|_| ());
    sender.connect(&relay.receiver().target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    slow_log.block(true);
    let mut sent = Vec::new();
    for round in 0..60 {
        sent.extend_from_slice(&pattern(round, 512 << 10));
        flow.send(pattern(round, 512 << 10)).unwrap();
    }
    eventually(|| relay.state().output.flows[0].receivers.iter().any(|link| link.status == LinkStatus::Lagging));
    slow_log.block(false);
    let report = flow.stop().unwrap();
    assert!(report.complete(), "the sender's receiver has all: {report:?}");
    assert!(report.deliveries[0].faults[0].text.contains("1 of 2 receivers"), "and says who has not: {report:?}");
    assert!(bytes_of(&good_log.take_until_stop()) == sent);
    match slow_log.take_until_stop().last() {
        Some(Told::Stop { complete: false, stopped: true, lost, bytes }) => {
            let lost: u64 = lost.iter().map(|lost| lost.to.unwrap() - lost.from).sum();
            assert!(lost > 0 && lost + bytes == sent.len() as u64, "no unnoticed hole");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hole_before_the_distributor_is_the_same_hole_behind_it() {
    let relay = distributor("correlator", "out", |_| ());
    let (_receiver, log) = behind(&relay, "out");
    let mut caller = Caller::welcomed(relay.receiver(), a_dead_life());
    caller.send(start(), b"p");
    caller.send(data(2, 0), b"abc");
    caller.send(data(5, 10), b"xyz");
    caller.send(Header { sequence: 7, offset: 20, kind: Kind::Stop, ..start() }, b"");
    let told = log.take_until_stop();
    assert_eq!(bytes_of(&told), b"abcxyz");
    match told.last() {
        Some(Told::Stop { complete: false, stopped: true, lost, .. }) => {
            let ranges: Vec<_> = lost.iter().map(|lost| (lost.from, lost.to, lost.cause)).collect();
            assert_eq!(ranges, [(3, Some(10), Cause::Missing), (13, Some(20), Cause::Missing)]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sender_that_dies_and_a_distributor_that_goes_end_the_transfer_behind() {
    let relay = distributor("correlator", "out", |_| ());
    let (_receiver, log) = behind(&relay, "out");
    let mut caller = Caller::welcomed(relay.receiver(), a_dead_life());
    caller.send(start(), b"one");
    caller.send(data(2, 0), b"abc");
    drop(caller);
    let told = log.take_until_stop();
    assert_eq!((bytes_of(&told), told.last()), (b"abc".to_vec(), Some(&Told::Reset)));

    let mut caller = Caller::welcomed(relay.receiver(), a_dead_life());
    caller.send(start(), b"two");
    caller.send(data(2, 0), b"abc");
    eventually(|| log.seen().iter().any(|told| matches!(told, Told::Data(..))));
    drop(relay);
    let told = log.take_until_stop();
    assert_eq!((bytes_of(&told), told.last()), (b"abc".to_vec(), Some(&Told::Reset)));
}

#[test]
fn somebody_stuck_behind_two_distributors_is_cut_by_the_second_and_by_nobody_else() {
    // Each distributor would wait as long as the sender; the sender's limit prevents that.
    let patient = |flow: &mut SendFlow| {
        flow.wait = Duration::from_secs(1);
        flow.ack_wait = Duration::from_secs(2);
    };
    let first = distributor("correlator", "one", patient);
    let second = distributor("one", "two", patient);
    first.sender().connect(&second.receiver().target()).unwrap();
    let (_good, good_log) = behind(&second, "two");
    let (_stuck, stuck_log) = behind(&second, "two");
    assert!(first.sender().flows()[0].wait_for(1, WAIT));
    let sender = support::sender(patient);
    sender.connect(&first.receiver().target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    stuck_log.block(true);
    flow.send(pattern(1, 1000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete(), "{report:?}");
    assert_eq!(flow.state().receivers[0].status, LinkStatus::Live);
    assert!(report.deliveries[0].faults.iter().any(|fault| fault.text.contains("1 of 2 receivers")), "{report:?}");
    assert_eq!(first.state().output.flows[0].receivers[0].status, LinkStatus::Live);
    let cut = |status: LinkStatus| status == LinkStatus::Cut || status == LinkStatus::Waiting || status == LinkStatus::Connecting;
    let leaves = second.state().output.flows[0].receivers.clone();
    assert!(leaves[0].status == LinkStatus::Live && cut(leaves[1].status), "{leaves:?}");
    assert_eq!(bytes_of(&good_log.take_until_stop()), pattern(1, 1000));
    stuck_log.block(false);
}
