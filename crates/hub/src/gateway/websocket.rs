//! WebSocket: the connection of a browser, passed to the gateway. It runs in the process of the HTTP server.
//!
//! ```text
//! client == WebSocket == this task: messages <-> frames -- gateway-web.sock -- the gateway
//! ```
//! Decision: bytes pass through a socket, as those of TLS do, so a session knows one kind of connection, and the two
//! roles may be two processes. The tasks run on a thread of their own: a message may be 16 MiB, and the pages of the
//! logbook do not wait for it.
//!
//! The HTTP server has authenticated the request. HELLO may have a token instead, because a browser sends no header of
//! its choice with a WebSocket. The token is checked here, and does not reach the gateway.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tampu_bus::access::Principal;
use tampu_logbook::people::attempts::client_network;
use tampu_types::gateway::{
    Frame, HEADER_LEN, Kind,
    json_form::{from_text, to_text},
    messages::{Code, End, Hello},
    put_frame,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf, split},
    net::{UnixStream, unix},
    runtime::{Builder, Handle, Runtime},
    sync::mpsc,
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};

use super::{
    limits::{FRAME, GREETING, GUESTS, GUESTS_OF_ONE, LEAST_FRAME, WEB, WEB_OF_ONE},
    web::{WEB_SOCKET, preamble},
};
use crate::http::{
    tunnel::Tunnel,
    websocket::{BadMessage, Message, MessageReader, put_close, put_head, put_pong},
};

/// Subprotocol of the WebSocket.
pub(crate) const PROTOCOL: &str = "tampu-gateway-1";
/// Time that a refused client costs.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);
/// Time between two checks of the credentials.
const CHECK: Duration = Duration::from_secs(5);
/// Time for the last bytes of a connection.
const FAREWELL: Duration = Duration::from_secs(5);
/// Bytes that are read at once.
const READ: usize = 64 << 10;
/// Longest text message, in bytes: base64 takes a third more.
const TEXT: usize = 24 << 20;

/// The form of a session's frames, which is that of HELLO.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Bytes,
    Text,
}

impl Form {
    /// Appends a frame as a message. The error is the reason for which a frame has no text.
    fn put(self, out: &mut Vec<u8>, bytes: &[u8], frame: &Frame<'_>) -> Result<(), Farewell> {
        match self {
            Form::Bytes => {
                put_head(out, 2, bytes.len());
                out.extend_from_slice(bytes);
            }
            Form::Text => {
                let text = to_text(frame).map_err(|why| Farewell::because(Code::Failed, why))?;
                put_head(out, 1, text.len());
                out.extend_from_slice(text.as_bytes());
            }
        }
        Ok(())
    }

    /// Reads a message as the bytes of one frame.
    fn read(self, message: Message) -> Result<Vec<u8>, Farewell> {
        match (self, message) {
            (Form::Bytes, Message::Binary(bytes)) => Ok(bytes),
            (Form::Text, Message::Text(text)) => from_text(&text).map_err(|why| Farewell::because(Code::Protocol, why)),
            _ => Err(Farewell {
                code: 1003,
                ..Farewell::because(Code::Protocol, "the messages of a session have the form of HELLO")
            }),
        }
    }
}

/// The caller behind a connection.
#[derive(Clone)]
pub(crate) struct Caller {
    /// The principal; none for a guest to whom no rule gives anything.
    pub principal: Option<Principal>,
    /// Returns true while the credentials hold. It may block.
    pub still: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Finds the caller of a token in HELLO. It may block.
pub(crate) type ByToken = Arc<dyn Fn(&str) -> Option<Caller> + Send + Sync>;

/// The HTTP server's way to the gateway.
pub(crate) struct WebGateway {
    socket: PathBuf,
    places: Arc<Places>,
    /// The places of guests among them.
    guests: Arc<Places>,
    runtime: Option<Runtime>,
}

/// The connections at present, by network.
#[derive(Default)]
struct Places(Mutex<HashMap<IpAddr, usize>>);

impl Places {
    /// Takes a place, unless all networks together or this one have as many already.
    fn enter(self: &Arc<Places>, network: IpAddr, of_all: usize, of_one: usize) -> Option<Place> {
        let mut all = self.0.lock();
        let sum: usize = all.values().sum();
        if sum >= of_all || all.get(&network).is_some_and(|here| *here >= of_one) {
            return None;
        }
        *all.entry(network).or_default() += 1;
        Some(Place { places: self.clone(), network })
    }
}

/// The place of a connection. It is free again when this is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    network: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.places.0.lock();
        if let Some(count) = all.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.network);
            }
        }
    }
}

