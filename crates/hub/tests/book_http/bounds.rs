//! The server's bounds: broken requests, long heads, many connections, those who go away.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, mpsc},
    time::{Duration, Instant},
};

use http::{Method, Response, request::Parts};
use serde_json::json;
use tampu_hub::{
    book::settings::BookSettings,
    http::{
        admission::WorkKind,
        body::{HttpRequest, ResponseBody},
        client_address::Proxies,
        route::{HttpService, Matched},
        server::{Limits, Listener, Server, plain_rejection},
    },
};
use tampu_logbook::search::{Stop, Stopped};

use crate::site::{Client, PASSWORD, PATIENCE, Site};

fn raw(site: &Site, text: &[u8]) -> String {
    let mut stream = TcpStream::connect(site.url.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The server may close before everything is written.
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
    assert!(root.starts_with("HTTP/1.1 200") && root.contains("<div id=\"app\">"), "{root}");
    let book = raw(&site, b"GET /logbook?cmd=Login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(book.starts_with("HTTP/1.1 302") && book.to_lowercase().contains("location: ./elog/?cmd=login\r\n"), "{book}");
}

#[test]
fn who_may_write_nowhere_sends_nothing_long() {
    let site = Site::new();
    site.shift();
    site.user(json!({ "login": "zoe" }));
    let long = "x".repeat(100_000);
    let login = |password: &str| site.anybody().post("/login", json!({ "login": "zoe", "password": password })).status;
    assert_eq!((login(&long[..5000]), login(&long[..500]), login(PASSWORD)), (413, 401, 200));
    // A body without a length.
    let form = format!("uname=zoe&upassword={long}");
    let head = "POST /elog/Shift/ HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n";
    let kind = "Content-Type: application/x-www-form-urlencoded\r\n\r\n";
    let answer = raw(&site, format!("{head}{kind}{:x}\r\n{form}\r\n0\r\n\r\n", form.len()).as_bytes());
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[test]
fn for_a_further_connection_the_one_that_is_idle_longest_is_closed() {
    for settings in [
        BookSettings { connections: 4, ..BookSettings::default() },
        BookSettings { connections_of_one: 4, ..BookSettings::default() },
    ] {
        let site = Site::with(settings);
        let address = site.url.trim_start_matches("http://").to_owned();
        let ask = |stream: &mut TcpStream| {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(b"HEAD /api/v1/whoami HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                answer.extend(byte);
            }
            String::from_utf8_lossy(&answer[..12]).into_owned()
        };
        let mut open: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(&address).unwrap()).collect();
        for stream in &mut open {
            assert_eq!(ask(stream), "HTTP/1.1 200");
        }
        assert_eq!(ask(&mut TcpStream::connect(&address).unwrap()), "HTTP/1.1 200");
        let mut rest = Vec::new();
        assert_eq!(open[0].read_to_end(&mut rest).unwrap(), 0, "{}", String::from_utf8_lossy(&rest));
        assert_eq!(ask(&mut open[3]), "HTTP/1.1 200");
    }
}

#[test]
fn a_request_names_one_host() {
    let site = Site::new();
    let status =
        |head: &str| raw(&site, format!("GET /api/v1/whoami {head}Connection: close\r\n\r\n").as_bytes())[..12].to_owned();
    assert_eq!(status("HTTP/1.1\r\nHost: localhost\r\n"), "HTTP/1.1 200");
    assert_eq!(status("HTTP/1.1\r\n"), "HTTP/1.1 400");
    assert_eq!(status("HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n"), "HTTP/1.1 400");
    assert_eq!(status("HTTP/1.0\r\n"), "HTTP/1.0 200");
}

#[test]
fn a_broken_body_is_the_clients_mistake() {
    let site = Site::new();
    site.shift();
    let owner = site.owner();
    let (_, token) = owner.headers.iter().find(|(name, _)| name == "authorization").unwrap();
    let head = format!("Host: localhost\r\nAuthorization: {token}\r\nConnection: close\r\n");
    for path in ["/api/v1/uploads", "/api/v1/books/Shift/entries/1/attachments?name=x"] {
        owner.entry("one");
        for rest in ["Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nzz\r\n", "Content-Length: 100000\r\n\r\nabc"] {
            let mut stream = TcpStream::connect(site.url.trim_start_matches("http://")).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(format!("POST {path} HTTP/1.1\r\n{head}{rest}").as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{path} {rest}: {answer}");
        }
    }
    // A chunk that is no chunk ends the body, not the connection.
    let broken = format!("POST /api/v1/uploads HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\nzz\r\n\r\n");
    let answer = raw(&site, broken.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
}

#[test]
fn bodies_of_unknown_callers_keep_nobody_from_sending() {
    let site = Site::with(BookSettings { proxies: vec!["127.0.0.1".parse().unwrap()], ..BookSettings::default() });
    site.shift();
    site.user(json!({ "login": "zoe" }));
    let owner = site.owner();
    // Eight long bodies from two addresses that never end: two for a login, one with a wrong token, one of a guest.
    let mut held = Vec::new();
    for from in ["192.0.2.1", "192.0.2.2"] {
        for (path, more) in [
            ("/api/v1/login", ""),
            ("/api/v1/login", "Content-Type: application/json\r\n"),
            ("/api/v1/books/Shift/entries", "Authorization: Bearer tampu_wrong\r\n"),
            ("/elog/Shift/", ""),
        ] {
            let mut stream = TcpStream::connect(site.url.trim_start_matches("http://")).unwrap();
            let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: {from}\r\n{more}");
            stream.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n").as_bytes()).unwrap();
            held.push(stream);
        }
    }
    let text = "long ".repeat(40_000);
    for _ in 0..4 {
        owner.post("/books/Shift/entries", json!({ "attributes": { "Author": "Zoe" }, "text": text })).is(201);
    }
    drop(held);
}

#[test]
fn a_chunk_that_announces_more_than_is_allowed_keeps_no_turn() {
    let site = Site::new();
    site.shift();
    let owner = site.owner();
    let (_, token) = owner.headers.iter().find(|(name, _)| name == "authorization").unwrap();
    let authorized = format!("Authorization: {token}\r\nContent-Type: application/json\r\n");
    let begin = |path: &str, more: &str, size: &str, bytes: usize| {
        let mut stream = TcpStream::connect(site.url.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{more}Transfer-Encoding: chunked\r\n\r\n{size}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let _ = stream.write_all(&vec![b' '; bytes]);
        stream
    };
    let status = |mut stream: TcpStream| {
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    };
    // A caller who is nobody is refused before any of the announced bytes have come.
    let nobody = "Authorization: Bearer tampu_wrong\r\n";
    assert_eq!(status(begin("/api/v1/uploads", nobody, "ffffffffffffffff", 0)), "HTTP/1.1 401");
    // More than 64 bits are no size.
    assert_eq!(status(begin("/api/v1/uploads", &authorized, "fffffffffffffffff", 0)), "HTTP/1.1 400");
    // A body ends at the limit of its route, whatever its chunk announces.
    assert_eq!(status(begin("/api/v1/drafts", &authorized, "7fffffffffffffff", 25 << 20)), "HTTP/1.1 413");
    // Those that wait for their bytes take the turns of one address and no more.
    let held: Vec<TcpStream> = (0..4).map(|_| begin("/api/v1/login", &authorized, "ffffffffffffffff", 1)).collect();
    owner.post("/books/Shift/entries", json!({ "attributes": { "Author": "Zoe" }, "text": "long ".repeat(40_000) })).is(201);
    drop(held);
}

/// An HTTP service that never ends by itself, and reports the request to stop.
struct Endless(mpsc::Sender<Option<Stopped>>);

impl Endless {
    fn answer(&self, asked: &HttpRequest<'_>, stop: &Stop) -> Response<ResponseBody> {
        let until = Instant::now() + PATIENCE;
        if asked.head.uri.path() == "/panic" {
            panic!("as asked for");
        }
        while asked.head.uri.path() == "/long" && !stop.is_stopped() && Instant::now() < until {
            std::thread::yield_now();
        }
        self.0.send(stop.reason().map(Stopped::from)).unwrap();
        Response::new(ResponseBody::Whole("done".into()))
    }
}

impl HttpService for Endless {
    fn find(self: Arc<Self>, head: &Parts) -> Matched {
        let work = if head.method == Method::POST { WorkKind::Change } else { WorkKind::Quick };
        let handler = move |request: HttpRequest<'_>, stop: &Stop| self.answer(&request, stop);
        Matched::for_all(work, 10, plain_rejection, Box::new(handler))
    }
}

#[test]
fn a_request_that_nobody_waits_for_is_stopped() {
    let (told, tells) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server =
        Server::start(vec![Listener::plain(listener, Arc::new(Endless(told)))], Proxies::default(), Limits::default()).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(tells.recv_timeout(Duration::from_millis(200)).is_err(), "it goes on while somebody waits");
    drop(stream);
    assert_eq!(tells.recv_timeout(PATIENCE).unwrap(), Some(Stopped::Abandoned));
    // A handler that panics does not affect others.
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

#[test]
fn files_beyond_a_quota_are_refused_before_they_are_received() {
    let site = Site::with(BookSettings { user_gb: 1e-6, site_gb: 2.5e-6, ..BookSettings::default() });
    site.shift();
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    let upload = |client: &Client, bytes: &[u8]| client.send("POST", "/uploads", bytes);
    let first = upload(&zoe, &[1; 600]).is(201).json()["sha"].clone();
    // A file that waits counts as well.
    let refused = upload(&zoe, &[2; 500]).is(507);
    assert_eq!(refused.problem(), "quota");
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    for part in ["the user 'zoe' may take 1000 B", "take 600 B; 500 B more", "'user_gb'", "tampu book purge"] {
        assert!(detail.contains(part), "{detail}");
    }
    let entry = json!({ "text": "x", "attachments": [{ "name": "a.bin", "sha": first }] });
    let id = zoe.post("/books/Shift/entries", entry).is(201).json()["id"].as_u64().unwrap();
    upload(&zoe, &[2; 500]).is(507);
    assert_eq!(zoe.send("POST", &format!("/books/Shift/entries/{id}/attachments?name=b"), &[2; 500]).is(507).problem(), "quota");
    upload(&max, &[3; 900]).is(201);
    assert!(upload(&site.user(json!({ "login": "kim" })), &[4; 999]).is(201).status == 201);
    assert!(
        upload(&site.user(json!({ "login": "ben" })), &[5; 10]).is(507).json()["detail"]
            .as_str()
            .unwrap()
            .contains("all logbooks")
    );
    zoe.get("/usage").is(403);
    let usage = site.owner().get("/usage").is(200).json();
    assert_eq!(usage["used"], json!([{ "book": "Shift", "by": "zoe", "files": 1, "bytes": 600 }]));
    assert_eq!(usage["quota"], json!({ "site": 2500, "book": 0, "user": 1000 }));
}

#[test]
fn a_user_makes_so_many_changes_in_a_minute() {
    let site = Site::with(BookSettings { changes_per_minute: 1, changes_burst: 2, ..BookSettings::default() });
    site.shift();
    let (zoe, max) = (site.user(json!({ "login": "zoe" })), site.user(json!({ "login": "max" })));
    let entry = || json!({ "text": "x" });
    zoe.post("/books/Shift/entries", entry()).is(201);
    zoe.post("/books/Shift/entries", entry()).is(201);
    let refused = zoe.post("/books/Shift/entries", entry()).is(429);
    assert_eq!(refused.problem(), "too-many-changes");
    assert!((1..=60).contains(&refused.header("retry-after").parse::<u32>().unwrap()));
    // ELOG's pages count the same, and say so where its programs look; reading is free, and so are others.
    let body = b"--x\r\nContent-Disposition: form-data; name=\"cmd\"\r\n\r\nSubmit\r\n--x--\r\n";
    let page = zoe.with("content-type", "multipart/form-data; boundary=x").send("POST", "/elog/Shift/", body).is(429);
    let text = String::from_utf8_lossy(&page.bytes).into_owned();
    assert!(text.contains("errormsg") && text.contains("too many changes") && !page.header("retry-after").is_empty(), "{text}");
    zoe.get("/elog/Shift/1?cmd=Delete&confirm=Yes").is(429);
    zoe.get("/books/Shift/entries/1").is(200);
    max.post("/books/Shift/entries", entry()).is(201);
    for _ in 0..5 {
        site.owner().post("/books/Shift/entries", entry()).is(201);
    }
}
