//! A receiver's flow as a value: frames go in, actions come out. No I/O.
//!
//! For any input in any order, these rules hold. A transfer's parameter comes before its data, and its stop after all
//! of its data. Each byte between is delivered once, in order, or reported as lost. A transfer that has begun is ended.

use crate::{
    frame::{Header, Kind},
    message::{Cause, FaultKind, Lost},
    sending::Phase,
};

/// Range of lost bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LostRange {
    /// First lost byte.
    pub from: u64,
    /// Byte after the last lost one; `None` if the number is unknown.
    pub to: Option<u64>,
    /// The number of frames, if known.
    pub frames: u64,
    /// The cause of the loss.
    pub cause: Cause,
}

/// The most ranges of lost data that a transfer remembers.
pub const RANGES_KEPT: usize = 1024;

/// Losses of a transfer: ranges in order, and their bytes.
#[derive(Debug, Clone, Default)]
pub struct Losses {
    /// Lost ranges. Adjacent ranges of one cause are joined; beyond [`RANGES_KEPT`] the last one covers the rest.
    pub ranges: Vec<LostRange>,
    /// Number of bytes, as far as known.
    pub bytes: u64,
}

impl Losses {
    /// Adds a range; returns its bytes.
    pub fn add(&mut self, lost: LostRange) -> u64 {
        let bytes = lost.to.map_or(0, |to| to.saturating_sub(lost.from));
        // Losses that the other end reports are added here too.
        self.bytes = self.bytes.saturating_add(bytes);
        let full = self.ranges.len() == RANGES_KEPT;
        match self.ranges.last_mut() {
            Some(last) if full || (last.to == Some(lost.from) && last.cause == lost.cause) => {
                last.to = lost.to;
                last.frames = last.frames.saturating_add(lost.frames);
            }
            _ => self.ranges.push(lost),
        }
        bytes
    }

    /// Adds the new part of a range: it, or part of it, may have been reported before. Returns the number of new bytes.
    pub fn learn(&mut self, lost: LostRange) -> u64 {
        let Some(end) = lost.to else { return self.add(lost) };
        // Known ranges are in order except for those of two ends, which are few; so each is compared.
        let mut new = vec![(lost.from, end)];
        for known in &self.ranges {
            let to = known.to.unwrap_or(u64::MAX);
            let around = |(from, end): (u64, u64)| [(from, end.min(known.from)), (from.max(to), end)];
            new = new.into_iter().flat_map(around).filter(|(from, end)| from < end).collect();
        }
        new.into_iter().map(|(from, to)| self.add(LostRange { from, to: Some(to), ..lost })).sum()
    }
}

/// The treatment of a frame, after the other parts of [`Judged`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Start of a transfer.
    Start,
    /// Data of a transfer.
    Data {
        /// Number of first bytes that are present already and are skipped.
        skip: usize,
    },
    /// End of a transfer.
    Stop,
    /// Abort of a transfer.
    Reset,
    /// Nothing to do: the frame is a repetition, or cannot be used.
    Nothing,
}

/// The meaning of a frame. Its parts must be reported in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// Data that is lost.
    pub lost: Option<LostRange>,
    /// The fault of the frame.
    pub fault: Option<FaultKind>,
    /// True if the running transfer ends before this frame, incompletely.
    pub breaks: bool,
    /// The treatment of the frame.
    pub verdict: Verdict,
}

impl Judged {
    fn only(verdict: Verdict) -> Judged {
        Judged { lost: None, fault: None, breaks: false, verdict }
    }

    fn wrong(fault: FaultKind) -> Judged {
        Judged { fault: Some(fault), ..Judged::only(Verdict::Nothing) }
    }
}

/// Flow at its receiver.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    phase: Phase,
    transfer: u64,
    /// Sequence of the next frame; 0 for any.
    expected: u64,
    /// Offset of the next byte from the sender; `None` until the first piece has given the start of the data.
    next: Option<u64>,
    /// Number of bytes that were present before the transfer.
    from: u64,
}

impl Machine {
    /// Makes a flow that has had no sender yet.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Returns its phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the running transfer, or the last one.
    pub fn transfer(&self) -> u64 {
        self.transfer
    }

    /// Returns the expected frame; 0 before the first.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// Returns the number of bytes of the transfer that are present or have passed.
    pub fn offset(&self) -> u64 {
        self.next.unwrap_or(0).max(self.from)
    }

