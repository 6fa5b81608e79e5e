//! Packets that have left the rings and have no receiver yet. While no collector is known, a ring that fills needs
//! room. Its packets wait in these files until a receiver has them.
//!
//! Decision: two files that take turns. A packet is appended to the first; when that is full, the second is emptied and
//! used. So the newest packets are kept and the bound holds. When all packets are delivered, both files are emptied. A
//! frame is complete or, at the end of a file, was being written when the process died. Then its records are still in
//! the ring, because room is released after the frame is written. Rejected: a larger ring. Each thread has one, and it
//! holds raw values that need its dictionary. Rejected: a file for each packet, because every packet would need a name.
//!
//! Layout: `spec/log-ring.md`.

use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

use crate::files::directory::{FileError, RingDirectory};

/// Limit of bytes of both files; as much as a log topic keeps for late readers.
const BOUND: u64 = 16 << 20;
/// Limit of a valid file's length.
const LONGEST: u64 = 64 << 20;
const NAMES: [&str; 2] = ["packets-0", "packets-1"];
const HEAD: usize = 8;

/// Two files for packets that have left the rings and that no receiver has acknowledged.
#[derive(Debug)]
pub struct OverflowFiles {
    place: Option<Arc<RingDirectory>>,
    files: [Option<File>; 2],
    lengths: [u64; 2],
    current: usize,
    bound: u64,
}

impl OverflowFiles {
    pub(crate) fn of(place: Option<Arc<RingDirectory>>) -> OverflowFiles {
        OverflowFiles { place, files: [None, None], lengths: [0; 2], current: 0, bound: BOUND }
    }

    /// Stores packets. On failure none of them is stored; rings in memory have no overflow, and return `false`.
    pub fn take<'p>(&mut self, packets: impl IntoIterator<Item = &'p [u8]>) -> Result<bool, FileError> {
        let Some(place) = &self.place else { return Ok(false) };
        let mut frames = Vec::new();
        for packet in packets {
            frames.extend((packet.len() as u32).to_le_bytes());
            frames.extend(crc32c::crc32c(packet).to_le_bytes());
            frames.extend_from_slice(packet);
        }
        if frames.is_empty() {
            return Ok(true);
        }
        let full = self.lengths[self.current] + frames.len() as u64 > self.bound / 2;
        let next = if full && self.lengths[self.current] > 0 { 1 - self.current } else { self.current };
        let name = NAMES[next];
        let file = match &mut self.files[next] {
            Some(file) => file,
            none => {
                let file = place.create_file(name, 0)?;
                place.publish(name)?;
                none.insert(file)
            }
        };
        if next != self.current {
            file.set_len(0).map_err(place.about(name))?;
            self.lengths[next] = 0;
        }
        file.write_all_at(&frames, self.lengths[next]).map_err(place.about(name))?;
        self.current = next;
        self.lengths[next] += frames.len() as u64;
        Ok(true)
    }

    /// Everything has arrived.
    pub fn clear(&mut self) {
        for (file, length) in self.files.iter().zip(&mut self.lengths) {
            // Records that stay in the file are published again after a death, and are recognised by their ids.
            if let Some(file) = file
                && file.set_len(0).is_ok()
            {
                *length = 0;
            }
        }
    }
}

/// Returns true if the overflow files hold no packet that has not arrived.
pub(crate) fn is_empty(place: &RingDirectory) -> bool {
    NAMES.iter().all(|name| place.length(name).unwrap_or(0) == 0)
}

/// Packets in the overflow files of a dead process, the oldest first as far as the order is known.
pub(crate) fn read(place: &RingDirectory) -> Result<Vec<Vec<u8>>, FileError> {
    let mut packets = Vec::new();
    for name in NAMES {
        if place.length(name).is_some() {
            parse(&place.read_file(name, LONGEST)?, &mut packets);
        }
    }
    Ok(packets)
}

/// The complete frames at the beginning of these bytes.
fn parse(mut bytes: &[u8], packets: &mut Vec<Vec<u8>>) {
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() {
        let (length, checksum) = (u32_at(head, 0), u32_at(head, 4));
        let Some((packet, rest)) = rest.split_at_checked(length as usize) else { return };
        if crc32c::crc32c(packet) != checksum {
            return;
        }
        packets.push(packet.to_vec());
        bytes = rest;
    }
}

fn u32_at(bytes: &[u8; HEAD], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overflow_files(bound: u64) -> (tempfile::TempDir, Arc<RingDirectory>, OverflowFiles) {
        let temporary = tempfile::tempdir().unwrap();
        let place = Arc::new(RingDirectory::create(&temporary.path().join("life")).unwrap());
        let overflow = OverflowFiles { bound, ..OverflowFiles::of(Some(place.clone())) };
        (temporary, place, overflow)
    }

    #[test]
    fn what_was_taken_is_found_until_all_has_arrived() {
        let (_temporary, place, mut overflow) = overflow_files(BOUND);
        assert!(read(&place).unwrap().is_empty());
        assert!(overflow.take([&b"one"[..], b"two"]).unwrap());
        assert!(overflow.take([&b"three"[..]]).unwrap());
        assert_eq!(read(&place).unwrap(), [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
        overflow.clear();
        assert!(read(&place).unwrap().is_empty());
        assert!(overflow.take([&b"four"[..]]).unwrap());
        assert_eq!(read(&place).unwrap(), [b"four".to_vec()]);
        assert!(!OverflowFiles::of(None).take([&b"x"[..]]).unwrap());
    }

    #[test]
    fn the_newest_are_kept_within_the_bound() {
        let (_temporary, place, mut overflow) = overflow_files(200);
        for number in 0..100_u8 {
            assert!(overflow.take([&[number; 12][..]]).unwrap());
            let mut found: Vec<u8> = read(&place).unwrap().iter().map(|packet| packet[0]).collect();
            found.sort_unstable();
            let kept = found.len() as u8;
            assert!((5..=10).contains(&kept) || kept == number + 1, "{found:?}");
            assert!(found.into_iter().eq(number + 1 - kept..=number));
        }
    }

    #[test]
    fn a_frame_that_was_being_written_and_damage_end_the_file() {
        let (_temporary, place, mut overflow) = overflow_files(BOUND);
        overflow.take([&b"first"[..], b"second"]).unwrap();
        let path = place.path().join(NAMES[0]);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(read(&place).unwrap().len(), usize::from(length >= 13));
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            std::fs::write(&path, &damaged).unwrap();
            assert_eq!(read(&place).unwrap().len(), usize::from(at >= 13));
        }
    }
}
