//! What is left out for a receiver, and how it is told.

use super::Link;
use crate::{
    frame::{Header, Kind},
    message::{Cause, Lost},
    receiving::LostRange,
    state::{CutCause, LinkStatus},
    window::{Framed, Window},
};

/// Beginnings and ends of transfers that wait for a receiver for which all data is skipped. Beyond it the receiver is cut.
const OWED_LIMIT: usize = 256;

/// Frames of data in a row that are left out.
struct LostRun {
    first: Header,
    frames: u64,
    end: u64,
}

impl LostRun {
    fn add(&mut self, framed: &Framed) {
        self.frames += 1;
        self.end = framed.header.offset + framed.bytes.len() as u64;
    }
}

impl Link {
    /// Tells it that everything before what is held is lost.
    pub(super) fn owe_loss(&mut self, window: &Window, cause: Cause) {
        let Some(held) = window.get(self.hold.max(window.first())) else { return };
        let header = Header { kind: Kind::Lost, sequence: self.acked, ..held.header };
        let lost = Lost { next_sequence: held.header.sequence, next_offset: held.header.offset, cause };
        self.owed.push_back(Framed::new(header, lost.encode().into(), true));
    }

    /// Leaves out all data it was not sent yet; beginnings and ends stay. Flows that skip do not use shared memory.
    pub fn skip(&mut self, window: &Window, cause: Cause) {
        self.keep_under_way(window);
        let mut run: Option<LostRun> = None;
        for framed in window.from(self.next) {
            if framed.is_data() {
                run.get_or_insert(LostRun { first: framed.header, frames: 0, end: 0 }).add(framed);
            } else {
                self.owe_run(run.take(), framed.header.sequence, cause);
                self.owed.push_back(framed.clone());
            }
        }
        self.owe_run(run, window.end(), cause);
        self.next = window.end();
        self.hold = window.end();
        if self.owed.len() > OWED_LIMIT {
            self.cut(CutCause::TooFarBehind, "too far behind to be told of all that it missed");
        } else if self.status == LinkStatus::Live {
            self.turn(LinkStatus::Lagging, "too slow: data is skipped");
        }
    }

    /// Tells it of frames that are left out, before `next_sequence`.
    fn owe_run(&mut self, run: Option<LostRun>, next_sequence: u64, cause: Cause) {
        let Some(LostRun { first, frames, end }) = run else { return };
        self.lose(LostRange { from: first.offset, to: Some(end), frames, cause });
        // What was left out just before is told in one with it.
        let before = self.owed.pop_back_if(|last| last.header.kind == Kind::Lost).map(|last| last.header);
        let header = before.unwrap_or(Header { kind: Kind::Lost, flags: 0, ..first });
        let lost = Lost { next_sequence, next_offset: end, cause };
        self.owed.push_back(Framed::new(header, lost.encode().into(), true));
    }
}
