//! A buffer for the pieces of a response that is made while it is sent.

use std::{
    io::{self, Write},
    sync::Arc,
};

use parking_lot::Mutex;

/// Bytes of the next piece. Its clones share them, so that a writer of a format can own one.
#[derive(Clone, Default)]
pub(super) struct PieceBuffer(Arc<Mutex<Vec<u8>>>);

impl PieceBuffer {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Takes the bytes.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Appends a text.
    pub fn push(&self, text: &str) {
        self.0.lock().extend_from_slice(text.as_bytes());
    }
}

impl Write for PieceBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
