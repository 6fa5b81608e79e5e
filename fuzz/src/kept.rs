//! Demands on the decoders of stored records, for any bytes: they return, and accepted bytes survive being written and
//! read again.
//!
//! As in `wire.rs` the decoders are taken file by file. Malformed input is tested beside each of them too.

#![allow(dead_code, missing_docs)]

#[path = "../../crates/archive/src/wal/frame.rs"]
mod frame;
#[path = "../../crates/log/src/spool/frame.rs"]
mod spooled;
#[path = "../../crates/log/src/logger/record.rs"]
mod record;

/// The module that `record.rs` finds beside it.
mod stream {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Reach {
        Central,
        Local,
        Attached,
    }
}

use frame::{FRAMES, HEADER, Kind, push_sample, read, samples, seal};
use tampu_types::log_batch::LogBatchView;

/// A frame of the archive's segments.
pub fn frame(bytes: &[u8]) {
    check(bytes);
    // A marker and a checksum guard the rest, which chance does not find: so the same again with good ones.
    if bytes.len() >= HEADER {
        let mut dressed = bytes.to_vec();
        dressed[..4].copy_from_slice(&FRAMES.marker);
        dressed[8..12].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        let durable = u64::from_le_bytes(std::array::from_fn(|index| bytes[16 + index]));
        seal(&mut dressed, durable);
        check(&dressed);
    }
}

/// A frame of a node's spool.
pub fn spool(bytes: &[u8]) {
    check_spooled(bytes);
    // As above: the same again with what guards it.
    if bytes.len() >= spooled::HEADER {
        let mut dressed = bytes.to_vec();
        dressed[..4].copy_from_slice(&spooled::FRAMES.marker);
        dressed[14..16].copy_from_slice(&(spooled::HEADER as u16).to_le_bytes());
        spooled::seal(&mut dressed);
        check_spooled(&dressed);
    }
}

fn check_spooled(bytes: &[u8]) {
    let Ok((frame, length)) = spooled::read(bytes) else { return };
    assert!(length <= bytes.len() && length <= crate::framed::LONGEST);
    let again = match &frame {
        spooled::Frame::Packet(packet) => {
            let mut again = Vec::new();
            packet.encode(&mut again);
            again
        }
        spooled::Frame::Tally(json) => spooled::tally(json, tampu_types::Time(0)),
        spooled::Frame::Unknown(_) => return,
    };
    assert_eq!(spooled::read(&again), Ok((frame, again.len())));
}

fn check(bytes: &[u8]) {
    let Ok((header, body)) = read(bytes) else { return };
    assert!(header.length as usize <= bytes.len() && body.len() + HEADER <= header.length as usize);
    let mut again = Vec::new();
    header.encode(&mut again);
    let mut readable = true;
    if header.kind == Kind::Batch {
        for sample in samples(body) {
            assert!(readable, "nothing follows what cannot be read");
            match sample {
                Some(sample) => push_sample(sample, &mut again),
                None => readable = false,
            }
        }
    }
    let length = again.len() as u32;
    again[8..12].copy_from_slice(&length.to_le_bytes());
    seal(&mut again, header.durable);
    let (header_again, body_again) = read(&again).expect("just written");
    assert_eq!((header_again.kind, header_again.next, header_again.levels), (header.kind, header.next, header.levels));
    if header.kind == Kind::Batch {
        let before: Vec<_> = samples(body).map_while(|sample| sample).collect();
        assert_eq!(samples(body_again).map_while(|sample| sample).collect::<Vec<_>>(), before);
    }
}

/// A record that no statement made, as it lies in a log ring.
pub fn made(bytes: &[u8]) {
    // Shared texts can stand for far more than the bytes they came in; what the decoder believes in is more than fits a test.
    let expanded = |batch: &[u8]| -> Option<usize> {
        let view = LogBatchView::parse(batch).ok()?;
        let record = view.records().next()?.ok()?;
        Some(record.expanded_len())
    };
    if bytes.get(8..).and_then(expanded).is_some_and(|length| length > 1 << 20) {
        return;
    }
    let Some((record, reach)) = record::decode(bytes) else { return };
    let again = record::encode(&record, reach).expect("a small record");
    assert_eq!(record::decode(&again), Some((record, reach)));
}
