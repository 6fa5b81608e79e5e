//! Access to the gateway of a real hub: its rules hold for each session, and other hosts come by TLS with a token.

use std::io::{Read, Write};

use serde_json::{Value as Json, json};
use tampu_bulk::control::{ControlledReceiver, offer_receiver};
use tampu_bus::{Qos, gateway::GatewayClient};
use tampu_types::gateway::{
    Kind,
    messages::{Code, End, Hello},
    put_frame,
    question::Ask,
};

use crate::{
    gateway::{MIB, batch, client, declare, next, next_of_any, open, participant, subscribe, until_read, writer},
    site::{Hub, PATIENCE, Site},
};

#[test]
fn the_access_rules_hold_for_sessions() {
    let site = Site::new();
    let policy = site.file(
        "policy.toml",
        "[[deny]]\nwho = \"local\"\nmay = [\"read\", \"write\"]\nwhat = \"secret/**\"\n\
         [[deny]]\nwho = \"local\"\nmay = [\"write\"]\nwhat = \"source/FORBIDDEN\"\n\
         [[deny]]\nwho = \"local\"\nmay = [\"query\"]\nwhat = \"log/stat\"\n",
    );
    let config = site.file("tampu.toml", format!("[access]\npolicy = \"{policy}\"\n"));
    let _hub = site.hub_of_roles(&["--config", &config]);
    let mut one = client(&site, "FORBIDDEN");
    let denied = |client: &mut GatewayClient, words: &str| {
        let end: End = next_of_any(client, Kind::Ended).json();
        assert!(end.code == Code::Denied && end.error.contains(words) && end.denied.is_some(), "{end:?}");
    };
    one.send_json(Kind::Open, 1, &open("secret/plan", MIB)).unwrap();
    denied(&mut one, "secret/plan");
    one.send_json(Kind::Declare, 2, &declare("public/plan")).unwrap();
    denied(&mut one, "FORBIDDEN");
    let mut two = client(&site, "allowed");
    two.send_json(Kind::Declare, 2, &declare("secret/plan")).unwrap();
    denied(&mut two, "secret/plan");
    let mut body = Vec::new();
    Ask { timeout_ms: 10_000, all: false, service: "log/stat", question: b"{}" }.encode(&mut body);
    two.send(Kind::Ask, 0, 3, &body).unwrap();
    denied(&mut two, "log/stat");
    // A wide pattern shows what may be read, and nothing of the rest.
    subscribe(&mut two, 4, &open("**", MIB));
    let native = participant(&site, "native");
    let (secret, public) = (writer(&native, "secret/plan", Qos::default()), writer(&native, "public/plan", Qos::default()));
    until_read(&public, 1);
    secret.write(b"hidden").unwrap();
    public.write(b"shown").unwrap();
    loop {
        let got = next(&mut two);
        if got.kind == Kind::Stream {
            assert_ne!(got.json::<Json>()["topic"], "secret/plan");
        }
        if got.kind == Kind::Data && batch(&got.body).1 == [b"shown"] {
            break;
        }
    }
}

/// One frame of a TLS connection.
fn tls_frame(stream: &mut impl Read) -> (Kind, Vec<u8>) {
    let mut header = [0; 24];
    stream.read_exact(&mut header).unwrap();
    let header = tampu_types::gateway::FrameHeader::decode(&header, 1 << 20).unwrap();
    let mut body = vec![0; header.length as usize];
    stream.read_exact(&mut body).unwrap();
    (header.kind, body)
}

/// The token of the program `console` on another host.
const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A hub that serves other hosts.
struct FarHub {
    lab: crate::encrypted::Lab,
    _hub: Hub,
    address: std::net::SocketAddr,
    tls: std::sync::Arc<rustls::ClientConfig>,
}

type FarClient = rustls::StreamOwned<rustls::ClientConnection, std::net::TcpStream>;

impl FarHub {
    fn start(policy: &str) -> FarHub {
        let lab = crate::encrypted::Lab::with_certificates();
        let site = &lab.site;
        let tokens = site.file("tokens", format!("console {TOKEN}\n"));
        rustix::fs::chmod(&tokens, rustix::fs::Mode::from_bits_truncate(0o600)).unwrap();
        let policy = site.file("policy.toml", policy);
        let certificates = lab.certificates();
        let text = format!(
            "[network]\ncertificates = \"{}\"\n[access]\npolicy = \"{policy}\"\n[gateway]\nlisten = \"127.0.0.1:0\"\ntokens = \"{tokens}\"\n",
            certificates.display()
        );
        let config = site.file("tampu.toml", text);
        let hub = site.hub_of_roles(&["--config", &config]);
        let said = site.find(1, &["-p", "hub-gateway@*", "--contains", "serves other hosts"]);
        let address = said[0]["data"].as_array().unwrap().iter().find(|datum| datum["name"] == "address").unwrap();
        let address = address["value"].as_str().unwrap().parse().unwrap();
        let roots = tampu_tls::client::certificates(&lab.certificate_dir().authority()).unwrap();
        let tls = std::sync::Arc::new(tampu_tls::client::client_config(roots).unwrap());
        FarHub { lab, _hub: hub, address, tls }
    }

    fn connect(&self, token: &str) -> FarClient {
        let name = rustls::pki_types::ServerName::try_from("127.0.0.1").unwrap();
        let connection = rustls::ClientConnection::new(self.tls.clone(), name).unwrap();
        let socket = std::net::TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, socket);
        let hello = Hello { versions: vec![1], token: Some(token.into()), source: "far".into(), ..Hello::default() };
        let mut bytes = Vec::new();
        put_frame(&mut bytes, Kind::Hello, 0, 0, 0, &serde_json::to_vec(&hello).unwrap());
        stream.write_all(&bytes).unwrap();
        stream
    }
}

