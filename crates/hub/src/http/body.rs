//! Bodies of requests and responses. Blocking handlers read the former. The latter are made piece by piece when the
//! socket is ready for them.

use std::{
    future::{Future, poll_fn},
    io::{self, Cursor, Read},
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes};
use http::{StatusCode, header, request::Parts};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tampu_logbook::{
    render::room,
    search::cost::{SearchCosts, collected},
};
use tampu_workers::Stop;
use tokio::{runtime::Handle, sync::mpsc, time::timeout};

use super::{
    admission::{AdmissionControl, WorkKind, in_permit},
    client_address::ClientAddress,
    connections::Busy,
    exchange::OpenExchange,
    time_steps::rest_of_step,
};

/// Largest body, in bytes, that is read before a worker is assigned.
pub const SMALL: u64 = 64 << 10;
/// Number of bytes of a too large body that are read and discarded.
const DISCARD: u64 = 32 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(10);
/// Number of bytes of a response that are read at a time.
const PIECE: usize = 64 << 10;
/// Slowest pace of a body in bytes a second, after the time for which it may stall.
const SLOWEST: u64 = 32 << 10;
/// Largest body of a guest without a right to write, in bytes.
pub const OF_GUESTS: u64 = SMALL;

/// A request for a handler.
pub struct HttpRequest<'a> {
    /// Method, path and headers.
    pub head: Parts,
    /// The body, read while it arrives.
    pub body: &'a mut (dyn Read + Send),
    /// The client that sent it.
    pub client: ClientAddress,
}

/// The body of a request, complete or in transit.
pub enum RequestBody {
    /// The whole body.
    Whole(Bytes),
    /// A body that is still to be read.
    Stream(Incoming),
}

/// Returns the length of a body that a request announces.
fn announced(head: &Parts) -> Option<u64> {
    head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Returns true if a body is so short, for any caller, that it is read before the caller is known.
pub fn is_small(head: &Parts, body: &Incoming, most: u64) -> bool {
    let length = announced(head).unwrap_or(most);
    // A body that is too long for every caller is rejected without a look at the caller.
    body.is_end_stream() || length <= SMALL || length > most
}

/// Reads a body of at most `most` bytes if it is small; a large one is left to be read. A body whose limit is small is read without a worker,
/// whether it has a length or not. An error is the status of the response.
pub async fn collect(head: &Parts, mut body: Incoming, most: u64, stall: Duration) -> Result<RequestBody, StatusCode> {
    let said = announced(head);
    if said.is_some_and(|length| length > most) {
        if !head.headers.contains_key(header::EXPECT) {
            let _ = timeout(DISCARD_TIME, discard(&mut body)).await;
        }
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    if body.is_end_stream() {
        return Ok(RequestBody::Whole(Bytes::new()));
    }
    if said.unwrap_or(most) > SMALL {
        return Ok(RequestBody::Stream(body));
    }
    let mut all = Vec::with_capacity(said.unwrap_or_default() as usize);
    let read = async {
        while let Some(piece) = next(&mut body).await? {
            if (all.len() + piece.len()) as u64 > most {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            all.extend_from_slice(&piece);
        }
        Ok::<(), io::Error>(())
    };
    match timeout(stall, read).await {
        Ok(Ok(())) => Ok(RequestBody::Whole(all.into())),
        Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
            let _ = timeout(DISCARD_TIME, discard(&mut body)).await;
            Err(StatusCode::PAYLOAD_TOO_LARGE)
        }
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// Reads and discards a body. Otherwise a client that is still sending when the connection is closed does not see the
/// response.
async fn discard(body: &mut Incoming) -> io::Result<()> {
    let mut read = 0;
    while let Some(piece) = next(body).await?
        && read < DISCARD
    {
        read += piece.len() as u64;
    }
    Ok(())
}

async fn next(body: &mut Incoming) -> io::Result<Option<Bytes>> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        // The client broke the body off, or its chunks are invalid.
        let broken = |error| io::Error::new(io::ErrorKind::ConnectionAborted, error);
        match frame.transpose().map_err(broken)?.map(Frame::into_data) {
            None => return Ok(None),
            Some(Ok(data)) => return Ok(Some(data)),
            // Trailers are ignored.
            Some(Err(_)) => {}
        }
    }
}

impl RequestBody {
    /// Returns a blocking reader of the body. More than `most` bytes are an error, and so is a body that arrives too
    /// slowly.
    pub fn reader(self, handle: Handle, most: u64, stall: Duration) -> Box<dyn Read + Send> {
        match self {
            RequestBody::Whole(bytes) => Box::new(Cursor::new(bytes)),
            RequestBody::Stream(body) => {
                Box::new(StreamReader { body, handle, rest: Bytes::new(), read: 0, most, stall, since: Instant::now() })
            }
        }
    }
}

struct StreamReader {
    body: Incoming,
    handle: Handle,
    rest: Bytes,
    read: u64,
    most: u64,
    stall: Duration,
    since: Instant,
}

impl Read for StreamReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let in_all = self.stall + Duration::from_secs(self.read / SLOWEST);
            let patience = in_all.saturating_sub(self.since.elapsed()).min(self.stall);
            let next = self.handle.block_on(timeout(patience, next(&mut self.body)));
            match next.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?? {
                None => return Ok(0),
                Some(data) => self.rest = data,
            }
            self.read += self.rest.len() as u64;
            if self.read > self.most {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {} bytes", self.most)));
            }
        }
        let length = self.rest.len().min(into.len());
        self.rest.copy_to_slice(&mut into[..length]);
        Ok(length)
    }
}

