//! Files of ids: the ids of records that are no longer in segments, and the stored positions of their streams.
//!
//! ```text
//!  0  u8[8] "TAMPUIDS"   u16 version = 1   u16 0   u32 CRC-32C of everything from byte 16
//! 16  u32 lives   u32 offsets   u32 0   u32 0
//! 32  lives: u8[16] incarnation each
//!     offsets, 16 bytes each: u32 life, u32 stream, u64 next
//!     runs of ids, in order, varints: life (difference), ring (difference, or whole behind a new life),
//!                                     first (difference to the end of the run before, or whole), count
//! ```
//! A compaction writes one such file, and the manifest names it. The archive joins small files, so a start reads only a
//! few.

use std::collections::{BTreeMap, HashMap};

use tampu_types::Incarnation;

use crate::{
    StreamOffset,
    ids::seen::{Run, joined},
    parquet::{Corrupt, put_varint, take_varint},
};

const MAGIC: [u8; 8] = *b"TAMPUIDS";
const VERSION: u16 = 1;
const HEAD: usize = 32;

/// Ids and offsets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) runs: Vec<(Incarnation, Run)>,
    pub(crate) offsets: Vec<StreamOffset>,
}

impl Known {
    /// Adds the ids and offsets of `other`.
    pub(crate) fn join(&mut self, other: Known) {
        self.runs.extend(other.runs);
        self.offsets.extend(other.offsets);
    }

    /// Sorts the runs and offsets: each stream once, adjacent runs joined.
    pub(crate) fn tidy(&mut self) {
        self.runs = joined(&self.runs);
        let mut furthest: BTreeMap<(Incarnation, u32), u64> = BTreeMap::new();
        for offset in &self.offsets {
            let next = furthest.entry((offset.incarnation, offset.stream)).or_default();
            *next = offset.next.max(*next);
        }
        let offset = |((incarnation, stream), next)| StreamOffset { incarnation, stream, next };
        self.offsets = furthest.into_iter().map(offset).collect();
    }

    /// Encodes the file's bytes. Call [`Known::tidy`] first to get the shortest form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut lives: Vec<Incarnation> =
            self.runs.iter().map(|(life, _)| *life).chain(self.offsets.iter().map(|offset| offset.incarnation)).collect();
        lives.sort_unstable();
        lives.dedup();
        let places: HashMap<Incarnation, u32> = lives.iter().enumerate().map(|(place, life)| (*life, place as u32)).collect();
        let mut bytes = Vec::with_capacity(HEAD + 16 * (lives.len() + self.offsets.len() + self.runs.len()));
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&[0; 6]);
        for count in [lives.len() as u32, self.offsets.len() as u32, 0, 0] {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
        lives.iter().for_each(|life| bytes.extend_from_slice(&life.to_bytes()));
        for offset in &self.offsets {
            bytes.extend_from_slice(&places[&offset.incarnation].to_le_bytes());
            bytes.extend_from_slice(&offset.stream.to_le_bytes());
            bytes.extend_from_slice(&offset.next.to_le_bytes());
        }
        let (mut life, mut ring, mut end) = (0, 0, 0);
        for (incarnation, run) in &self.runs {
            let place = places[incarnation];
            if place != life {
                (ring, end) = (0, 0);
            }
            if run.ring != ring {
                end = 0;
            }
            // Differences wrap, so runs in any order are read back unchanged.
            put_varint(place.wrapping_sub(life).into(), &mut bytes);
            put_varint(run.ring.wrapping_sub(ring).into(), &mut bytes);
            put_varint(run.first.wrapping_sub(end), &mut bytes);
            put_varint(run.count, &mut bytes);
            (life, ring, end) = (place, run.ring, run.first.wrapping_add(run.count));
        }
        let sum = crc32c::crc32c(&bytes[16..]);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Decodes a file's bytes.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Known, Corrupt> {
        let (head, mut rest) = bytes.split_at_checked(HEAD).ok_or(Corrupt("it is too short"))?;
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        if head[..8] != MAGIC || head[8..10] != VERSION.to_le_bytes() {
            return Err(Corrupt("it does not begin as a file of ids of this version does"));
        }
        if crc32c::crc32c(&bytes[16..]) != number(12) {
            return Err(Corrupt("its checksum is wrong"));
        }
        let cut = Corrupt("it is cut off");
        let mut lives = Vec::new();
        for _ in 0..number(16) {
            let (life, behind) = rest.split_first_chunk::<16>().ok_or(cut)?;
            lives.push(Incarnation::from_bytes(*life));
            rest = behind;
        }
        let life_at = |place: u32| lives.get(place as usize).copied().ok_or(Corrupt("a life is not in its table"));
        let mut known = Known::default();
        for _ in 0..number(20) {
            let (fields, behind) = rest.split_first_chunk::<16>().ok_or(cut)?;
            let [a, b, c, d, e, f, g, h, next @ ..] = *fields;
            let incarnation = life_at(u32::from_le_bytes([a, b, c, d]))?;
            let stream = u32::from_le_bytes([e, f, g, h]);
            known.offsets.push(StreamOffset { incarnation, stream, next: u64::from_le_bytes(next) });
            rest = behind;
        }
        let narrow = |value: u64| u32::try_from(value).map_err(|_| Corrupt("a number is out of range"));
        let (mut life, mut ring, mut end) = (0u32, 0u32, 0u64);
        while !rest.is_empty() {
            let step = narrow(take_varint(&mut rest)?)?;
            if step != 0 {
                (ring, end) = (0, 0);
            }
            life = life.wrapping_add(step);
            let step = narrow(take_varint(&mut rest)?)?;
            if step != 0 {
                end = 0;
            }
            ring = ring.wrapping_add(step);
            let first = end.wrapping_add(take_varint(&mut rest)?);
            let count = take_varint(&mut rest)?;
            known.runs.push((life_at(life)?, Run { ring, first, count }));
            end = first.wrapping_add(count);
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_known_leads_back(
            runs in proptest::collection::vec((0u32..3, 0u32..3, prop_oneof![0u64..50, any::<u64>()], 1u64..9), 0..30),
            offsets in proptest::collection::vec((0u32..4, any::<u32>(), any::<u64>()), 0..9),
        ) {
            let life = |pid| Incarnation { boot: 0, pid, start: 0 };
            let runs = runs.into_iter().map(|(pid, ring, first, count)| (life(pid), Run { ring, first, count })).collect();
            let offset = |(pid, stream, next)| StreamOffset { incarnation: life(pid), stream, next };
            let mut known = Known { runs, offsets: offsets.into_iter().map(offset).collect() };
            prop_assert_eq!(Known::decode(&known.encode()).unwrap(), known.clone());
            known.tidy();
            let bytes = known.encode();
            prop_assert_eq!(Known::decode(&bytes).unwrap(), known);
            for cut in 0..bytes.len() {
                prop_assert!(Known::decode(&bytes[..cut]).is_err());
            }
        }

        #[test]
        fn hostile_files_end(body in proptest::collection::vec(any::<u8>(), 16..80)) {
            let mut bytes = MAGIC.to_vec();
            bytes.extend_from_slice(&VERSION.to_le_bytes());
            bytes.extend_from_slice(&[0; 2]);
            bytes.extend_from_slice(&crc32c::crc32c(&body).to_le_bytes());
            bytes.extend(body);
            let _ = Known::decode(&bytes);
        }
    }
}
