//! Window of a sender: frames that some receiver has not acknowledged. A frame is written once, sent to all, and kept
//! until all have it. A value without I/O.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::frame::{ASK, HEADER_LEN, Header, Kind};

/// Frame with its payload. Cheap to clone: the bytes are shared.
#[derive(Debug, Clone)]
pub struct Framed {
    /// Header, as encoded in `head`.
    pub header: Header,
    /// The header's bytes.
    pub head: [u8; HEADER_LEN],
    /// The bytes of the payload.
    pub bytes: Bytes,
}

impl Framed {
    /// Makes a frame of this payload.
    pub fn new(header: Header, bytes: Bytes, checked: bool) -> Framed {
        let header = header.over(&bytes, checked);
        Framed { head: header.encode(), header, bytes }
    }

    /// Returns the same frame with the request to acknowledge it at once.
    pub fn asking(&self) -> Framed {
        let header = Header { flags: self.header.flags | ASK, ..self.header };
        Framed { head: header.encode(), header, bytes: self.bytes.clone() }
    }

    /// Returns its bytes on the wire.
    pub fn wire_len(&self) -> usize {
        HEADER_LEN + self.bytes.len()
    }

    /// Returns true if it may be skipped for a slow receiver. Starts and ends may not.
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

/// Most frames of a window, however short they are: the number of announced frames in shared memory.
pub const FRAMES_LIMIT: usize = 8192;

impl Window {
    /// Makes a window of so many bytes of payload, whose first frame has this number.
    pub fn new(first: u64, limit: usize) -> Window {
        Window { frames: VecDeque::new(), first, bytes: 0, limit }
    }

    /// Returns true if a payload of this length fits. A single payload always fits.
    pub fn has_room(&self, length: usize) -> bool {
        self.frames.is_empty() || (self.bytes + length <= self.limit && self.frames.len() < FRAMES_LIMIT)
    }

    /// Adds the next frame.
    pub fn push(&mut self, framed: Framed) {
        debug_assert_eq!(framed.header.sequence, self.end(), "frames are numbered without holes");
        self.bytes += framed.bytes.len();
        self.frames.push_back(framed);
    }

    /// Returns the number of the first frame that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number of the next frame.
    pub fn end(&self) -> u64 {
        self.first + self.frames.len() as u64
    }

    /// Returns its bytes of payload.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns its capacity, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns a frame, if it is kept.
    pub fn get(&self, sequence: u64) -> Option<&Framed> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.frames.get(index)
    }

    /// Iterates over the frames from this one on.
    pub fn from(&self, sequence: u64) -> impl Iterator<Item = &Framed> {
        let skip = usize::try_from(sequence.saturating_sub(self.first)).unwrap_or(usize::MAX).min(self.frames.len());
        self.frames.range(skip..)
    }

    /// Returns true if a receiver with this acknowledgement is more than half of the allowed distance behind, in bytes or frames.
    pub fn is_far_behind(&self, acked: u64) -> bool {
        self.bytes_from(acked) >= self.limit / 2 || self.end().saturating_sub(acked) >= FRAMES_LIMIT as u64 / 2
    }

    /// Returns the number of its frames.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns true if it holds no frames.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the bytes of payload from this frame on.
    pub fn bytes_from(&self, sequence: u64) -> usize {
        if sequence <= self.first {
            return self.bytes;
        }
        match (self.get(sequence), self.frames.back()) {
            // Within one transfer the offsets give the answer at once.
            (Some(from), Some(last)) if from.header.transfer == last.header.transfer && from.header.kind != Kind::Start => {
                (last.header.offset + last.bytes.len() as u64).saturating_sub(from.header.offset) as usize
            }
            _ => self.from(sequence).map(|framed| framed.bytes.len()).sum(),
        }
    }

    /// Drops all frames before this one, which every receiver has finished.
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