/// The pieces of a response, each made when the socket is ready.
pub type Pieces = Box<dyn Iterator<Item = io::Result<Bytes>> + Send>;

/// A response's body.
pub enum ResponseBody {
    /// The whole body.
    Whole(Bytes),
    /// Pieces, each made when the socket is ready, and their length in bytes if that is known.
    Pieces(Pieces, Option<u64>),
    /// Server-sent events. The flag is set if the server ended the stream.
    Pushed(mpsc::Receiver<Bytes>, Arc<AtomicBool>),
    /// A response that is made under a permit of another kind. All other parts of this response are ignored.
    Later(WorkKind, Box<dyn FnOnce() -> http::Response<ResponseBody> + Send>),
}

impl ResponseBody {
    /// Sends `length` bytes of a file or another reader, read while they are sent. If the reader has fewer bytes, the
    /// connection is broken.
    pub fn of_reader(from: Box<dyn Read + Send>, length: u64) -> ResponseBody {
        ResponseBody::Pieces(Box::new(ReadPieces { from, left: length }), Some(length))
    }

    /// Sends pieces that are made while they are sent.
    pub fn of_pieces(pieces: impl Iterator<Item = io::Result<Vec<u8>>> + Send + 'static) -> ResponseBody {
        ResponseBody::Pieces(Box::new(pieces.map(|piece| piece.map(Bytes::from))), None)
    }

    /// Makes a response within the room for its texts, and collects its searches.
    pub fn made(make: impl FnOnce() -> http::Response<ResponseBody>) -> (http::Response<ResponseBody>, SearchCosts) {
        room::collected(|| collected(make))
    }

    /// Returns its length in bytes, if that is known.
    pub fn length(&self) -> Option<u64> {
        match self {
            ResponseBody::Whole(bytes) => Some(bytes.len() as u64),
            ResponseBody::Pieces(_, length) => *length,
            ResponseBody::Pushed(..) | ResponseBody::Later(..) => None,
        }
    }
}

struct ReadPieces {
    from: Box<dyn Read + Send>,
    left: u64,
}

