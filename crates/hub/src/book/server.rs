//! HTTP: sockets, time limits and bounds. What is answered is made by plain functions on workers that may block ([`Answers`]).
//!
//! Decision: hyper for the protocol, two threads for all sockets, and workers for what reads and writes the store, because a store blocks.
//! A small body is read before a worker is taken, a large one by the worker, of which only so many do that; an answer's pieces are
//! made when the socket can take them, each in a turn of its own ([`super::turns`]). So somebody slow holds a connection and never a
//! worker for longer than a piece takes.

use std::{
    future::Future,
    io,
    net::{IpAddr, SocketAddr, TcpListener as StdListener},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tampu_logbook::search::Stop;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Handle, Runtime},
    sync::{Semaphore, watch},
    time::{Instant, Sleep, sleep, timeout},
};

use super::{
    body::{Asked, Received, Sent, Told, collect},
    turns::{Kind, Turn, Turns, WORKERS},
};

/// Threads for all sockets.
const THREADS: usize = 2;
/// Bytes of a request's head; a longer one is answered with 431.
pub const HEAD: usize = 64 << 10;
/// How long what is being answered has at the end.
const GRACE: Duration = Duration::from_secs(5);

/// How many, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are open at a time.
    pub connections: usize,
    /// How long a request waits for its turn before it is answered with 503.
    pub wait: Duration,
    /// How long a head may take, and how long a connection may rest between two requests.
    pub head: Duration,
    /// How long a socket may neither take nor give a byte while it should.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let (wait, patience) = (Duration::from_secs(10), Duration::from_secs(30));
        Limits { connections: 512, wait, head: patience, stall: patience }
    }
}

/// Makes answers. Called on a worker; may block.
pub trait Answers: Send + Sync + 'static {
    /// The answer to a request. `stop` is asked to stop when nobody wants it any longer.
    fn answer(&self, asked: Asked<'_>, stop: &Stop) -> http::Response<Told>;
    /// Bytes that a body may have, by what its head says.
    fn longest_body(&self, head: &Parts) -> u64;
    /// What kind of work a request is, by what its head says.
    fn kind(&self, head: &Parts) -> Kind {
        if matches!(head.method, Method::GET | Method::HEAD) { Kind::Quick } else { Kind::Change }
    }
    /// Where a request comes from: who is at the other end, unless that is a proxy of ours.
    fn origin(&self, _head: &Parts, peer: SocketAddr) -> IpAddr {
        peer.ip()
    }
    /// What is said where a request is not answered at all: it came too slowly, was too long, or there was no turn for it.
    fn refusal(&self, _head: &Parts, status: StatusCode) -> http::Response<Told> {
        refusal(status)
    }
}

/// Listeners and what answers there; ends in order when dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    runtime: Option<Runtime>,
    stopping: watch::Sender<bool>,
    open: Arc<Semaphore>,
    limits: Limits,
}

/// What all connections to a listener have.
struct Shared {
    answers: Arc<dyn Answers>,
    turns: Arc<Turns>,
    limits: Limits,
}

impl Server {
    /// Answers at each of these listeners, within limits that count for all of them together.
    pub fn start(doors: Vec<(StdListener, Arc<dyn Answers>)>, limits: Limits) -> io::Result<Server> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(WORKERS)
            .thread_name("book")
            .enable_all()
            .build()?;
        let (stopping, told) = watch::channel(false);
        let open = Arc::new(Semaphore::new(limits.connections));
        let turns = Arc::new(Turns::new(limits.wait));
        let mut addresses = Vec::new();
        for (listener, answers) in doors {
            listener.set_nonblocking(true)?;
            addresses.push(listener.local_addr()?);
            let entered = runtime.enter();
            let listener = TcpListener::from_std(listener)?;
            drop(entered);
            let shared = Arc::new(Shared { answers, turns: turns.clone(), limits });
            runtime.spawn(accept(listener, shared, open.clone(), told.clone()));
        }
        Ok(Server { addresses, runtime: Some(runtime), stopping, open, limits })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stopping.send(true);
        if let Some(runtime) = self.runtime.take() {
            // All connections give their permits back when they have ended.
            let all = u32::try_from(self.limits.connections).unwrap_or(u32::MAX);
            let _ = runtime.block_on(async { timeout(GRACE, self.open.acquire_many(all)).await.map(drop) });
            runtime.shutdown_timeout(GRACE);
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, open: Arc<Semaphore>, mut stopping: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        let Ok((stream, from)) = accepted else {
            // No file descriptors, most likely: those that are open will be closed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        match open.clone().try_acquire_owned() {
            Ok(permit) => {
                let (shared, stopping) = (shared.clone(), stopping.clone());
                tokio::spawn(async move {
                    // Whoever goes away before the answer does not want it.
                    let _ = serve(stream, from, shared, stopping).await;
                    drop(permit);
                });
            }
            Err(_) => {
                let text =
                    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.try_write(text);
            }
        }
    }
}

