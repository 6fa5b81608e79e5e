//! Faults between sender and receiver: cut connections, changed bytes, dead senders, callers that lie.

mod support;

/// The transport of the data.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use support::caller::{Caller, a_dead_life, data, start};
use support::{Log, Told, WAIT, bytes_of, eventually, pattern, receiver, sender};
use tampu_bulk::{
    Receiver, Target,
    frame::{Header, Kind},
    handler::Handler,
    message::{Cause, Fault, FaultKind, Hello, Refusal, Refuse},
    receiver::{FlowSettings, Identity, ReceiverSettings},
    state::LinkStatus,
};

/// A wire between a sender and a receiver that can be cut, and that changes bytes.
struct Wire {
    target: Target,
    open: Arc<AtomicBool>,
    carried: Arc<AtomicU64>,
    /// The byte to be changed on its way to the receiver, counted over all connections; 0: none.
    change_at: Arc<AtomicU64>,
    sockets: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(receiver: &Receiver) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut target = receiver.target();
        let there = std::mem::replace(&mut target.address, listener.local_addr().unwrap().to_string());
        let wire = Wire {
            target,
            open: Arc::new(AtomicBool::new(true)),
            carried: Arc::default(),
            change_at: Arc::default(),
            sockets: Arc::default(),
        };
        let (open, carried, change_at, sockets) =
            (wire.open.clone(), wire.carried.clone(), wire.change_at.clone(), wire.sockets.clone());
        std::thread::spawn(move || {
            for here in listener.incoming().flatten() {
                if !open.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(there) = TcpStream::connect(&there) else { continue };
                sockets.lock().unwrap().extend([here.try_clone().unwrap(), there.try_clone().unwrap()]);
                let (back_from, back_to) = (there.try_clone().unwrap(), here.try_clone().unwrap());
                std::thread::spawn(move || carry(back_from, back_to, |_| ()));
                let (carried, change_at) = (carried.clone(), change_at.clone());
                std::thread::spawn(move || {
                    carry(here, there, |bytes| {
                        let before = carried.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                        let at = change_at.load(Ordering::SeqCst);
                        if at > before && at <= before + bytes.len() as u64 {
                            bytes[(at - before - 1) as usize] ^= 0x10;
                            change_at.store(0, Ordering::SeqCst);
                        }
                    });
                });
            }
        });
        wire
    }

    fn cut(&self, open_again: bool) {
        self.open.store(open_again, Ordering::SeqCst);
        for socket in self.sockets.lock().unwrap().drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, mut act: impl FnMut(&mut [u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        act(&mut buffer[..read]);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

#[test]
fn a_transfer_goes_on_behind_the_last_byte_after_its_connection_was_cut() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let wire = Wire::to(&receiver);
    let sender = sender(|_| ());
    sender.connect(&wire.target).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    let mut sent = Vec::new();
    for round in 0..60 {
        let block = pattern(round, 300_000);
        sent.extend_from_slice(&block);
        flow.send(block).unwrap();
        if round % 20 == 10 {
            wire.cut(true);
        }
    }
    let report = flow.stop().unwrap();
    assert!(report.complete(), "{report:?}");
    assert!(flow.state().receivers[0].reconnects >= 1);
    let seen = told.take_until_stop();
    assert!(bytes_of(&seen) == sent, "every byte once");
    assert!(!seen.iter().any(|one| matches!(one, Told::Lost(_))), "nothing was lost");
    assert_eq!(seen.iter().filter(|one| matches!(one, Told::Start(_))).count(), 1);
}

#[test]
fn a_changed_payload_is_found_and_sent_again() {
    let (receiver, told) = receiver(|flow| flow.checked = true, |_| ());
    let wire = Wire::to(&receiver);
    let sender = sender(|_| ());
    sender.connect(&wire.target).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    wire.change_at.store(wire.carried.load(Ordering::SeqCst) + 500_000, Ordering::SeqCst);
    let sent = pattern(1, 3_000_000);
    flow.send(sent.clone()).unwrap();
    let report = flow.stop().unwrap();
    assert_eq!(wire.change_at.load(Ordering::SeqCst), 0, "a byte was changed");
    assert!(report.complete(), "{report:?}");
    let seen = told.take_until_stop();
    assert!(bytes_of(&seen) == sent);
    assert!(seen.contains(&Told::Fault(FaultKind::Corrupt)), "and told");
}

#[test]
fn a_receiver_that_stays_away_is_cut_and_its_handler_gets_the_stop() {
    let (receiver, told) = receiver(|_| (), |settings| settings.resume = Duration::from_millis(200));
    let wire = Wire::to(&receiver);
    let sender = sender(|flow| flow.resume = Duration::from_millis(200));
    sender.connect(&wire.target).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    flow.send(pattern(1, 1000)).unwrap();
    eventually(|| receiver.state().flows[0].bytes == 1000);
    wire.cut(false);
    let report = flow.stop().unwrap();
    assert!(!report.complete());
    assert_eq!(report.deliveries[0].status, LinkStatus::Cut);
    assert!(report.deliveries[0].why.contains("away for too long"), "{report:?}");
    match told.take_until_stop().last() {
        Some(Told::Stop { complete: false, stopped: false, bytes: 1000, lost }) => {
            assert_eq!((lost[0].from, lost[0].to, lost[0].cause), (1000, None, Cause::Away));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sender_that_dies_inside_a_frame_has_its_transfer_ended_at_once() {
    let (receiver, told) = receiver(|_| (), |settings| settings.resume = 10 * WAIT);
    let mut caller = Caller::welcomed(&receiver, a_dead_life());
    caller.send(start(), b"p");
    caller.send(data(2, 0), b"abc");
    let header = data(3, 3).over(&[7; 1000], false);
    let half = [&Header { session: 77, ..header }.encode()[..], &[7; 500]].concat();
    caller.stream.write_all(&half).unwrap();
    drop(caller);
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abc", "half a frame is none");
    match seen.last() {
        Some(Told::Stop { stopped: false, complete: false, lost, .. }) => {
            assert_eq!((lost[0].from, lost[0].to, lost[0].cause), (3, None, Cause::SenderGone));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_orders_and_holes_are_told_to_the_sender_too() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let mut caller = Caller::welcomed(&receiver, a_dead_life());
    caller.send(data(1, 0), b"early");
    caller.send(Header { sequence: 2, ..start() }, b"");
    caller.send(data(3, 0), b"abc");
    caller.send(data(6, 10), b"xyz");
    caller.send(Header { sequence: 9, offset: 20, kind: Kind::Stop, ..start() }, b"");
    let seen = told.take_until_stop();
    caller.stream.shutdown(Shutdown::Write).unwrap();
    let answers = caller.rest();
    let faults: Vec<FaultKind> = answers
        .iter()
        .filter(|(header, _)| header.kind == Kind::Fault)
        .map(|(_, payload)| Fault::decode(payload).unwrap().kind)
        .collect();
    assert_eq!(faults, [FaultKind::WrongOrder, FaultKind::MissingFrames]);
    let lost: Vec<(u64, u64)> = answers
        .iter()
        .filter(|(header, _)| header.kind == Kind::Lost)
        .map(|(header, payload)| (header.offset, tampu_bulk::message::Lost::decode(payload).unwrap().next_offset))
        .collect();
    assert_eq!(lost, [(3, 10), (13, 20)]);
    assert_eq!(bytes_of(&seen), b"abcxyz");
    match seen.last() {
        Some(Told::Stop { stopped: true, complete: false, lost, .. }) => {
            let ranges: Vec<_> = lost.iter().map(|lost| (lost.from, lost.to, lost.frames)).collect();
            assert_eq!(ranges, [(3, Some(10), 2), (13, Some(20), 2)]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn lies_about_lengths_end_the_connection_and_take_no_memory() {
    let (receiver, told) = receiver(|_| (), |_| ());
    for length in [(1 << 20) + 1, 100_000_000, u32::MAX] {
        let mut caller = Caller::welcomed(&receiver, a_dead_life());
        let header = Header { session: 77, length, ..data(2, 0) };
        caller.stream.write_all(&header.encode()).unwrap();
        let answers = caller.rest();
        let (header, payload) = answers.last().unwrap();
        assert_eq!(header.kind, Kind::Fault);
        assert_eq!(Fault::decode(payload).unwrap().kind, FaultKind::FrameTooLong);
    }
    // Offsets near the largest value of a `u64`.
    let mut caller = Caller::welcomed(&receiver, a_dead_life());
    caller.send(start(), b"");
    caller.send(data(2, 0), b"abc");
    caller.send(data(3, u64::MAX - 1), b"abc");
    caller.send(data(u64::MAX, 3), b"abc");
    caller.send(data(4, 3), b"def");
    caller.send(Header { sequence: 5, offset: 6, kind: Kind::Stop, ..start() }, b"");
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abcdef");
    assert!(seen.contains(&Told::Fault(FaultKind::Garbled)));
}

#[test]
fn callers_that_make_no_sense_are_sent_away_and_the_others_go_on() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let good = sender(|_| ());
    good.connect(&receiver.target()).unwrap();
    good.flows()[0].start(b"good").unwrap();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 1000], &Header::of(Kind::Start).encode()[..]] {
        let mut caller = Caller::connect(&receiver);
        let _ = caller.stream.write_all(garbage);
        let _ = caller.stream.shutdown(Shutdown::Write);
        assert_eq!(caller.rest().len(), 0);
    }
    let refusal = |change: &dyn Fn(&mut Hello)| {
        let mut hello = Caller::hello(&receiver, a_dead_life());
        change(&mut hello);
        let mut caller = Caller::connect(&receiver);
        caller.send(Header::of(Kind::Hello), &hello.encode());
        let (header, payload) = caller.read().unwrap();
        assert_eq!(header.kind, Kind::Refuse);
        Refuse::decode(&payload).unwrap()
    };
    assert_eq!(refusal(&|hello| hello.token.0[3] ^= 1), Refuse { why: Refusal::Stranger, text: String::new() });
    assert_eq!(refusal(&|hello| hello.domain = "elsewhere".to_owned()).why, Refusal::Stranger);
    assert_eq!(refusal(&|hello| hello.stream = "x".to_owned()).why, Refusal::NoStream);
    assert_eq!(refusal(&|hello| hello.flow = "x#y".to_owned()).why, Refusal::NoFlow);
    assert_eq!(refusal(&|hello| hello.version = 0).why, Refusal::Version);
    let taken = refusal(&|_| ());
    assert!(taken.why == Refusal::Taken && taken.text.contains("CORR"), "{taken:?}");
    // A frame of another session ends only the connection that sends it.
    good.flows()[0].send(pattern(1, 1000)).unwrap();
    assert!(good.flows()[0].stop().unwrap().complete());
    assert_eq!(bytes_of(&told.take_until_stop()), pattern(1, 1000));
    drop(good);
    eventually(|| receiver.state().flows[0].sender.is_none());
    let mut caller = Caller::welcomed(&receiver, a_dead_life());
    caller.session = 78;
    caller.send(start(), b"");
    assert_eq!(caller.rest().len(), 0);
}

#[test]
fn a_receiver_that_closes_tells_its_handlers_the_end() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    sender.flows()[0].start(b"").unwrap();
    drop(receiver);
    assert!(matches!(told.take_until_stop().last(), Some(Told::Stop { stopped: false, .. })));
    eventually(|| sender.state().flows[0].receivers[0].status == LinkStatus::Broken);
}

#[test]
fn zero_length_everything() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    let flow = &sender.flows()[0];
    for _ in 0..3 {
        flow.start(b"").unwrap();
        flow.send_copy(b"").unwrap();
        flow.send_copy(b"").unwrap();
        assert!(flow.stop().unwrap().complete());
        let seen = told.take_until_stop();
        let expected = [Told::Start(Vec::new()), Told::Data(0, Vec::new()), Told::Data(0, Vec::new())];
        assert_eq!(seen[..3], expected);
    }
}

#[test]
fn strangers_take_no_senders_place() {
    let (receiver, told) = receiver(|_| (), |settings| settings.hello = 10 * WAIT);
    // More callers than connections are allowed, and none of them ever sends a Hello.
    let strangers: Vec<Caller> = (0..200).map(|_| Caller::connect(&receiver)).collect();
    eventually(|| receiver.state().refused >= 200 - 64);
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    flow.send(pattern(1, 1000)).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert_eq!(bytes_of(&told.take_until_stop()), pattern(1, 1000));
    drop(strangers);
}

#[test]
fn a_caller_that_goes_on_saying_a_little_is_sent_away() {
    let (receiver, _told) = receiver(|_| (), |settings| settings.hello = Duration::from_millis(200));
    let mut caller = Caller::connect(&receiver);
    let hello = Caller::hello(&receiver, a_dead_life()).encode();
    let bytes = [&Header::of(Kind::Hello).over(&hello, true).encode()[..], &hello].concat();
    let mut bytes = bytes.chunks(1);
    while receiver.state().refused == 0 {
        let byte = bytes.next().expect("it was sent away before it had said all");
        // The loop waits for this error.
        let _ = caller.stream.write_all(byte);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn as_many_senders_as_the_settings_say_are_let_in_and_one_that_leaves_makes_room() {
    let (receiver, _told) = receiver(|_| (), |settings| settings.connections = 0);
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    eventually(|| sender.state().flows[0].receivers[0].refusal == Some(Refusal::Full));
    let (receiver, _told) = support::receiver(|_| (), |settings| settings.connections = 1);
    for _ in 0..3 {
        let mut caller = Caller::welcomed(&receiver, a_dead_life());
        caller.send(start(), b"");
        drop(caller);
        eventually(|| receiver.state().flows[0].sender.is_none());
    }
}

#[test]
fn a_receiver_that_is_dropped_while_a_callback_runs_delivers_its_stop_all_the_same() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    sender.flows()[0].start(b"").unwrap();
    told.block(true);
    sender.flows()[0].send(pattern(1, 1000)).unwrap();
    eventually(|| receiver.state().flows[0].in_callback.is_some());
    drop(receiver);
    told.block(false);
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), pattern(1, 1000));
    assert!(matches!(seen.last(), Some(Told::Stop { stopped: false, .. })), "{seen:?}");
}

#[test]
fn a_slow_end_of_one_flow_keeps_nobody_else_from_connecting() {
    let (slow, other) = (Log::default(), Log::default());
    let flow = |name: &str, log: &Log| {
        let handler: Box<dyn Handler> = Box::new(log.clone());
        (FlowSettings::new(name.parse().unwrap()), handler)
    };
    let flows = vec![flow("spectra", &slow), flow("autos", &other)];
    let settings = ReceiverSettings::default();
    let receiver = Receiver::open(Identity::alone("test", "archive"), "correlator".parse().unwrap(), settings, flows).unwrap();
    slow.block_stop(true);
    let mut caller = Caller::welcomed(&receiver, a_dead_life());
    caller.send(start(), b"");
    drop(caller);
    eventually(|| receiver.state().flows[0].in_callback.is_some());
    // The callback for the end of the dead sender's flow runs here, and takes arbitrarily long.
    let sender = sender(|flow| flow.name = "autos".parse().unwrap());
    sender.connect(&receiver.target()).unwrap();
    sender.flows()[0].start(b"").unwrap();
    assert!(sender.flows()[0].stop().unwrap().complete());
    slow.block_stop(false);
    assert!(matches!(slow.take_until_stop().last(), Some(Told::Stop { stopped: false, .. })));
}

#[test]
fn a_throttled_sender_is_heard_between_its_frames() {
    let silence = Duration::from_millis(2500);
    let (receiver, told) = receiver(|_| (), |settings| settings.silence = silence);
    let sender = sender(|flow| {
        flow.frame = 4096;
        flow.throttle = Some(4096.0 / (2 * silence).as_secs_f64());
    });
    sender.connect(&receiver.target()).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    flow.send(pattern(1, 4097)).unwrap();
    assert!(flow.stop().unwrap().complete());
    assert_eq!(flow.state().receivers[0].reconnects, 0, "nobody hung up");
    assert_eq!(bytes_of(&told.take_until_stop()), pattern(1, 4097));
}

#[test]
fn a_caller_that_has_waited_too_long_for_a_callback_does_not_disturb_who_has_the_flow_now() {
    for round in 0..5 {
        let (receiver, told) = receiver(|_| (), |_| ());
        told.block(true);
        let life = a_dead_life();
        let mut first = Caller::welcomed(&receiver, life);
        first.send(start(), b"one");
        first.send(data(2, 0), b"abc");
        eventually(|| receiver.state().flows[0].in_callback.is_some());
        drop(first);
        // The sender connects again while the callback runs, and closes before it is served; another has the flow by then.
        let mut again = Caller::connect(&receiver);
        again.send(Header::of(Kind::Hello), &Caller::hello(&receiver, life).encode());
        eventually(|| receiver.state().flows[0].sender.as_ref().is_some_and(|peer| peer.address == again.address()));
        let mut other = Caller::connect(&receiver);
        let hello = Hello { session: 78, ..Caller::hello(&receiver, a_dead_life()) };
        other.session = 78;
        other.send(Header::of(Kind::Hello), &hello.encode());
        eventually(|| receiver.state().flows[0].sender.as_ref().is_some_and(|peer| peer.address == other.address()));
        told.block(false);
        assert_eq!(other.read().unwrap().0.kind, Kind::Welcome);
        assert!(matches!(told.take_until_stop().last(), Some(Told::Stop { stopped: false, .. })), "the first one's");
        other.send(start(), b"two");
        for sequence in 2..20 {
            other.send(data(sequence, sequence - 2), b"x");
        }
        other.send(Header { sequence: 20, offset: 18, kind: Kind::Stop, ..start() }, b"");
        let seen = told.take_until_stop();
        assert_eq!((&seen[0], bytes_of(&seen)), (&Told::Start(b"two".to_vec()), vec![b'x'; 18]), "round {round}");
        let said = again.rest();
        assert!(said.is_empty() || said[0].0.kind == Kind::Refuse, "{said:?}");
    }
}

#[test]
fn a_hundred_gigabytes_that_are_only_said_to_be_there_take_no_memory_and_are_told_as_lost() {
    const SAID: u64 = 100_000_000_000;
    let (receiver, told) = receiver(|_| (), |_| ());
    let mut caller = Caller::welcomed(&receiver, a_dead_life());
    caller.send(start(), b"p");
    caller.send(data(2, 0), b"abc");
    caller.send(data(4, SAID), b"xyz");
    caller.send(Header { sequence: 5, offset: SAID + 3, kind: Kind::Stop, ..start() }, b"");
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abcxyz");
    match seen.last() {
        Some(Told::Stop { stopped: true, complete: false, bytes: 6, lost }) => {
            let ranges: Vec<_> = lost.iter().map(|lost| (lost.from, lost.to, lost.frames)).collect();
            assert_eq!(ranges, [(3, Some(SAID), 1)]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn calls_that_are_slow_on_average_are_told_at_the_end() {
    let (receiver, told) = receiver(|flow| flow.callback_average_limit = Duration::from_millis(1), |_| ());
    let sender = sender(|_| ());
    sender.connect(&receiver.target()).unwrap();
    let flow = &sender.flows()[0];
    told.delay_data(Duration::from_millis(10));
    flow.start(b"").unwrap();
    flow.send(pattern(1, 10)).unwrap();
    let report = flow.stop().unwrap();
    let kinds: Vec<FaultKind> = report.deliveries[0].faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [FaultKind::CallbackSlowOnAverage]);
    assert!(report.complete(), "slow is not incomplete");
    assert_eq!(bytes_of(&told.take_until_stop()).len(), 10);
}