    /// Sets the number of bytes that the receiver has of the transfer that has just begun.
    pub fn has(&mut self, from: u64) {
        self.from = from;
    }

    /// Judges a frame; `lost` is the payload of a [`Kind::Lost`].
    pub fn take(&mut self, header: &Header, length: usize, lost: Option<Lost>) -> Judged {
        match header.kind {
            Kind::Reset => self.reset(header),
            Kind::Start | Kind::Data | Kind::Stop if header.sequence < self.expected => Judged::only(Verdict::Nothing),
            Kind::Start | Kind::Data | Kind::Stop if header.sequence == u64::MAX => Judged::wrong(FaultKind::Garbled),
            Kind::Start => self.start(header),
            Kind::Data => self.data(header, length),
            Kind::Stop => self.stop(header),
            Kind::Lost => lost.map_or(Judged::wrong(FaultKind::Garbled), |lost| self.lost(header, lost)),
            _ => Judged::only(Verdict::Nothing),
        }
    }

    /// Ends the running transfer because the sender is gone for good. Returns its loss.
    pub fn give_up(&mut self, cause: Cause) -> Option<LostRange> {
        let lost = (self.phase == Phase::Data).then(|| LostRange { from: self.offset(), to: None, frames: 0, cause });
        *self = Machine::new();
        lost
    }

    fn range(&self, to: Option<u64>, sequence: u64, cause: Cause) -> LostRange {
        LostRange { from: self.offset(), to, frames: sequence.saturating_sub(self.expected), cause }
    }

    fn start(&mut self, header: &Header) -> Judged {
        let broken = self.phase == Phase::Data;
        let missing = broken && header.sequence > self.expected;
        let judged = Judged {
            // The rest of the earlier transfer has an unknown length.
            lost: broken.then(|| self.range(None, header.sequence, Cause::Missing)),
            fault: broken.then_some(if missing { FaultKind::MissingFrames } else { FaultKind::WrongOrder }),
            breaks: broken,
            verdict: Verdict::Start,
        };
        *self = Machine { phase: Phase::Data, transfer: header.transfer, expected: header.sequence + 1, ..Machine::default() };
        judged
    }

    fn data(&mut self, header: &Header, length: usize) -> Judged {
        if self.phase != Phase::Data || header.transfer != self.transfer {
            return Judged::wrong(FaultKind::WrongOrder);
        }
        let missing = header.sequence > self.expected;
        let in_place = missing || self.next.is_none_or(|next| next == header.offset);
        let behind = self.next.is_some_and(|next| header.offset < next);
        let Some(end) = header.offset.checked_add(length as u64).filter(|_| in_place && !behind) else {
            return Judged::wrong(FaultKind::Garbled);
        };
        let lost = (header.offset > self.offset()).then(|| self.range(Some(header.offset), header.sequence, Cause::Missing));
        let skip = self.from.saturating_sub(header.offset).min(length as u64);
        self.expected = header.sequence + 1;
        self.next = Some(end);
        let fault = missing.then_some(FaultKind::MissingFrames);
        // The value is at most the length of the payload, which is in memory.
        Judged { lost, fault, breaks: false, verdict: Verdict::Data { skip: skip as usize } }
    }

    fn stop(&mut self, header: &Header) -> Judged {
        if self.phase != Phase::Data || header.transfer != self.transfer {
            return Judged::wrong(FaultKind::WrongOrder);
        }
        let missing = header.sequence > self.expected;
        let lost = (header.offset > self.offset()).then(|| self.range(Some(header.offset), header.sequence, Cause::Missing));
        let fault = missing.then_some(FaultKind::MissingFrames);
        self.phase = Phase::Stopped;
        self.expected = header.sequence + 1;
        Judged { lost, fault, breaks: false, verdict: Verdict::Stop }
    }

    fn lost(&mut self, header: &Header, lost: Lost) -> Judged {
        if self.phase != Phase::Data || header.transfer != self.transfer {
            return Judged::only(Verdict::Nothing);
        }
        if lost.next_sequence <= self.expected || lost.next_offset < self.next.unwrap_or(0) {
            return Judged::only(Verdict::Nothing);
        }
        let range =
            (lost.next_offset > self.offset()).then(|| self.range(Some(lost.next_offset), lost.next_sequence, lost.cause));
        self.expected = lost.next_sequence;
        self.next = Some(lost.next_offset);
        Judged { lost: range, ..Judged::only(Verdict::Nothing) }
    }

