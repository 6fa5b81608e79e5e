//! The answers of a receiver: its position, its faults, its missing frames, and the state that follows from them.

use std::time::Instant;

use super::Link;
use crate::{
    frame::{Header, Kind},
    message::{Fault, FaultKind, Lost},
    receiver::reading::Came,
    receiving::LostRange,
    state::{Delivery, LinkState, LinkStatus},
    window::Window,
};

/// Most answers of one receiver that are read at a turn.
const ANSWERS_AT_ONCE: usize = 256;

impl Link {
    /// Returns true if received answers wait.
    pub fn is_ahead(&self) -> bool {
        self.is_connected() && self.reader.is_ahead()
    }

    /// Reads its answers. `start` is the first frame of the running transfer.
    pub fn read(&mut self, window: &Window, transfer: u64, start: u64) {
        self.look(window);
        // A receiver that floods answers is read in turn with the others, not before them.
        for _ in 0..ANSWERS_AT_ONCE {
            let Some(stream) = self.stream.clone() else { return };
            match self.reader.next(&mut &*stream) {
                Ok(Came::Frame(header)) => {
                    if header.check(self.reader.payload()).is_err() {
                        return self.broken("a changed answer came");
                    }
                    match header.kind {
                        Kind::Ack => self.acknowledged(&header, window, transfer, start),
                        // A late fault of an earlier transfer does not count for this one.
                        Kind::Fault if header.transfer == transfer || header.transfer == 0 => self.fault(),
                        Kind::Nack => self.repair(window),
                        Kind::Lost if header.transfer == transfer => self.lost_there(&header),
                        _ => {}
                    }
                }
                Ok(Came::Idle) => return,
                Ok(Came::Closed { .. }) => return self.broken("the receiver closed the connection"),
                Err(error) => return self.broken(error.to_string()),
            }
        }
    }

    fn acknowledged(&mut self, header: &Header, window: &Window, transfer: u64, start: u64) {
        // An acknowledgement of frames that were never made is invalid.
        if header.sequence > window.end() {
            return;
        }
        if header.sequence > self.answered {
            self.answered = header.sequence;
            self.acked = self.acked.max(header.sequence);
            self.hold = self.hold.max(self.acked);
            self.progress = Instant::now();
            if self.status == LinkStatus::Lagging && self.datagrams.is_some() && self.acked >= self.hold {
                self.turn(LinkStatus::Live, "has caught up");
            }
            self.came(window);
            if header.transfer == transfer && header.sequence == start + 1 {
                self.from = header.offset;
            }
        }
        if header.transfer == transfer {
            self.acked_bytes = self.acked_bytes.max(header.offset);
        }
    }

    fn fault(&mut self) {
        let Ok(fault) = Fault::decode(self.reader.payload()) else { return };
        match self.faults.iter_mut().find(|one| one.kind == fault.kind) {
            Some(one) => *one = fault,
            None => self.faults.push(fault),
        }
    }

    fn lost_there(&mut self, header: &Header) {
        if let Ok(lost) = Lost::decode(self.reader.payload()) {
            let frames = lost.next_sequence.saturating_sub(header.sequence);
            let lost = LostRange { from: header.offset, to: Some(lost.next_offset), frames, cause: lost.cause };
            self.lost_bytes = self.lost_bytes.saturating_add(self.lost.learn(lost));
        }
    }

    fn gave_up(&self) -> Option<String> {
        self.faults.iter().find(|fault| fault.kind == FaultKind::GaveUp).map(|fault| fault.text.clone())
    }

    pub fn delivery(&self, stop: u64) -> Delivery {
        Delivery {
            receiver: self.peer.clone(),
            // A receiver that was cut and came back acknowledges the reset, which stands in the stop's place.
            complete: self.answered > stop && self.cut.is_none() && self.lost.ranges.is_empty() && self.gave_up().is_none(),
            acknowledged: self.acked_bytes,
            lost: self.lost.ranges.clone(),
            lost_bytes: self.lost.bytes,
            faults: self.faults.clone(),
            status: self.status,
            cut: self.cut,
            why: self.why.clone(),
        }
    }

    pub fn state(&self, window: &Window) -> LinkState {
        LinkState {
            receiver: self.peer.clone(),
            status: self.status,
            since: self.since.elapsed().as_secs_f64(),
            transport: self.transport,
            protection: self.protection,
            behind: if self.takes_part() { window.bytes_from(self.acked) as u64 } else { 0 },
            acknowledged: self.acked_bytes,
            lost_bytes: self.lost_bytes,
            reconnects: self.reconnects,
            gave_up: self.gave_up(),
            refusal: self.refusal,
            cut: self.cut,
            why: self.why.clone(),
        }
    }
}
