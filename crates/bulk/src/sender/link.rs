//! One receiver of a flow, as its sender has it: how far it was sent to, how far it has acknowledged, and what is still owed to it.

use std::{
    collections::VecDeque,
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::Refused;
use crate::{
    frame::{Header, Kind},
    handler::Peer,
    message::{CONTROL_LIMIT, Cause, Fault, Lost, Refusal, Transport},
    receiver::reading::FrameReader,
    receiving::{Losses, LostRange},
    shm::Seat,
    state::{CutCause, LinkStatus},
    window::{Framed, Window},
};

pub(super) use datagrams::Datagrams;

mod answers;
mod datagrams;
mod skipping;
mod writing;

/// What a connection is made of: its socket, and where data goes by shared memory, the place there and the first frame that is in it.
pub(super) struct Wire {
    pub stream: TcpStream,
    pub reader: FrameReader,
    pub seat: Option<(Seat, u64)>,
    /// Where data goes as datagrams.
    pub datagrams: Option<Datagrams>,
}

/// One receiver of a flow.
pub(super) struct Link {
    /// Names the target it belongs to.
    pub key: String,
    pub peer: Peer,
    pub status: LinkStatus,
    pub since: Instant,
    pub why: String,
    /// Why it sent this sender away, while it does.
    pub refusal: Option<Refusal>,
    /// Why it was cut, until it takes part again.
    pub cut: Option<CutCause>,
    pub transport: Transport,
    /// The longest payload it takes.
    pub frame: usize,
    pub stream: Option<Arc<TcpStream>>,
    reader: FrameReader,
    /// The next frame to be written.
    pub next: u64,
    /// Written before it.
    owed: VecDeque<Framed>,
    /// Written first: the rest of a frame, from this byte on.
    partial: Option<(Framed, usize)>,
    /// Frames from this one on are kept for it.
    pub hold: u64,
    /// It has done with all before this one.
    pub acked: u64,
    /// It has said so on the connection, behind all it had to say before.
    pub answered: u64,
    acked_bytes: u64,
    /// Its place in the shared memory, where data goes that way.
    seat: Option<Seat>,
    /// Where its datagrams go.
    datagrams: Option<Datagrams>,
    /// What it had of the transfer when that began.
    pub from: u64,
    pub progress: Instant,
    /// How long others that could go on have waited for it.
    pub held_others: Duration,
    /// They do now.
    pub holds_others: bool,
    last_write: Instant,
    /// As a Ping says it.
    patience: Bytes,
    lost: Losses,
    lost_bytes: u64,
    faults: Vec<Fault>,
    pub reconnects: u32,
    /// The last transfer it took part in.
    pub took_part: u64,
    /// It was connected before.
    pub known: bool,
    /// It was taken off the list of receivers.
    pub removed: bool,
    /// A worker connects it again when its connection is gone.
    pub kept: bool,
}

impl Link {
    pub fn new(key: String, peer: Peer) -> Link {
        let now = Instant::now();
        Link {
            key,
            peer,
            status: LinkStatus::Connecting,
            since: now,
            why: String::new(),
            refusal: None,
            cut: None,
            transport: Transport::Tcp,
            frame: usize::MAX,
            stream: None,
            reader: FrameReader::new(CONTROL_LIMIT),
            next: 0,
            owed: VecDeque::new(),
            partial: None,
            hold: 0,
            acked: 0,
            answered: 0,
            acked_bytes: 0,
            seat: None,
            datagrams: None,
            from: 0,
            progress: now,
            held_others: Duration::ZERO,
            holds_others: false,
            last_write: now,
            patience: Bytes::new(),
            lost: Losses::default(),
            lost_bytes: 0,
            faults: Vec::new(),
            reconnects: 0,
            took_part: 0,
            known: false,
            removed: false,
            kept: false,
        }
    }

    /// Whether frames are kept for it.
    pub fn takes_part(&self) -> bool {
        matches!(self.status, LinkStatus::Live | LinkStatus::Lagging | LinkStatus::Broken)
    }

    /// Whether a call waits for it.
    pub fn is_waited_for(&self) -> bool {
        matches!(self.status, LinkStatus::Live | LinkStatus::Broken)
    }

    pub fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Itself, if it does not take this sender.
    pub fn refused(&self) -> Option<Refused> {
        self.refusal.map(|why| Refused { receiver: self.peer.clone(), why, text: self.why.clone() })
    }

    pub fn turn(&mut self, status: LinkStatus, why: impl Into<String>) {
        if self.status != status {
            self.since = Instant::now();
            self.refusal = None;
        }
        self.status = status;
        self.why = why.into();
    }

    /// A transfer begins with this frame, and it takes part.
    pub fn start(&mut self, transfer: u64, sequence: u64) {
        if self.status == LinkStatus::Waiting {
            self.next = sequence;
            self.hold = sequence;
            self.acked = sequence;
            self.answered = sequence;
            // What is owed is owed still: word that an older transfer is given up.
            self.turn(LinkStatus::Live, "");
            self.seat.iter().for_each(|seat| seat.begin_at(sequence));
        }
        if self.takes_part() {
            self.took_part = transfer;
            self.cut = None;
            self.lost = Losses::default();
            self.faults.clear();
            self.from = 0;
            self.acked_bytes = 0;
            self.held_others = Duration::ZERO;
            self.progress = Instant::now();
        }
    }

    /// A connection was made; `position` is the frame and byte it waits for, (0, 0) where it holds nothing of ours.
    ///
    /// With a seat, frames from `shared` on are in the memory; what is before and was not sent is lost, which the receiver finds.
    pub fn attach(&mut self, wire: Wire, position: (u64, u64), window: &Window, reset: &Header) {
        let now = Instant::now();
        let (sequence, offset) = position;
        // The connection broke before the first beginning it was to have: it has forgotten nothing.
        let begins = |sequence| window.get(sequence).is_some_and(|framed| framed.header.kind == Kind::Start);
        let sequence = if sequence == 0 && self.status == LinkStatus::Broken && begins(self.hold) { self.hold } else { sequence };
        self.stream = Some(Arc::new(wire.stream));
        let shared = wire.seat.as_ref().map(|(_, shared)| *shared);
        self.seat = wire.seat.map(|(seat, _)| seat);
        self.datagrams = wire.datagrams;
        self.reader = wire.reader;
        self.partial = None;
        self.last_write = now;
        self.progress = now;
        self.reconnects += u32::from(self.known);
        self.known = true;
        match self.status {
            LinkStatus::Broken if sequence > 0 => {
                // What it had to say before that may have ended with the connection: it is said again, before its next answer.
                self.acked = self.acked.max(sequence.min(window.end()));
                if sequence < self.hold {
                    // What was on its way when the connection broke was given up meanwhile.
                    let to = self.lost.ranges.first().map_or(offset, |first| first.from.max(offset));
                    if to > offset {
                        self.lose(LostRange { from: offset, to: Some(to), frames: 0, cause: Cause::Away });
                    }
                    if self.owed.is_empty() {
                        self.owe_loss(window, Cause::Away);
                    }
                }
                self.next = sequence.clamp(self.hold.max(window.first()), window.end());
                if let (Some(seat), Some(shared)) = (&self.seat, shared) {
                    self.next = self.next.max(shared);
                    seat.begin_at(self.next);
                }
                self.hold = self.next;
                // What comes again in its place among the data does not come before it.
                let next = self.next;
                self.owed.retain(|framed| framed.header.sequence < next);
                self.turn(LinkStatus::Live, "came back");
            }
            // It holds a transfer that it will not get the rest of.
            _ if sequence > 0 && (self.status == LinkStatus::Cut || self.status == LinkStatus::Broken) => {
                self.owed.clear();
                if self.took_part == reset.transfer && offset < reset.offset {
                    // Why it gets no more, with the bytes it will not get.
                    let cause = if self.cut == Some(CutCause::Away) { Cause::Away } else { Cause::Slow };
                    let lost = Lost { next_sequence: reset.sequence + 1, next_offset: reset.offset, cause };
                    let header = Header { kind: Kind::Lost, sequence, offset, ..*reset };
                    self.owed.push_back(Framed::new(header, lost.encode().into(), true));
                }
                self.owed.push_back(Framed::new(*reset, Bytes::new(), false));
                self.turn(LinkStatus::Waiting, "");
            }
            LinkStatus::Broken => self.turn(LinkStatus::Waiting, "it has forgotten the transfer"),
            _ => {
                self.owed.clear();
                self.turn(LinkStatus::Waiting, "");
            }
        }
    }

    /// The connection is gone.
    pub fn broken(&mut self, why: impl Into<String>) {
        self.seat = None;
        self.datagrams = None;
        if let Some(stream) = self.stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Data is sent again from where the receiver is; a beginning or an end that was cut off is owed again.
        if let Some((framed, _)) = self.partial.take()
            && !framed.is_data()
            && framed.header.kind != Kind::Ping
        {
            self.owed.push_front(framed);
        }
        if self.takes_part() {
            self.turn(LinkStatus::Broken, why);
        } else if self.status != LinkStatus::Cut {
            self.turn(LinkStatus::Connecting, why);
        }
    }

    /// It gets no more of this transfer.
    pub fn cut(&mut self, cause: CutCause, why: impl Into<String>) {
        self.seat = None;
        self.datagrams = None;
        if let Some(stream) = self.stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.partial = None;
        self.owed.clear();
        self.turn(LinkStatus::Cut, why);
        self.cut = Some(cause);
    }

    fn lose(&mut self, lost: LostRange) {
        self.lost_bytes = self.lost_bytes.saturating_add(self.lost.add(lost));
    }

    /// Only the frame under way and this one are sent to it, which takes part.
    pub fn reset(&mut self, reset: Framed, window: &Window) {
        self.owed.clear();
        self.owed.push_back(reset);
        self.next = window.end();
        self.hold = window.end();
    }

    /// As [`Link::reset`], where frames are told of in shared memory: the reset is the last of them.
    pub fn reset_shared(&mut self, reset: u64) -> bool {
        let Some(seat) = &self.seat else { return false };
        seat.begin_at(reset);
        self.next = reset + 1;
        self.hold = self.hold.max(reset);
        true
    }
}
