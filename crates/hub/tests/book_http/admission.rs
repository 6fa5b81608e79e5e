//! Admission control and time limits of the server: slow requests and slow clients do not delay quick requests.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Response, request::Parts};
use tampu_hub::http::{
    admission::{CHANGES, EXPORTS, LOGINS, PICTURES, SEARCHES, SEARCHES_OF_ONE, WorkKind},
    body::{HttpRequest, ResponseBody},
    client_address::{ClientAddress, Proxies},
    route::{HttpService, Identified, Matched},
    server::{Limits, Listener, Server, plain_rejection},
};
use tampu_logbook::search::Stop;

/// A whole answer, larger than the kernel's buffers.
const LARGE: usize = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(120);
/// For what is to run out.
const SOON: Duration = Duration::from_millis(300);

/// A gate that holds handlers until it is opened.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    inside: AtomicUsize,
    most: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        let inside = self.inside.fetch_add(1, Ordering::AcqRel) + 1;
        self.most.fetch_max(inside, Ordering::AcqRel);
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_timeout_while(open, PATIENCE, |open| !*open).unwrap());
        self.inside.fetch_sub(1, Ordering::AcqRel);
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    #[track_caller]
    fn until_inside(&self, many: usize) {
        let until = Instant::now() + PATIENCE;
        while self.inside.load(Ordering::Acquire) != many {
            assert!(Instant::now() < until, "{} inside, not {many}", self.inside.load(Ordering::Acquire));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Answers by the path: what is not `/quick` passes the gate.
struct Slow {
    gate: Arc<Gate>,
    /// Pieces that were thrown away unsent.
    dropped: Arc<AtomicUsize>,
}

/// Pieces without an end.
struct Endless(Arc<AtomicUsize>);

impl Iterator for Endless {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        Some(Ok(Bytes::from_static(&[7; 1 << 16])))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl Slow {
    fn answer(&self, asked: HttpRequest<'_>) -> Response<ResponseBody> {
        let gate = self.gate.clone();
        match asked.head.uri.path() {
            "/search" | "/change" => gate.pass(),
            "/export" => {
                let mut left = 3;
                let pieces = std::iter::from_fn(move || {
                    left -= 1;
                    gate.pass();
                    (left >= 0).then(|| Ok(Bytes::from_static(b"piece ")))
                });
                return Response::new(ResponseBody::Pieces(Box::new(pieces), None));
            }
            "/picture" => {
                let make = move || {
                    gate.pass();
                    Response::new(ResponseBody::Whole("picture".into()))
                };
                return Response::new(ResponseBody::Later(WorkKind::Picture, Box::new(make)));
            }
            "/large" => return Response::new(ResponseBody::Whole(vec![7; LARGE].into())),
            "/endless" => return Response::new(ResponseBody::Pieces(Box::new(Endless(self.dropped.clone())), None)),
            "/read" => {
                let read = asked.body.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
                return Response::new(ResponseBody::Whole(format!("{read:?}").into()));
            }
            _ => {}
        }
        Response::new(ResponseBody::Whole("done".into()))
    }
}

impl HttpService for Slow {
    fn find(self: Arc<Self>, head: &Parts) -> Matched {
        let work = match head.uri.path() {
            "/search" => WorkKind::Search,
            "/export" => WorkKind::Export,
            "/change" => WorkKind::Change,
            _ => WorkKind::Quick,
        };
        if head.uri.path() == "/password" {
            let identify = move |_: &Parts, _: &ClientAddress| {
                self.gate.pass();
                Ok(Identified {
                    max_body: 1 << 20,
                    handler: Box::new(|_: HttpRequest<'_>, _: &Stop| Response::new(ResponseBody::Whole("done".into()))),
                })
            };
            return Matched {
                work,
                identifies: WorkKind::Login,
                max_body: 1 << 20,
                reject: plain_rejection,
                identify: Box::new(identify),
            };
        }
        let handler = move |request: HttpRequest<'_>, _: &Stop| self.answer(request);
        Matched::for_all(work, 1 << 20, plain_rejection, Box::new(handler))
    }
}

struct Here {
    _server: Server,
    at: SocketAddr,
    gate: Arc<Gate>,
    dropped: Arc<AtomicUsize>,
}

fn here(limits: Limits) -> Here {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (gate, dropped) = <(Arc<Gate>, Arc<AtomicUsize>)>::default();
    let slow = Arc::new(Slow { gate: gate.clone(), dropped: dropped.clone() });
    // This test is a proxy of many clients.
    let proxies = Proxies::new(&[IpAddr::V4(Ipv4Addr::LOCALHOST)]);
    Here { _server: Server::start(vec![Listener::plain(listener, slow)], proxies, limits).unwrap(), at, gate, dropped }
}

impl Here {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// A request of another client each time.
    fn ask(&self, path: &str) -> TcpStream {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        self.ask_from(&format!("10.0.{}.{}", next / 250, next % 250), path)
    }

    fn ask_from(&self, client: &str, path: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {client}\r\nConnection: close\r\n\r\n").unwrap();
        stream
    }

    fn answer(&self, path: &str) -> String {
        rest(self.ask(path))
    }

    fn answers(&self, path: &'static str, many: usize) -> Vec<JoinHandle<String>> {
        (0..many).map(|_| self.ask(path)).map(|stream| std::thread::spawn(move || rest(stream))).collect()
    }
}

fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[track_caller]
fn all_are_good(answers: Vec<JoinHandle<String>>) {
    for answer in answers {
        let answer = answer.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[test]
fn what_takes_long_leaves_workers_for_what_is_quick() {
    let here = here(Limits { wait: SOON, ..Limits::default() });
    let mut answers = here.answers("/search", SEARCHES);
    answers.extend(here.answers("/change", CHANGES));
    answers.extend(here.answers("/picture", PICTURES));
    answers.extend(here.answers("/password", LOGINS));
    here.gate.until_inside(SEARCHES + CHANGES + PICTURES + LOGINS);
    // Further requests of this kind are rejected after a while; other kinds continue.
    for path in ["/search", "/change", "/picture", "/password"] {
        let answer = here.answer(path);
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("Retry-After: 1"), "{path}: {answer}");
    }
    for _ in 0..50 {
        assert!(here.answer("/quick").ends_with("done"));
    }
    here.gate.open();
    all_are_good(answers);
    assert!(here.answer("/search").ends_with("done"));
}

#[test]
fn one_address_leaves_searches_for_the_others() {
    let here = here(Limits { wait: SOON, ..Limits::default() });
    let many: Vec<TcpStream> = (0..SEARCHES_OF_ONE).map(|_| here.ask_from("192.0.2.1", "/search")).collect();
    here.gate.until_inside(SEARCHES_OF_ONE);
    let refused = rest(here.ask_from("192.0.2.1", "/search"));
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After: 1"), "{refused}");
    let other = here.ask_from("192.0.2.2", "/search");
    here.gate.until_inside(SEARCHES_OF_ONE + 1);
    here.gate.open();
    for stream in many.into_iter().chain([other]) {
        assert!(rest(stream).ends_with("done"));
    }
}

#[test]
fn a_connection_in_use_is_not_closed_for_another_one() {
    let here = here(Limits { connections: 2, ..Limits::default() });
    let busy: Vec<TcpStream> = (0..2).map(|_| here.ask("/search")).collect();
    here.gate.until_inside(2);
    let refused = rest(here.connect());
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After"), "{refused}");
    here.gate.open();
    for stream in busy {
        assert!(rest(stream).ends_with("done"));
    }
}

#[test]
fn a_connection_whose_answer_is_being_written_is_not_closed_for_another_one() {
    let here = here(Limits { connections: 1, ..Limits::default() });
    let mut slow = here.ask("/large");
    // The answer has begun; most of it waits for this client to read.
    let mut head = [0; 12];
    slow.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    let refused = rest(here.connect());
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    let mut answer = Vec::new();
    slow.read_to_end(&mut answer).unwrap();
    assert!(answer.len() > LARGE, "{} bytes", answer.len());
    drop(slow);
    // Afterwards there is room again. The server notices the end of a connection a little later.
    let until = Instant::now() + PATIENCE;
    while !here.answer("/quick").ends_with("done") {
        assert!(Instant::now() < until);
    }
}

#[test]
fn a_kept_connection_whose_answer_is_sent_makes_room() {
    let here = here(Limits { connections: 1, ..Limits::default() });
    let mut kept = here.connect();
    write!(kept, "GET /quick HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut answer = [0; 12];
    kept.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    let until = Instant::now() + PATIENCE;
    while !here.answer("/quick").ends_with("done") {
        assert!(Instant::now() < until, "an idle connection keeps others out");
    }
}

#[test]
fn each_piece_of_an_export_has_a_turn_of_its_own() {
    let here = here(Limits::default());
    let many = 4 * EXPORTS;
    let answers = here.answers("/export", many);
    here.gate.until_inside(EXPORTS);
    for _ in 0..50 {
        assert!(here.answer("/quick").ends_with("done"));
    }
    here.gate.open();
    for answer in answers {
        assert_eq!(answer.join().unwrap().matches("piece ").count(), 3);
    }
    assert_eq!(here.gate.most.load(Ordering::Acquire), EXPORTS);
}

#[test]
fn work_that_nobody_waits_for_keeps_its_turn_until_it_has_ended() {
    let here = here(Limits { wait: SOON, ..Limits::default() });
    let gone: Vec<TcpStream> = (0..SEARCHES).map(|_| here.ask("/search")).collect();
    here.gate.until_inside(SEARCHES);
    drop(gone);
    let answer = here.answer("/search");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert_eq!(here.gate.most.load(Ordering::Acquire), SEARCHES);
    here.gate.open();
    let until = Instant::now() + PATIENCE;
    while !here.answer("/search").ends_with("done") {
        assert!(Instant::now() < until);
    }
}

#[test]
fn who_is_slow_is_cut() {
    let here = here(Limits { head: SOON, stall: SOON, ..Limits::default() });
    // A head that does not end, and an idle connection.
    let mut stream = here.connect();
    stream.write_all(b"GET /quick HTTP/1.1\r\nHost: ").unwrap();
    let answer = rest(stream);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    let mut stream = here.connect();
    stream.write_all(b"GET /quick HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(rest(stream).ends_with("done"));
    // A body that stops: a short one is read before a worker is taken, a long one by the worker.
    for (length, told) in [(10, "408 Request Timeout"), (100_000, "TimedOut")] {
        let mut stream = here.connect();
        write!(stream, "POST /read HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\nabc").unwrap();
        let answer = rest(stream);
        assert!(answer.contains(told), "{length}: {answer}");
    }
    // A client that does not read.
    let stream = here.ask("/endless");
    let until = Instant::now() + PATIENCE;
    while here.dropped.load(Ordering::Acquire) == 0 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(stream);
}
