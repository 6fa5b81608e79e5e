//! The records of a protected connection that wait for the kernel.

/// Records that are being written.
#[derive(Default)]
pub(super) struct Sealed {
    pub bytes: Vec<u8>,
    /// Number of bytes that the kernel has.
    pub written: usize,
}

impl Sealed {
    /// Forgets all records.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
    }
}
