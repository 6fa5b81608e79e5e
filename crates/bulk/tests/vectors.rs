//! Holds frames to `testdata/vectors/bulk` and to the dump of `spec/bulk.md`: what an earlier release wrote stays readable, and this one
//! writes what it has always written. `TAMPU_WRITE_VECTORS=1` writes the bytes that are missing.

use std::{collections::BTreeSet, fs, path::PathBuf};

use tampu_bulk::{
    directory,
    frame::{END, HEADER_LEN, Header, Kind, LENGTH_LIMIT},
    message::{
        Cause, Fault, FaultKind, GroupKey, Hello, KeyOffer, KeyReply, Lost, Nack, ProtectionLevel, Refusal, Refuse, Token,
        Transport, Welcome,
    },
    seal::{DatagramSealer, Half, LinkKeys, RecordOpener, RecordSealer, handshake},
};
use tampu_types::Incarnation;

#[path = "../../types/tests/support/page.rs"]
mod page;

const INCARNATION: Incarnation = Incarnation { boot: 0x1a2b_3c4d, pid: 4711, start: 1_795_248_000_123_456_789 };

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/vectors/bulk"))
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "\n";
    bytes.chunks(32).map(line).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn kept(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = folder().join(format!("{name}.hex"));
    if !path.exists() && std::env::var_os("TAMPU_WRITE_VECTORS").is_some() {
        fs::write(&path, to_hex(bytes)).unwrap();
    }
    from_hex(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn data() -> Header {
    Header { session: 0x0102_0304, transfer: 7, sequence: 41, offset: 1 << 20, flags: END, ..Header::of(Kind::Data) }
}

fn offer() -> KeyOffer {
    KeyOffer { version: 1, nonce: [0x11; 32], public: [0x22; 32] }
}

fn reply() -> KeyReply {
    KeyReply { version: 1, nonce: [0x33; 32], public: [0x44; 32], proof: [0x55; 32] }
}

/// The keys of these two messages, a token and a shared secret.
fn keys() -> LinkKeys {
    let transcript = handshake::transcript(&offer().encode(), &reply().encode());
    LinkKeys::derive(&[0x66; 32], &Token([0xab; 16]), &transcript).unwrap()
}

fn frames() -> Vec<(&'static str, Header, Vec<u8>)> {
    let hello = Hello {
        version: 1,
        transport: Transport::Shm,
        checked: true,
        frame: 1 << 18,
        session: 0x0102_0304,
        ack_every: 1 << 20,
        transfer: 7,
        token: Token([0xab; 16]),
        incarnation: INCARNATION,
        domain: "alma".to_owned(),
        source: "CORR".to_owned(),
        stream: "correlator".to_owned(),
        flow: "spectra".to_owned(),
        place: "/proc/4711/fd/9".to_owned(),
        port: 0,
        protection: ProtectionLevel::None,
        group_key: None,
    };
    let welcome = Welcome {
        version: 1,
        transport: Transport::Tcp,
        checked: true,
        frame: 1 << 18,
        sequence: 41,
        offset: 1 << 20,
        incarnation: INCARNATION,
        source: "archive".to_owned(),
        place: "it cannot be mapped".to_owned(),
        room: 0,
        protection: ProtectionLevel::None,
    };
    let group = Hello {
        transport: Transport::Multicast,
        place: "239.255.7.1:4711 from 10.0.0.5:40123".to_owned(),
        port: 40124,
        ..hello.clone()
    };
    let sealed = Hello {
        token: Token::default(),
        protection: ProtectionLevel::Encrypted,
        group_key: Some(GroupKey([0xcd; 32])),
        ..group.clone()
    };
    let member = Welcome {
        transport: Transport::Multicast,
        frame: 1400,
        place: "10.0.0.7:50321".to_owned(),
        room: 1 << 20,
        ..welcome.clone()
    };
    let of = |kind| Header { kind, flags: 0, ..data() };
    vec![
        ("v1-start", Header { sequence: 40, offset: 0, ..of(Kind::Start) }, b"uid://A002/X1".to_vec()),
        ("v1-data", data(), b"abc".to_vec()),
        ("v1-stop", Header { sequence: 42, offset: (1 << 20) + 3, ..of(Kind::Stop) }, Vec::new()),
        ("v1-reset", of(Kind::Reset), Vec::new()),
        ("v1-hello", Header::of(Kind::Hello), hello.encode()),
        ("v1-welcome", Header::of(Kind::Welcome), welcome.encode()),
        ("v1-hello-group", Header::of(Kind::Hello), group.encode()),
        ("v1-hello-sealed-group", Header::of(Kind::Hello), sealed.encode()),
        ("v1-welcome-group", Header::of(Kind::Welcome), member.encode()),
        ("v1-refuse", Header::of(Kind::Refuse), Refuse { why: Refusal::Taken, text: "by CORR".to_owned() }.encode()),
        ("v1-ack", of(Kind::Ack), Vec::new()),
        ("v1-ping", Header { session: 0x0102_0304, ..Header::of(Kind::Ping) }, Vec::new()),
        ("v1-lost", of(Kind::Lost), Lost { next_sequence: 44, next_offset: 2 << 20, cause: Cause::Slow }.encode()),
        ("v1-fault", of(Kind::Fault), Fault { kind: FaultKind::GaveUp, count: 1, text: "disk full".to_owned() }.encode()),
        ("v1-key-offer", Header::of(Kind::KeyOffer), offer().encode()),
        ("v1-key-reply", Header::of(Kind::KeyReply), reply().encode()),
        ("v1-nack", of(Kind::Nack), Nack { missing: vec![(41, 44), (50, 51)] }.encode()),
    ]
}

#[test]
fn a_frame_of_each_kind_is_written_as_ever_and_read() {
    let all = frames();
    let kinds: BTreeSet<u8> = all.iter().map(|(_, header, _)| header.kind as u8).collect();
    assert_eq!(kinds.len(), Kind::ALL.len());
    for (name, header, payload) in &all {
        let header = header.over(payload, true);
        let written = [&header.encode()[..], payload].concat();
        let bytes = kept(name, &written);
        assert_eq!(to_hex(&written), to_hex(&bytes), "{name}: left: written now; right: kept");
        let (head, rest) = bytes.split_first_chunk::<HEADER_LEN>().unwrap();
        assert_eq!(Header::decode(head, LENGTH_LIMIT), Ok(header));
        assert_eq!((rest, header.check(rest)), (&payload[..], Ok(())));
    }
    let known: BTreeSet<String> = all.iter().map(|(name, ..)| *name).chain(SEALED).map(|name| format!("{name}.hex")).collect();
    let found = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for file in found.filter(|file| file.ends_with(".hex")) {
        assert!(known.contains(&file), "nobody checks {file}");
    }
}

/// Sealed bytes: the data frame as a record, and as a datagram of one receiver and of a group.
const SEALED: [&str; 3] = ["sealed-record", "sealed-datagram", "sealed-datagram-group"];

fn sealed() -> [Vec<u8>; 3] {
    let head = data().over(b"abc", false).encode();
    let mut all = [const { Vec::new() }; 3];
    RecordSealer::new(&keys().sender).unwrap().seal(&head, b"abc", &mut all[0]).unwrap();
    let group = Half::of_group(&GroupKey([0xcd; 32])).unwrap();
    for (out, half) in all[1..].iter_mut().zip([keys().datagrams, group]) {
        DatagramSealer::new(&half).unwrap().seal(&head, b"abc", out).unwrap();
    }
    all
}

#[test]
fn sealed_frames_are_written_as_ever_and_read() {
    for (name, written) in SEALED.into_iter().zip(sealed()) {
        assert_eq!(to_hex(&written), to_hex(&kept(name, &written)), "{name}: left: written now; right: kept");
    }
    let mut opener = RecordOpener::new(&keys().sender).unwrap();
    let mut record = kept("sealed-record", b"");
    assert_eq!(opener.open(&mut record, LENGTH_LIMIT), Ok(data().over(b"abc", false)));
    assert_eq!(to_hex(&page::hex_dump("bulk.md", 0)), to_hex(&kept("sealed-record", b"")));
}

#[test]
fn the_page_shows_a_data_frame() {
    let header = data().over(b"abc", true);
    assert_eq!(to_hex(&page::hex_dump("bulk.md", 1)), to_hex(&[&header.encode()[..], b"abc"].concat()));
}

#[test]
fn a_declaration_is_read_with_what_a_later_release_adds_to_it() {
    let text = fs::read_to_string(folder().join("future-declaration.json")).unwrap();
    let declaration = directory::parse(text.trim().as_bytes()).unwrap();
    assert_eq!(declaration.stream, "Correlator".parse().unwrap());
    assert_eq!(declaration.flows[0].transports, [Transport::Tcp, Transport::Shm]);
    assert_eq!(declaration.target.address, "10.0.0.3:4711");
    let again = serde_json::to_vec(&declaration).unwrap();
    assert_eq!(directory::parse(&again), Some(declaration));
    for bad in ["", "{}", "[]", r#"{"receiver":1,"stream":"a#b","target":"h:1/00","flows":[]}"#] {
        assert_eq!(directory::parse(bad.as_bytes()), None, "{bad}");
    }
}
