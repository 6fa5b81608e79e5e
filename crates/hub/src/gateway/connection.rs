//! A connection: HELLO, then frames in both directions, until an end.
//!
//! ```text
//! this thread: reads frames -> requests          writer: outgoing frames, ACK at every beat
//! ```
//! Decision: two blocking threads on a unix socket. Other transports end in a socket pair, so a session knows one kind
//! of connection.

use std::{
    io::{self, BufReader, IoSlice, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use tampu_bus::access::Principal;
use tampu_types::gateway::{
    BadFrame, Frame, FrameHeader, HEADER_LEN, Kind,
    messages::{Big, Code, End, Hello, SERVE, VERSION, Welcome},
    put_frame,
};
use tampu_workers::{OnPanic, WorkerThread};

use super::{
    limits::{BEAT, FRAME, GREETING, LEAST_FRAME, RESUME, SILENCE, WINDOW},
    outgoing::Work,
    requests::{Fault, process},
    session::Session,
    sessions::Sessions,
    shared::count,
    tokens::Tokens,
};

/// Bytes of counted frames after which they are acknowledged.
const ACKNOWLEDGE_AFTER: usize = 64 << 10;

/// Time that a refused token costs.
const REFUSAL_PAUSE: Duration = Duration::from_secs(1);

/// Bytes that a connection reads at once.
const READ: usize = 64 << 10;

/// Proof of the principal at the other end.
pub(super) enum Peer {
    /// The kernel has proved it.
    Proved(Principal),
    /// HELLO has to have a token of this file.
    Token(Arc<Tokens>),
}

impl Peer {
    fn principal(&self, hello: &Hello) -> Result<Principal, End> {
        let tokens = match self {
            Peer::Proved(principal) => return Ok(principal.clone()),
            Peer::Token(tokens) => tokens,
        };
        match tokens.principal(hello.token.as_deref().unwrap_or_default()) {
            Ok(Some(principal)) => Ok(principal),
            Ok(None) => {
                // Trying tokens takes time and one of few places.
                std::thread::sleep(REFUSAL_PAUSE);
                Err(End::because(Code::Unauthenticated, "the token of HELLO is missing or unknown"))
            }
            // The reason names files, which are the hub's own business.
            Err(_) => Err(End::because(Code::Unauthenticated, "the hub cannot read its tokens; its log has the reason")),
        }
    }
}

/// Serves a connection until it ends. `greeted` is dropped when HELLO has come.
pub(super) fn serve<G>(socket: UnixStream, peer: &Peer, sessions: &Arc<Sessions>, greeted: G) {
    let Ok(reading) = socket.try_clone() else { return };
    let mut reader = FrameReader { input: BufReader::with_capacity(READ, reading), body: Vec::new(), limit: LEAST_FRAME };
    if socket.set_read_timeout(Some(GREETING)).and_then(|()| socket.set_write_timeout(Some(SILENCE))).is_err() {
        return;
    }
    let begun = greet(&mut reader, &socket, peer, sessions);
    drop(greeted);
    let (session, connection) = match begun {
        Ok(begun) => begun,
        Err(end) => {
            count(&sessions.shared.counters.refused);
            return refuse(&socket, &end);
        }
    };
    reader.limit = FRAME;
    let received = Arc::new(AtomicU64::new(session.incoming.lock().received));
    let writer = {
        let (session, received) = (session.clone(), received.clone());
        let Ok(mut writing) = socket.try_clone() else { return session.detach(connection) };
        WorkerThread::named("gateway writer").stack_size(128 << 10).spawn(OnPanic::ReportOnly, move || {
            write(&session, connection, &mut writing, &received);
            // The reader ends too.
            let _ = writing.shutdown(Shutdown::Both);
        })
    };
    let fault = match (&writer, socket.set_read_timeout(Some(SILENCE))) {
        (Ok(_), Ok(())) => read(&mut reader, &session, connection, sessions, &received),
        _ => None,
    };
    match fault {
        Some(Fault::Session(end)) => {
            if end.code != Code::Done {
                count(&sessions.shared.counters.refused);
            }
            sessions.remove(&session.key);
            session.end(Some(&end));
            if let Ok(writer) = writer {
                // It ends when BYE is written, or after the time for writing.
                let _ = writer.join();
            }
        }
        Some(Fault::Replaced) | None => {
            session.detach(connection);
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// Reads frames until the connection ends. Returns the reason if it is one of the session.
fn read(
    reader: &mut FrameReader,
    session: &Arc<Session>,
    connection: u64,
    sessions: &Sessions,
    received: &AtomicU64,
) -> Option<Fault> {
    let mut unacknowledged = 0;
    loop {
        let header = match reader.next() {
            Ok(Some(header)) => header,
            Ok(None) => return None,
            Err(why) => return Some(why.into()),
        };
        let frame = Frame { header, body: &reader.body };
        sessions.shared.counters.bytes.fetch_add(frame.body.len() as u64, Ordering::Relaxed);
        if let Err(fault) = process(session, &sessions.shared, connection, &frame) {
            return Some(fault);
        }
        if header.number > 0 {
            received.fetch_max(header.number, Ordering::AcqRel);
            unacknowledged += HEADER_LEN + frame.body.len();
            if unacknowledged >= ACKNOWLEDGE_AFTER {
                unacknowledged = 0;
                let number = received.load(Ordering::Acquire);
                session.outgoing.send_uncounted(connection, Kind::Ack, &number.to_le_bytes());
            }
        }
    }
}

/// Writes frames until the connection ends.
fn write(session: &Session, connection: u64, socket: &mut UnixStream, received: &AtomicU64) {
    let mut beat = Instant::now() + BEAT * 3 / 4;
    loop {
        let work = session.outgoing.next(connection, beat);
        let mut frames = match work {
            Work::Over => return,
            Work::Nothing => Vec::new(),
            Work::Frames(frames) => frames,
        };
        let now = Instant::now();
        if now >= beat {
            let mut ack = Vec::new();
            put_frame(&mut ack, Kind::Ack, 0, 0, 0, &received.load(Ordering::Acquire).to_le_bytes());
            frames.push(ack.into());
            beat = now + BEAT * 3 / 4;
        }
        if write_all(socket, &frames).is_err() {
            return;
        }
    }
}

fn write_all(socket: &mut UnixStream, frames: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = frames.iter().map(|frame| IoSlice::new(frame)).collect();
    let mut rest = &mut slices[..];
    while !rest.is_empty() {
        match socket.write_vectored(&rest[..rest.len().min(512)]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut rest, written),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Answers a connection that begins no session.
pub(super) fn refuse(socket: &UnixStream, end: &End) {
    let mut frame = Vec::new();
    put_frame(&mut frame, Kind::Bye, 0, 0, 0, &serde_json::to_vec(end).unwrap_or_default());
    // A client that is gone does not hear it.
    let _ = (&*socket).write_all(&frame);
    let _ = socket.shutdown(Shutdown::Both);
}

/// Reads HELLO, and begins or resumes a session. WELCOME is its first frame.
fn greet(
    reader: &mut FrameReader,
    socket: &UnixStream,
    peer: &Peer,
    sessions: &Arc<Sessions>,
) -> Result<(Arc<Session>, u64), End> {
    let protocol = |why: &dyn std::fmt::Display| End::because(Code::Protocol, why);
    let header = match reader.next() {
        Ok(Some(header)) if header.kind == Kind::Hello => header,
        Ok(Some(header)) => return Err(protocol(&format_args!("{} came before hello", header.kind.name()))),
        Ok(None) => return Err(protocol(&"no hello came")),
        Err(why) => return Err(protocol(&why)),
    };
    debug_assert_eq!(header.number, 0);
    let hello: Hello = serde_json::from_slice(&reader.body).map_err(|why| protocol(&format_args!("hello: {why}")))?;
    if !hello.versions.contains(&VERSION) {
        let offered: Vec<_> = hello.versions.iter().take(8).map(ToString::to_string).collect();
        let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
        let release = env!("CARGO_PKG_VERSION");
        let why = format_args!(
            "this hub of release {release} speaks version {VERSION} of the gateway's protocol, and the client offered {offered}"
        );
        return Err(End::because(Code::Version, why));
    }
    let domain = sessions.shared.participant.domain();
    if hello.domain.as_deref().is_some_and(|wanted| !wanted.eq_ignore_ascii_case(domain.as_str())) {
        return Err(End::because(Code::Bad, format_args!("this hub is of the domain '{domain}'")));
    }
    let principal = peer.principal(&hello)?;
    let (session, connection, received, resumed) = sessions.begin(&hello, principal, socket)?;
    let welcome = Welcome {
        version: VERSION,
        features: if session.serves { vec![SERVE.to_owned()] } else { Vec::new() },
        hub: env!("CARGO_PKG_VERSION").to_owned(),
        domain: domain.to_string(),
        session: session.key.iter().map(|byte| format!("{byte:02x}")).collect(),
        resumed,
        received: Big(received),
        incarnation: session.participant().map(|participant| participant.incarnation()),
        principal: session.principal.to_string(),
        beat_ms: millis(BEAT),
        resume_ms: millis(RESUME),
        window: WINDOW as u64,
        frame: FRAME,
    };
    let body = serde_json::to_vec(&welcome).map_err(|why| End::because(Code::Failed, why))?;
    session.outgoing.send_uncounted(connection, Kind::Welcome, &body);
    Ok((session, connection))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Reads frames from a socket, one after the other.
struct FrameReader {
    input: BufReader<UnixStream>,
    body: Vec<u8>,
    limit: u32,
}

impl FrameReader {
    /// Reads the next frame into `body`; none at the end, and after a silence.
    fn next(&mut self) -> Result<Option<FrameHeader>, BadFrame> {
        let mut header = [0; HEADER_LEN];
        if self.input.read_exact(&mut header).is_err() {
            return Ok(None);
        }
        let header = FrameHeader::decode(&header, self.limit)?;
        let length = header.length as usize;
        self.body.clear();
        if self.body.capacity() > READ && length <= READ {
            self.body.shrink_to(READ);
        }
        // Memory grows with what arrives, not with what is announced.
        let read = (&mut self.input).take(u64::from(header.length)).read_to_end(&mut self.body);
        Ok((read.is_ok_and(|read| read == length)).then_some(header))
    }
}
