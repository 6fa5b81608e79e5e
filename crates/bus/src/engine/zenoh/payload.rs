//! Conversion of bytes to and from the engine's buffers, without copying where that is worth it.

use std::any::Any;

use bytes::Bytes;
use zenoh::{
    bytes::ZBytes,
    internal::buffers::{ZBuf, ZSlice, ZSliceBuffer},
};

/// Length below which received bytes are copied. Their buffer holds a whole frame of 64 KiB, and a kept message keeps
/// its buffer. So at most four times the necessary memory is kept.
const COPY_BELOW: usize = 16 << 10;

/// Bytes in the form of one of the engine's buffers.
#[derive(Debug)]
struct Lent(Bytes);

impl ZSliceBuffer for Lent {
    fn as_slice(&self) -> &[u8] {
        &self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Passes the bytes on without copying them.
pub(super) fn to_engine(bytes: Bytes) -> ZBytes {
    let length = bytes.len();
    match ZSlice::new(std::sync::Arc::new(Lent(bytes)), 0, length) {
        Ok(slice) => ZBytes::from(ZBuf::from(slice)),
        // Unreachable: the slice is as long as its buffer. A receiver can distinguish an empty message from a batch.
        Err(_) => ZBytes::new(),
    }
}

/// Converts a message; long ones in one piece are not copied.
pub(super) fn from_engine(payload: &ZBytes) -> Bytes {
    let mut slices = payload.slices();
    let first = slices.next().unwrap_or_default();
    let in_one_piece = slices.next().is_none();
    if in_one_piece && first.len() < COPY_BELOW {
        return Bytes::copy_from_slice(first);
    }
    if in_one_piece && let Some(slice) = ZBuf::from(payload.clone()).into_zslices().next() {
        return Bytes::from_owner(slice);
    }
    Bytes::from(payload.to_bytes().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_not_copied_either_way() {
        for length in [1, COPY_BELOW - 1, COPY_BELOW, 1 << 20] {
            let sent = Bytes::from(vec![7; length]);
            let received = from_engine(&to_engine(sent.clone()));
            assert_eq!(sent, received);
            assert_eq!(sent.as_ptr() == received.as_ptr(), length >= COPY_BELOW, "{length}");
        }
    }

    #[test]
    fn a_message_in_pieces_is_put_together() {
        let mut writer = ZBytes::writer();
        writer.append(ZBytes::from(vec![1; 40_000]));
        writer.append(ZBytes::from(vec![2; 40_000]));
        let received = from_engine(&writer.finish());
        assert_eq!((received.len(), received[39_999], received[40_000]), (80_000, 1, 2));
    }
}
