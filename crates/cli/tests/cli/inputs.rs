//! Logs of other programs, as they send them: real sockets of a real hub.

use std::{
    collections::BTreeSet,
    io::{ErrorKind, Read, Write},
    net::{TcpStream, UdpSocket},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::site::{Following, Site};

const CONFIG: &str = "[syslog]\nenabled = true\nudp = \"127.0.0.1:0\"\ntcp = \"127.0.0.1:0\"\nconnections = 2\nmax_message = 480\n\
    [epics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n";

/// A hub that takes in logs at ports of its own, and where.
fn hub(site: &Site) -> (crate::site::Hub, impl Fn(&str) -> String + use<>) {
    hub_with(site, CONFIG)
}

fn hub_with(site: &Site, config: &str) -> (crate::site::Hub, impl Fn(&str) -> String + use<>) {
    let hub = site.hub(&["--config", &site.file("tampu.toml", config)]);
    let told = site.find(3, &["receiving"]);
    let address = move |input: &str| {
        let addresses = told.iter().filter_map(|record| datum(record, "address"));
        addresses.filter_map(|address| address.strip_prefix(input).map(|at| at.trim().to_owned())).next().unwrap()
    };
    (hub, address)
}

fn datum(record: &Value, name: &str) -> Option<String> {
    let data = record["data"].as_array()?;
    data.iter().find(|datum| datum["name"] == name).map(|datum| datum["value"].as_str().unwrap().to_owned())
}

#[test]
fn syslog_is_kept_once_and_seen_live() {
    let site = Site::new();
    let (_hub, address) = hub(&site);
    let mut stream = TcpStream::connect(address("syslog tcp")).unwrap();
    let counted = "<34>1 2003-10-11T22:14:15.003Z mymachine su 77 ID47 [ex@32473 iut=\"3\"] 'su root' failed\nfor lonvick";
    writeln!(stream, "{} {counted}<30>Oct 11 22:14:15 dbd[8]: by line", counted.len()).unwrap();
    let record = site.find(1, &["-p", "su"]).remove(0);
    assert_eq!((record["level"].as_str(), record["host"].as_str()), (Some("Critical"), Some("mymachine")));
    assert_eq!(record["message"], "'su root' failed\nfor lonvick");
    assert_eq!(record["time"], "2003-10-11T22:14:15.003000000Z");
    for (name, value) in [("facility", "auth"), ("procid", "77"), ("msgid", "ID47"), ("ex@32473.iut", "3"), ("peer", "127.0.0.1")]
    {
        assert_eq!(datum(&record, name).as_deref(), Some(value), "{name}: {record}");
    }
    assert!(datum(&site.find(1, &["-p", "dbd"])[0], "time_guessed").is_some());

    // The live tail begins with the records that it missed.
    let mut tail = Following::start(&site, &["log", "tail", "--json", "--last", "10", "-p", "ticker"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"<12>1 - box ticker - - - by datagram \xff\n", address("syslog udp")).unwrap();
    let live: Value = serde_json::from_str(&tail.lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((live["message"].as_str(), live["level"].as_str()), (Some("by datagram \u{fffd}"), Some("Warning")));
    assert_eq!(live["id"], site.find(1, &["-p", "ticker"])[0]["id"], "the same record as the one kept");

    // Many lines at once: all are kept, each once.
    let many: String = (0..5000).map(|number| format!("<14>1 - box flood - - - line {number}\n")).collect();
    stream.write_all(many.as_bytes()).unwrap();
    let found = site.find(5000, &["-p", "flood", "-n", "0"]);
    let messages: BTreeSet<&str> = found.iter().map(|record| record["message"].as_str().unwrap()).collect();
    assert_eq!((found.len(), messages.len()), (5000, 5000));
}

#[test]
fn hostile_senders_harm_nobody() {
    let site = Site::new();
    let (_hub, address) = hub(&site);
    let mut first = TcpStream::connect(address("syslog tcp")).unwrap();
    let second = TcpStream::connect(address("syslog tcp")).unwrap();
    // Both connections are surely open once both have delivered a line.
    first.write_all(b"<13>1 - - one - - - x\n").unwrap();
    site.find(1, &["-p", "one"]);
    (&second).write_all(b"<13>1 - - two - - - x\n").unwrap();
    site.find(1, &["-p", "two"]);
    // A third connection takes the place of the longest silent one, and that is reported.
    let third = TcpStream::connect(address("syslog tcp")).unwrap();
    first.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let end = first.read(&mut [0; 1]);
    assert!(end.as_ref().map_or_else(|error| error.kind() == std::io::ErrorKind::ConnectionReset, |read| *read == 0), "{end:?}");
    site.find(1, &["connections closed"]);
    let mut first = third;

    let long = format!("<13>1 - - long - - - {}\n", "x".repeat(100_000));
    first.write_all(long.as_bytes()).unwrap();
    let record = site.find(1, &["-p", "long"]).remove(0);
    assert_eq!(datum(&record, "cut_from_bytes"), Some((long.len() - 1).to_string()));
    first.write_all(b"999999999 <13>1 - - broken - - - off").unwrap();
    drop(first);
    let record = site.find(1, &["-p", "broken"]).remove(0);
    assert_eq!((record["message"].as_str(), datum(&record, "cut_from_bytes").as_deref()), (Some("off"), Some("999999999")));
    (&second).write_all(b"\0\0\x1b[31m\n<<<<\n<13>1 - h a - - [x\n").unwrap();
    let fault = site.find(1, &["1 - h a"]).remove(0);
    assert!(datum(&fault, "syslog_fault").is_some(), "{fault}");
}

#[test]
fn silent_connections_of_one_address_keep_nobody_out() {
    let site = Site::new();
    let config = CONFIG.replace("connections = 2", "connections = 100");
    let (_hub, address) = hub_with(&site, &config);
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address("syslog tcp")).unwrap()).collect();
    let mut speaker = TcpStream::connect(address("syslog tcp")).unwrap();
    speaker.write_all(b"<13>1 - - speaker - - - heard\n").unwrap();
    site.find(1, &["-p", "speaker"]);
    site.find(1, &["connections closed"]);
    // Of one address sixteen stay open: the speaker and the fifteen that came last before it.
    let closed = silent.iter().filter(|stream| {
        stream.set_nonblocking(true).unwrap();
        let mut stream: &TcpStream = stream;
        stream.read(&mut [0; 1]).map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |read| read == 0)
    });
    assert_eq!(closed.count(), 25);
}

