//! Records too long for a ring: each in a file of its own, which a note in the ring stands for.
//!
//! Decision: the file is named after the place of its note, `long-<ring>-<position>`, and gets that name before the note is
//! published. So nothing but the ring's cursor says whether it is still wanted: what stands before the cursor has been handed
//! off, and whoever drains next removes it if the one before could not. Rejected: records in parts (one longer than the ring
//! never gets whole, because room is given back only when all of it is handed off); larger rings (each thread has one).

use std::{
    os::unix::fs::FileExt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    life::Life,
    place::{Place, PlaceError, Why},
    producer::Slot,
};

/// The longest payload, in bytes.
pub const LONGEST_PAYLOAD: u64 = 16 << 20;

/// A payload in a file of its own, as its ring tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Long {
    /// Where its note stands in the ring's stream.
    pub position: u64,
    /// Bytes of payload.
    pub length: u64,
    /// CRC-32C of them.
    pub checksum: u32,
}

/// The long payloads of one life.
#[derive(Debug, Clone, Default)]
pub struct Longs(Option<Arc<Place>>);

/// Why a long payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadLong {
    /// Its file cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Its rings are in memory, where there are no files.
    #[error("there are no files beside rings in memory")]
    None,
    /// It is not what the ring tells of.
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

impl Longs {
    pub(crate) fn of(place: Option<Arc<Place>>) -> Longs {
        Longs(place)
    }

    pub(crate) fn in_life(life: &Life) -> Longs {
        Longs(life.place().cloned())
    }

    /// Whether there are files at all.
    pub(crate) fn are_possible(&self) -> bool {
        self.0.is_some()
    }

    /// Writes one, whose note the slot will be; waits at most so long until no more than `limit` bytes are in such files, or none.
    pub(crate) fn write(&self, ring: u32, slot: &Slot<'_>, bytes: &[u8], limit: u64, wait: Duration) -> Result<Long, BadLong> {
        /// How often it is looked for room.
        const LOOK: Duration = Duration::from_micros(200);
        let place = self.0.as_ref().ok_or(BadLong::None)?;
        let begun = Instant::now();
        let length = bytes.len() as u64;
        while self.waiting() > 0 && self.waiting() + length > limit {
            if begun.elapsed() >= wait {
                let why = Why::Long(length, limit);
                return Err(BadLong::Place(PlaceError { path: place.path().to_owned(), why }));
            }
            std::thread::sleep(LOOK);
        }
        let long = Long { position: slot.position(), length, checksum: crc32c::crc32c(bytes) };
        let name = name(ring, long.position);
        let file = place.create_file(&name, length)?;
        file.write_all_at(bytes, 0).map_err(place.about(&name))?;
        place.publish(&name)?;
        Ok(long)
    }

    /// The payload.
    pub fn read(&self, ring: u32, long: &Long) -> Result<Vec<u8>, BadLong> {
        let place = self.0.as_ref().ok_or(BadLong::None)?;
        let name = name(ring, long.position);
        let bytes = place.read_file(&name, LONGEST_PAYLOAD)?;
        if bytes.len() as u64 != long.length || crc32c::crc32c(&bytes) != long.checksum {
            return Err(BadLong::Changed(place.path().join(name).display().to_string()));
        }
        Ok(bytes)
    }

    /// Removes one that has been handed off, and whose note is before the cursor.
    pub fn remove(&self, ring: u32, position: u64) {
        if let Some(place) = &self.0 {
            // What cannot be removed now is removed by whoever drains next, or with the directory.
            let _ = place.remove_file(&name(ring, position));
        }
    }

    /// Removes those before these cursors: somebody has handed them off and died.
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