impl WebGateway {
    /// Starts the thread for connections. `run` is the domain's run-time directory.
    pub fn start(run: &Path) -> io::Result<WebGateway> {
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).max_blocking_threads(4).thread_name("gateway web").enable_all().build()?;
        let socket = run.join(WEB_SOCKET);
        Ok(WebGateway { socket, places: Arc::default(), guests: Arc::default(), runtime: Some(runtime) })
    }

    /// Returns true if this hub has a gateway.
    pub fn is_there(&self) -> bool {
        self.socket.exists()
    }

    /// Takes a place for a connection from this address; none if it or the server has too many.
    pub fn enter(&self, from: IpAddr) -> Option<Place> {
        self.places.enter(client_network(from), WEB, WEB_OF_ONE)
    }

    /// Makes the task of a connection.
    pub fn tunnel(&self, place: Place, caller: Caller, by_token: ByToken) -> Option<Tunnel> {
        let handle = self.runtime.as_ref()?.handle().clone();
        let (socket, guests, place) = (self.socket.clone(), self.guests.clone(), Arc::new(place));
        Some(Tunnel(Arc::new(move |upgraded| {
            let (socket, place) = (socket.clone(), place.clone());
            let (caller, by_token) = (caller.clone(), by_token.clone());
            let way = Way { socket, guests: guests.clone(), network: place.network };
            let task = Aborting(spawn_on(&handle, async move {
                Connection::new(upgraded).serve(&way, caller, by_token).await;
                drop(place);
            }));
            Box::pin(async move {
                let mut task = task;
                let _ = (&mut task.0).await;
            })
        })))
    }
}

/// The way of a connection to the gateway.
struct Way {
    socket: PathBuf,
    guests: Arc<Places>,
    network: IpAddr,
}

fn spawn_on(handle: &Handle, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    handle.spawn(task)
}

impl Drop for WebGateway {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A task that ends with the connection that waits for it.
struct Aborting(JoinHandle<()>);

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The end of a connection that this side decides.
struct Farewell {
    end: End,
    code: u16,
}

impl Farewell {
    fn because(code: Code, why: impl std::fmt::Display) -> Farewell {
        Farewell { end: End::because(code, why), code: 1002 }
    }
}

impl From<BadMessage> for Farewell {
    fn from(bad: BadMessage) -> Farewell {
        Farewell { end: End::because(Code::Protocol, bad), code: bad.code() }
    }
}

/// Messages of the reading half for the writing half.
enum Said {
    Pong(Vec<u8>),
    End(Farewell),
}

struct Connection {
    input: ClientInput,
    output: WriteHalf<TokioIo<Upgraded>>,
    form: Form,
}

/// The messages of a client.
struct ClientInput {
    from: ReadHalf<TokioIo<Upgraded>>,
    reader: MessageReader,
    buffer: Vec<u8>,
}

impl ClientInput {
    /// Returns the next message; `None` at the end of the connection.
    async fn next(&mut self, limit: usize) -> Result<Option<Message>, BadMessage> {
        loop {
            if let Some(message) = self.reader.next(limit)? {
                return Ok(Some(message));
            }
            match self.from.read(&mut self.buffer).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(length) => self.reader.push(&self.buffer[..length]),
            }
        }
    }
}

impl Connection {
    fn new(upgraded: Upgraded) -> Connection {
        let (from, output) = split(TokioIo::new(upgraded));
        Connection {
            input: ClientInput { from, reader: MessageReader::default(), buffer: vec![0; READ] },
            output,
            form: Form::Bytes,
        }
    }

