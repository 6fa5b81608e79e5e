//! Late data: reported with its cause, at both ends.

mod support;

/// The transport of the data.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

use std::time::Duration;

use support::{
    Log, Told, WAIT,
    answerer::Door,
    bytes_of,
    caller::{Caller, a_dead_life, start},
    eventually, pair, pattern, receiver, sender,
};
use tampu_bulk::{
    Sender,
    frame::{Header, Kind},
    message::{Cause, Fault, FaultKind, Lost},
    receiver::queue::queue,
    state::{CutCause, LinkStatus},
};

const SOON: Duration = Duration::from_millis(200);

#[test]
fn a_silent_sender_is_told_that_nothing_came_in_time() {
    let (receiver, told) = receiver(|_| (), |settings| settings.silence = SOON);
    let mut caller = Caller::welcomed(&receiver, tampu_bus::host::incarnation());
    caller.send(start(), b"p");
    let faults: Vec<Fault> = caller
        .rest()
        .iter()
        .filter(|(header, _)| header.kind == Kind::Fault)
        .map(|(_, payload)| Fault::decode(payload).unwrap())
        .collect();
    assert_eq!(faults.iter().map(|fault| fault.kind).collect::<Vec<_>>(), [FaultKind::Timeout]);
    assert_eq!(faults[0].text, "nothing came for 0.2 s");
    assert!(told.seen().contains(&Told::Fault(FaultKind::Timeout)), "{:?}", told.seen());
    eventually(|| receiver.state().flows[0].waits_for_sender.is_some());
}

/// Checks that a returning receiver gets the cause and the bytes of its losses.
fn is_told(told: &Log, cause: Cause, sent: u64) {
    let seen = told.take_until_stop();
    assert!(matches!(seen.last(), Some(Told::Reset)), "{seen:?}");
    let lost = seen.iter().find_map(|one| if let Told::Lost(lost) = one { Some(*lost) } else { None });
    assert!(lost.is_some_and(|lost| lost.cause == cause && lost.to == Some(sent)), "{lost:?}");
    assert_eq!(bytes_of(&seen).len() as u64, lost.map_or(0, |lost| lost.from), "what came and what is lost join");
}

/// The flow's only receiver is cut for this reason; its sender calls until it sees that.
fn is_cut(sender: &Sender, cause: CutCause) {
    let link = || sender.state().flows[0].receivers[0].clone();
    assert_eq!((link().cut, link().status == LinkStatus::Live), (Some(cause), false), "{:?}", link());
}

#[test]
fn a_receiver_that_takes_nothing_is_cut_for_that() {
    let (_receiver, sender, told) = pair(
        |_| (),
        |flow| {
            flow.window = 1 << 20;
            flow.wait = SOON;
        },
    );
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    told.block(true);
    let mut sent = 0;
    while flow.send(pattern(sent, 256 << 10)).is_ok() {
        sent += 256 << 10;
    }
    is_cut(&sender, CutCause::SendTimeout);
    let sent = flow.state().bytes;
    told.block(false);
    is_told(&told, Cause::Slow, sent);
}