/// Threads of a process whose names begin like this.
fn threads(pid: i32, name: &str) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
    names.filter(|comm| comm.starts_with(name)).count()
}

#[test]
fn a_connection_that_is_closed_for_another_is_read_no_further() {
    let site = Site::new();
    let config =
        CONFIG.replace("connections = 2", "connections = 40\nconnections_per_address = 1\nmessages_per_s_per_address = 1");
    let (hub, address) = hub_with(&site, &config);
    let flood: String = (0..2000).map(|number| format!("<13>1 - - greedy - - - line {number}\n")).collect();
    let mut greedy = Vec::new();
    for number in 0..6 {
        let mut stream = TcpStream::connect(address("syslog tcp")).unwrap();
        // A connection may already be closed when it writes.
        let _ = stream.write_all(flood.as_bytes());
        greedy.push(stream);
        if number == 0 {
            // The address's share is soon used up, and the worker of this connection waits with the other lines.
            site.find(5, &["-p", "greedy"]);
        }
    }
    // The workers of the closed ones end, with their lines dropped, counted and logged with the address.
    let until = Instant::now() + Duration::from_secs(60);
    while threads(hub.pid(), "syslog 127") > 1 {
        assert!(Instant::now() < until, "{} workers", threads(hub.pid(), "syslog 127"));
        std::thread::yield_now();
    }
    let record = site.find(1, &["messages of 127.0.0.1 dropped"]).remove(0);
    assert_eq!(datum(&record, "peer").as_deref(), Some("127.0.0.1"), "{record}");
}

