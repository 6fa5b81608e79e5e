//! HTTP: sockets, time limits and bounds. What is answered is made by plain functions on workers that may block ([`Answers`]).
//!
//! Decision: hyper for the protocol, two threads for all sockets, and workers for what reads and writes the store, because a store blocks.
//! A small body is read before a worker is taken, a large one by the worker, of which only so many do that; an answer's pieces are
//! made when the socket can take them. So somebody slow holds a connection and never a worker for longer than a piece takes.

use std::{
    collections::HashMap,
    future::Future,
    io,
    net::{IpAddr, SocketAddr, TcpListener as StdListener},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, header, request::Parts};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tampu_logbook::{people::attempts::place, search::Stop};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, watch},
    time::{Instant, Sleep, sleep, timeout},
};

use super::body::{Asked, Received, Sent, Told, collect};

/// Threads for all sockets.
const THREADS: usize = 2;
/// Requests answered at a time; further ones wait.
pub const WORKERS: usize = 24;
/// Large bodies taken in at a time.
pub const UPLOADS: usize = 8;
/// Of them from one address; of IPv6 from one network of 64 bits.
pub const UPLOADS_OF_ONE: usize = 4;
/// Requests that wait for a worker; further ones are answered with 503.
pub const WAITING: usize = 512;
/// How long one waits before it is answered with 503.
const WAIT: Duration = Duration::from_secs(10);
/// Bytes of a request's head; a longer one is answered with 431.
pub const HEAD: usize = 64 << 10;
/// How long a head may take, and how long a connection may rest between two requests.
pub const HEAD_TIME: Duration = Duration::from_secs(30);
/// How long a socket may neither take nor give a byte while it should.
pub const STALL: Duration = Duration::from_secs(30);
/// How long what is being answered has at the end.
const GRACE: Duration = Duration::from_secs(5);

/// Makes answers. Called on a worker; may block.
pub trait Answers: Send + Sync + 'static {
    /// The answer to a request. `stop` is asked to stop when nobody wants it any longer.
    fn answer(&self, asked: Asked<'_>, stop: &Stop) -> http::Response<Told>;
    /// Bytes that a body may have, by what its head says.
    fn longest_body(&self, head: &Parts) -> u64;
    /// Where a request comes from: who is at the other end, unless that is a proxy of ours.
    fn origin(&self, _head: &Parts, peer: SocketAddr) -> IpAddr {
        peer.ip()
    }
}

/// Listeners and what answers there; ends in order when dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    runtime: Option<Runtime>,
    stopping: watch::Sender<bool>,
    open: Arc<Semaphore>,
    connections: usize,
}

struct Shared {
    workers: Semaphore,
    uploads: Uploads,
    waiting: AtomicUsize,
}

/// Large bodies that are taken in: so many at a time, and so many of them from one address.
struct Uploads {
    all: Semaphore,
    of_one: Mutex<HashMap<IpAddr, Arc<Semaphore>>>,
}

impl Uploads {
    fn new() -> Uploads {
        Uploads { all: Semaphore::new(UPLOADS), of_one: Mutex::default() }
    }

    /// Waits for a turn. Who waits for their own others holds nobody up.
    async fn take(&self, from: IpAddr) -> Result<(OwnedSemaphorePermit, SemaphorePermit<'_>), AcquireError> {
        let own = {
            let mut of_one = self.of_one.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever takes something in, or waits, holds theirs.
            of_one.retain(|_, one| Arc::strong_count(one) > 1);
            of_one.entry(place(from)).or_insert_with(|| Arc::new(Semaphore::new(UPLOADS_OF_ONE))).clone()
        };
        Ok((own.acquire_owned().await?, self.all.acquire().await?))
    }
}

impl Server {
    /// Answers at each of these listeners, with at most so many connections in all.
    pub fn start(doors: Vec<(StdListener, Arc<dyn Answers>)>, connections: usize) -> io::Result<Server> {
        // Beside workers, pieces of answers are read by threads of the same pool.
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .max_blocking_threads(WORKERS + 8)
            .thread_name("book")
            .enable_all()
            .build()?;
        let (stopping, told) = watch::channel(false);
        let open = Arc::new(Semaphore::new(connections));
        let shared = Arc::new(Shared { workers: Semaphore::new(WORKERS), uploads: Uploads::new(), waiting: AtomicUsize::new(0) });
        let mut addresses = Vec::new();
        for (listener, answers) in doors {
            listener.set_nonblocking(true)?;
            addresses.push(listener.local_addr()?);
            let entered = runtime.enter();
            let listener = TcpListener::from_std(listener)?;
            drop(entered);
            runtime.spawn(accept(listener, answers, open.clone(), shared.clone(), told.clone()));
        }
        Ok(Server { addresses, runtime: Some(runtime), stopping, open, connections })
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
            let all = u32::try_from(self.connections).unwrap_or(u32::MAX);
            let _ = runtime.block_on(async { timeout(GRACE, self.open.acquire_many(all)).await.map(drop) });
            runtime.shutdown_timeout(GRACE);
        }
    }
}

