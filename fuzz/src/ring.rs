//! Demands on the readers of the log rings' files for any bytes: they return, and their results hold together.
//!
//! A file of its own, because `crates/ring/tests/mutations.rs` uses it without the other decoders.

use tampu_ring::{Conversion, Definitions, EntryContent, RingFile, RingSnapshot, Source};

/// Offset of the data of a dressed ring, and their number, in bytes.
const HEADER: usize = 1024;
const SIZE: usize = 4096;

/// Any of the files of a dead process.
pub fn files(bytes: &[u8]) {
    ring(bytes);
    // A checksum guards the fixed header, which chance does not find: so the same again with a good one.
    let mut dressed = bytes.to_vec();
    dressed.resize(HEADER + SIZE, 0);
    let fixed = RingFile { header: HEADER as u32, number: 3, size: SIZE as u64, incarnation: Default::default() }.encode();
    dressed[..fixed.len()].copy_from_slice(&fixed);
    ring(&dressed);

    if let Ok((definitions, _)) = Definitions::parse(bytes) {
        let told: usize = definitions.iter().map(|(_, definition)| 16 + definition.bytes.len()).sum();
        assert!(told <= bytes.len());
    }
    if let Ok(conversion) = Conversion::parse(bytes) {
        for word in bytes.as_chunks::<8>().0.iter().take(64) {
            conversion.utc(u64::from_ne_bytes(*word));
        }
        conversion.steps().count();
    }
    if let Ok(source) = Source::parse(bytes) {
        assert_eq!(Source::parse(source.to_text().as_bytes()).map(|source| source.incarnation), Ok(source.incarnation));
    }
}

fn ring(bytes: &[u8]) {
    let Ok(mut image) = RingSnapshot::parse(bytes) else { return };
    let (mut entries, mut payloads, mut failed) = (0, 0, false);
    let mut expected = image.mark().number;
    while let Some(entry) = image.next_entry() {
        assert!(!failed, "nothing follows an error");
        entries += 1;
        let Ok(entry) = entry else {
            failed = true;
            continue;
        };
        if !matches!(entry.what, EntryContent::Lost(lost) if lost.early) {
            assert_eq!(entry.number, expected);
            expected = expected.wrapping_add(1);
        }
        assert!(entry.thread.name().len() <= 64);
        if let EntryContent::Record { payload, .. } = entry.what {
            payloads += payload.len();
        }
    }
    assert!(24 * (entries - 2i64) <= bytes.len() as i64 && payloads <= bytes.len(), "no byte is told twice");
    assert!(image.next_entry().is_none());
}
