//! The HTTP server: sockets, time limits and bounds. Plain functions on workers that may block make the responses
//! ([`super::route`]).
//!
//! Decision: hyper for the protocol, few threads for all sockets, and workers for the store, because a store blocks. A
//! small body is read before a worker is assigned. The worker reads a large one, under one of few permits. A response's
//! pieces are made when the socket is ready, each under a permit of its own ([`super::admission`]). A slow client
//! therefore holds a connection, and never a worker for longer than one piece.

use std::{
    io,
    net::{SocketAddr, TcpListener as StdListener},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderValue, Method, StatusCode, Version, header, request::Parts};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tampu_tls::ServerCertificate;
use tampu_workers::Stop;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    runtime::{Builder, Handle, Runtime},
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{
    admission::{AdmissionControl, Busy, QueueReport, WORKERS, WorkKind, in_permit},
    answers::AnswerRoom,
    body::{HttpRequest, PieceTurns, RequestBody, ResponseBody, SentBody, StopOnDrop, collect, is_small},
    client_address::Proxies,
    connections::{Connection, Connections},
    exchange::{CallerName, ExchangeObserver, OpenExchange},
    route::{HttpService, Matched},
    socket::{PacedSocket, handshake},
    time_steps::{InSteps, rest_of_step},
    tunnel::{Leaving, Tunnel},
};

/// Time for running requests to finish at shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// The limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections that are open at a time. For a further one an idle one is closed; without an idle one it is answered with 503.
    pub connections: usize,
    /// Connections of one address that are open at a time; of IPv6 of one network of 64 bits.
    pub connections_of_one: usize,
    /// Threads for all sockets.
    pub threads: usize,
    /// Maximum size of a request's head in bytes, at least 8 KiB; a longer one gets status 431.
    pub head_bytes: usize,
    /// Time that a request waits for its permit before it gets status 503.
    pub wait: Duration,
    /// Time limit of a request's head, and of a pause between two requests of a connection.
    pub head: Duration,
    /// Time limit of a socket without progress, and of the delay of a client that reads below the minimum speed.
    pub stall: Duration,
    /// Time limit of a TLS handshake.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        let (wait, patience) = (Duration::from_secs(10), Duration::from_secs(30));
        Limits {
            connections: 512,
            connections_of_one: 64,
            threads: 2,
            head_bytes: 64 << 10,
            wait,
            head: patience,
            stall: patience,
            handshake: Duration::from_secs(10),
        }
    }
}

/// A bound address with the service behind it.
pub struct Listener {
    /// The bound socket.
    pub socket: StdListener,
    /// The service that answers requests.
    pub service: Arc<dyn HttpService>,
    /// The certificate, if connections are encrypted.
    pub certificate: Option<Arc<ServerCertificate>>,
    /// Days for which browsers shall use https only (`Strict-Transport-Security`); 0 for none.
    pub hsts_days: u32,
}

impl Listener {
    /// Makes a listener without encryption.
    pub fn plain(socket: StdListener, service: Arc<dyn HttpService>) -> Listener {
        Listener { socket, service, certificate: None, hsts_days: 0 }
    }
}

/// A running server; shuts down in order when dropped.
pub struct Server {
    addresses: Vec<SocketAddr>,
    /// One for each thread for sockets. A connection stays on one of them: a worker that has made a response then wakes
    /// one thread. In a runtime of several threads it wakes one that is asleep, and that one another.
    runtimes: Vec<Runtime>,
    stopping: watch::Sender<bool>,
    connections: Arc<Connections>,
    admission: Arc<AdmissionControl>,
}

/// The counts of a server, which outlive it.
#[derive(Clone)]
pub struct ServerCounts {
    connections: Arc<Connections>,
    admission: Arc<AdmissionControl>,
}

impl ServerCounts {
    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.count()
    }

    /// Returns the numbers of running and waiting requests.
    pub fn queues(&self) -> Vec<QueueReport> {
        self.admission.report()
    }
}

/// State that all connections of a listener share.
struct Shared {
    service: Arc<dyn HttpService>,
    certificate: Option<Arc<ServerCertificate>>,
    /// The header `Strict-Transport-Security`, if it is sent.
    hsts: Option<HeaderValue>,
    admission: Arc<AdmissionControl>,
    answers: Arc<AnswerRoom>,
    proxies: Proxies,
    limits: Limits,
    observer: Option<Arc<dyn ExchangeObserver>>,
}

