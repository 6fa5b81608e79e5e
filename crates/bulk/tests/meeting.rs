//! The owner of a flow and its transport: both ends find a common one, and a flow has one sender at a time.

mod support;

/// The transport of the data.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

use std::{sync::Arc, time::Duration};

use support::{Log, Told, WAIT, answerer::Door, bytes_of, eventually, pattern, receiver, sender, sender_as};
use tampu_bulk::{
    Sender, directory,
    frame::Kind,
    message::{Refusal, Transport},
    receiver::Identity,
    sender::{SendError, SendFlow},
    state::LinkStatus,
};
use tampu_bus::{Participant, connect::Settings};

/// The transports of a receiver, and the one that a sender without settings finds.
const WAYS: [(&[Transport], Transport); 4] = [
    (&[Transport::Tcp, Transport::Shm, Transport::Udp], Transport::Shm),
    (&[Transport::Tcp, Transport::Udp], Transport::Tcp),
    (&[Transport::Tcp], Transport::Tcp),
    (&[Transport::Udp], Transport::Udp),
];

fn sends_by(sender: &Sender, log: &Log, way: Transport) {
    let flow = &sender.flows()[0];
    assert!(flow.wait_for(1, WAIT), "{:?}", flow.state());
    assert_eq!(flow.state().receivers[0].transport, way);
    flow.start(b"").unwrap();
    flow.send(pattern(1, 300_000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert_eq!(bytes_of(&log.take_until_stop()), pattern(1, 300_000));
}

#[test]
fn a_sender_that_chooses_by_itself_finds_a_way_that_the_receiver_takes() {
    for (takes, found) in WAYS {
        let (receiver, log) = receiver(|flow| flow.transports = takes.to_vec(), |_| ());
        let sender = sender(|flow| flow.transport = None);
        sender.connect(&receiver.target()).unwrap();
        sends_by(&sender, &log, found);
    }
}

/// The longest frame of the next transfer.
fn longest(sender: &Sender, log: &Log) -> usize {
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    flow.send(pattern(1, 300_000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    let lengths = log.take_until_stop().into_iter().map(|told| if let Told::Data(_, bytes) = told { bytes.len() } else { 0 });
    lengths.max().unwrap()
}

#[test]
fn a_receiver_of_short_frames_shortens_those_of_the_others_only_while_it_is_there() {
    let (long, log) = receiver(|_| (), |_| ());
    let (short, _) = receiver(|flow| flow.frame = 0, |_| ());
    let sender = sender(|_| ());
    sender.connect(&long.target()).unwrap();
    let flow = &sender.flows()[0];
    assert_eq!(longest(&sender, &log), 256 << 10);
    flow.start(b"").unwrap();
    sender.connect(&short.target()).unwrap();
    assert!(flow.wait_for(2, WAIT));
    flow.send(pattern(1, 300_000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert_eq!(log.take_until_stop().len(), 4, "it came too late for this one: two frames");
    assert_eq!(longest(&sender, &log), 1 << 10);
    // A parameter is at most as long as a control frame.
    assert!(flow.start(&vec![0; (16 << 10) + 1]).is_err());
    drop(short);
    eventually(|| flow.connected() == 1);
    assert_eq!(longest(&sender, &log), 256 << 10);
    flow.start(&vec![0; 200_000]).unwrap();
    assert!(flow.stop().unwrap().complete());
}

#[test]
fn who_comes_late_is_told_which_transfer_it_has_no_part_in() {
    let (early, log) = receiver(|_| (), |_| ());
    let sender = sender(|_| ());
    sender.connect(&early.target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    assert!(flow.stop().unwrap().complete());
    flow.start(b"").unwrap();
    let door = Door::open();
    sender.connect(&door.target()).unwrap();
    let mut late = door.welcome();
    assert_eq!(late.until(Kind::Ping).transfer, 2);
    drop((late, door));
    assert!(flow.stop().unwrap().complete());
    log.take_until_stop();
}

#[test]
fn a_receiver_of_frames_of_no_use_is_not_sent_to() {
    let door = Door::open();
    let sender = sender(|_| ());
    sender.connect(&door.target()).unwrap();
    let _gone = door.welcome_with(|welcome| welcome.frame = 1023);
    eventually(|| sender.state().flows[0].receivers[0].why.contains("frames of 1023 bytes, 1024 at least"));
}

#[test]
fn a_declaration_says_which_ways_and_the_first_question_is_the_right_one() {
    for (takes, found) in WAYS {
        let dir = tempfile::tempdir().unwrap();
        let config = Settings::isolated(dir.path());
        let participant = Participant::open(config, "bulk".parse().unwrap()).unwrap();
        let (receiver, log) = receiver(|flow| flow.transports = takes.to_vec(), |_| ());
        let announced = directory::announce(&participant, &receiver).unwrap();
        let flow = SendFlow { ack_wait: WAIT, wait: WAIT, ..SendFlow::new("spectra".parse().unwrap()) };
        let sender = Sender::open(Identity::alone("test", "CORR"), "correlator".parse().unwrap(), vec![flow]).unwrap();
        let sender = Arc::new(sender);
        let _following = directory::follow(&participant, &sender).unwrap();
        sends_by(&sender, &log, found);
        assert_eq!(receiver.state().refused, 0, "nothing was asked for in vain");
        drop(announced);
    }
}

#[test]
fn a_way_that_is_not_taken_is_refused_at_both_ends() {
    let (receiver, log) = receiver(|flow| flow.transports = vec![Transport::Udp], |_| ());
    let sender = sender(|flow| {
        flow.transport = Some(Transport::Tcp);
        flow.connect_wait = Duration::from_millis(100);
    });
    sender.connect(&receiver.target()).unwrap();
    let link = || sender.state().flows[0].receivers[0].clone();
    eventually(|| link().status == LinkStatus::Refused);
    assert_eq!(link().refusal, Some(Refusal::Transport));
    assert!(link().why.contains("it takes udp"), "{}", link().why);
    eventually(|| log.seen() == [Told::Refused(Refusal::Transport)]);
    let error = sender.flows()[0].start(b"").unwrap_err();
    assert!(matches!(&error, SendError::NoReceiver { refused, .. } if refused[0].why == Refusal::Transport), "{error}");
    // The refused sender asks again, and is reported once.
    eventually(|| receiver.state().flows[0].refused > 2);
    assert_eq!(log.seen(), [Told::Refused(Refusal::Transport)]);
}

#[test]
fn senders_of_one_identity_are_two_and_the_second_begins_from_nothing() {
    let (receiver, log) = receiver(|_| (), |_| ());
    let identity = Identity::alone("test", "CORR");
    let first = sender_as(identity.clone(), |_| ());
    first.connect(&receiver.target()).unwrap();
    let flow = &first.flows()[0];
    for round in 0..3 {
        flow.start(b"first").unwrap();
        flow.send(pattern(round, 100_000)).unwrap();
        assert!(flow.stop().unwrap().complete());
        log.take_until_stop();
    }
    drop(first);
    eventually(|| receiver.state().flows[0].sender.is_none());
    let second = sender_as(identity, |_| ());
    second.connect(&receiver.target()).unwrap();
    let flow = &second.flows()[0];
    flow.start(b"second").unwrap();
    flow.send(pattern(9, 1000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete() && report.deliveries[0].acknowledged == 1000, "{report:?}");
    let told = log.take_until_stop();
    assert_eq!((&told[0], bytes_of(&told)), (&Told::Start(b"second".to_vec()), pattern(9, 1000).to_vec()));
}

#[test]
fn the_second_sender_of_a_flow_is_refused_at_both_ends_and_the_first_goes_on() {
    let (receiver, log) = receiver(|_| (), |_| ());
    let identity = Identity::alone("test", "CORR");
    let first = sender_as(identity.clone(), |_| ());
    first.connect(&receiver.target()).unwrap();
    first.flows()[0].start(b"mine").unwrap();
    first.flows()[0].send(pattern(1, 1000)).unwrap();
    let second = sender_as(identity, |flow| flow.connect_wait = Duration::from_millis(100));
    second.connect(&receiver.target()).unwrap();
    let link = || second.state().flows[0].receivers[0].clone();
    eventually(|| link().refusal == Some(Refusal::Taken));
    let error = second.flows()[0].start(b"").unwrap_err();
    assert!(matches!(&error, SendError::NoReceiver { refused, .. } if refused[0].why == Refusal::Taken), "{error}");
    assert!(error.to_string().contains("another sender has the flow: by CORR"), "{error}");
    eventually(|| log.seen().contains(&Told::Refused(Refusal::Taken)));
    first.flows()[0].send(pattern(2, 1000)).unwrap();
    assert!(first.flows()[0].stop().unwrap().complete());
    assert_eq!(bytes_of(&log.take_until_stop()), [pattern(1, 1000), pattern(2, 1000)].concat());
}
