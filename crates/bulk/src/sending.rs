//! A sender's flow as a value: the allowed calls in each state, and the numbering of its frames. No I/O.
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

/// The phase of a flow, at either end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// No transfer was started yet, or the last one was given up.
    #[default]
    Ready,
    /// A transfer is running.
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

/// Error for a call that is not allowed in this phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// A call in the wrong order.
    #[error("{call} is not possible now: {phase}")]
    Order {
        /// The call in question.
        call: &'static str,
        /// The phase of the flow.
        phase: Phase,
    },
    /// The parameter does not fit into one frame.
    #[error("the parameter has {length} bytes, at most {limit} are possible")]
    ParameterTooLong {
        /// The length in bytes.
        length: usize,
        /// The longest allowed.
        limit: usize,
    },
}

/// Numbering of a flow's frames, in order.
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
    /// Makes the numbering of a flow with this session and at most this long payloads.
    pub fn new(session: u32, frame: usize) -> Numbering {
        let frame = frame.max(1);
        Numbering { phase: Phase::Ready, transfer: 0, sequence: 1, offset: 0, session, frame, wanted: frame }
    }

    /// Returns its phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the running transfer, or the last one; 0 before the first.
    pub fn transfer(&self) -> u64 {
        self.transfer
    }

    /// Returns its number of bytes so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of the next frame.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the longest payload.
    pub fn frame(&self) -> usize {
        self.frame
    }

    /// Sets the receivers' limit of a payload. The longest payload is this limit, or the configured one if that is
    /// less.
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

    /// Checks that a transfer can begin.
    pub fn may_start(&self, parameter: usize) -> Result<(), Misuse> {
        if self.phase == Phase::Data {
            return Err(Misuse::Order { call: "start", phase: self.phase });
        }
        // The parameter travels on the connection in a control frame, even where datagrams are shorter.
        let limit = self.frame.max(CONTROL_LIMIT as usize);
        if parameter > limit {
            return Err(Misuse::ParameterTooLong { length: parameter, limit });
        }
        Ok(())
    }

    /// Checks that data may be sent.
    pub fn may_send(&self) -> Result<(), Misuse> {
        if self.phase == Phase::Data { Ok(()) } else { Err(Misuse::Order { call: "send", phase: self.phase }) }
    }

    /// Sets the first byte of the data, because all receivers have the data before it. Only before the first piece.
    pub fn begin_at(&mut self, offset: u64) -> Result<(), Misuse> {
        self.may_send()?;
        if self.offset != 0 {
            return Err(Misuse::Order { call: "begin_at", phase: self.phase });
        }
        self.offset = offset;
        Ok(())
    }

    /// Numbers the next frame of a block with so many bytes left. Returns its header and the number of bytes that it
    /// takes. An empty block is an empty frame.
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

    /// Marks data up to this byte as lost. Returns the header of the report; `None` if all of it was sent.
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

    /// Gives up the running transfer. Always allowed.
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