    async fn serve(mut self, way: &Way, caller: Caller, by_token: ByToken) {
        let begun = timeout(GREETING, self.greet(way, caller, by_token)).await;
        let begun = begun.unwrap_or_else(|_| Err(Some(Farewell::because(Code::Protocol, "no hello came"))));
        let form = self.form;
        let (hub, caller, _guest) = match begun {
            Ok(begun) => begun,
            Err(farewell) => {
                if let Some(farewell) = farewell {
                    let _ = timeout(FAREWELL, part(&mut self.output, form, &farewell)).await;
                }
                return;
            }
        };
        let (from_hub, to_hub) = hub.into_split();
        let (said, to_say) = mpsc::channel(4);
        let Connection { input, output, .. } = self;
        let down = write(output, form, from_hub, to_say);
        let up = read(input, form, to_hub, said.clone());
        let checked = check(caller, said);
        tokio::pin!(down);
        tokio::select! {
            () = &mut down => {}
            // The client has gone, or the writer has to say why it ends.
            says_why = up => if says_why {
                let _ = timeout(FAREWELL, down).await;
            },
            () = checked => {
                let _ = timeout(FAREWELL, down).await;
            }
        }
    }

    /// Reads HELLO and connects to the gateway. The error is what the client is told, if it is there.
    async fn greet(
        &mut self,
        way: &Way,
        caller: Caller,
        by_token: ByToken,
    ) -> Result<(UnixStream, Caller, Option<Place>), Option<Farewell>> {
        let limit = LEAST_FRAME as usize + HEADER_LEN;
        let bytes = loop {
            match self.input.next(limit).await.map_err(|bad| Some(bad.into()))? {
                None | Some(Message::Close) => return Err(None),
                Some(Message::Ping(_) | Message::Pong) => {}
                Some(message) => {
                    self.form = if matches!(message, Message::Text(_)) { Form::Text } else { Form::Bytes };
                    break self.form.read(message).map_err(Some)?;
                }
            }
        };
        let protocol = |why: &dyn std::fmt::Display| Some(Farewell::because(Code::Protocol, why));
        let frame = whole(&bytes, LEAST_FRAME).map_err(Some)?;
        if frame.header.kind != Kind::Hello {
            return Err(protocol(&format_args!("{} came before hello", frame.header.kind.name())));
        }
        let mut hello: Hello = serde_json::from_slice(frame.body).map_err(|why| protocol(&format_args!("hello: {why}")))?;
        let caller = match hello.token.take() {
            None => caller,
            Some(token) => match spawn_blocking(move || by_token(&token)).await {
                Ok(Some(caller)) => caller,
                _ => {
                    // Trying tokens takes time and one of few places.
                    sleep(REFUSAL_PAUSE).await;
                    return Err(Some(Farewell::because(Code::Unauthenticated, "the token of HELLO is unknown or has ended")));
                }
            },
        };
        let Some(principal) = &caller.principal else {
            let why = "log in, or send a token of the logbook in HELLO or in the header Authorization";
            return Err(Some(Farewell::because(Code::Unauthenticated, why)));
        };
        let guest = match principal {
            Principal::Guest => {
                let place = way.guests.enter(way.network, GUESTS, GUESTS_OF_ONE);
                let full = "guests have too many connections with the gateway, of all or of this address; log in";
                Some(place.ok_or_else(|| Some(Farewell::because(Code::Limit, full)))?)
            }
            _ => None,
        };
        let mut first = preamble(principal).map_err(|why| Some(Farewell::because(Code::Failed, why)))?;
        let body = serde_json::to_vec(&hello).map_err(|why| protocol(&why))?;
        put_frame(&mut first, Kind::Hello, 0, 0, 0, &body);
        let connected = async {
            let mut hub = UnixStream::connect(&way.socket).await?;
            hub.write_all(&first).await?;
            io::Result::Ok(hub)
        };
        let hub =
            connected.await.map_err(|_| Some(Farewell::because(Code::Stopping, "the gateway does not run at the moment")))?;
        Ok((hub, caller, guest))
    }
}

/// Reads a message that is one whole frame.
fn whole(bytes: &[u8], limit: u32) -> Result<Frame<'_>, Farewell> {
    match Frame::first(bytes, limit) {
        Ok(Some((frame, []))) => Ok(frame),
        Ok(_) => Err(Farewell::because(Code::Protocol, "a message is not one whole frame")),
        Err(why) => Err(Farewell::because(Code::Protocol, why)),
    }
}

