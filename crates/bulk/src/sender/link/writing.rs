//! Writes to a receiver as much as the kernel accepts, without waiting. A reader of shared memory takes the data
//! itself.

use std::{
    io::{self, IoSlice},
    net::TcpStream,
    time::{Duration, Instant},
};

use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use super::{Link, datagrams};
use crate::{
    frame::{Header, Kind},
    message::Patience,
    seal::SealError,
    shm::Seat,
    state::LinkStatus,
    window::{Framed, Window},
};

/// Most frames of one system call: as many short ones as are joined for it.
const AT_ONCE: usize = 64;
/// Most bytes of one system call.
const BYTES_AT_ONCE: usize = 1 << 20;
/// Bytes that the fastest reader of shared memory may be behind. They stay in a cache, and no thread waits for a
/// switch.
const SHARED_AHEAD: usize = 1 << 20;
/// Bytes after which sealed records are written. They stay in a processor's cache until the kernel has copied them.
const SEALED_AT_ONCE: usize = 64 << 10;

impl Link {
    /// Returns true if frames wait to be written.
    pub fn has_unsent(&self, window: &Window) -> bool {
        self.is_connected()
            && (self.partial.is_some()
                || !self.owed.is_empty()
                || (self.sends() && self.next < window.end() && self.can_send(window)))
    }

    /// Returns true if the next unsent frame can be sent.
    fn can_send(&self, window: &Window) -> bool {
        match (&self.seat, &self.datagrams) {
            (Some(_), _) => false,
            (None, Some(datagrams)) => datagrams.can_send(self.next, self.acked, window),
            (None, None) => true,
        }
    }

    /// Notes that a frame was announced in shared memory.
    pub fn told(&mut self, sequence: u64) {
        if self.seat.is_some() && self.sends() {
            self.next = sequence + 1;
        }
    }

    /// Returns true if the kernel has all frames before this one, or the reader of shared memory is close behind.
    pub fn has_taken(&self, before: u64, window: &Window) -> bool {
        if self.seat.is_some() {
            return self.acked >= before || window.bytes_from(self.acked) <= SHARED_AHEAD;
        }
        (self.next >= before || self.waits_for_group(window)) && self.partial.is_none() && self.owed.is_empty()
    }

    /// Returns true if its progress allows to send more.
    pub fn could_go_on(&self, window: &Window) -> bool {
        !window.is_far_behind(self.acked) || self.waits_for_group(window)
    }

    /// Requests a wake-up from the reader of shared memory at half its present lag. Returns whether it has reached that
    /// already.
    pub fn wants_word(&self, window: &Window) -> bool {
        let Some(seat) = self.seat.as_ref().filter(|_| self.sends()) else { return false };
        self.acked < window.end() && seat.wake_at(self.acked + (window.end() - self.acked).div_ceil(2))
    }

    /// Reads the progress of the reader of shared memory.
    pub(super) fn look(&mut self, window: &Window) {
        let Some(done) = self.seat.as_ref().map(Seat::done) else { return };
        if done > self.acked && done <= window.end() && self.takes_part() {
            self.acked = done;
            self.hold = self.hold.max(done);
            self.progress = Instant::now();
            if let Some(next) = window.get(done) {
                self.acked_bytes = next.header.offset;
            }
        }
    }

    pub(super) fn sends(&self) -> bool {
        matches!(self.status, LinkStatus::Live | LinkStatus::Lagging)
    }

