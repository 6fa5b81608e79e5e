//! HTTP/1.1, as much of it as one page takes: a request, an answer, and the connection is closed.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::net::sockopt;

/// Requests answered at once; more are closed unanswered.
const CONNECTIONS: usize = 8;
/// Bytes a request's head may have; a longer one is answered with 431.
const HEAD: usize = 8 << 10;
/// How long a request may take to come, and its answer to go.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks whether it shall end.
const LOOK: Duration = Duration::from_millis(250);

/// Makes the page anew for each request.
pub(crate) type Page = Arc<dyn Fn() -> String + Send + Sync>;

/// A listener and its worker; ends when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    stopping: Arc<AtomicBool>,
    worker: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(address: SocketAddr, page: Page) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        sockopt::set_socket_timeout(listener.as_fd(), sockopt::Timeout::Recv, Some(LOOK))?;
        let address = listener.local_addr()?;
        let stopping = Arc::new(AtomicBool::new(false));
        let told = stopping.clone();
        let worker = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || serve(&listener, &page, &told))?;
        Ok(Server { address, stopping, worker: Some(worker) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}

fn serve(listener: &TcpListener, page: &Page, stopping: &AtomicBool) {
    let open = AtomicUsize::new(0);
    // The page's subjects end with the hub, so the last answer is waited for; its patience bounds that.
    std::thread::scope(|scope| {
        while !stopping.load(Ordering::Acquire) {
            match listener.accept() {
                Ok((stream, _)) if open.fetch_add(1, Ordering::AcqRel) < CONNECTIONS => {
                    let open = &open;
                    let answer = move || {
                        // Whoever goes away before the answer does not want it.
                        let _ = answer(stream, page);
                        open.fetch_sub(1, Ordering::AcqRel);
                    };
                    if std::thread::Builder::new().name("metrics answer".to_owned()).spawn_scoped(scope, answer).is_err() {
                        open.fetch_sub(1, Ordering::AcqRel);
                    }
                }
                Ok(_) => {
                    open.fetch_sub(1, Ordering::AcqRel);
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(_) => std::thread::park_timeout(LOOK),
            }
        }
    });
}

fn answer(mut stream: TcpStream, page: &Page) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let mut head = Vec::with_capacity(1024);
    let mut buffer = [0; 1024];
    while !ends(&head) && head.len() <= HEAD {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => head.extend_from_slice(&buffer[..length]),
        }
    }
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(respond(&head, page).as_bytes())
}

/// Whether a head is whole: an empty line ends it.
fn ends(head: &[u8]) -> bool {
    head.windows(4).any(|end| end == b"\r\n\r\n") || head.windows(2).any(|end| end == b"\n\n")
}

/// The answer to a request's head.
fn respond(head: &[u8], page: &Page) -> String {
    let plain = "text/plain; charset=utf-8";
    if head.len() > HEAD {
        return response("431 Request Header Fields Too Large", plain, "the head is too long\n", true, "");
    }
    let text = String::from_utf8_lossy(head);
    let mut words = text.lines().next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let target = target.filter(|target| target.starts_with('/'));
    let (Some(method), Some(target), Some("HTTP/1.0" | "HTTP/1.1")) = (method, target, version) else {
        return response("400 Bad Request", plain, "no request of HTTP/1.1\n", true, "");
    };
    let with_body = method != "HEAD";
    if !matches!(method, "GET" | "HEAD") {
        return response("405 Method Not Allowed", plain, "only GET and HEAD\n", true, "Allow: GET, HEAD\r\n");
    }
    match target.split('?').next() {
        Some("/metrics") => response("200 OK", "text/plain; version=0.0.4; charset=utf-8", &page(), with_body, ""),
        Some("/") => response("200 OK", plain, "the metrics of a Tampu hub are at /metrics\n", with_body, ""),
        _ => response("404 Not Found", plain, "there is only /metrics\n", with_body, ""),
    }
}

fn response(status: &str, kind: &str, body: &str, with_body: bool, more: &str) -> String {
    let length = body.len();
    let shown = if with_body { body } else { "" };
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Arc::new(|| "x 1\n".to_owned())
    }

    fn status(head: &[u8]) -> String {
        respond(head, &page()).lines().next().unwrap().strip_prefix("HTTP/1.1 ").unwrap().to_owned()
    }

    #[test]
    fn only_the_page_is_served() {
        let answer = respond(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n", &page());
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{answer}");
        assert!(answer.ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nx 1\n"), "{answer}");
        assert!(respond(b"HEAD /metrics HTTP/1.0\r\n\r\n", &page()).ends_with("\r\n\r\n"));
        assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "200 OK");
        assert_eq!(status(b"GET /metricsx HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status(b"POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        for broken in
            [&b"\r\n\r\n"[..], b"GET /metrics\r\n\r\n", b"GET /metrics HTTP/2\r\n\r\n", b"\xff\0 \n\n", b"GET  HTTP/1.1\n\n"]
        {
            assert_eq!(status(broken), "400 Bad Request", "{broken:?}");
        }
        assert!(status(&[b'x'; HEAD + 1]).starts_with("431"));
    }

    #[test]
    fn a_connection_is_answered_once_and_closed() {
        let server = Server::start("127.0.0.1:0".parse().unwrap(), page()).unwrap();
        // Somebody who says nothing holds nobody up.
        let _silent = TcpStream::connect(server.address()).unwrap();
        for end in ["\r\n\r\n", "\n\n"] {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            for piece in ["GET /met", "rics HTTP/1.1\r\nHost: a", end] {
                stream.write_all(piece.as_bytes()).unwrap();
            }
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            assert!(answer.ends_with("\r\n\r\nx 1\n"), "{answer}");
        }
    }
}