#[test]
fn a_receiver_that_acknowledges_no_stop_is_cut_for_that() {
    let (_receiver, sender, told) = pair(|_| (), |flow| flow.ack_wait = SOON);
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    told.block_stop(true);
    flow.send(pattern(1, 1000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(!report.complete());
    assert_eq!((report.deliveries[0].status, report.deliveries[0].cut), (LinkStatus::Cut, Some(CutCause::AckTimeout)));
    is_cut(&sender, CutCause::AckTimeout);
    told.block_stop(false);
    assert!(matches!(told.take_until_stop().last(), Some(Told::Stop { complete: true, .. })), "it had it all, only too late");
    // The receiver takes part in the next transfer without earlier reports.
    assert!(flow.wait_for(1, WAIT));
    flow.start(b"next").unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete() && report.deliveries[0].cut.is_none(), "{report:?}");
}

#[test]
fn a_receiver_that_stays_away_is_cut_for_that_and_not_for_being_slow() {
    let door = Door::open();
    let sender = sender(|flow| flow.resume = SOON);
    sender.connect(&door.target()).unwrap();
    let mut answerer = door.welcome();
    let flow = sender.flows()[0].clone();
    let worker = std::thread::spawn(move || {
        flow.start(b"").unwrap();
        flow.stop().unwrap()
    });
    let header = answerer.until(Kind::Start);
    answerer.acknowledge(&header);
    answerer.until(Kind::Stop);
    drop((answerer, door));
    let report = worker.join().unwrap();
    assert_eq!((report.deliveries[0].status, report.deliveries[0].cut), (LinkStatus::Cut, Some(CutCause::Away)), "{report:?}");
}

#[test]
fn a_fault_of_an_earlier_transfer_is_not_counted_among_those_of_the_next() {
    let door = Door::open();
    let sender = sender(|_| ());
    sender.connect(&door.target()).unwrap();
    let mut answerer = door.welcome();
    let flow = sender.flows()[0].clone();
    let worker = std::thread::spawn(move || {
        flow.start(b"").unwrap();
        flow.stop().unwrap();
        flow.start(b"").unwrap();
        flow.stop().unwrap()
    });
    let fault = |kind, transfer| {
        let payload = Fault { kind, count: 1, text: format!("of transfer {transfer}") }.encode();
        (Header { transfer, ..Header::of(Kind::Fault) }, payload)
    };
    for transfer in 1..=2 {
        let header = answerer.until(Kind::Start);
        answerer.acknowledge(&header);
        let header = answerer.until(Kind::Stop);
        if transfer == 2 {
            let (late, payload) = fault(FaultKind::GaveUp, 1);
            answerer.say(late, &payload);
            let (own, payload) = fault(FaultKind::CallbackFailed, 2);
            answerer.say(own, &payload);
        }
        answerer.acknowledge(&header);
    }
    let report = worker.join().unwrap();
    let kinds: Vec<FaultKind> = report.deliveries[0].faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [FaultKind::CallbackFailed]);
    assert!(report.complete(), "{report:?}");
}

#[test]
fn who_waits_for_ever_says_so_and_nothing_breaks() {
    let (receiver, sender, told) = pair(|_| (), |flow| flow.connect_wait = Duration::MAX);
    let flow = &sender.flows()[0];
    assert!(flow.wait_for(1, Duration::MAX));
    let never = flow.every(Duration::MAX, |_| panic!("not in this life")).unwrap();
    flow.start(b"").unwrap();
    assert!(flow.stop().unwrap().complete());
    told.take_until_stop();
    assert!(!never.is_done());
    drop((never, receiver));
    let (filler, stream) = queue(10);
    drop(filler);
    assert!(stream.next(Duration::MAX).is_none());
}

#[test]
fn numbers_at_the_end_of_what_a_number_can_say_harm_nobody() {
    // A receiver that reports losses beyond all limits.
    let door = Door::open();
    let sender = sender(|_| ());
    sender.connect(&door.target()).unwrap();
    let mut answerer = door.welcome();
    let flow = sender.flows()[0].clone();
    let worker = std::thread::spawn(move || {
        flow.start(b"").unwrap();
        flow.stop().unwrap()
    });
    let header = answerer.until(Kind::Start);
    for _ in 0..3 {
        let lost = Lost { next_sequence: u64::MAX, next_offset: u64::MAX, cause: Cause::Missing }.encode();
        answerer.say(Header { transfer: 1, sequence: 0, offset: 0, ..Header::of(Kind::Lost) }, &lost);
    }
    answerer.acknowledge(&header);
    let header = answerer.until(Kind::Stop);
    answerer.acknowledge(&header);
    assert!(!worker.join().unwrap().complete());

    // A sender whose last possible frame is changed on its way three times.
    let (receiver, told) = receiver(|_| (), |settings| settings.silence = SOON);
    let life = a_dead_life();
    for round in 0..3 {
        let mut caller = Caller::welcomed(&receiver, life);
        if round == 0 {
            caller.send(start(), b"p");
        }
        let header = Header { transfer: 1, sequence: u64::MAX, offset: u64::MAX, ..Header::of(Kind::Data) };
        caller.send_changed(header, b"abc");
        if round == 2 {
            caller.send(Header { transfer: 1, sequence: 2, offset: 0, ..Header::of(Kind::Stop) }, b"");
        }
        caller.rest();
    }
    assert!(told.seen().contains(&Told::Fault(FaultKind::Corrupt)));
    told.take_until_stop();
}
