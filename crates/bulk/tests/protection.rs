//! Protected connections behind somebody who records, changes, repeats, moves or drops what passes.

mod support;

/// The transport of the data.
pub const WAY: tampu_bulk::message::Transport = tampu_bulk::message::Transport::Tcp;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Encrypted;

use std::{sync::Arc, time::Duration};

use support::{
    Log, Told, WAIT, bytes_of,
    caller::{Caller, a_dead_life},
    eventually, pattern,
    proxy::{Act, Proxy},
    receiver, sender,
};
use tampu_bulk::{
    Distributor, Protection, Receiver, Sender, Target,
    distributor::through,
    frame::{Header, Kind},
    handler::Handler,
    message::{ProtectionLevel, Refusal, Refuse, Token},
    receiver::{FlowSettings, Identity, ReceiverSettings},
    sender::SendError,
    state::LinkStatus,
};

/// A receiver, and a sender that reaches it through a proxy.
fn behind_proxy(
    protection: Protection,
    act: impl Fn(usize, usize) -> Act + Send + Sync + 'static,
) -> (Receiver, Log, Sender, Proxy) {
    let (receiver, told) = receiver(|_| (), |_| ());
    let proxy = Proxy::open(receiver.address(), act);
    let sender = sender(|flow| flow.protection = protection);
    sender.connect(&Target { address: proxy.address(), token: receiver.target().token }).unwrap();
    (receiver, told, sender, proxy)
}

/// Sends two blocks, and checks that they arrive as they are.
fn arrives(sender: &Sender, told: &Log, about: &str) {
    let flow = &sender.flows()[0];
    flow.start(b"a secret parameter").unwrap_or_else(|error| panic!("{about}: {error}"));
    flow.send(pattern(1, 700)).unwrap();
    flow.send(pattern(2, 700)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete(), "{about}: {report:?}");
    let told = told.take_until_stop();
    assert_eq!(told[0], Told::Start(b"a secret parameter".to_vec()), "{about}");
    assert!(bytes_of(&told) == [pattern(1, 700), pattern(2, 700)].concat(), "{about}: other bytes arrived");
    assert!(matches!(told.last(), Some(Told::Stop { complete: true, .. })), "{about}: {told:?}");
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|bytes| bytes == part)
}

#[test]
fn somebody_who_records_sees_neither_data_nor_names_nor_the_token() {
    for protection in [Protection::Encrypted, Protection::Authenticated, Protection::None] {
        let (receiver, told, sender, proxy) = behind_proxy(protection, |_, _| Act::Pass);
        arrives(&sender, &told, protection.name());
        let seen = proxy.recorded();
        assert!(seen.len() > 1400, "{}", seen.len());
        let readable = protection == Protection::None;
        assert_eq!(contains(&seen, &pattern(1, 700)), readable, "{protection}");
        for secret in [&b"a secret parameter"[..], b"CORR", b"archive", b"correlator", b"spectra", &receiver.target().token.0] {
            assert_eq!(contains(&seen, secret), readable, "{protection}: {}", String::from_utf8_lossy(secret));
        }
        let level = sender.state().flows[0].receivers[0].protection;
        assert_eq!((level.name(), receiver.state().flows[0].protection), (protection.name(), Some(level)));
    }
}

#[test]
fn a_bit_that_changes_anywhere_ends_the_connection_and_no_changed_byte_is_handed_over() {
    // The first connection carries at least as many bytes in each direction.
    for back in [false, true] {
        let length = if back { 450 } else { 1900 };
        for place in (0..length).step_by(if back { 67 } else { 101 }) {
            let act = move |connection, direction| match (connection, direction == usize::from(back)) {
                (0, true) => Act::Flip { byte: place, bit: (place % 8) as u8 },
                _ => Act::Pass,
            };
            let (_receiver, told, sender, proxy) = behind_proxy(Protection::Encrypted, act);
            let about = format!("byte {place}, {}", if back { "back" } else { "there" });
            arrives(&sender, &told, &about);
            assert!(proxy.connections() > 1, "{about}: the change was not found");
        }
    }
}

