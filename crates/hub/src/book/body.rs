//! Bodies: of requests, read by who blocks; of answers, made piece by piece when the socket can take them.

use std::{
    future::{Future, poll_fn},
    io::{self, Cursor, Read},
    net::SocketAddr,
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
use tampu_logbook::elog::web::Body;
use tokio::{runtime::Handle, sync::mpsc, time::timeout};

use super::{
    server::{Abandoned, in_turn},
    turns::{Kind, Turns},
};

/// A body of at most so many bytes is read before a worker is taken.
pub const SMALL: u64 = 64 << 10;
/// Bytes of a body that is too large that are read all the same, and how long.
const DISCARD: u64 = 32 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read at a time.
const PIECE: usize = 64 << 10;
/// Bytes a second that a body has to come with, after the time for which it may stall.
const SLOWEST: u64 = 32 << 10;
/// Bytes of a body of who may write nowhere.
pub const OF_GUESTS: u64 = SMALL;

/// A request, as it is given to who answers it.
pub struct Asked<'a> {
    /// Its head.
    pub head: Parts,
    /// Its body.
    pub body: &'a mut (dyn Read + Send),
    /// Who is at the other end.
    pub from: SocketAddr,
    /// Where it was received.
    pub local: SocketAddr,
}

/// A body, as far as it was received.
pub enum Received {
    /// All of it.
    Whole(Bytes),
    /// It is still to be read.
    Stream(Incoming),
}

/// Reads a small body; a large one is left to be read. What cannot be taken is the status of the answer.
pub async fn collect(head: &Parts, mut body: Incoming, most: u64, stall: Duration) -> Result<Received, StatusCode> {
    let said = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|length| length > most) {
        if !head.headers.contains_key(header::EXPECT) {
            let _ = timeout(DISCARD_TIME, discard(&mut body)).await;
        }
        return Err(StatusCode::PAYLOAD_TOO_LARGE);
    }
    if body.is_end_stream() {
        return Ok(Received::Whole(Bytes::new()));
    }
    let Some(length) = said.filter(|length| *length <= SMALL) else { return Ok(Received::Stream(body)) };
    let mut all = Vec::with_capacity(length as usize);
    let read = async {
        while let Some(piece) = next(&mut body).await? {
            all.extend_from_slice(&piece);
        }
        Ok::<(), io::Error>(())
    };
    match timeout(stall, read).await {
        Ok(Ok(())) => Ok(Received::Whole(all.into())),
        Ok(Err(_)) => Err(StatusCode::BAD_REQUEST),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// Reads what is not wanted: a client that is still sending when the connection is closed does not see why.
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
        match frame.transpose().map_err(io::Error::other)?.map(Frame::into_data) {
            None => return Ok(None),
            Some(Ok(data)) => return Ok(Some(data)),
            // Trailers say nothing here.
            Some(Err(_)) => {}
        }
    }
}

impl Received {
    /// The body, for who blocks. More than `most` bytes are an error, and so is one that comes too slowly.
    pub fn reader(self, handle: Handle, most: u64, stall: Duration) -> Box<dyn Read + Send> {
        match self {
            Received::Whole(bytes) => Box::new(Cursor::new(bytes)),
            Received::Stream(body) => {
                Box::new(Streamed { body, handle, rest: Bytes::new(), read: 0, most, stall, since: Instant::now() })
            }
        }
    }
}

/// A body of which only so much may come: more is an error, as with every body that is too long.
pub struct AtMost<'a> {
    /// All of it.
    pub from: &'a mut (dyn Read + Send),
    /// Bytes that may still come.
    pub left: u64,
}

impl Read for AtMost<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(into)?;
        let wrong = || io::Error::new(io::ErrorKind::FileTooLarge, "more than who has not logged in may send");
        self.left = self.left.checked_sub(read as u64).ok_or_else(wrong)?;
        Ok(read)
    }
}

struct Streamed {
    body: Incoming,
    handle: Handle,
    rest: Bytes,
    read: u64,
    most: u64,
    stall: Duration,
    since: Instant,
}

