//! Turns and time limits of the server: what takes long, and who is slow, stops nobody who wants something quick.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Response, request::Parts};
use tampu_hub::book::{
    body::{Asked, Told},
    server::{Answers, Limits, Server},
    turns::{CHANGES, EXPORTS, Kind, PICTURES, SEARCHES},
};
use tampu_logbook::search::Stop;

const PATIENCE: Duration = Duration::from_secs(120);
/// For what is to run out.
const SOON: Duration = Duration::from_millis(300);

/// What works as long as the gate is shut.
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

impl Answers for Slow {
    fn answer(&self, asked: Asked<'_>, _stop: &Stop) -> Response<Told> {
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
                return Response::new(Told::Pieces(Box::new(pieces), None));
            }
            "/picture" => {
                let make = move || {
                    gate.pass();
                    Response::new(Told::Whole("picture".into()))
                };
                return Response::new(Told::Later(Kind::Picture, Box::new(make)));
            }
            "/endless" => return Response::new(Told::Pieces(Box::new(Endless(self.dropped.clone())), None)),
            "/read" => {
                let read = asked.body.read_to_end(&mut Vec::new()).map_err(|error| error.kind());
                return Response::new(Told::Whole(format!("{read:?}").into()));
            }
            _ => {}
        }
        Response::new(Told::Whole("done".into()))
    }

    fn longest_body(&self, _head: &Parts) -> u64 {
        1 << 20
    }

    fn kind(&self, head: &Parts) -> Kind {
        match head.uri.path() {
            "/search" => Kind::Search,
            "/export" => Kind::Export,
            "/change" => Kind::Change,
            _ => Kind::Quick,
        }
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
    Here { _server: Server::start(vec![(listener, slow)], limits).unwrap(), at, gate, dropped }
}

impl Here {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = self.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
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
    here.gate.until_inside(SEARCHES + CHANGES + PICTURES);
    // Whoever asks for more of these is told so after a while; the others go on.
    for path in ["/search", "/change", "/picture"] {
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
    // A head that does not end, and a connection that rests.
    let mut stream = here.connect();
    stream.write_all(b"GET /quick HTTP/1.1\r\nHost: ").unwrap();
    let answer = rest(stream);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
    let mut stream = here.connect();
    stream.write_all(b"GET /quick HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert!(rest(stream).ends_with("done"));
    // A body, read before a worker is taken and by one.
    for (length, told) in [(10, "408 Request Timeout"), (100_000, "TimedOut")] {
        let mut stream = here.connect();
        write!(stream, "POST /read HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\nabc").unwrap();
        let answer = rest(stream);
        assert!(answer.contains(told), "{length}: {answer}");
    }
    // Somebody who does not read.
    let stream = here.ask("/endless");
    let until = Instant::now() + PATIENCE;
    while here.dropped.load(Ordering::Acquire) == 0 {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(stream);
}