async fn serve(
    stream: TcpStream,
    from: SocketAddr,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), hyper::Error> {
    let (local, limits) = (stream.local_addr().unwrap_or(from), shared.limits);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let shared = shared.clone();
        async move { Ok::<_, std::convert::Infallible>(respond(request, from, local, &shared).await) }
    });
    let connection = http1::Builder::new()
        // ELOG's programs look for `Location:` spelt so.
        .title_case_headers(true)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream, limits.stall)), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        done = connection.as_mut() => return done,
        _ = stopping.wait_for(|stop| *stop) => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Ends a search when it is dropped: when its answer was sent, or nobody waits for it any longer.
pub struct Abandoned(Stop);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.stop();
    }
}

async fn respond(request: http::Request<Incoming>, from: SocketAddr, local: SocketAddr, shared: &Shared) -> http::Response<Sent> {
    let Shared { answers, turns, limits } = shared;
    let (head, body) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let most = answers.longest_body(&head);
    let received = match collect(&head, body, most, limits.stall).await {
        Ok(received) => received,
        Err(status) => return closing(answers.refusal(&head, status), is_head),
    };
    let mut kind = answers.kind(&head);
    let turn = match &received {
        Received::Stream(_) => turns.upload(answers.origin(&head, from)).await,
        Received::Whole(_) => turns.take(kind).await,
    };
    let Ok(turn) = turn else { return busy(&**answers, &head, is_head) };
    let stop = Stop::default();
    let abandoned = Abandoned(stop.clone());
    let (answering, asked, stall) = (answers.clone(), head.clone(), limits.stall);
    let mut done = in_turn(turn, move || {
        let mut reader = received.reader(Handle::current(), most, stall);
        answering.answer(Asked { head: asked, body: &mut *reader, from, local }, &stop)
    })
    .await;
    while let Ok(answer) = done {
        let (mut parts, told) = answer.into_parts();
        if let Told::Later(next, make) = told {
            kind = next;
            let Ok(turn) = turns.take(kind).await else { return busy(&**answers, &head, is_head) };
            done = in_turn(turn, make).await;
            continue;
        }
        if let Some(length) = told.length()
            && parts.status != StatusCode::NOT_MODIFIED
            && parts.status != StatusCode::NO_CONTENT
        {
            parts.headers.insert(header::CONTENT_LENGTH, length.into());
        }
        let sent = if is_head { Sent::nothing() } else { Sent::new(told, Some(abandoned), turns.clone(), kind) };
        return http::Response::from_parts(parts, sent);
    }
    // It panicked, which is a fault of ours; the others go on.
    closing(answers.refusal(&head, StatusCode::INTERNAL_SERVER_ERROR), is_head)
}

/// Works in a turn, which ends with the work.
pub async fn in_turn<T: Send + 'static>(
    turn: Turn,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work()
    })
    .await
}

fn busy(answers: &dyn Answers, head: &Parts, is_head: bool) -> http::Response<Sent> {
    let mut answer = closing(answers.refusal(head, StatusCode::SERVICE_UNAVAILABLE), is_head);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// An answer where nothing but the status can be said.
pub fn refusal(status: StatusCode) -> http::Response<Told> {
    let text = format!("{}\n", status.canonical_reason().unwrap_or("no"));
    let mut answer = http::Response::new(Told::Whole(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// An answer after which the connection is closed: the rest of the body has not been read.
fn closing(answer: http::Response<Told>, is_head: bool) -> http::Response<Sent> {
    let mut answer = answer.map(|told| if is_head { Sent::nothing() } else { Sent::whole(told) });
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// A socket that gives up when it cannot write for so long.
struct Patient {
    stream: TcpStream,
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream, stall: Duration) -> Patient {
        Patient { stream, stall, stalled: None }
    }

    fn timed<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let stall = self.stall;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + stall)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(context, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.timed(context, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_flush(context);
        self.timed(context, done)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let done = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(context, done)
    }
}