#[test]
fn one_peer_that_floods_by_datagrams_does_not_shed_the_records_of_another() {
    let site = Site::new();
    // A quota that one peer alone would use up: 100 kB/s.
    let (_hub, address) = hub_with(&site, &format!("{CONFIG}[quota]\nbytes_per_s = 100000\n"));
    let (flooding, quiet) = (UdpSocket::bind("127.0.0.2:0").unwrap(), UdpSocket::bind("127.0.0.3:0").unwrap());
    let to = address("syslog udp");
    let long = format!("<13>1 - - flooding - - - {}", "x".repeat(1400));
    for number in 0..30 {
        for _ in 0..60 {
            flooding.send_to(long.as_bytes(), &to).unwrap();
        }
        quiet.send_to(format!("<13>1 - - quiet - - - line {number}").as_bytes(), &to).unwrap();
        site.find(number + 1, &["-p", "quiet", "-n", "0"]);
    }
    let record = site.find(1, &["messages of 127.0.0.2 dropped"]).remove(0);
    assert_eq!(datum(&record, "peer").as_deref(), Some("127.0.0.2"), "{record}");
    assert!(site.tampu(&["log", "query", "messages of 127.0.0.3 dropped", "--json"]).ok().json().is_empty());
}

#[test]
fn iocs_log_as_to_their_log_server() {
    let site = Site::new();
    let (_hub, address) = hub(&site);
    let mut ioc = TcpStream::connect(address("epics tcp")).unwrap();
    // As a log client sends it: in pieces without regard to lines.
    for piece in ["mount-ioc sevr=ma", "jor no link to the drive\nmount-ioc iocRun: All initiali", "zation complete\n"] {
        ioc.write_all(piece.as_bytes()).unwrap();
        ioc.flush().unwrap();
    }
    let record = site.find(1, &["-p", "mount-ioc"]).remove(0);
    assert_eq!((record["level"].as_str(), record["message"].as_str()), (Some("Error"), Some("no link to the drive")));
    assert_eq!((record["host"].as_str(), datum(&record, "prefix").as_deref()), (Some("127.0.0.1"), Some("mount-ioc")));
    let record = site.find(1, &["-p", "epics", "initialization"]).remove(0);
    assert_eq!(
        (record["level"].as_str(), record["message"].as_str()),
        (Some("Info"), Some("mount-ioc iocRun: All initialization complete"))
    );
}

#[test]
fn an_address_that_cannot_be_had_is_told() {
    let site = Site::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = site.file("taken.toml", format!("[epics]\nenabled = true\nlisten = \"{address}\"\n"));
    let said = site.tampu(&["up", "--config", &config]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains(&format!("cannot receive epics messages at {address}")) && said.err.contains("another program"),
        "{said:?}"
    );
    let config = site.file("wrong.toml", "[syslog]\nudp = \"here\"\n");
    let said = site.tampu(&["up", "--config", &config]);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("line 2") && said.err.contains("invalid listen address 'here'"), "{said:?}");
}

#[test]
fn metrics_tell_what_the_hub_has_counted() {
    let site = Site::new();
    let config = "[metrics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n[epics]\nenabled = true\nlisten = \"127.0.0.1:0\"\n";
    let _hub = site.hub(&["--config", &site.file("tampu.toml", config)]);
    let address = datum(&site.find(1, &["metrics are at"])[0], "address").unwrap();
    let get = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    site.tampu_reading(b"one\ntwo\nthree\n", &["log", "send", "-p", "sender \"1\""]).ok();
    site.find(3, &["-p", "sender \"1\""]);
    let page = get();
    assert!(page.contains("\ntampu_source_records_total{source=\"sender \\\"1\\\"\"} 3\n"), "{page}");
    assert!(page.contains("\ntampu_input_messages_total{input=\"epics\"} 0\n"), "{page}");
    let value = |name: &str| -> f64 {
        let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name}: {page}")).parse().unwrap()
    };
    assert!(value("tampu_collector_records_total") >= 3.0 && value("tampu_archive_commits_total") >= 1.0);
    assert_eq!(value("tampu_collector_durable_seconds_bucket{le=\"+Inf\"}"), value("tampu_collector_durable_seconds_count"));
    assert!(value("tampu_collector_streams") >= 1.0 && value("tampu_bus_participants") >= 3.0);
}
