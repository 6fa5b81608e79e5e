//! A sender's state of one receiver of a flow: the sent position, the acknowledged position, and the data still to
//! send.

use std::{
    collections::VecDeque,
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::error::Refused;
use crate::{
    frame::{Header, Kind},
    handler::Peer,
    message::{CONTROL_LIMIT, Cause, Fault, Lost, ProtectionLevel, Refusal, Transport},
    receiver::reading::FrameReader,
    receiving::{Losses, LostRange},
    seal::RecordSealer,
    shm::Seat,
    state::{CutCause, LinkStatus},
    window::{Framed, Window},
};

pub(super) use datagrams::Datagrams;
use sealed::Sealed;

mod answers;
mod congestion;
mod datagrams;
mod sealed;
mod skipping;
mod writing;

/// The parts of a connection: its socket, and for shared memory the slot and the first frame in it.
pub(super) struct Wire {
    pub stream: TcpStream,
    pub reader: FrameReader,
    pub seat: Option<(Seat, u64)>,
    /// The sending side of datagrams.
    pub datagrams: Option<Datagrams>,
    /// Keys of a protected connection.
    pub sealer: Option<RecordSealer>,
}

/// One receiver of a flow.
pub(super) struct Link {
    /// Key of its target.
    pub key: String,
    pub peer: Peer,
    pub status: LinkStatus,
    pub since: Instant,
    pub why: String,
    /// The reason for its rejection of this sender, while it lasts.
    pub refusal: Option<Refusal>,
    /// The reason for its cut, until it takes part again.
    pub cut: Option<CutCause>,
    pub transport: Transport,
    pub protection: ProtectionLevel,
    /// The longest payload it takes.
    pub frame: usize,
    pub stream: Option<Arc<TcpStream>>,
    reader: FrameReader,
    /// The next frame to be written.
    pub next: u64,
    /// Frames to write before the window's.
    owed: VecDeque<Framed>,
    /// Rest of a partly written frame, from this byte on. It is written first. On a protected connection it is the last
    /// frame in `sealed`.
    partial: Option<(Framed, usize)>,
    /// Keys of a protected connection, and the records that are being written.
    sealer: Option<RecordSealer>,
    sealed: Sealed,
    /// First frame that is kept for it.
    pub hold: u64,
    /// Sequence before which it has finished all frames.
    pub acked: u64,
    /// Sequence before which it has acknowledged on the connection, after all earlier answers.
    pub answered: u64,
    acked_bytes: u64,
    /// Its seat in the shared memory, for that transport.
    seat: Option<Seat>,
    /// The sending side of its datagrams.
    datagrams: Option<Datagrams>,
    /// Number of its bytes of the transfer at the transfer's start.
    pub from: u64,
    pub progress: Instant,
    /// The time that other receivers have waited for it.
    pub held_others: Duration,
    /// True while others wait for it.
    pub holds_others: bool,
    last_write: Instant,
    /// Waiting times in the form of a Ping.
    patience: Bytes,
    lost: Losses,
    lost_bytes: u64,
    faults: Vec<Fault>,
    pub reconnects: u32,
    /// Last transfer in which it took part.
    pub took_part: u64,
    /// True if it was connected before.
    pub known: bool,
    /// True if it was removed from the receivers.
    pub removed: bool,
    /// True if a worker reconnects it after a broken connection.
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
            protection: ProtectionLevel::None,
            frame: usize::MAX,
            stream: None,
            reader: FrameReader::new(CONTROL_LIMIT),
            next: 0,
            owed: VecDeque::new(),
            partial: None,
            sealer: None,
            sealed: Sealed::default(),
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

    /// Returns true if frames are kept for it.
    pub fn takes_part(&self) -> bool {
        matches!(self.status, LinkStatus::Live | LinkStatus::Lagging | LinkStatus::Broken)
    }

    /// Returns true if a call waits for it.
    pub fn is_waited_for(&self) -> bool {
        matches!(self.status, LinkStatus::Live | LinkStatus::Broken)
    }

    pub fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Returns its refusal of this sender, if any.
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

    /// Begins a transfer with this frame, in which it takes part.
    pub fn start(&mut self, transfer: u64, sequence: u64) {
        if self.status == LinkStatus::Waiting {
            self.next = sequence;
            self.hold = sequence;
            self.acked = sequence;
            self.answered = sequence;
            // Pending frames stay: they report that an older transfer was given up.
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

    /// Attaches a connection. `position` is the expected frame and byte, (0, 0) if the receiver holds no data of this
    /// sender.
    ///
    /// With a seat, frames from `shared` on are in the memory. Unsent frames before it are lost, and the receiver
    /// detects the loss.
    pub fn attach(&mut self, wire: Wire, position: (u64, u64), window: &Window, reset: &Header) {
        let now = Instant::now();
        let (sequence, offset) = position;
        // The connection broke before its first start frame: the receiver has forgotten nothing.
        let begins = |sequence| window.get(sequence).is_some_and(|framed| framed.header.kind == Kind::Start);
        let sequence = if sequence == 0 && self.status == LinkStatus::Broken && begins(self.hold) { self.hold } else { sequence };
        self.stream = Some(Arc::new(wire.stream));
        let shared = wire.seat.as_ref().map(|(_, shared)| *shared);
        self.seat = wire.seat.map(|(seat, _)| seat);
        self.datagrams = wire.datagrams;
        self.reader = wire.reader;
        self.partial = None;
        self.sealer = wire.sealer;
        self.sealed.clear();
        self.last_write = now;
        self.progress = now;
        self.reconnects += u32::from(self.known);
        self.known = true;
        match self.status {
            LinkStatus::Broken if sequence > 0 => {
                // Earlier reports may have been lost with the connection: they are repeated before its next answer.
                self.acked = self.acked.max(sequence.min(window.end()));
                if sequence < self.hold {
                    // The frames under way when the connection broke were given up meanwhile.
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
                // Frames that are repeated in their place among the data are not sent before it.
                let next = self.next;
                self.owed.retain(|framed| framed.header.sequence < next);
                self.turn(LinkStatus::Live, "came back");
            }
            // The receiver holds a transfer whose rest it will not get.
            _ if sequence > 0 && (self.status == LinkStatus::Cut || self.status == LinkStatus::Broken) => {
                self.owed.clear();
                if self.took_part == reset.transfer && offset < reset.offset {
                    // The reason, with the bytes that it will not get.
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

    /// Notes a broken connection.
    pub fn broken(&mut self, why: impl Into<String>) {
        self.seat = None;
        self.datagrams = None;
        if let Some(stream) = self.stream.take() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Data is sent again from the receiver's position; a start or an end that was cut off is pending again.
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

    /// Cuts it from the rest of this transfer.
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

    /// Drops all unsent frames except a partly written one, and sends this reset. The receiver must take part.
    pub fn reset(&mut self, reset: Framed, window: &Window) {
        self.owed.clear();
        self.owed.push_back(reset);
        self.next = window.end();
        self.hold = window.end();
    }

    /// Resets like [`Link::reset`] for shared memory: the reset is its last announced frame.
    pub fn reset_shared(&mut self, reset: u64) -> bool {
        let Some(seat) = &self.seat else { return false };
        seat.begin_at(reset);
        self.next = reset + 1;
        self.hold = self.hold.max(reset);
        true
    }
}