/// Passes the client's frames to the gateway. Returns true if the writer has to say why it ends.
async fn read(mut input: ClientInput, form: Form, mut to_hub: unix::OwnedWriteHalf, said: mpsc::Sender<Said>) -> bool {
    let limit = if form == Form::Text { TEXT } else { FRAME as usize + HEADER_LEN };
    let farewell = loop {
        match input.next(limit).await {
            // Only the last of many pings wants an answer.
            Ok(Some(Message::Ping(payload))) => drop(said.try_send(Said::Pong(payload))),
            Ok(Some(Message::Pong)) => {}
            Ok(None) => return false,
            Ok(Some(Message::Close)) => break Farewell { end: End::default(), code: 1000 },
            Ok(Some(message)) => match form.read(message).and_then(|bytes| whole(&bytes, FRAME).map(|_| ()).map(|()| bytes)) {
                // The gateway has closed; its reason is on its way to the client.
                Ok(bytes) if to_hub.write_all(&bytes).await.is_err() => return true,
                Ok(_) => {}
                Err(farewell) => break farewell,
            },
            Err(bad) => break bad.into(),
        }
    };
    said.send(Said::End(farewell)).await.is_ok()
}

/// Ends the connection when the credentials have ended.
async fn check(caller: Caller, said: mpsc::Sender<Said>) {
    loop {
        sleep(CHECK).await;
        let still = caller.still.clone();
        if !spawn_blocking(move || still()).await.unwrap_or(false) {
            let farewell = Farewell::because(Code::Unauthenticated, "the login or the token has ended");
            let _ = said.send(Said::End(farewell)).await;
            return;
        }
    }
}

/// Passes the gateway's frames to the client, until one of them has ended.
async fn write(
    mut output: WriteHalf<TokioIo<Upgraded>>,
    form: Form,
    mut from_hub: unix::OwnedReadHalf,
    mut to_say: mpsc::Receiver<Said>,
) {
    let (mut input, mut out) = (Vec::with_capacity(READ), Vec::new());
    loop {
        out.clear();
        tokio::select! {
            read = from_hub.read_buf(&mut input) => {
                if !matches!(read, Ok(1..)) {
                    // BYE was the last frame, if there was one.
                    put_close(&mut out, 1000);
                    let _ = output.write_all(&out).await;
                    let _ = output.shutdown().await;
                    return;
                }
                if let Err(farewell) = take_frames(form, &mut input, &mut out) {
                    return part(&mut output, form, &farewell).await;
                }
            }
            said = to_say.recv() => match said {
                Some(Said::Pong(payload)) => put_pong(&mut out, &payload),
                Some(Said::End(farewell)) => return part(&mut output, form, &farewell).await,
                None => return,
            },
        }
        if output.write_all(&out).await.is_err() || output.flush().await.is_err() {
            return;
        }
        if out.capacity() > 16 * READ {
            out = Vec::new();
        }
    }
}

/// Moves whole frames to `out`, each as a message.
fn take_frames(form: Form, input: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<(), Farewell> {
    let mut rest = &input[..];
    // The gateway writes frames only.
    while let Ok(Some((frame, after))) = Frame::first(rest, u32::MAX) {
        let length = HEADER_LEN + frame.body.len();
        form.put(out, &rest[..length], &frame)?;
        rest = after;
    }
    let used = input.len() - rest.len();
    input.drain(..used);
    if input.is_empty() && input.capacity() > 16 * READ {
        input.shrink_to(READ);
    }
    Ok(())
}

/// Says BYE, unless the client has ended in order, and closes.
async fn part(output: &mut WriteHalf<TokioIo<Upgraded>>, form: Form, farewell: &Farewell) {
    let mut out = Vec::new();
    if farewell.end.code != Code::Done {
        let mut bye = Vec::new();
        put_frame(&mut bye, Kind::Bye, 0, 0, 0, &serde_json::to_vec(&farewell.end).unwrap_or_default());
        if let Ok(Some((frame, _))) = Frame::first(&bye, u32::MAX) {
            let _ = form.put(&mut out, &bye, &frame);
        }
    }
    put_close(&mut out, farewell.code);
    // A client that is gone does not hear it.
    let _ = output.write_all(&out).await;
    let _ = output.shutdown().await;
}