    fn reset(&mut self, header: &Header) -> Judged {
        // A reset is matched by its transfer and not by its number: it overtakes frames that are no longer sent.
        if self.phase != Phase::Data || header.transfer < self.transfer {
            return Judged::only(Verdict::Nothing);
        }
        let expected = self.expected.max(header.sequence.saturating_add(1));
        *self = Machine { expected, transfer: header.transfer, ..Machine::default() };
        Judged::only(Verdict::Reset)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sending::Numbering;

    /// Call of a callback.
    #[derive(Debug, Clone, PartialEq)]
    enum Told {
        Start,
        Bytes(u64, u64),
        Lost(u64, Option<u64>),
        Stop,
        Broken,
        Reset,
    }

    fn take(
        machine: &mut Machine,
        header: &Header,
        length: usize,
        lost: Option<Lost>,
        told: &mut Vec<Told>,
    ) -> Option<FaultKind> {
        let judged = machine.take(header, length, lost);
        if let Some(lost) = judged.lost {
            told.push(Told::Lost(lost.from, lost.to));
        }
        if judged.breaks {
            told.push(Told::Broken);
        }
        match judged.verdict {
            Verdict::Start => told.push(Told::Start),
            Verdict::Data { skip } => told.push(Told::Bytes(header.offset + skip as u64, header.offset + length as u64)),
            Verdict::Stop => told.push(Told::Stop),
            Verdict::Reset => told.push(Told::Reset),
            Verdict::Nothing => {}
        }
        judged.fault
    }

    #[test]
    fn wrong_orders_are_told_and_a_transfer_that_began_is_ended() {
        let (mut flow, mut machine, mut told) = (Numbering::new(1, 100), Machine::new(), Vec::new());
        let mut sender = Numbering::new(1, 100);
        sender.start(0).unwrap();
        let (early, _) = sender.data(10).unwrap();
        assert_eq!(take(&mut machine, &early, 10, None, &mut told), Some(FaultKind::WrongOrder), "data before its start");
        assert_eq!(take(&mut machine, &sender.stop().unwrap(), 0, None, &mut told), Some(FaultKind::WrongOrder));
        assert_eq!(told, []);

        let start = flow.start(0).unwrap();
        assert_eq!(take(&mut machine, &start, 0, None, &mut told), None);
        let (data, _) = flow.data(10).unwrap();
        assert_eq!(take(&mut machine, &data, 10, None, &mut told), None);
        assert_eq!(take(&mut machine, &data, 10, None, &mut told), None, "again: nothing");
        let again = Header { kind: Kind::Start, sequence: 3, transfer: 2, offset: 0, ..start };
        assert_eq!(take(&mut machine, &again, 0, None, &mut told), Some(FaultKind::WrongOrder), "a start inside a transfer");
        use Told::*;
        assert_eq!(told, [Start, Bytes(0, 10), Lost(10, None), Broken, Start]);
        told.clear();
        assert_eq!(machine.give_up(Cause::SenderGone).map(|lost| (lost.from, lost.to)), Some((0, None)));
        assert_eq!(machine.give_up(Cause::SenderGone), None);
    }

    #[test]
    fn data_that_was_here_before_is_left_out_and_offsets_that_lie_are_refused() {
        let (mut flow, mut machine, mut told) = (Numbering::new(1, 10), Machine::new(), Vec::new());
        take(&mut machine, &flow.start(0).unwrap(), 0, None, &mut told);
        machine.has(25);
        flow.begin_at(20).unwrap();
        let (data, _) = flow.data(10).unwrap();
        take(&mut machine, &data, 10, None, &mut told);
        let (data, _) = flow.data(10).unwrap();
        let lie = Header { offset: 41, ..data };
        assert_eq!(take(&mut machine, &lie, 10, None, &mut told), Some(FaultKind::Garbled));
        let lie = Header { sequence: 9, offset: u64::MAX, ..data };
        assert_eq!(take(&mut machine, &lie, 10, None, &mut told), Some(FaultKind::Garbled));
        let lie = Header { sequence: 9, offset: 3, ..data };
        assert_eq!(take(&mut machine, &lie, 10, None, &mut told), Some(FaultKind::Garbled));
        take(&mut machine, &data, 10, None, &mut told);
        take(&mut machine, &flow.stop().unwrap(), 0, None, &mut told);
        assert_eq!(told, [Told::Start, Told::Bytes(25, 30), Told::Bytes(30, 40), Told::Stop]);
    }

    #[test]
    fn a_skip_is_told_with_its_range_once() {
        let (mut flow, mut machine, mut told) = (Numbering::new(1, 10), Machine::new(), Vec::new());
        take(&mut machine, &flow.start(0).unwrap(), 0, None, &mut told);
        let mut frames: Vec<Header> = (0..5).map(|_| flow.data(10).unwrap().0).collect();
        take(&mut machine, &frames.remove(0), 10, None, &mut told);
        let skip = Header { kind: Kind::Lost, ..frames[0] };
        let lost = Lost { next_sequence: frames[3].sequence, next_offset: frames[3].offset, cause: Cause::Slow };
        take(&mut machine, &skip, 0, Some(lost), &mut told);
        take(&mut machine, &skip, 0, Some(lost), &mut told);
        take(&mut machine, &frames[3], 10, None, &mut told);
        take(&mut machine, &flow.stop().unwrap(), 0, None, &mut told);
        assert_eq!(told, [Told::Start, Told::Bytes(0, 10), Told::Lost(10, Some(40)), Told::Bytes(40, 50), Told::Stop]);
    }

    proptest! {
        /// Tests random drops, repetitions and delays of frames; starts and stops arrive.
        #[test]
        fn every_byte_is_handed_over_once_or_told_as_lost(
            lengths in proptest::collection::vec(0usize..40, 0..30), fates in proptest::collection::vec(0u8..6, 60), base in 0u64..50,
            has in 0u64..50,
        ) {
            let (mut flow, mut machine, mut told) = (Numbering::new(1, 16), Machine::new(), Vec::new());
            take(&mut machine, &flow.start(0).unwrap(), 0, None, &mut told);
            machine.has(has);
            flow.begin_at(base.min(has)).unwrap();
            let mut fates = fates.into_iter().cycle();
            for length in lengths {
                let mut left = length;
                loop {
                    let (header, taken) = flow.data(left).unwrap();
                    match fates.next() {
                        Some(0) => {}
                        Some(1) => {
                            take(&mut machine, &header, taken, None, &mut told);
                            take(&mut machine, &header, taken, None, &mut told);
                        }
                        _ => { take(&mut machine, &header, taken, None, &mut told); }
                    }
                    left -= taken;
                    if left == 0 { break }
                }
            }
            let stop = flow.stop().unwrap();
            take(&mut machine, &stop, 0, None, &mut told);
            prop_assert_eq!(told.first(), Some(&Told::Start));
            prop_assert_eq!(told.last(), Some(&Told::Stop));
            // The receiver's own bytes, the delivered and the lost ones join without a gap or an overlap.
            let mut at = has;
            for one in &told[1..told.len() - 1] {
                match one {
                    Told::Bytes(from, to) if from < to => { prop_assert_eq!(*from, at); at = *to; }
                    Told::Bytes(..) => {}
                    Told::Lost(from, Some(to)) => { prop_assert_eq!(*from, at); at = *to; }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            prop_assert_eq!(at, stop.offset.max(has));
        }

        #[test]
        fn any_frames_keep_start_before_data_and_stop_after(
            frames in proptest::collection::vec((0usize..12, 0u64..8, 0u64..4, 0u64..64, 0usize..16, 0u64..8, 0u64..64), 0..40),
        ) {
            let (mut machine, mut told) = (Machine::new(), Vec::new());
            for (kind, sequence, transfer, offset, length, next_sequence, next_offset) in frames {
                let header = Header { sequence, transfer, offset, ..Header::of(Kind::ALL[kind]) };
                let lost = Lost { next_sequence, next_offset, cause: Cause::Slow };
                take(&mut machine, &header, length, Some(lost), &mut told);
            }
            let mut open = false;
            let mut at = 0;
            for one in told {
                match one {
                    Told::Start => { prop_assert!(!open); open = true; at = 0; }
                    Told::Stop | Told::Broken => { prop_assert!(open); open = false; }
                    Told::Reset => open = false,
                    Told::Bytes(from, to) => { prop_assert!(open && from <= to && from >= at); at = to; }
                    Told::Lost(from, to) => { prop_assert!(open && from >= at && to.is_none_or(|to| to > from)); at = to.unwrap_or(at); }
                }
            }
        }
    }
}
