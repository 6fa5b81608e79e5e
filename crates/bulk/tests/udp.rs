//! The transfers of `suite/transfers.rs` as datagrams, and what becomes of those that are lost.

mod support;

use std::net::UdpSocket;

use support::caller::{Caller, a_dead_life, data, start};
use tampu_bulk::{
    Receiver,
    frame::{Header, Kind},
    message::{Cause, Lost, Nack, Transport},
};

/// The transport of the data.
pub const WAY: Transport = Transport::Udp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

/// The causes in the reports of a skipped receiver.
pub const CAUSES: &[Cause] = &[Cause::Slow];

include!("suite/transfers.rs");

#[test]
fn datagrams_that_a_full_buffer_drops_are_repaired() {
    let (receiver, told) = receiver(|flow| flow.repair = WAIT, |settings| settings.socket_buffer = Some(8192));
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    let flow = &sender.flows()[0];
    told.delay_data(Duration::from_micros(200));
    flow.start(b"").unwrap();
    flow.send(pattern(1, 5_000_000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete(), "{report:?}");
    assert!(bytes_of(&told.take_until_stop()) == pattern(1, 5_000_000));
}

/// A caller whose data goes as datagrams.
fn datagrams(receiver: &Receiver) -> (Caller, impl Fn(Header, &[u8])) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (caller, welcome) = Caller::welcomed_from(receiver, Transport::Udp, "", socket.local_addr().unwrap().port());
    assert_eq!(welcome.transport, Transport::Udp);
    socket.connect(&welcome.place).unwrap();
    let datagram = move |header: Header, payload: &[u8]| {
        let header = Header { session: 77, ..header }.over(payload, true);
        socket.send(&[&header.encode()[..], payload].concat()).unwrap();
    };
    (caller, datagram)
}

fn lost_of(told: &[Told]) -> Vec<(u64, Option<u64>, Cause)> {
    match told.last() {
        Some(Told::Stop { lost, .. }) => lost.iter().map(|lost| (lost.from, lost.to, lost.cause)).collect(),
        other => panic!("{other:?}"),
    }
}

fn stop(sequence: u64, offset: u64) -> Header {
    Header { sequence, offset, kind: Kind::Stop, ..start() }
}

#[test]
fn missing_datagrams_are_asked_for_and_what_never_comes_is_lost_exactly() {
    let (receiver, told) = receiver(|flow| flow.repair = Duration::from_millis(200), |_| ());
    let (mut caller, datagram) = datagrams(&receiver);
    caller.send(start(), b"p");
    datagram(data(4, 20), b"0123456789");
    datagram(data(2, 0), b"abcdefghij");
    datagram(data(2, 0), b"abcdefghij");
    datagram(Header { transfer: 9, ..data(3, 10) }, b"of another transfer");
    let nack = caller.next(Kind::Nack);
    assert_eq!(Nack::decode(&nack.1).unwrap().missing, [(3, 4)]);
    datagram(data(3, 10), b"ABCDEFGHIJ");
    datagram(data(6, 40), b"0123456789");
    caller.send(stop(8, 60), b"");
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abcdefghijABCDEFGHIJ01234567890123456789");
    assert!(matches!(seen.last(), Some(Told::Stop { complete: false, stopped: true, .. })));
    assert_eq!(lost_of(&seen), [(30, Some(40), Cause::Missing), (50, Some(60), Cause::Missing)]);
}

#[test]
fn datagrams_of_another_flow_or_of_nobody_are_nobodys() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let [socket, stranger] = [0; 2].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
    let (mut caller, welcome) = Caller::welcomed_from(&receiver, Transport::Udp, "", socket.local_addr().unwrap().port());
    let send = |bytes: &[u8]| socket.send_to(bytes, &welcome.place).map(drop).unwrap();
    caller.send(start(), b"p");
    caller.next(Kind::Ack);
    // From the same host and with a valid frame, but not from the port that the sender named.
    let forged = Header { session: 77, ..data(2, 0) }.over(b"xyz", true);
    stranger.send_to(&[&forged.encode()[..], b"xyz"].concat(), &welcome.place).unwrap();
    let right = Header { session: 77, ..data(2, 0) }.over(b"abc", true);
    send(&Header { session: 78, ..right }.encode());
    send(b"no frame");
    send(&[&right.encode()[..], b"abd"].concat());
    send(&[&right.encode()[..], b"abcd"].concat());
    send(&Header { kind: Kind::Stop, session: 77, sequence: 2, ..start() }.encode());
    send(&[&right.encode()[..], b"abc"].concat());
    caller.send(stop(3, 3), b"");
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abc");
    assert!(!seen.iter().any(|told| matches!(told, Told::Fault(_))), "{seen:?}");
}