#[test]
fn records_that_are_repeated_moved_or_left_out_are_refused() {
    type Change = fn(&mut Vec<Vec<u8>>);
    let changes: [(&str, Change); 4] = [
        ("repeated", |records| records.insert(1, records[0].clone())),
        ("moved", |records| records.swap(0, 1)),
        ("left out", |records| drop(records.remove(0))),
        ("repeated later", |records| records.push(records[0].clone())),
    ];
    for (about, change) in changes {
        let act = move |connection, direction| match (connection, direction) {
            // The offer, the Hello, a Ping and the Start pass; the two blocks are held.
            (0, 0) => Act::Records { passed: 4, count: 2, change },
            _ => Act::Pass,
        };
        let (_receiver, told, sender, proxy) = behind_proxy(Protection::Encrypted, act);
        arrives(&sender, &told, about);
        assert!(proxy.connections() > 1, "{about}: it was not found");
    }
}

#[test]
fn the_reason_names_the_record_and_what_is_missing_is_told_exactly() {
    let (receiver, told) = receiver(|_| (), |settings| settings.resume = Duration::from_millis(1));
    // The third record and all after it: the first block.
    let act = |connection, direction| match (connection, direction) {
        (0, 0) => Act::Flip { byte: 114 + 1200, bit: 0 },
        (_, 0) => Act::Close,
        _ => Act::Pass,
    };
    let proxy = Proxy::open(receiver.address(), act);
    let sender = Arc::new(sender(|flow| flow.resume = Duration::from_millis(1)));
    sender.connect(&Target { address: proxy.address(), token: receiver.target().token }).unwrap();
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    let data = pattern(1, 5000);
    for block in 0..5 {
        // The flow has nobody left at some point.
        let _ = flow.send(data.slice(1000 * block..1000 * (block + 1)));
    }
    let told = told.take_until_stop();
    let (arrived, faults): (Vec<Told>, Vec<Told>) = told.into_iter().partition(|told| !matches!(told, Told::Fault(_)));
    let bytes = bytes_of(&arrived);
    assert!(data.starts_with(&bytes) && bytes.len() < data.len(), "{} bytes", bytes.len());
    let Some(Told::Stop { complete: false, bytes: count, .. }) = arrived.last() else { panic!("{arrived:?}") };
    assert_eq!(*count, bytes.len() as u64);
    assert!(faults.len() <= 1, "{faults:?}");
}

#[test]
fn a_wrong_token_is_refused_on_both_ends() {
    let (receiver, _) = receiver(|_| (), |_| ());
    let sender = sender(|flow| flow.connect_wait = Duration::from_millis(300));
    sender.connect(&Target { token: Token([7; 16]), ..receiver.target() }).unwrap();
    eventually(|| sender.state().flows[0].receivers[0].refusal == Some(Refusal::Stranger));
    let why = sender.state().flows[0].receivers[0].why.clone();
    assert!(why.contains("does not prove that it knows the token"), "{why}");
    assert!(matches!(sender.flows()[0].start(b""), Err(SendError::NoReceiver { .. })));
    eventually(|| receiver.state().refused > 0);
}

#[test]
fn the_token_of_a_receiver_that_is_gone_opens_nothing() {
    let (first, _) = receiver(|_| (), |_| ());
    let old = first.target();
    drop(first);
    let (second, _) = receiver(|_| (), |settings| settings.listen = old.address.parse().unwrap());
    assert_eq!(second.target().address, old.address);
    let sender = sender(|_| ());
    sender.connect(&old).unwrap();
    eventually(|| sender.state().flows[0].receivers[0].refusal == Some(Refusal::Stranger));
}

