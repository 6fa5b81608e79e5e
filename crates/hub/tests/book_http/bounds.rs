//! The server's bounds: broken requests, long heads, many connections, those who go away.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use http::{Response, request::Parts};
use serde_json::json;
use tampu_hub::book::{
    body::{Asked, Told},
    server::{Answers, Limits, Server},
    settings::BookSettings,
};
use tampu_logbook::search::{Stop, Stopped};

use crate::site::{PASSWORD, Site};

const PATIENCE: Duration = Duration::from_secs(60);

fn raw(site: &Site, text: &[u8]) -> String {
    let mut stream = TcpStream::connect(site.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // Who refuses may close before all is written.
    let _ = stream.write_all(text);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn broken_requests_are_refused() {
    let site = Site::new();
    for text in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9\r\n\r\n",
        b"GET /api/v1/books HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\nConnection: close\r\n\r\n",
        b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n",
        b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    ] {
        let answer = raw(&site, text);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{}: {answer}", String::from_utf8_lossy(text));
    }
    let long = [&b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "[..], &vec![b'x'; 200_000], b"\r\n\r\n"].concat();
    assert!(raw(&site, &long).starts_with("HTTP/1.1 431"));
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X: y\r\n".repeat(2000));
    assert!(raw(&site, many.as_bytes()).starts_with("HTTP/1.1 431"));
    let old = raw(&site, b"GET /api/v1/whoami HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.0 200") && old.contains("\"login\""), "{old}");
    let root = raw(&site, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(root.starts_with("HTTP/1.1 302") && root.to_lowercase().contains("location: /elog/"), "{root}");
}

#[test]
fn who_may_write_nowhere_sends_nothing_long() {
    let site = Site::new();
    site.shift();
    site.user(json!({ "login": "zoe" }));
    let long = "x".repeat(100_000);
    let login = |password: &str| site.anybody().post("/login", json!({ "login": "zoe", "password": password })).status;
    assert_eq!((login(&long[..5000]), login(&long[..500]), login(PASSWORD)), (413, 401, 200));
    // A body that does not say how long it is.
    let form = format!("uname=zoe&upassword={long}");
    let head = "POST /elog/Shift/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n\r\n";
    let answer = raw(&site, format!("{head}{kind}{:x}\r\n{form}\r\n0\r\n\r\n", form.len()).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[test]
fn beyond_so_many_connections_there_is_503() {
    let site = Site::with(BookSettings { connections: 4, ..BookSettings::default() });
    let address = site.url.trim_start_matches("http://").to_owned();
    let ask = |stream: &mut TcpStream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"GET /api/v1/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let mut open: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for stream in &mut open {
        assert_eq!(ask(stream), "HTTP/1.1 200");
    }
    let mut answer = String::new();
    let _ = TcpStream::connect(&address).unwrap().read_to_string(&mut answer);
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Retry-After"), "{answer}");
    drop(open);
    let until = Instant::now() + PATIENCE;
    while raw(&site, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 503") {
        assert!(Instant::now() < until);
    }
}

/// Answers when it is asked to stop, and says what it was told.
struct Endless(mpsc::Sender<Option<Stopped>>);

impl Answers for Endless {
    fn answer(&self, asked: Asked<'_>, stop: &Stop) -> Response<Told> {
        let until = Instant::now() + PATIENCE;
        if asked.head.uri.path() == "/panic" {
            panic!("as asked for");
        }
        while asked.head.uri.path() == "/long" && stop.why().is_none() && Instant::now() < until {
            std::thread::yield_now();
        }
        self.0.send(stop.why()).unwrap();
        Response::new(Told::Whole("done".into()))
    }

    fn longest_body(&self, _head: &Parts) -> u64 {
        10
    }
}

#[test]
fn a_request_that_nobody_waits_for_is_stopped() {
    let (told, tells) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::start(vec![(listener, Arc::new(Endless(told)))], Limits::default()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(tells.recv_timeout(Duration::from_millis(200)).is_err(), "it goes on while somebody waits");
    drop(stream);
    assert_eq!(tells.recv_timeout(PATIENCE).unwrap(), Some(Stopped::Abandoned));
    // One that fails does not take the others along.
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .write_all(format!("POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc").as_bytes())
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("/panic").starts_with("HTTP/1.1 500"));
    assert!(ask("/short").ends_with("done") && tells.recv_timeout(PATIENCE).unwrap().is_none());
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}