    /// Writes as much as the kernel takes without waiting.
    pub fn write(&mut self, window: &Window) {
        self.send_datagrams(window);
        while self.has_unsent(window) {
            match self.write_some(window) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.broken(error.to_string()),
            }
        }
        // The sender waits again for a receiver that has caught up.
        let on_connection = self.seat.is_none() && self.datagrams.is_none();
        if self.status == LinkStatus::Lagging && self.is_connected() && on_connection {
            self.hold = self.hold.max(self.acked);
            self.turn(LinkStatus::Live, "has caught up");
        }
    }

    /// Writes with one system call; returns whether the kernel took everything.
    fn write_some(&mut self, window: &Window) -> io::Result<bool> {
        let Some(stream) = self.stream.clone() else { return Ok(false) };
        if self.sealer.is_some() {
            return self.write_sealed(&stream, window);
        }
        let mut says_something = false;
        let mut pieces: Vec<IoSlice<'_>> = Vec::with_capacity(2 * AT_ONCE);
        let mut total = 0;
        let queued = self
            .owed
            .iter()
            .chain(window.from(self.next).filter(|_| self.sends() && self.seat.is_none() && self.datagrams.is_none()));
        let partial = self.partial.as_ref().map(|(framed, from)| (framed, *from));
        let frames = partial.into_iter().chain(queued.map(|framed| (framed, 0))).take(AT_ONCE);
        for (framed, from) in frames {
            says_something |= framed.header.kind != Kind::Ping;
            let head = framed.head.len();
            if from < head {
                pieces.push(IoSlice::new(&framed.head[from..]));
            }
            let rest = &framed.bytes[from.saturating_sub(head)..];
            if !rest.is_empty() {
                pieces.push(IoSlice::new(rest));
            }
            total += framed.wire_len() - from;
            if total >= BYTES_AT_ONCE {
                break;
            }
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let written = match sendmsg(&stream, &pieces, &mut SendAncillaryBuffer::default(), flags) {
            Ok(written) => written,
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        drop(pieces);
        let now = Instant::now();
        self.last_write = now;
        if says_something {
            self.progress = now;
        }
        self.account(written, window);
        Ok(written == total)
    }

    /// Writes sealed records like [`Link::write_some`].
    fn write_sealed(&mut self, stream: &TcpStream, window: &Window) -> io::Result<bool> {
        if self.partial.is_none() {
            self.seal(window).map_err(io::Error::other)?;
        }
        let written = match send(stream, &self.sealed.bytes[self.sealed.written..], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(written) => written,
            Err(rustix::io::Errno::AGAIN) => return Ok(false),
            Err(rustix::io::Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        self.sealed.written += written;
        let now = Instant::now();
        self.last_write = now;
        if self.partial.as_ref().is_some_and(|(framed, _)| framed.header.kind != Kind::Ping) {
            self.progress = now;
        }
        let whole = self.sealed.written == self.sealed.bytes.len();
        if whole {
            self.sealed.clear();
            self.partial = None;
        }
        Ok(whole)
    }

    /// Seals the next frames: one that is owed, or several of the window.
    fn seal(&mut self, window: &Window) -> Result<(), SealError> {
        let Some(sealer) = &mut self.sealer else { return Ok(()) };
        let out = &mut self.sealed.bytes;
        if let Some(framed) = self.owed.pop_front() {
            sealer.seal(&framed.head, &framed.bytes, out)?;
            self.partial = Some((framed, 0));
            return Ok(());
        }
        // Frames of memory and datagrams do not pass here.
        let passes =
            matches!(self.status, LinkStatus::Live | LinkStatus::Lagging) && self.seat.is_none() && self.datagrams.is_none();
        while passes
            && out.len() < SEALED_AT_ONCE
            && let Some(framed) = window.get(self.next)
        {
            sealer.seal(&framed.head, &framed.bytes, out)?;
            self.next += 1;
            self.partial = Some((framed.clone(), 0));
        }
        Ok(())
    }

    /// Accounts for written bytes.
    fn account(&mut self, mut written: usize, window: &Window) {
        while written > 0 {
            let (framed, from) = match self.partial.take() {
                Some(partial) => partial,
                None => match self.owed.pop_front() {
                    Some(framed) => (framed, 0),
                    None => {
                        let Some(framed) = window.get(self.next) else { return };
                        self.next += 1;
                        if framed.wire_len() <= written {
                            written -= framed.wire_len();
                            continue;
                        }
                        (framed.clone(), 0)
                    }
                },
            };
            let left = framed.wire_len() - from;
            if written < left {
                self.partial = Some((framed, from + written));
                return;
            }
            written -= left;
        }
    }

    /// Sends a sign of life, if no other frame was sent for so long. A receiver of datagrams also gets their number.
    pub fn ping(&mut self, session: u32, after: Duration) {
        let after = if self.is_probed() { datagrams::PROBE } else { after };
        if self.is_connected() && self.partial.is_none() && self.owed.is_empty() && self.last_write.elapsed() >= after {
            self.last_write = Instant::now();
            self.owed.push_back(Framed::new(
                Header { session, sequence: self.next, ..Header::of(Kind::Ping) },
                self.patience.clone(),
                true,
            ));
        }
    }

    /// Sends the waiting times, and the last transfer in which the receiver takes no part; 0 if it takes part in all.
    pub fn tell_patience(&mut self, session: u32, patience: Patience, past: u64) {
        self.patience = patience.encode().into();
        if self.is_connected() {
            let header = Header { session, transfer: past, sequence: self.next, ..Header::of(Kind::Ping) };
            self.owed.push_back(Framed::new(header, self.patience.clone(), true));
        }
    }
}
