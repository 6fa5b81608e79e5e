//! A receiver's flow as a value: frames go in, what is to be done comes out. No I/O.
//!
//! Whatever comes, in whatever order, these hold: a transfer's parameter comes before its data and its stop after all of it; each
//! byte between is handed over once, in order, or told as lost; and a transfer that has begun is ended.

use crate::{
    frame::{Header, Kind},
    message::{Cause, FaultKind, Lost},
    sending::Phase,
};

/// Bytes that will not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LostRange {
    /// The first byte.
    pub from: u64,
    /// The one after the last; `None`: how many there were is not known.
    pub to: Option<u64>,
    /// How many frames, where that is known.
    pub frames: u64,
    /// Why.
    pub cause: Cause,
}

/// The most ranges of lost data that a transfer remembers.
pub const RANGES_KEPT: usize = 1024;

/// What a transfer has lost: ranges in order, and how many bytes they are.
#[derive(Debug, Clone, Default)]
pub struct Losses {
    /// Touching ranges of one cause are one; beyond [`RANGES_KEPT`] the last one covers the rest.
    pub ranges: Vec<LostRange>,
    /// Bytes, as far as known.
    pub bytes: u64,
}

impl Losses {
    /// Remembers one more; says how many bytes it is.
    pub fn add(&mut self, lost: LostRange) -> u64 {
        let bytes = lost.to.map_or(0, |to| to.saturating_sub(lost.from));
        // What the other end tells is added up here too.
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

    /// Remembers what of it is not remembered yet: whoever tells it may have told it before, or part of it. Says how many bytes are new.
    pub fn learn(&mut self, lost: LostRange) -> u64 {
        let Some(end) = lost.to else { return self.add(lost) };
        // Known ranges lie in order but for those of two ends, which are few; so each is looked at.
        let mut new = vec![(lost.from, end)];
        for known in &self.ranges {
            let to = known.to.unwrap_or(u64::MAX);
            let around = |(from, end): (u64, u64)| [(from, end.min(known.from)), (from.max(to), end)];
            new = new.into_iter().flat_map(around).filter(|(from, end)| from < end).collect();
        }
        new.into_iter().map(|(from, to)| self.add(LostRange { from, to: Some(to), ..lost })).sum()
    }
}

/// What is to be done with a frame, after what [`Judged`] says beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A transfer begins.
    Start,
    /// Data; so many of its first bytes were there already and are left out.
    Data {
        /// Bytes to leave out.
        skip: usize,
    },
    /// The transfer ends.
    Stop,
    /// It is given up.
    Reset,
    /// It came before, or cannot be used.
    Nothing,
}

/// What a frame means. The parts are to be told in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// Data that will not come.
    pub lost: Option<LostRange>,
    /// What was wrong with it.
    pub fault: Option<FaultKind>,
    /// The transfer under way ends before this frame, and incompletely.
    pub breaks: bool,
    /// What to do.
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

/// A flow at its receiver.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    phase: Phase,
    transfer: u64,
    /// The next frame; 0: any.
    expected: u64,
    /// The next byte that the sender will send; `None` until the first piece has told where the data begins.
    next: Option<u64>,
    /// Bytes that were here before the transfer began.
    from: u64,
}

impl Machine {
    /// A flow to which no sender has said anything yet.
    pub fn new() -> Machine {
        Machine::default()
    }

    /// Where it stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The transfer under way, or the last one.
    pub fn transfer(&self) -> u64 {
        self.transfer
    }

    /// The frame it waits for; 0 before the first.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// How many bytes of the transfer are here or have gone by.
    pub fn offset(&self) -> u64 {
        self.next.unwrap_or(0).max(self.from)
    }

    /// The receiver has so many bytes of the transfer that has just begun.
    pub fn has(&mut self, from: u64) {
        self.from = from;
    }

    /// Judges a frame; `lost` is what a [`Kind::Lost`] carries.
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

    /// The sender is gone for good: whatever is under way ends. Says what was lost of it.
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
            // How much the transfer before had left to say is not known.
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
        // No longer than the payload, which lies in memory.
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
        // By its transfer and not by its number: it overtakes what was not sent any more.
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

    /// What a callback would have been told.
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
        /// Frames are dropped, repeated and delayed by chance; starts and stops arrive.
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
            // What the receiver had and what came or was lost join without a hole or an overlap.
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
