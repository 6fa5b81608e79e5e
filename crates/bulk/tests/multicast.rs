//! The transfers of `suite/transfers.rs` to a group, and what is sent once and what for one alone.

mod support;

use std::{
    collections::HashMap,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
};

use support::caller::{Caller, data, start};
use tampu_bulk::{
    frame::{HEADER_LEN, Header, Kind},
    group::Group,
    interface::Interface,
    message::{Cause, Nack, Transport},
    receiver::{Identity, OpenError},
    sender::SendFlow,
};

/// The transport of the data.
pub const WAY: Transport = Transport::Multicast;

/// The protection that senders demand.
pub const PROTECTION: tampu_bulk::Protection = tampu_bulk::Protection::Auto;

/// The causes in the reports of a skipped receiver.
pub const CAUSES: &[Cause] = &[Cause::Slow];

include!("suite/transfers.rs");

/// A port that nobody has.
fn free_port() -> u16 {
    UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port()
}

/// Somebody else who listens to the group on this host. Receivers beside it are members all the same, for their sockets share the port.
fn listener(port: u16) -> UdpSocket {
    use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
    let one = UdpSocket::from(socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap());
    sockopt::set_socket_reuseaddr(&one, true).unwrap();
    bind(&one, &SocketAddr::from(([239, 255, 77, 1], port))).unwrap();
    one.join_multicast_v4(&Ipv4Addr::new(239, 255, 77, 1), &Ipv4Addr::LOCALHOST).unwrap();
    one.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    one
}