impl Iterator for ReadPieces {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        if self.left == 0 {
            return None;
        }
        let mut piece = vec![0; PIECE.min(usize::try_from(self.left).unwrap_or(PIECE))];
        loop {
            match self.from.read(&mut piece) {
                // Breaking the connection tells the client that the response is not complete.
                Ok(0) => return Some(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(read) => {
                    self.left -= read as u64;
                    piece.truncate(read);
                    return Some(Ok(piece.into()));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Sets a stop signal when it is dropped: the response was sent, or the client has gone.
pub struct StopOnDrop(pub Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// A response's body while it is sent. Dropping it stops the work for it.
pub struct SentBody {
    state: State,
    turns: Option<PieceTurns>,
    _works: Option<StopOnDrop>,
    _busy: Option<Busy>,
    exchange: Option<OpenExchange>,
}

/// The permits under which the pieces of one response are made.
#[derive(Clone)]
pub struct PieceTurns {
    /// The permits of the server.
    pub admission: Arc<AdmissionControl>,
    /// The kind of work of a piece.
    pub kind: WorkKind,
    /// The address of the client.
    pub from: IpAddr,
    /// The arrival of the request, if the first piece is sent at the end of a step ([`super::time_steps`]).
    pub in_steps: Option<tokio::time::Instant>,
}

/// A piece that was made.
struct MadePiece {
    /// The piece; `None` at the end.
    piece: Option<io::Result<Bytes>>,
    /// The pieces after it.
    rest: Pieces,
    /// The searches that it took.
    searches: SearchCosts,
}

/// The next piece, or an error.
type Making = Pin<Box<dyn Future<Output = io::Result<MadePiece>> + Send>>;

enum State {
    Nothing,
    Whole(Bytes),
    Pieces(Pieces),
    Making(Making),
    Pushed(mpsc::Receiver<Bytes>, Arc<AtomicBool>),
}

impl From<ResponseBody> for State {
    fn from(told: ResponseBody) -> State {
        match told {
            ResponseBody::Whole(bytes) if bytes.is_empty() => State::Nothing,
            ResponseBody::Whole(bytes) => State::Whole(bytes),
            ResponseBody::Pieces(pieces, _) => State::Pieces(pieces),
            ResponseBody::Pushed(from, cut) => State::Pushed(from, cut),
            ResponseBody::Later(..) => State::Nothing,
        }
    }
}

/// Makes a piece under a permit of its own.
async fn make(mut pieces: Pieces, turns: Option<PieceTurns>) -> io::Result<MadePiece> {
    let failed = || io::Error::other("the answer could not be made");
    let Some(turns) = turns else { return Err(failed()) };
    let permit = turns.admission.next(turns.kind, turns.from).await.map_err(|_| failed())?;
    let made = in_permit(permit, move || {
        let (piece, searches) = room::collected(|| collected(|| pieces.next()));
        MadePiece { piece, rest: pieces, searches }
    });
    let made = made.await.map_err(|_| failed());
    if let Some(begun) = turns.in_steps {
        rest_of_step(begun).await;
    }
    made
}

impl SentBody {
    /// Wraps the body of a response whose pieces are work of a kind.
    pub fn new(told: ResponseBody, works: Option<StopOnDrop>, turns: PieceTurns) -> SentBody {
        SentBody { state: told.into(), turns: Some(turns), _works: works, _busy: None, exchange: None }
    }

    /// Wraps the body of a response without pieces.
    pub fn whole(told: ResponseBody) -> SentBody {
        SentBody { state: told.into(), turns: None, _works: None, _busy: None, exchange: None }
    }

    /// Makes an empty body.
    pub fn nothing() -> SentBody {
        SentBody { state: State::Nothing, turns: None, _works: None, _busy: None, exchange: None }
    }

    /// Returns the same body, whose connection is busy until it is sent.
    pub fn keeping(self, busy: Busy) -> SentBody {
        SentBody { _busy: Some(busy), ..self }
    }

    /// Returns the same body, which reports its exchange when it is sent or dropped.
    pub fn observed(self, exchange: Option<OpenExchange>) -> SentBody {
        SentBody { exchange, ..self }
    }

    /// Makes the frame of some bytes.
    fn frame(&mut self, bytes: Bytes) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.exchange.iter_mut().for_each(|exchange| exchange.sends(bytes.len()));
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            match std::mem::replace(&mut self.state, State::Nothing) {
                State::Nothing => return Poll::Ready(None),
                State::Whole(bytes) => return self.frame(bytes),
                State::Pieces(pieces) => {
                    self.state = State::Making(Box::pin(make(pieces, self.turns.clone())));
                    if let Some(turns) = &mut self.turns {
                        turns.in_steps = None;
                    }
                }
                State::Making(mut making) => match making.as_mut().poll(context) {
                    Poll::Pending => {
                        self.state = State::Making(making);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok(MadePiece { piece, rest, searches })) => {
                        self.exchange.iter_mut().for_each(|exchange| exchange.searched(searches.clone()));
                        match piece {
                            None => return Poll::Ready(None),
                            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                            Some(Ok(piece)) => {
                                self.state = State::Pieces(rest);
                                if !piece.is_empty() {
                                    return self.frame(piece);
                                }
                            }
                        }
                    }
                },
                State::Pushed(mut from, cut) => {
                    let next = from.poll_recv(context);
                    if next.is_pending() {
                        self.state = State::Pushed(from, cut);
                        return Poll::Pending;
                    }
                    let Some(bytes) = ready!(next) else {
                        let last = cut.load(Ordering::Acquire).then(|| {
                            Ok(Frame::data(Bytes::from_static(
                                b"event: cut\ndata: {\"why\":\"too slow, or no longer allowed: subscribe again\"}\n\n",
                            )))
                        });
                        return Poll::Ready(last);
                    };
                    self.state = State::Pushed(from, cut);
                    return self.frame(bytes);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Nothing)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Nothing => SizeHint::with_exact(0),
            State::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            _ => SizeHint::default(),
        }
    }
}