#[test]
fn nobody_on_the_way_talks_an_end_out_of_its_protection() {
    // A receiver that demands protection refuses a sender without it.
    let (demanding, _) = receiver(|flow| flow.protection = Protection::Authenticated, |_| ());
    let mut caller = Caller::connect(&demanding);
    caller.send(Header::of(Kind::Hello), &Caller::hello(&demanding, a_dead_life()).encode());
    let (header, payload) = caller.read().unwrap();
    assert_eq!((header.kind, Refuse::decode(&payload).unwrap().why), (Kind::Refuse, Refusal::Protection));
    // A sender that demands it goes no other way, whatever it hears.
    let refuse = Refuse { why: Refusal::Version, text: "no protection here".to_owned() }.encode();
    let refusal = [&Header::of(Kind::Refuse).over(&refuse, true).encode()[..], &refuse].concat();
    for act in [Act::Close, Act::Answer(refusal)] {
        let (receiver, _, sender, proxy) =
            behind_proxy(Protection::Encrypted, move |_, direction| if direction == 0 { act.clone() } else { Act::Pass });
        eventually(|| proxy.connections() > 2);
        let seen = proxy.recorded();
        assert!(!contains(&seen, &receiver.target().token.0) && !contains(&seen, b"correlator"), "a Hello was sent");
        assert_eq!(sender.flows()[0].connected(), 0);
    }
}

#[test]
fn the_stronger_demand_of_both_holds() {
    use Protection::{Authenticated, Encrypted, None};
    for (taken, given, agreed) in [
        (Encrypted, None, ProtectionLevel::Encrypted),
        (Authenticated, None, ProtectionLevel::Authenticated),
        (Encrypted, Authenticated, ProtectionLevel::Encrypted),
        (None, Authenticated, ProtectionLevel::Authenticated),
        (None, None, ProtectionLevel::None),
        (Protection::Auto, Protection::Auto, ProtectionLevel::None),
    ] {
        let (receiver, told) = receiver(|flow| flow.protection = taken, |_| ());
        let sender = sender(|flow| flow.protection = given);
        sender.connect(&receiver.target()).unwrap();
        arrives(&sender, &told, &format!("{taken} {given}"));
        assert_eq!(sender.state().flows[0].receivers[0].protection, agreed, "{taken} {given}");
    }
}

#[test]
fn a_transfer_goes_on_after_a_break() {
    let act = |connection, direction| match (connection, direction) {
        (0..3, 0) => Act::CloseAfter(3_000_000),
        _ => Act::Pass,
    };
    let (_receiver, told, sender, proxy) = behind_proxy(Protection::Encrypted, act);
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    let data = pattern(1, 10_000_000);
    flow.send(data.clone()).unwrap();
    assert!(flow.stop().unwrap().complete());
    let told = told.take_until_stop();
    assert!(bytes_of(&told) == data);
    assert!(!told.iter().any(|told| matches!(told, Told::Lost(_))));
    assert_eq!(proxy.connections(), 4);
}

#[test]
fn a_distributor_takes_and_gives_under_protection() {
    let (mut taken, mut given) = through("spectra".parse().unwrap());
    taken.protection = Protection::Encrypted;
    (given.protection, given.transport) = (Protection::Encrypted, Some(WAY));
    (given.wait, given.ack_wait) = (WAIT, WAIT);
    let identity = Identity::alone("test", "relay");
    let (input, output) = ("correlator".parse().unwrap(), "quicklook".parse().unwrap());
    let relay = Distributor::open(identity, input, output, ReceiverSettings::default(), vec![(taken, given)]).unwrap();
    let log = Log::default();
    let handler: Box<dyn Handler> = Box::new(log.clone());
    let flows = vec![(FlowSettings::new("spectra".parse().unwrap()), handler)];
    let identity = Identity::alone("test", "behind");
    let last = Receiver::open(identity, "quicklook".parse().unwrap(), ReceiverSettings::default(), flows).unwrap();
    relay.sender().connect(&last.target()).unwrap();
    assert!(relay.sender().flows()[0].wait_for(1, WAIT));
    let first = sender(|flow| flow.protection = Protection::Auto);
    first.connect(&relay.receiver().target()).unwrap();
    arrives(&first, &log, "behind a distributor");
    let state = relay.state();
    assert_eq!(state.input.flows[0].protection, Some(ProtectionLevel::Encrypted));
    assert_eq!(state.output.flows[0].receivers[0].protection, ProtectionLevel::Encrypted);
    assert_eq!(first.state().flows[0].receivers[0].status, LinkStatus::Live);
}