#[test]
fn data_goes_once_to_the_group_however_many_receivers_there_are() {
    let port = free_port();
    let listener = listener(port);
    let receivers: Vec<_> = (0..5).map(|_| receiver(|flow| flow.repair = WAIT, |_| ())).collect();
    let mut settings = SendFlow::new("spectra".parse().unwrap());
    settings.group = Some(format!("239.255.77.1:{port}").parse().unwrap());
    settings.receivers = receivers.len();
    let sender = Sender::open(Identity::alone("test", "CORR"), "correlator".parse().unwrap(), vec![settings]).unwrap();
    receivers.iter().for_each(|(receiver, _)| sender.connect(&receiver.target()).unwrap());
    let flow = &sender.flows()[0];
    let counting = std::thread::spawn(move || {
        let (mut seen, mut buffer) = (HashMap::<u64, u32>::new(), vec![0; 1 << 16]);
        while let Ok(length) = listener.recv(&mut buffer) {
            let header = Header::decode(buffer[..length].first_chunk::<HEADER_LEN>().unwrap(), 1 << 20).unwrap();
            assert_eq!(header.kind, Kind::Data, "beginnings and ends go on the connections");
            *seen.entry(header.sequence).or_default() += 1;
        }
        seen
    });
    flow.start(b"").unwrap();
    flow.send(pattern(1, 3_000_000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete() && report.deliveries.len() == 5, "{report:?}");
    assert!(flow.state().receivers.iter().all(|link| link.transport == Transport::Multicast));
    for (_, told) in &receivers {
        assert!(bytes_of(&told.take_until_stop()) == pattern(1, 3_000_000));
    }
    // The listener's small buffer may have dropped some.
    let seen = counting.join().unwrap();
    assert!(!seen.is_empty() && seen.values().all(|times| *times == 1), "{seen:?}");
}

fn interface(text: &str) -> Interface {
    text.parse().unwrap()
}

#[test]
fn a_group_goes_out_at_an_interface_by_its_name_or_index() {
    // The loopback has index 1 in every network namespace.
    for at in ["lo", "1"] {
        let (receiver, told) = receiver(|flow| flow.repair = WAIT, |_| ());
        let sender = sender(|flow| flow.group = Some(Group { interface: interface(at), ..support::group() }));
        sender.connect(&receiver.target()).unwrap();
        let flow = &sender.flows()[0];
        flow.start(b"").unwrap();
        flow.send(pattern(1, 1_000_000)).unwrap();
        assert!(flow.stop().unwrap().complete());
        assert!(flow.state().receivers.iter().all(|link| link.transport == Transport::Multicast), "{at}");
        assert!(bytes_of(&told.take_until_stop()) == pattern(1, 1_000_000));
    }
}

#[test]
fn what_one_receiver_alone_misses_is_sent_to_it_alone() {
    let (good, told_good) = receiver(|flow| flow.repair = WAIT, |_| ());
    let (small, told_small) = receiver(|flow| flow.repair = WAIT, |settings| settings.socket_buffer = Some(4096));
    let sender = sender(|flow| flow.receivers = 2);
    sender.connect(&good.target()).unwrap();
    sender.connect(&small.target()).unwrap();
    let flow = &sender.flows()[0];
    told_small.delay_data(Duration::from_micros(500));
    flow.start(b"").unwrap();
    flow.send(pattern(1, 5_000_000)).unwrap();
    let report = flow.stop().unwrap();
    assert!(report.complete(), "{report:?}");
    for told in [&told_good, &told_small] {
        assert!(bytes_of(&told.take_until_stop()) == pattern(1, 5_000_000));
    }
}

#[test]
fn a_member_asks_for_what_it_misses_and_takes_nothing_from_strangers() {
    let (receiver, told) = receiver(|_| (), |_| ());
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    rustix::net::sockopt::set_ip_multicast_if(&own, &Ipv4Addr::LOCALHOST).unwrap();
    let stranger = own.try_clone().unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    rustix::net::sockopt::set_ip_multicast_if(&other, &Ipv4Addr::LOCALHOST).unwrap();
    let group = SocketAddr::from(([239, 255, 77, 1], free_port()));
    let place = format!("{group} from {}", own.local_addr().unwrap());
    let (mut caller, welcome) = Caller::welcomed_from(&receiver, Transport::Multicast, &place, own.local_addr().unwrap().port());
    assert_eq!((welcome.transport, welcome.frame), (Transport::Multicast, 63 << 10));
    let send = |socket: &UdpSocket, to: SocketAddr, header: Header, payload: &[u8]| {
        let header = Header { session: 77, ..header }.over(payload, true);
        socket.send_to(&[&header.encode()[..], payload].concat(), to).unwrap();
    };
    caller.send(start(), b"p");
    send(&other, group, data(2, 0), b"no");
    send(&own, group, data(2, 0), b"ab");
    send(&own, group, data(4, 4), b"ef");
    assert_eq!(Nack::decode(&caller.next(Kind::Nack).1).unwrap().missing, [(3, 4)]);
    send(&stranger, welcome.place.parse().unwrap(), data(3, 2), b"cd");
    caller.send(Header { sequence: 5, offset: 6, kind: Kind::Stop, ..start() }, b"");
    let seen = told.take_until_stop();
    assert_eq!(bytes_of(&seen), b"abcdef");
    assert!(matches!(seen.last(), Some(Told::Stop { complete: true, .. })), "{seen:?}");
}

#[test]
fn who_cannot_join_a_group_says_why_and_has_the_data_on_its_connection() {
    let (receiver, _told) = receiver(|_| (), |_| ());
    for (place, why) in [
        ("239.255.77.1:4711 from 10.1.2.3:4711", "listens on the loopback alone"),
        ("10.1.2.3:4711 from 127.0.0.1:4711", "the address of one host"),
        ("239.255.77.1", "invalid multicast group"),
        ("", "invalid multicast group"),
    ] {
        let (_caller, welcome) = Caller::welcomed_from(&receiver, Transport::Multicast, place, 4711);
        assert_eq!((welcome.transport, welcome.room), (Transport::Tcp, 0));
        assert!(welcome.place.contains(why), "{}", welcome.place);
    }
}

#[test]
fn a_flow_that_cannot_go_to_a_group_is_not_opened() {
    let open = |change: &dyn Fn(&mut SendFlow)| {
        let mut flow = SendFlow::new("spectra".parse().unwrap());
        flow.group = Some(support::group());
        change(&mut flow);
        Sender::open(Identity::alone("test", "CORR"), "correlator".parse().unwrap(), vec![flow]).err()
    };
    assert!(open(&|_| ()).is_none());
    let skips = open(&|flow| flow.slow = Slow::Skip);
    assert!(matches!(&skips, Some(OpenError::Group { why, .. }) if why.contains("skipped")), "{skips:?}");
    let another = open(&|flow| flow.transport = Some(Transport::Tcp));
    assert!(matches!(&another, Some(OpenError::Group { why, .. }) if why.contains("another way")), "{another:?}");
    let none = open(&|flow| (flow.transport, flow.group) = (Some(Transport::Multicast), None));
    assert!(matches!(&none, Some(OpenError::Group { why, .. }) if why.contains("none is named")), "{none:?}");
    let nowhere = open(&|flow| flow.group = flow.group.map(|group| Group { interface: interface("203.0.113.9"), ..group }));
    assert!(matches!(&nowhere, Some(OpenError::Group { .. })), "{nowhere:?}");
    let absent = open(&|flow| flow.group = flow.group.map(|group| Group { interface: interface("absent0"), ..group }));
    assert!(matches!(&absent, Some(OpenError::Group { why, .. }) if why.contains("absent0")), "{absent:?}");
}

#[test]
fn a_member_that_is_stopped_is_cut_and_those_that_waited_with_it_are_not() {
    let (one, told_one) = receiver(|_| (), |_| ());
    let (two, told_two) = receiver(|_| (), |_| ());
    let (stopped, told_stopped) = receiver(|_| (), |_| ());
    let sender = sender(|flow| {
        flow.receivers = 3;
        flow.ack_wait = Duration::from_millis(500);
    });
    for receiver in [&one, &two, &stopped] {
        sender.connect(&receiver.target()).unwrap();
    }
    let flow = &sender.flows()[0];
    flow.start(b"").unwrap();
    told_stopped.block(true);
    // The data fits the window, so nothing waits before the stop.
    for round in 0..20 {
        flow.send(pattern(round, 1 << 20)).unwrap();
    }
    let report = flow.stop().unwrap();
    let complete = report.deliveries.iter().filter(|delivery| delivery.complete).count();
    assert_eq!(complete, 2, "{report:?}");
    let sent: Vec<u8> = (0..20).flat_map(|round| pattern(round, 1 << 20)).collect();
    for told in [&told_one, &told_two] {
        assert!(bytes_of(&told.take_until_stop()) == sent);
    }
    told_stopped.block(false);
}
