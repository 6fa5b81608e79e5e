//! Whole blocks instead of frames: the handler gets the data of one `send` call in one piece.

use crate::{
    handler::{CallbackError, Connection, Data, End, Handler, Start},
    message::Fault,
    receiving::LostRange,
};

/// Handler that joins the frames of a block, up to a limit, and passes it to another handler.
///
/// A block in one frame is passed on without a copy; other blocks are copied once more. A block beyond the limit is
/// delivered in pieces, and only the last one is marked as the end of the block. A block with a gap is delivered in the
/// pieces around the gap.
pub struct Blocks<H> {
    inner: H,
    held: Vec<u8>,
    begins: u64,
    limit: usize,
}

impl<H: Handler> Blocks<H> {
    /// Makes a handler for blocks of at most so many bytes. Memory is allocated as bytes arrive.
    pub fn new(limit: usize, inner: H) -> Blocks<H> {
        Blocks { inner, held: Vec::new(), begins: 0, limit: limit.max(1) }
    }

    fn flush(&mut self, transfer: u64, end_of_block: bool) -> Result<(), CallbackError> {
        let data = Data { transfer, bytes: &self.held, offset: self.begins, end_of_block, more: false };
        let result = self.inner.data(&data);
        self.held.clear();
        result
    }
}

impl<H: Handler> Handler for Blocks<H> {
    fn start(&mut self, start: &Start<'_>) -> Result<u64, CallbackError> {
        self.held.clear();
        self.inner.start(start)
    }

    fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
        if !self.held.is_empty() && self.begins + self.held.len() as u64 != data.offset {
            self.flush(data.transfer, false)?;
        }
        if self.held.is_empty() {
            if data.end_of_block {
                return self.inner.data(data);
            }
            self.begins = data.offset;
        }
        let mut bytes = data.bytes;
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(self.limit - self.held.len()));
            self.held.extend_from_slice(now);
            bytes = rest;
            if self.held.len() == self.limit && !(bytes.is_empty() && data.end_of_block) {
                let next = self.begins + self.held.len() as u64;
                self.flush(data.transfer, false)?;
                self.begins = next;
            }
        }
        if data.end_of_block { self.flush(data.transfer, true) } else { Ok(()) }
    }

    fn stop(&mut self, end: &End) -> Result<(), CallbackError> {
        if !self.held.is_empty() {
            // The end of the block was lost.
            self.flush(end.transfer, false)?;
        }
        self.inner.stop(end)
    }

    fn reset(&mut self, end: &End) -> Result<(), CallbackError> {
        self.held.clear();
        self.inner.reset(end)
    }

    fn lost(&mut self, lost: &LostRange) {
        self.inner.lost(lost);
    }

    fn fault(&mut self, fault: &Fault) {
        self.inner.fault(fault);
    }

    fn connection(&mut self, change: &Connection) {
        self.inner.connection(change);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Delivered piece: offset, bytes, end of the block.
    type Kept = (u64, Vec<u8>, bool);

    struct Keep(Arc<Mutex<Vec<Kept>>>);

    impl Handler for Keep {
        fn start(&mut self, _: &Start<'_>) -> Result<u64, CallbackError> {
            Ok(0)
        }

        fn data(&mut self, data: &Data<'_>) -> Result<(), CallbackError> {
            self.0.lock().unwrap().push((data.offset, data.bytes.to_vec(), data.end_of_block));
            Ok(())
        }

        fn stop(&mut self, _: &End) -> Result<(), CallbackError> {
            Ok(())
        }
    }

    #[test]
    fn blocks_are_joined_up_to_the_bound_and_never_over_a_hole() {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let mut blocks = Blocks::new(5, Keep(kept.clone()));
        let mut put = |offset, bytes: &[u8], end_of_block| {
            blocks.data(&Data { transfer: 1, bytes, offset, end_of_block, more: false }).unwrap();
        };
        put(0, b"ab", false);
        put(2, b"c", true);
        put(3, b"whole block", true);
        put(14, b"ab", false);
        put(20, b"cd", true);
        put(22, b"abcdefghij", false);
        put(32, b"", true);
        let told = kept.lock().unwrap().clone();
        let expected: [(u64, &[u8], bool); 7] = [
            (0, b"abc", true),
            (3, b"whole block", true),
            (14, b"ab", false),
            (20, b"cd", true),
            (22, b"abcde", false),
            (27, b"fghij", false),
            (32, b"", true),
        ];
        assert_eq!(told, expected.map(|(offset, bytes, end)| (offset, bytes.to_vec(), end)));
    }
}