#[test]
fn a_sender_that_does_not_say_where_its_datagrams_come_from_sends_none() {
    let (receiver, _told) = receiver(|_| (), |_| ());
    let (_caller, welcome) = Caller::welcomed_by(&receiver, a_dead_life(), Transport::Udp);
    assert_eq!(welcome.transport, Transport::Tcp);
    assert!(welcome.place.contains("does not name the port"), "{}", welcome.place);
}

#[test]
fn what_strangers_send_is_no_sign_that_a_sender_lives() {
    let (receiver, told) = receiver(|_| (), |settings| settings.silence = Duration::from_millis(300));
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (caller, welcome) = Caller::welcomed_from(&receiver, Transport::Udp, "", 4711);
    let told = || told.seen().contains(&Told::Fault(FaultKind::Timeout));
    let until = std::time::Instant::now() + WAIT;
    while !told() {
        assert!(std::time::Instant::now() < until, "it takes a stranger's datagrams for its sender's");
        stranger.send_to(b"anything", &welcome.place).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(caller);
}

#[test]
fn word_of_lost_data_does_not_overtake_the_datagrams_before_it() {
    let (receiver, told) = receiver(|flow| flow.repair = WAIT, |_| ());
    let (mut caller, datagram) = datagrams(&receiver);
    caller.send(start(), b"");
    datagram(data(2, 0), b"ab");
    let lost = Lost { next_sequence: 6, next_offset: 8, cause: Cause::Slow };
    caller.send(Header { kind: Kind::Lost, ..data(4, 4) }, &lost.encode());
    caller.send(Header { sequence: 7, ..Header::of(Kind::Ping) }, b"");
    caller.next(Kind::Ack);
    // Neither the loss report nor the end is taken before the frames before it; left-out frames are not requested.
    assert_eq!(Nack::decode(&caller.next(Kind::Nack).1).unwrap().missing, [(3, 4), (6, 7)]);
    caller.send(stop(7, 10), b"");
    datagram(data(6, 8), b"ij");
    datagram(data(3, 2), b"cd");
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abcdij");
    assert_eq!(lost_of(&seen), [(4, Some(8), Cause::Slow)]);
}

#[test]
fn a_missing_end_is_asked_for_until_it_comes() {
    let (receiver, told) = receiver(|flow| flow.repair = Duration::from_millis(50), |_| ());
    let (mut caller, datagram) = datagrams(&receiver);
    caller.send(start(), b"");
    datagram(data(2, 0), b"ab");
    caller.send(Header { sequence: 4, ..Header::of(Kind::Ping) }, b"");
    // The receiver waits longer than for a gap with a frame behind it.
    let since = std::time::Instant::now();
    while since.elapsed() < Duration::from_millis(150) {
        assert_eq!(Nack::decode(&caller.next(Kind::Nack).1).unwrap().missing, [(3, 4)]);
    }
    datagram(data(3, 2), b"cd");
    caller.send(stop(4, 4), b"");
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abcd");
    assert_eq!(lost_of(&seen), []);
}

#[test]
fn a_frame_of_another_flow_ends_the_connection() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let (mut caller, _datagram) = datagrams(&receiver);
    caller.send(start(), b"");
    caller.session = 78;
    caller.send(stop(2, 0), b"");
    caller.rest();
    assert!(!told.seen().iter().any(|told| matches!(told, Told::Stop { stopped: true, .. })));
}

#[test]
fn what_a_transfer_had_under_way_when_it_is_given_up_comes_before_that() {
    // The buffer is so small that datagrams are always lost and have to be sent again.
    let (receiver, told) = receiver(|flow| flow.repair = WAIT, |settings| settings.socket_buffer = Some(4096));
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    told.delay_data(Duration::from_millis(1));
    let flow = &sender.flows()[0];
    for round in 0..20 {
        flow.start(b"").unwrap();
        flow.send(pattern(round, 200_000)).unwrap();
        flow.give_up();
        let seen = told.take_until_stop();
        assert!(matches!(seen.last(), Some(Told::Reset)), "{seen:?}");
        assert!(bytes_of(&seen) == pattern(round, 200_000), "round {round}");
    }
}

#[test]
fn short_and_empty_frames_do_not_pile_up() {
    let (_receiver, sender, told) = pair(|flow| flow.repair = WAIT, |_| ());
    let flow = &sender.flows()[0];
    told.block(true);
    flow.start(b"").unwrap();
    let sending = flow.clone();
    let worker = std::thread::spawn(move || {
        for round in 0..20_000u32 {
            sending.send(if round % 2 == 0 { Bytes::new() } else { Bytes::copy_from_slice(&round.to_le_bytes()) }).unwrap();
        }
        sending.stop().unwrap()
    });
    // The sender waits, although all of it has few bytes.
    support::eventually(|| flow.state().waits.is_some());
    told.block(false);
    assert!(worker.join().unwrap().complete());
    let expected: Vec<u8> = (0..20_000u32).filter(|round| round % 2 == 1).flat_map(u32::to_le_bytes).collect();
    assert!(bytes_of(&told.take_until_stop()) == expected);
}
