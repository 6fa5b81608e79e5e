//! A sender's flow as a value: which call is allowed when, and how its frames are numbered. No I/O.
//!
//! ```text
//!            start            start
//!   Ready ----------> Data <---------- Stopped
//!     ^                |  ^ |             ^
//!     |     reset      |  | | send        |
//!     +----------------+  +-+             |
//!                      '------ stop ------'
//! ```

use serde::{Deserialize, Serialize};

use crate::{
    frame::{END, Header, Kind},
    message::CONTROL_LIMIT,
};

/// Where a flow stands, at either end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing was started yet, or the last transfer was given up.
    #[default]
    Ready,
    /// A transfer is under way.
    Data,
    /// The last transfer has ended.
    Stopped,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Phase::Ready => "nothing was started",
            Phase::Data => "a transfer is under way",
            Phase::Stopped => "the transfer has ended",
        })
    }
}

/// A call that is not allowed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// Wrong order.
    #[error("{call} is not possible now: {phase}")]
    Order {
        /// What was called.
        call: &'static str,
        /// Where the flow stands.
        phase: Phase,
    },
    /// A parameter travels in one frame.
    #[error("the parameter has {length} bytes, at most {limit} are possible")]
    ParameterTooLong {
        /// Its length.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
}

/// The frames of a flow, in order.
#[derive(Debug, Clone)]
pub struct Numbering {
    phase: Phase,
    transfer: u64,
    sequence: u64,
    offset: u64,
    session: u32,
    frame: usize,
    wanted: usize,
}

impl Numbering {
    /// A flow with this number of its own, whose payloads are at most this long.
    pub fn new(session: u32, frame: usize) -> Numbering {
        let frame = frame.max(1);
        Numbering { phase: Phase::Ready, transfer: 0, sequence: 1, offset: 0, session, frame, wanted: frame }
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The transfer under way, or the last one; 0 before the first.
    pub fn transfer(&self) -> u64 {
        self.transfer
    }

    /// Bytes of it so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The number of the next frame.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The longest payload.
    pub fn frame(&self) -> usize {
        self.frame
    }

    /// Receivers take no longer ones than this: the longest is that, or the one that was wanted.
    pub fn fit(&mut self, frame: usize) {
        self.frame = self.wanted.min(frame.max(1));
    }

    fn header(&mut self, kind: Kind) -> Header {
        let header = Header {
            session: self.session,
            transfer: self.transfer,
            sequence: self.sequence,
            offset: self.offset,
            ..Header::of(kind)
        };
        self.sequence += 1;
        header
    }

    /// Begins a transfer with a parameter of this length.
    pub fn start(&mut self, parameter: usize) -> Result<Header, Misuse> {
        self.may_start(parameter)?;
        self.phase = Phase::Data;
        self.transfer += 1;
        self.offset = 0;
        Ok(self.header(Kind::Start))
    }

    /// Whether a transfer can begin.
    pub fn may_start(&self, parameter: usize) -> Result<(), Misuse> {
        if self.phase == Phase::Data {
            return Err(Misuse::Order { call: "start", phase: self.phase });
        }
        // It travels on the connection, which takes as much as control frames have, also where datagrams are shorter.
        let limit = self.frame.max(CONTROL_LIMIT as usize);
        if parameter > limit {
            return Err(Misuse::ParameterTooLong { length: parameter, limit });
        }
        Ok(())
    }

    /// Whether data may be sent.
    pub fn may_send(&self) -> Result<(), Misuse> {
        if self.phase == Phase::Data { Ok(()) } else { Err(Misuse::Order { call: "send", phase: self.phase }) }
    }

    /// The data begins here, because all receivers have what is before. Only before the first piece.
    pub fn begin_at(&mut self, offset: u64) -> Result<(), Misuse> {
        self.may_send()?;
        if self.offset != 0 {
            return Err(Misuse::Order { call: "begin_at", phase: self.phase });
        }
        self.offset = offset;
        Ok(())
    }

    /// The next frame of a block of which so many bytes are left: its header and how many of them it takes. A block of nothing is a
    /// frame of nothing.
    pub fn data(&mut self, left: usize) -> Result<(Header, usize), Misuse> {
        self.may_send()?;
        let taken = left.min(self.frame);
        let mut header = self.header(Kind::Data);
        if taken == left {
            header.flags |= END;
        }
        self.offset += taken as u64;
        Ok((header, taken))
    }

    /// Data up to this byte will not come: the header of the frame that says so. `None` where all of it has come.
    pub fn lose(&mut self, next_offset: u64) -> Result<Option<Header>, Misuse> {
        self.may_send()?;
        if next_offset <= self.offset {
            return Ok(None);
        }
        let header = self.header(Kind::Lost);
        self.offset = next_offset;
        Ok(Some(header))
    }

    /// Ends the transfer.
    pub fn stop(&mut self) -> Result<Header, Misuse> {
        if self.phase != Phase::Data {
            return Err(Misuse::Order { call: "stop", phase: self.phase });
        }
        self.phase = Phase::Stopped;
        Ok(self.header(Kind::Stop))
    }

    /// Gives up whatever is under way. Always allowed.
    pub fn reset(&mut self) -> Header {
        self.phase = Phase::Ready;
        self.header(Kind::Reset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_the_wrong_order_are_refused_and_change_nothing() {
        let mut flow = Numbering::new(3, 10);
        let order = |call, phase| Err(Misuse::Order { call, phase });
        assert_eq!(flow.data(1).map(|_| ()), order("send", Phase::Ready));
        assert_eq!(flow.stop().map(|_| ()), order("stop", Phase::Ready));
        let limit = CONTROL_LIMIT as usize;
        assert_eq!(flow.start(limit + 1).unwrap_err(), Misuse::ParameterTooLong { length: limit + 1, limit });
        let start = flow.start(limit).unwrap();
        assert_eq!((start.kind, start.transfer, start.sequence, start.session), (Kind::Start, 1, 1, 3));
        assert_eq!(flow.start(0).map(|_| ()), order("start", Phase::Data));
        let (first, taken) = flow.data(15).unwrap();
        assert_eq!((first.sequence, first.offset, taken, first.has(END)), (2, 0, 10, false));
        let (last, taken) = flow.data(5).unwrap();
        assert_eq!((last.sequence, last.offset, taken, last.has(END)), (3, 10, 5, true));
        let stop = flow.stop().unwrap();
        assert_eq!((stop.sequence, stop.offset), (4, 15), "a stop tells how many bytes there were");
        assert_eq!(flow.stop().map(|_| ()), order("stop", Phase::Stopped));
        assert_eq!(flow.start(0).unwrap().transfer, 2);
        assert_eq!(flow.reset().kind, Kind::Reset);
        assert_eq!((flow.phase(), flow.reset().kind), (Phase::Ready, Kind::Reset), "always allowed");
        assert_eq!(flow.start(0).unwrap().transfer, 3);
    }

    #[test]
    fn an_empty_block_is_one_empty_frame() {
        let mut flow = Numbering::new(0, 10);
        flow.start(0).unwrap();
        let (header, taken) = flow.data(0).unwrap();
        assert_eq!((taken, header.has(END), header.offset), (0, true, 0));
        assert_eq!(flow.stop().unwrap().offset, 0);
    }
}