impl Server {
    /// Serves each of these listeners, within common limits.
    pub fn start(listeners: Vec<Listener>, proxies: Proxies, limits: Limits) -> io::Result<Server> {
        Server::start_observed(listeners, proxies, limits, None)
    }

    /// The same; an observer sees each request.
    pub fn start_observed(
        listeners: Vec<Listener>,
        proxies: Proxies,
        limits: Limits,
        observer: Option<Arc<dyn ExchangeObserver>>,
    ) -> io::Result<Server> {
        let runtimes = (0..limits.threads.max(1)).map(|_| runtime()).collect::<io::Result<Vec<Runtime>>>()?;
        let threads: Arc<[Handle]> = runtimes.iter().map(|runtime| runtime.handle().clone()).collect();
        let (stopping, stopped) = watch::channel(false);
        let connections = Connections::new(limits.connections, limits.connections_of_one, proxies.clone());
        let admission = Arc::new(AdmissionControl::new(limits.wait));
        let answers = Arc::<AnswerRoom>::default();
        let mut addresses = Vec::new();
        for Listener { socket, service, certificate, hsts_days } in listeners {
            socket.set_nonblocking(true)?;
            addresses.push(socket.local_addr()?);
            let first = &runtimes[0];
            let entered = first.enter();
            let listener = TcpListener::from_std(socket)?;
            drop(entered);
            let seconds = u64::from(hsts_days) * 86_400;
            let hsts = HeaderValue::from_str(&format!("max-age={seconds}")).ok().filter(|_| seconds > 0 && certificate.is_some());
            let (admission, answers) = (admission.clone(), answers.clone());
            let (proxies, observer) = (proxies.clone(), observer.clone());
            let shared = Arc::new(Shared { service, certificate, hsts, admission, answers, proxies, limits, observer });
            first.spawn(accept(listener, threads.clone(), shared, connections.clone(), stopped.clone()));
        }
        Ok(Server { addresses, runtimes, stopping, connections, admission })
    }

    /// Returns the counts of this server.
    pub fn counts(&self) -> ServerCounts {
        ServerCounts { connections: self.connections.clone(), admission: self.admission.clone() }
    }

    /// Returns the addresses of the listeners, in their order.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.stopping.send(true);
        if let Some(first) = self.runtimes.first() {
            let _ = first.block_on(async { timeout(GRACE, self.connections.all_ended()).await });
        }
        let latest = Instant::now() + GRACE;
        for runtime in self.runtimes.drain(..) {
            runtime.shutdown_timeout(latest.saturating_duration_since(Instant::now()));
        }
    }
}

/// Makes the runtime of one thread for sockets. Admission bounds the running workers of all of them together.
fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).max_blocking_threads(WORKERS).thread_name("http").enable_all().build()
}

async fn accept(
    listener: TcpListener,
    threads: Arc<[Handle]>,
    shared: Arc<Shared>,
    connections: Arc<Connections>,
    mut stopping: watch::Receiver<bool>,
) {
    // A connection belongs to the next thread in turn.
    for thread in threads.iter().cycle() {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stop| *stop) => return,
        };
        let Ok((stream, from)) = accepted else {
            // Most likely there are no free file descriptors; open ones will be closed.
            sleep(Duration::from_millis(100)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        match connections.open(from.ip()) {
            Some(connection) => {
                // A socket is known to the runtime that accepted it; it is registered again with its own.
                let Ok(stream) = stream.into_std() else { continue };
                let (shared, stopping) = (shared.clone(), stopping.clone());
                thread.spawn(async move {
                    let Ok(stream) = TcpStream::from_std(stream) else { return };
                    tokio::select! {
                        // A client that has gone does not need the response.
                        _ = converse(stream, from, shared, stopping, &connection) => {}
                        _ = connection.closed() => {}
                    }
                });
            }
            None => {
                let text =
                    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                let _ = stream.try_write(text);
            }
        }
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy)]
struct Ends {
    from: SocketAddr,
    local: SocketAddr,
    is_tls: bool,
}