async fn accept(
    listener: TcpListener,
    answers: Arc<dyn Answers>,
    open: Arc<Semaphore>,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
) {
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
                let (answers, shared, stopping) = (answers.clone(), shared.clone(), stopping.clone());
                tokio::spawn(async move {
                    // Whoever goes away before the answer does not want it.
                    let _ = serve(stream, from, answers, shared, stopping).await;
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
    answers: Arc<dyn Answers>,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
) -> Result<(), hyper::Error> {
    let local = stream.local_addr().unwrap_or(from);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (answers, shared) = (answers.clone(), shared.clone());
        async move { Ok::<_, std::convert::Infallible>(respond(request, from, local, answers, shared).await) }
    });
    let connection = http1::Builder::new()
        // ELOG's programs look for `Location:` spelt so.
        .title_case_headers(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
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

async fn respond(
    request: http::Request<Incoming>,
    from: SocketAddr,
    local: SocketAddr,
    answers: Arc<dyn Answers>,
    shared: Arc<Shared>,
) -> http::Response<Sent> {
    let (head, body) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let most = answers.longest_body(&head);
    let received = match collect(&head, body, most).await {
        Ok(received) => received,
        Err(status) => return plain(status, is_head),
    };
    let Ok(_place) = Place::take(&shared) else { return busy(is_head) };
    let uploading = match &received {
        Received::Stream(_) => match timeout(WAIT, shared.uploads.take(answers.origin(&head, from))).await {
            Ok(Ok(permit)) => Some(permit),
            _ => return busy(is_head),
        },
        Received::Whole(_) => None,
    };
    let Ok(Ok(_worker)) = timeout(WAIT, shared.workers.acquire()).await else { return busy(is_head) };
    let stop = Stop::default();
    let abandoned = Abandoned(stop.clone());
    let done = tokio::task::spawn_blocking(move || {
        let mut reader = received.reader(tokio::runtime::Handle::current(), most);
        answers.answer(Asked { head, body: &mut *reader, from, local }, &stop)
    });
    let answer = done.await;
    drop(uploading);
    match answer {
        Ok(answer) => {
            let (mut parts, told) = answer.into_parts();
            if let Some(length) = told.length()
                && parts.status != StatusCode::NOT_MODIFIED
                && parts.status != StatusCode::NO_CONTENT
            {
                parts.headers.insert(header::CONTENT_LENGTH, length.into());
            }
            http::Response::from_parts(parts, if is_head { Sent::nothing() } else { Sent::new(told, Some(abandoned)) })
        }
        // It panicked, which is a fault of ours; the others go on.
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, is_head),
    }
}

/// A place in the row of those who wait for a worker.
struct Place<'a>(&'a AtomicUsize);

impl Place<'_> {
    fn take(shared: &Shared) -> Result<Place<'_>, ()> {
        if shared.waiting.fetch_add(1, Ordering::AcqRel) >= WAITING + WORKERS {
            shared.waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(());
        }
        Ok(Place(&shared.waiting))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn busy(is_head: bool) -> http::Response<Sent> {
    let mut answer = plain(StatusCode::SERVICE_UNAVAILABLE, is_head);
    answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}

/// An answer where nothing but the status can be said. The connection is closed: the rest of the body has not been read.
fn plain(status: StatusCode, is_head: bool) -> http::Response<Sent> {
    let text = format!("{}\n", status.canonical_reason().unwrap_or("no"));
    let mut answer = http::Response::new(if is_head { Sent::nothing() } else { Sent::new(Told::Whole(Bytes::from(text)), None) });
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// A socket that gives up when it cannot write for [`STALL`].
struct Patient {
    stream: TcpStream,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream) -> Patient {
        Patient { stream, stalled: None }
    }

    fn timed<T>(&mut self, context: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.stalled = None;
            return done;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALL)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all_turns() {
        let runtime = Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let uploads = Uploads::new();
            let soon = |from: &str| timeout(Duration::from_millis(20), uploads.take(from.parse().unwrap()));
            let mut taken = Vec::new();
            for from in ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"] {
                taken.push(soon(from).await.unwrap().unwrap());
            }
            assert!(soon("2001:db8::5").await.is_err());
            for _ in 0..UPLOADS - UPLOADS_OF_ONE {
                taken.push(soon("192.0.2.1").await.unwrap().unwrap());
            }
            assert!(soon("192.0.2.2").await.is_err());
            taken.clear();
            assert!(soon("2001:db8::5").await.is_ok());
            assert_eq!(uploads.of_one.lock().unwrap().len(), 1, "what nobody uses is forgotten");
        });
    }
}