impl Read for Streamed {
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

/// What makes an answer piece by piece; nothing is the end.
pub type Pieces = Box<dyn Iterator<Item = io::Result<Bytes>> + Send>;

/// What is answered.
pub enum Told {
    /// All of it.
    Whole(Bytes),
    /// Pieces, each made when the socket can take it, and how many bytes they are if that is known.
    Pieces(Pieces, Option<u64>),
    /// What is pushed, as it comes. The flag says at the end whether it was cut.
    Pushed(mpsc::Receiver<Bytes>, Arc<AtomicBool>),
    /// What needs a turn of another kind: the answer is made when there is one, and nothing else of this one counts.
    Later(Kind, Box<dyn FnOnce() -> http::Response<Told> + Send>),
}

impl Told {
    /// Its bytes, if it is known how many.
    pub fn length(&self) -> Option<u64> {
        match self {
            Told::Whole(bytes) => Some(bytes.len() as u64),
            Told::Pieces(_, length) => *length,
            Told::Pushed(..) | Told::Later(..) => None,
        }
    }
}

impl From<Body> for Told {
    fn from(body: Body) -> Told {
        match body {
            Body::Bytes(bytes) => Told::Whole(bytes.into()),
            Body::Read(from, length) => Told::Pieces(Box::new(ReadPieces { from, left: length }), Some(length)),
            Body::Pieces(pieces) => Told::Pieces(Box::new(pieces.map(|piece| piece.map(Bytes::from))), None),
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
                // The connection is broken rather than an answer that says it were whole.
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

/// An answer's body, as it is sent. With it ends what works for it.
pub struct Sent {
    state: State,
    turns: Option<(Arc<Turns>, Kind)>,
    _works: Option<Abandoned>,
}

/// The next piece, and what makes the others; an error where making it failed.
type Making = Pin<Box<dyn Future<Output = io::Result<(Pieces, Option<io::Result<Bytes>>)>> + Send>>;

enum State {
    Nothing,
    Whole(Bytes),
    Pieces(Pieces),
    Making(Making),
    Pushed(mpsc::Receiver<Bytes>, Arc<AtomicBool>),
}

impl From<Told> for State {
    fn from(told: Told) -> State {
        match told {
            Told::Whole(bytes) if bytes.is_empty() => State::Nothing,
            Told::Whole(bytes) => State::Whole(bytes),
            Told::Pieces(pieces, _) => State::Pieces(pieces),
            Told::Pushed(from, cut) => State::Pushed(from, cut),
            Told::Later(..) => State::Nothing,
        }
    }
}

/// Makes a piece in a turn of its own.
async fn make(mut pieces: Pieces, turns: Option<(Arc<Turns>, Kind)>) -> io::Result<(Pieces, Option<io::Result<Bytes>>)> {
    let failed = || io::Error::other("the answer could not be made");
    let Some((turns, kind)) = turns else { return Err(failed()) };
    let turn = turns.next(kind).await.map_err(|_| failed())?;
    let made = in_turn(turn, move || {
        let piece = pieces.next();
        (pieces, piece)
    });
    made.await.map_err(|_| failed())
}

impl Sent {
    /// The body of an answer, whose pieces are work of a kind.
    pub fn new(told: Told, works: Option<Abandoned>, turns: Arc<Turns>, kind: Kind) -> Sent {
        Sent { state: told.into(), turns: Some((turns, kind)), _works: works }
    }

    /// That of an answer without pieces.
    pub fn whole(told: Told) -> Sent {
        Sent { state: told.into(), turns: None, _works: None }
    }

    /// An empty one.
    pub fn nothing() -> Sent {
        Sent { state: State::Nothing, turns: None, _works: None }
    }
}

impl HttpBody for Sent {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        loop {
            match std::mem::replace(&mut self.state, State::Nothing) {
                State::Nothing => return Poll::Ready(None),
                State::Whole(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                State::Pieces(pieces) => self.state = State::Making(Box::pin(make(pieces, self.turns.clone()))),
                State::Making(mut making) => match making.as_mut().poll(context) {
                    Poll::Pending => {
                        self.state = State::Making(making);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok((_, None))) => return Poll::Ready(None),
                    Poll::Ready(Ok((_, Some(Err(error))))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Ok((pieces, Some(Ok(piece))))) => {
                        self.state = State::Pieces(pieces);
                        if !piece.is_empty() {
                            return Poll::Ready(Some(Ok(Frame::data(piece))));
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
                                b"event: cut\ndata: {\"why\":\"too slow, or no longer allowed: ask again\"}\n\n",
                            )))
                        });
                        return Poll::Ready(last);
                    };
                    self.state = State::Pushed(from, cut);
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
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
