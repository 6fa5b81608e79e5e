//! Records too long for a ring: each lies in a file of its own, to which a note in the ring refers.
//!
//! Decision: the file is named after the position of its note, `long-<ring>-<position>`, and gets that name before the
//! note is published. So the ring's cursor alone decides whether the file is still needed. Records before the cursor
//! have been handed off, and the next drainer removes their files if the previous one could not. Rejected: records in
//! parts. Room is released only when all parts are handed off, so a record longer than the ring would never fit.
//! Rejected: larger rings, because each thread has one.

use std::{
    os::unix::fs::FileExt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    files::directory::{FileError, FileErrorKind, RingDirectory},
    record::LongPayload,
};

/// The longest payload, in bytes.
pub const LONGEST_PAYLOAD: u64 = 16 << 20;

/// Long payloads of one incarnation.
#[derive(Debug, Clone, Default)]
pub struct LongPayloads(Option<Arc<RingDirectory>>);

/// Reason for which a long payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadLongPayload {
    /// Its file cannot be used.
    #[error(transparent)]
    Place(#[from] FileError),
    /// Its rings are in memory, where there are no files.
    #[error("there are no files beside rings in memory")]
    None,
    /// Its bytes do not match the length and checksum in the ring.
    #[error("{0}: not the bytes that were logged")]
    Changed(String),
}

fn name(ring: u32, position: u64) -> String {
    format!("long-{ring}-{position}")
}

fn parse(name: &str) -> Option<(u32, u64)> {
    let (ring, position) = name.strip_prefix("long-")?.split_once('-')?;
    Some((ring.parse().ok()?, position.parse().ok()?))
}

impl LongPayloads {
    pub(crate) fn of(place: Option<Arc<RingDirectory>>) -> LongPayloads {
        LongPayloads(place)
    }

    /// Returns true if the rings lie in files, so that there can be files beside them.
    pub(crate) fn are_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Writes one file, whose note goes into the slot. Waits at most so long until at most `limit` bytes are in such
    /// files, or none.
    pub(crate) fn write(
        &self,
        ring: u32,
        position: u64,
        bytes: &[u8],
        limit: u64,
        wait: Duration,
    ) -> Result<LongPayload, BadLongPayload> {
        /// Pause between two checks for room.
        const LOOK: Duration = Duration::from_micros(200);
        let place = self.0.as_ref().ok_or(BadLongPayload::None)?;
        let begun = Instant::now();
        let length = bytes.len() as u64;
        while self.waiting() > 0 && self.waiting() + length > limit {
            if begun.elapsed() >= wait {
                let why = FileErrorKind::Long(length, limit);
                return Err(BadLongPayload::Place(FileError { path: place.path().to_owned(), why }));
            }
            std::thread::sleep(LOOK);
        }
        let long = LongPayload { position, length, checksum: crc32c::crc32c(bytes) };
        let name = name(ring, long.position);
        let file = place.create_file(&name, length)?;
        file.write_all_at(bytes, 0).map_err(place.about(&name))?;
        place.publish(&name)?;
        Ok(long)
    }

    /// Reads the payload and checks its length and checksum.
    pub fn read(&self, ring: u32, long: &LongPayload) -> Result<Vec<u8>, BadLongPayload> {
        let place = self.0.as_ref().ok_or(BadLongPayload::None)?;
        let name = name(ring, long.position);
        let bytes = place.read_file(&name, LONGEST_PAYLOAD)?;
        if bytes.len() as u64 != long.length || crc32c::crc32c(&bytes) != long.checksum {
            return Err(BadLongPayload::Changed(place.path().join(name).display().to_string()));
        }
        Ok(bytes)
    }

    /// Removes a file that has been handed off, and whose note is before the cursor.
    pub fn remove(&self, ring: u32, position: u64) {
        if let Some(place) = &self.0 {
            // If the file cannot be removed here, the next drainer removes it, or it is removed with the directory.
            let _ = place.remove_file(&name(ring, position));
        }
    }

    /// Removes the files before these cursors: a dead drainer has handed them off.
    pub(crate) fn remove_before(&self, cursors: &[(u32, u64)]) {
        for (ring, position) in self.names() {
            if cursors.iter().any(|(number, cursor)| *number == ring && position < *cursor) {
                self.remove(ring, position);
            }
        }
    }

    fn names(&self) -> Vec<(u32, u64)> {
        let names = self.0.as_ref().and_then(|place| place.names().ok()).unwrap_or_default();
        names.iter().filter_map(|name| parse(name)).collect()
    }

    /// Bytes in such files.
    fn waiting(&self) -> u64 {
        let Some(place) = &self.0 else { return 0 };
        self.names().into_iter().filter_map(|(ring, position)| place.length(&name(ring, position))).sum()
    }
}