/// Shakes hands where TLS is used, then serves requests.
async fn converse(
    stream: TcpStream,
    from: SocketAddr,
    shared: Arc<Shared>,
    stopping: watch::Receiver<bool>,
    connection: &Connection,
) -> Result<(), hyper::Error> {
    let (local, limits) = (stream.local_addr().unwrap_or(from), shared.limits);
    let ends = |is_tls| Ends { from, local, is_tls };
    match shared.certificate.clone() {
        None => {
            serve(PacedSocket::new(stream, limits.stall, connection.unsent()), ends(false), shared, stopping, connection).await
        }
        Some(certificate) => match handshake(stream, &certificate, limits.handshake, limits.stall, connection.unsent()).await {
            Some(stream) => serve(stream, ends(true), shared, stopping, connection).await,
            None => Ok(()),
        },
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ends: Ends,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
    connection: &Connection,
) -> Result<(), hyper::Error> {
    let limits = shared.limits;
    let leaving: Arc<Mutex<Option<Leaving>>> = Arc::default();
    let to_leave = leaving.clone();
    let service = service_fn(move |mut request: http::Request<Incoming>| {
        let (shared, busy, leaving) = (shared.clone(), connection.busy(), to_leave.clone());
        let upgraded = hyper::upgrade::on(&mut request);
        async move {
            let mut response = respond(request, ends, &shared).await;
            if let Some(tunnel) = response.extensions_mut().remove::<Tunnel>() {
                *leaving.lock() = Some(Leaving { connection: upgraded, tunnel, busy: connection.busy() });
            }
            if let Some(hsts) = &shared.hsts {
                response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, hsts.clone());
            }
            Ok::<_, std::convert::Infallible>(response.map(|body| body.keeping(busy)))
        }
    });
    let connection = http1::Builder::new()
        // ELOG's programs look for `Location:` in this spelling.
        .title_case_headers(true)
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(limits.head_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let is_stopping = tokio::select! {
        done = connection.as_mut() => {
            done?;
            false
        }
        _ = stopping.wait_for(|stop| *stop) => true,
    };
    if is_stopping {
        connection.as_mut().graceful_shutdown();
        return connection.await;
    }
    let left = leaving.lock().take();
    if let Some(left) = left {
        tokio::select! {
            () = left.run() => {}
            _ = stopping.wait_for(|stop| *stop) => {}
        }
    }
    Ok(())
}

async fn respond(request: http::Request<Incoming>, ends: Ends, shared: &Shared) -> http::Response<SentBody> {
    // It reports itself, also if the client leaves meanwhile and this is dropped.
    let mut exchange = None;
    let response = handle(request, ends, shared, &mut exchange).await;
    if let Some(exchange) = &mut exchange {
        exchange.answers(response.status());
    }
    response.map(|body| body.observed(exchange))
}

async fn handle(
    request: http::Request<Incoming>,
    ends: Ends,
    shared: &Shared,
    exchange: &mut Option<OpenExchange>,
) -> http::Response<SentBody> {
    let Shared { service, admission, answers, proxies, limits, observer, .. } = shared;
    let begun = Instant::now();
    let (head, body) = request.into_parts();
    let is_head = head.method == Method::HEAD;
    let Matched { work, identifies, max_body, reject, identify } = service.clone().find(&head);
    let mut client = proxies.client(&head.headers, ends.from, ends.local);
    client.is_tls |= ends.is_tls;
    *exchange = observer.clone().map(|observer| OpenExchange::begin(observer, &head, client.ip, work));
    if !has_one_host(&head) {
        return closing(reject(StatusCode::BAD_REQUEST), is_head);
    }
    // A small body costs no worker. A caller who sends a large one is known before it is received.
    let (received, rest) = if is_small(&head, &body, max_body) {
        match collect(&head, body, max_body, limits.stall).await {
            Ok(received) => (Some(received), None),
            Err(status) => return closing(reject(status), is_head),
        }
    } else {
        (None, Some(body))
    };
    let mut head = head;
    let (mut identify, mut max_body, mut handler) = (Some(identify), max_body, None);
    if (rest.is_some() || identifies == WorkKind::Login)
        && let Some(identify) = identify.take()
    {
        let Ok(permit) = admission.take(identifies, client.ip).await else { return busy(reject, is_head) };
        let identified = in_permit(permit, move || {
            let identified = identify(&head, &client);
            (head, identified)
        });
        match identified.await {
            Ok((same, Ok(identified))) => {
                head = same;
                max_body = max_body.min(identified.max_body);
                handler = Some(identified.handler);
            }
            Ok((_, Err(response))) => return closing(*response, is_head),
            Err(_) => return closing(reject(StatusCode::INTERNAL_SERVER_ERROR), is_head),
        }
    }
    let received = match (received, rest) {
        (Some(received), _) => received,
        (None, Some(rest)) => match collect(&head, rest, max_body, limits.stall).await {
            Ok(received) => received,
            Err(status) => return closing(reject(status), is_head),
        },
        (None, None) => RequestBody::Whole(Bytes::new()),
    };
    let permit = match &received {
        RequestBody::Stream(_) => admission.upload(client.ip).await,
        RequestBody::Whole(_) => admission.take(work, client.ip).await,
    };
    let Ok(permit) = permit else { return busy(reject, is_head) };
    let stop = Stop::default();
    let stop_on_drop = StopOnDrop(stop.clone());
    let stall = limits.stall;
    let mut work = work;
    let mut done = in_permit(permit, move || {
        let identified = match (handler, identify) {
            (Some(handler), _) => Ok(handler),
            (None, Some(identify)) => identify(&head, &client).map(|identified| identified.handler),
            (None, None) => Err(Box::new(reject(StatusCode::INTERNAL_SERVER_ERROR))),
        };
        let mut reader = received.reader(Handle::current(), max_body, stall);
        ResponseBody::made(|| match identified {
            Ok(handler) => handler(HttpRequest { head, body: &mut *reader, client }, &stop),
            Err(response) => *response,
        })
    })
    .await;
    while let Ok((response, searches)) = done {
        let (mut parts, body) = response.into_parts();
        let who = parts.extensions.remove::<CallerName>();
        if let Some(exchange) = exchange {
            exchange.searched(searches);
            who.into_iter().for_each(|who| exchange.is_by(who));
        }
        if let ResponseBody::Later(next, make) = body {
            work = next;
            let Ok(permit) = admission.take(work, client.ip).await else { return busy(reject, is_head) };
            done = in_permit(permit, || ResponseBody::made(make)).await;
            continue;
        }
        let body = match body {
            ResponseBody::Whole(bytes) if !is_head => match answers.hold(bytes.clone(), client.ip, limits.wait).await {
                Ok(bytes) => ResponseBody::Whole(bytes),
                // What was done is told.
                Err(Busy) if matches!(work, WorkKind::Change | WorkKind::Login) => ResponseBody::Whole(bytes),
                Err(Busy) => return busy(reject, is_head),
            },
            other => other,
        };
        if let Some(length) = body.length()
            && parts.status != StatusCode::NOT_MODIFIED
            && parts.status != StatusCode::NO_CONTENT
            && parts.status != StatusCode::SWITCHING_PROTOCOLS
        {
            parts.headers.insert(header::CONTENT_LENGTH, length.into());
        }
        let in_steps = parts.extensions.remove::<InSteps>().map(|_| begun);
        if in_steps.is_some() {
            rest_of_step(begun).await;
        }
        let turns = PieceTurns { admission: admission.clone(), kind: work, from: client.ip, in_steps };
        let sent = if is_head { SentBody::nothing() } else { SentBody::new(body, Some(stop_on_drop), turns) };
        return http::Response::from_parts(parts, sent);
    }
    // The handler panicked, which was reported; other requests continue.
    closing(reject(StatusCode::INTERNAL_SERVER_ERROR), is_head)
}

/// Returns true if a request names one host, as RFC 9112 demands. HTTP/1.0 may name none.
fn has_one_host(head: &Parts) -> bool {
    let named = head.headers.get_all(header::HOST).iter().count();
    named == 1 || named == 0 && head.version != Version::HTTP_11
}

fn busy(reject: fn(StatusCode) -> http::Response<ResponseBody>, is_head: bool) -> http::Response<SentBody> {
    let mut response = closing(reject(StatusCode::SERVICE_UNAVAILABLE), is_head);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Makes a response of plain text with only the status.
pub fn plain_rejection(status: StatusCode) -> http::Response<ResponseBody> {
    let text = format!("{}\n", status.canonical_reason().unwrap_or("no"));
    let mut answer = http::Response::new(ResponseBody::Whole(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// Makes a response that closes the connection, because the rest of the request's body was not read.
fn closing(answer: http::Response<ResponseBody>, is_head: bool) -> http::Response<SentBody> {
    let mut answer = answer.map(|told| if is_head { SentBody::nothing() } else { SentBody::whole(told) });
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}
