//! Ranges that were skipped for a receiver, and their reports.

use super::Link;
use crate::{
    frame::{Header, Kind},
    message::{Cause, Lost},
    receiving::LostRange,
    state::{CutCause, LinkStatus},
    window::{Framed, Window},
};

/// Most starts and ends that wait for a receiver whose data is all skipped. Beyond it the receiver is cut.
const OWED_LIMIT: usize = 256;

/// Run of skipped data frames.
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
    /// Adds a report that everything before the kept frames is lost.
    pub(super) fn owe_loss(&mut self, window: &Window, cause: Cause) {
        let Some(held) = window.get(self.hold.max(window.first())) else { return };
        let header = Header { kind: Kind::Lost, sequence: self.acked, ..held.header };
        let lost = Lost { next_sequence: held.header.sequence, next_offset: held.header.offset, cause };
        self.owed.push_back(Framed::new(header, lost.encode().into(), true));
    }

    /// Skips all data that it was not sent yet; starts and ends stay. Flows that skip do not use shared memory.
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
            self.cut(CutCause::TooFarBehind, "too far behind: the list of missing ranges is full");
        } else if self.status == LinkStatus::Live {
            self.turn(LinkStatus::Lagging, "too slow: data is skipped");
        }
    }

    /// Adds a report of skipped frames before `next_sequence`.
    fn owe_run(&mut self, run: Option<LostRun>, next_sequence: u64, cause: Cause) {
        let Some(LostRun { first, frames, end }) = run else { return };
        self.lose(LostRange { from: first.offset, to: Some(end), frames, cause });
        // A range left out just before is reported in the same frame.
        let before = self.owed.pop_back_if(|last| last.header.kind == Kind::Lost).map(|last| last.header);
        let header = before.unwrap_or(Header { kind: Kind::Lost, flags: 0, ..first });
        let lost = Lost { next_sequence, next_offset: end, cause };
        self.owed.push_back(Framed::new(header, lost.encode().into(), true));
    }
}
