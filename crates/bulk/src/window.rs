//! What a sender has framed and somebody has not acknowledged yet: written once, sent to everybody, kept until all have it. A value.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::frame::{HEADER_LEN, Header, Kind};

/// A framed piece. Cheap to clone: the bytes are shared.
#[derive(Debug, Clone)]
pub struct Framed {
    /// As it stands in `head`.
    pub header: Header,
    /// The header's bytes.
    pub head: [u8; HEADER_LEN],
    /// The payload.
    pub bytes: Bytes,
}

impl Framed {
    /// A frame of this payload.
    pub fn new(header: Header, bytes: Bytes, checked: bool) -> Framed {
        let header = header.over(&bytes, checked);
        Framed { head: header.encode(), header, bytes }
    }

    /// Bytes on the wire.
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.bytes.len()
    }

    /// Whether it may be skipped for a slow receiver: beginnings and ends may not.
    pub fn is_data(&self) -> bool {
        self.header.kind == Kind::Data
    }
}

/// Frames in order, without holes.
#[derive(Debug)]
pub struct Window {
    frames: VecDeque<Framed>,
    first: u64,
    bytes: usize,
    limit: usize,
}

/// The most frames a window holds, however short they are: as many as shared memory tells of at a time.
pub const FRAMES_LIMIT: usize = 8192;

impl Window {
    /// A window of so many bytes of payload, whose first frame will have this number.
    pub fn new(first: u64, limit: usize) -> Window {
        Window { frames: VecDeque::new(), first, bytes: 0, limit }
    }

    /// Whether a payload of this length fits. One alone always does.
    pub fn has_room(&self, length: usize) -> bool {
        self.frames.is_empty() || (self.bytes + length <= self.limit && self.frames.len() < FRAMES_LIMIT)
    }

    /// Adds the next frame.
    pub fn push(&mut self, framed: Framed) {
        debug_assert_eq!(framed.header.sequence, self.end(), "frames are numbered without holes");
        self.bytes += framed.bytes.len();
        self.frames.push_back(framed);
    }

    /// The first frame that is still here.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The number of the next frame.
    pub fn end(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// Bytes of payload in it.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many bytes it may hold.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// A frame, if it is here.
    pub fn get(&self, sequence: u64) -> Option<&Framed> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.frames.get(index)
    }

    /// The frames from this one on.
    pub fn from(&self, sequence: u64) -> impl Iterator<Item = &Framed> {
        let skip = usize::try_from(sequence.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.frames.len());
        self.frames.range(skip..)
    }

    /// Whether somebody who has acknowledged all before this frame is more than half of what it may be behind, in bytes or frames.
    pub fn is_far_behind(&self, acked: u64) -> bool {
        self.bytes_from(acked) >= self.limit / 2 || self.end().saturating_sub(acked) >= FRAMES_LIMIT as u64 / 2
    }

    /// How many frames it holds.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes of payload from this frame on.
    pub fn bytes_from(&self, sequence: u64) -> usize {
        if sequence <= self.first {
            return self.bytes;
        }
        match (self.get(sequence), self.frames.back()) {
            // Within one transfer the places say it at once.
            (Some(from), Some(last)) if from.header.transfer == last.header.transfer && from.header.kind != Kind::Start => {
                (last.header.offset + last.bytes.len() as u64).saturating_sub(from.header.offset) as usize
            }
            _ => self.from(sequence).map(|framed| framed.bytes.len()).sum(),
        }
    }

    /// All before this frame has been done with.
    pub fn release(&mut self, before: u64) {
        while self.first < before {
            let Some(framed) = self.frames.pop_front() else { break };
            self.bytes -= framed.bytes.len();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sending::Numbering;

    #[test]
    fn a_window_is_bounded_and_gives_back_what_all_have() {
        let mut flow = Numbering::new(1, 100);
        let mut window = Window::new(1, 250);
        window.push(Framed::new(flow.start(0).unwrap(), Bytes::new(), false));
        for _ in 0..3 {
            assert!(window.has_room(80));
            window.push(Framed::new(flow.data(80).unwrap().0, Bytes::from(vec![1; 80]), false));
        }
        assert!(!window.has_room(80) && window.has_room(10));
        assert_eq!((window.first(), window.end(), window.bytes()), (1, 5, 240));
        assert_eq!(window.bytes_from(3), 160);
        assert_eq!(window.get(4).unwrap().header.offset, 160);
        window.release(3);
        assert!(window.get(2).is_none() && window.has_room(80));
        assert_eq!(window.from(1).count(), 2);
        window.release(99);
        assert_eq!((window.first(), window.end(), window.bytes()), (5, 5, 0));
        assert!(window.has_room(10_000), "a frame alone always fits");
    }
}
