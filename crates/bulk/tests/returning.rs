//! The reports repeated on a new connection: the one before may have ended with them.

mod support;

/// The transport of the data.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

use support::{
    Told,
    answerer::Door,
    caller::{Caller, data, start},
    receiver, sender,
};
use tampu_bulk::{
    frame::{Header, Kind},
    handler::CallbackError,
    message::{Cause, Fault, FaultKind, Lost},
    state::Report,
};

/// A transfer of three bytes whose receiver goes when it has the stop, comes again, and then says this.
fn of_one_that_comes_again(says: impl Fn(&Header) -> Vec<(Header, Vec<u8>)>) -> Report {
    let door = Door::open();
    let sender = sender(|_| ());
    sender.connect(&door.target()).unwrap();
    let mut answerer = door.welcome();
    let flow = sender.flows()[0].clone();
    let worker = std::thread::spawn(move || {
        flow.start(b"").unwrap();
        flow.send_copy(b"abc").unwrap();
        flow.stop().unwrap()
    });
    let header = answerer.until(Kind::Start);
    answerer.acknowledge(&header);
    let stop = answerer.until(Kind::Stop);
    drop(answerer);
    let mut answerer = door.welcome_with(|welcome| (welcome.sequence, welcome.offset) = (stop.sequence + 1, stop.offset));
    // The sender waits for the next answer, regardless of the Welcome.
    answerer.until(Kind::Ping);
    for (header, payload) in says(&stop) {
        answerer.say(header, &payload);
    }
    answerer.acknowledge(&stop);
    worker.join().unwrap()
}

#[test]
fn word_of_a_loss_that_ended_with_its_connection_is_heard_when_the_receiver_comes_again() {
    let lost = |from, to| {
        let payload = Lost { next_sequence: 1, next_offset: to, cause: Cause::Missing }.encode();
        (Header { transfer: 1, offset: from, ..Header::of(Kind::Lost) }, payload)
    };
    let report = of_one_that_comes_again(|_| vec![lost(0, 2)]);
    assert!(!report.complete(), "{report:?}");
    assert_eq!((report.deliveries[0].lost[0].from, report.deliveries[0].lost[0].to), (0, Some(2)));
    // A loss that is reported twice is counted once.
    let report = of_one_that_comes_again(|_| vec![lost(1, 2), lost(0, 3), lost(0, 3)]);
    assert_eq!(report.deliveries[0].lost_bytes, 3, "{report:?}");
    let gave_up = Fault { kind: FaultKind::GaveUp, count: 1, text: "disk full".to_owned() };
    let report = of_one_that_comes_again(|_| vec![(Header { transfer: 1, ..Header::of(Kind::Fault) }, gave_up.encode())]);
    assert!(!report.complete(), "{report:?}");
    assert!(of_one_that_comes_again(|_| Vec::new()).complete());
}

/// Returns the messages of a receiver up to its answer to a Ping, without acknowledgements.
fn says(caller: &mut Caller) -> Vec<(Header, Vec<u8>)> {
    caller.send(Header { sequence: 99, ..Header::of(Kind::Ping) }, b"");
    std::iter::from_fn(|| caller.read()).take_while(|(header, _)| header.kind != Kind::Ack).collect()
}

#[test]
fn a_receiver_says_again_what_it_lost_and_what_went_wrong_until_the_next_start() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let life = tampu_bus::host::incarnation();
    let mut caller = Caller::welcomed(&receiver, life);
    told.fail_data(Some(CallbackError::give_up("disk full")));
    caller.send(start(), b"p");
    caller.send(data(2, 0), b"abc");
    caller.send(data(4, 10), b"xyz");
    caller.send(Header { sequence: 6, offset: 20, kind: Kind::Stop, ..start() }, b"");
    let seen = told.take_until_stop();
    assert!(matches!(seen.last(), Some(Told::Stop { complete: false, .. })), "{seen:?}");
    // The frames so far were not read.
    drop(caller);
    let mut caller = Caller::welcomed(&receiver, life);
    let said = says(&mut caller);
    let lost: Vec<(u64, u64, u64)> = said
        .iter()
        .filter(|(header, _)| header.kind == Kind::Lost && header.transfer == 1)
        .map(|(header, payload)| {
            let lost = Lost::decode(payload).unwrap();
            (header.offset, lost.next_offset, lost.next_sequence - header.sequence)
        })
        .collect();
    assert_eq!(lost, [(3, 10, 1), (13, 20, 1)]);
    let faults = said.iter().filter(|(header, _)| header.kind == Kind::Fault && header.transfer == 1);
    let kinds: Vec<FaultKind> = faults.map(|(_, payload)| Fault::decode(payload).unwrap().kind).collect();
    assert_eq!(kinds, [FaultKind::CallbackFailed, FaultKind::GaveUp, FaultKind::MissingFrames]);
    // A new transfer has no faults, and another sender gets none of this one's.
    told.fail_data(None);
    caller.send(Header { transfer: 2, sequence: 7, ..start() }, b"");
    caller.next(Kind::Ack);
    drop(caller);
    let mut caller = Caller::welcomed(&receiver, life);
    assert_eq!(says(&mut caller), []);
    caller.send(Header { transfer: 2, sequence: 8, kind: Kind::Stop, ..start() }, b"");
    told.take_until_stop();
    drop(caller);
    support::eventually(|| receiver.state().flows[0].sender.is_none());
    let mut caller = Caller::welcomed(&receiver, support::caller::a_dead_life());
    assert_eq!(says(&mut caller), []);
}