#[test]
fn other_hosts_connect_by_tls_with_a_token_that_rules_allow() {
    let hub = FarHub::start("[[allow]]\nwho = \"token:console\"\nmay = [\"read\"]\nwhat = \"weather/**\"\n");
    let site = &hub.lab.site;
    for token in ["", "0123456789abcdef0123456789abcdee"] {
        let (kind, body) = tls_frame(&mut hub.connect(token));
        assert_eq!(kind, Kind::Bye);
        assert_eq!(serde_json::from_slice::<End>(&body).unwrap().code, Code::Unauthenticated);
    }
    // Without TLS nothing is answered.
    let mut plain = std::net::TcpStream::connect(hub.address).unwrap();
    plain.write_all(&[0; 64]).unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    assert!(rest.first().is_none_or(|first| *first == 0x15), "no more than a TLS alert: {rest:?}");

    let mut console = hub.connect(TOKEN);
    let (kind, body) = tls_frame(&mut console);
    assert_eq!(kind, Kind::Welcome);
    assert!(String::from_utf8_lossy(&body).contains("the token 'console'"));
    let mut requests = Vec::new();
    put_frame(&mut requests, Kind::Open, 0, 1, 1, &serde_json::to_vec(&open("weather/*", MIB)).unwrap());
    put_frame(&mut requests, Kind::Open, 0, 2, 2, &serde_json::to_vec(&open("log/*", MIB)).unwrap());
    put_frame(&mut requests, Kind::Declare, 0, 3, 3, &serde_json::to_vec(&declare("weather/wind")).unwrap());
    console.write_all(&requests).unwrap();
    assert_eq!(tls_frame(&mut console).0, Kind::Opened);
    for _ in 0..2 {
        let (kind, body) = tls_frame(&mut console);
        assert_eq!(kind, Kind::Ended);
        assert_eq!(serde_json::from_slice::<End>(&body).unwrap().code, Code::Denied);
    }
    let native = participant(site, "native");
    let writer = writer(&native, "weather/wind", Qos::default());
    until_read(&writer, 1);
    writer.write(b"far away").unwrap();
    loop {
        let (kind, body) = tls_frame(&mut console);
        if kind == Kind::Data {
            assert_eq!(batch(&body).1, [b"far away"]);
            break;
        }
    }
}

/// Asks the offers of bulk data, and returns the parts and the end.
fn ask_offers(client: &mut FarClient, number: u32, all: bool, question: &Json) -> (Vec<Json>, End) {
    let mut body = Vec::new();
    Ask { timeout_ms: 60_000, all, service: "bulk/control", question: question.to_string().as_bytes() }.encode(&mut body);
    let mut frame = Vec::new();
    put_frame(&mut frame, Kind::Ask, 0, number, u64::from(number), &body);
    client.write_all(&frame).unwrap();
    let mut parts = Vec::new();
    loop {
        let (kind, body) = tls_frame(client);
        match kind {
            Kind::Part => parts.push(serde_json::from_slice(&body[16..]).unwrap()),
            Kind::Ended => return (parts, serde_json::from_slice(&body).unwrap()),
            _ => {}
        }
    }
}

#[test]
fn a_list_of_offers_has_those_that_the_client_may_read_or_set() {
    let hub = FarHub::start(
        "[[allow]]\nwho = \"token:console\"\nmay = [\"set\"]\nwhat = \"bulk/control/archive\"\n\
         [[allow]]\nwho = \"token:console\"\nmay = [\"read\"]\nwhat = \"bulk/control/shown\"\n",
    );
    let native = participant(&hub.lab.site, "native");
    let closed = ControlledReceiver::new(&native, "s".parse().unwrap(), |_| Err("the disk is full".to_owned()));
    let offer = |name: &str| offer_receiver(&native, name.parse().unwrap(), &closed).unwrap();
    let _offers = [offer("hidden"), offer("archive"), offer("shown")];
    let mut console = hub.connect(TOKEN);
    assert_eq!(tls_frame(&mut console).0, Kind::Welcome);
    let mut number = 0;
    let mut ask = |all: bool, question: Json| {
        number += 1;
        ask_offers(&mut console, number, all, &question)
    };
    // The gateway learns of the offers after a moment.
    let until = std::time::Instant::now() + PATIENCE;
    let names = loop {
        let (parts, end) = ask(true, json!({}));
        assert!(matches!(end.code, Code::Done | Code::Unanswered), "{end:?}");
        let mut names: Vec<String> = parts.iter().map(|part| part["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        if names.len() >= 2 {
            break names;
        }
        assert!(std::time::Instant::now() < until, "{names:?}");
    };
    assert_eq!(names, ["archive", "shown"]);
    let (parts, _) = ask(false, json!({}));
    assert!(parts.iter().all(|part| part["name"] != "hidden"), "{parts:?}");
    let (_, end) = ask(false, json!({"name": "archive", "do": {"open": {}}}));
    assert!(end.code == Code::Failed && end.error.contains("the disk is full"), "it may set: {end:?}");
    for (name, command) in [("archive", json!("state")), ("shown", json!("close")), ("hidden", json!("state"))] {
        let (parts, end) = ask(false, json!({"name": name, "do": command}));
        assert!(end.code == Code::Denied && parts.is_empty(), "{name} {command}: {end:?}");
    }
    assert_eq!(ask(false, json!({"name": "shown"})).0[0]["failure"], "the disk is full", "it may read");
}
