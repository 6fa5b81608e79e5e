//! The side file of a full segment, `segment-N.idx`: its frames and ids. With it a start need not read the segment
//! itself.
//!
//! ```text
//!  0  u8[8] "TAMPUIDX"   u16 version = 1   u16 0   u32 CRC-32C of everything from byte 16
//! 16  u64 length of the segment it belongs to
//! 24  u32 lives, u32 frames, u32 runs, u32 0
//! 40  lives: u8[16] incarnation each
//!     frames, 64 bytes each: u64 at, u32 length, u32 records, i64 earliest, i64 latest, u64 next, u32 life, u32 stream,
//!                            u16 levels, u8 kind, u8[13] reserved (0)
//!     runs, 24 bytes each: u32 life, u32 ring, u64 first, u64 count
//! ```
//! It holds nothing that the segment does not hold. A missing, damaged or outdated side file is written again.

use std::{collections::HashMap, fs, io, path::Path};

use tampu_types::{Incarnation, Time};

use crate::{
    StreamOffset,
    ids::seen::{Run, joined},
    wal::{
        frame::{Kind, LevelSet},
        segment::{Content, Entry, SEGMENTS},
    },
};

const MAGIC: [u8; 8] = *b"TAMPUIDX";
const VERSION: u16 = 1;
const HEAD: usize = 40;
const FRAME: usize = 64;
const RUN: usize = 24;

fn path(dir: &Path, number: u64) -> std::path::PathBuf {
    dir.join(SEGMENTS.file_name(number)).with_extension("idx")
}

/// Writes the side file of a full segment, completely or not at all.
pub(crate) fn write(dir: &Path, number: u64, content: &Content) -> io::Result<()> {
    let mut lives: Vec<Incarnation> = Vec::new();
    let mut places = HashMap::new();
    let mut life = |incarnation: Incarnation| -> u32 {
        *places.entry(incarnation).or_insert_with(|| {
            lives.push(incarnation);
            lives.len() as u32 - 1
        })
    };
    let mut frames = Vec::with_capacity(content.entries.len() * FRAME);
    for entry in &content.entries {
        let kind = match entry.kind {
            Kind::Batch => 1,
            Kind::Offset => 2,
            Kind::Unknown(number) => number,
        };
        frames.extend_from_slice(&entry.at.to_le_bytes());
        frames.extend_from_slice(&entry.length.to_le_bytes());
        frames.extend_from_slice(&entry.records.to_le_bytes());
        frames.extend_from_slice(&entry.earliest.0.to_le_bytes());
        frames.extend_from_slice(&entry.latest.0.to_le_bytes());
        frames.extend_from_slice(&entry.offset.next.to_le_bytes());
        frames.extend_from_slice(&life(entry.offset.incarnation).to_le_bytes());
        frames.extend_from_slice(&entry.offset.stream.to_le_bytes());
        frames.extend_from_slice(&entry.levels.0.to_le_bytes());
        frames.push(kind);
        frames.extend_from_slice(&[0; 13]);
    }
    let mut runs = Vec::new();
    let mut run_count = 0u32;
    for (incarnation, run) in joined(&content.runs) {
        runs.extend_from_slice(&life(incarnation).to_le_bytes());
        runs.extend_from_slice(&run.ring.to_le_bytes());
        runs.extend_from_slice(&run.first.to_le_bytes());
        runs.extend_from_slice(&run.count.to_le_bytes());
        run_count += 1;
    }
    let mut bytes = Vec::with_capacity(HEAD + 16 * lives.len() + frames.len() + runs.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&[0; 6]);
    bytes.extend_from_slice(&content.end.to_le_bytes());
    for count in [lives.len() as u32, content.entries.len() as u32, run_count, 0] {
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    lives.iter().for_each(|life| bytes.extend_from_slice(&life.to_bytes()));
    bytes.append(&mut frames);
    bytes.append(&mut runs);
    let sum = crc32c::crc32c(&bytes[16..]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());

    let path = path(dir, number);
    let unfinished = path.with_extension("idx.new");
    let written = fs::write(&unfinished, &bytes).and_then(|()| fs::rename(&unfinished, &path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Reads the side file of a segment of this length; `None` if there is no usable one.
pub(crate) fn read(dir: &Path, number: u64, length: u64) -> Option<Content> {
    let bytes = fs::read(path(dir, number)).ok()?;
    let sound = bytes.len() >= HEAD
        && bytes[..8] == MAGIC
        && bytes[8..10] == VERSION.to_le_bytes()
        && bytes[12..16] == crc32c::crc32c(&bytes[16..]).to_le_bytes();
    if !sound {
        return None;
    }
    let mut rest = Fields(&bytes[16..]);
    let end = rest.u64()?;
    let (lives, frames, runs, _) = (rest.u32()?, rest.u32()?, rest.u32()?, rest.u32()?);
    if end != length || rest.0.len() != lives as usize * 16 + frames as usize * FRAME + runs as usize * RUN {
        return None;
    }
    let mut read_life = || rest.take::<16>().map(Incarnation::from_bytes);
    let lives = (0..lives).map(|_| read_life()).collect::<Option<Vec<_>>>()?;
    let mut read_frame = || {
        let (at, length, records) = (rest.u64()?, rest.u32()?, rest.u32()?);
        let (earliest, latest) = (Time(rest.u64()? as i64), Time(rest.u64()? as i64));
        let next = rest.u64()?;
        let incarnation = *lives.get(rest.u32()? as usize)?;
        let offset = StreamOffset { incarnation, stream: rest.u32()?, next };
        let [low, high, kind, ..] = rest.take::<16>()?;
        let levels = LevelSet(u16::from_le_bytes([low, high]));
        let kind = match kind {
            1 => Kind::Batch,
            2 => Kind::Offset,
            other => Kind::Unknown(other),
        };
        Some(Entry { at, length, records, earliest, latest, offset, levels, kind })
    };
    let entries = (0..frames).map(|_| read_frame()).collect::<Option<Vec<_>>>()?;
    let mut read_run = || {
        let incarnation = *lives.get(rest.u32()? as usize)?;
        Some((incarnation, Run { ring: rest.u32()?, first: rest.u64()?, count: rest.u64()? }))
    };
    let runs = (0..runs).map(|_| read_run()).collect::<Option<Vec<_>>>()?;
    Some(Content { entries, runs, end })
}

/// Reader for consecutive little-endian fields.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leads_back_and_anything_else_is_no_side_file() {
        let dir = tempfile::tempdir().unwrap();
        let life = Incarnation { boot: 1, pid: 2, start: 3 };
        let offset = StreamOffset { incarnation: life, stream: 4, next: 9 };
        let entry = Entry {
            at: 48,
            length: 100,
            records: 3,
            earliest: Time(-1),
            latest: Time(5),
            offset,
            levels: LevelSet(6),
            kind: Kind::Batch,
        };
        let run = |first, count| (life, Run { ring: 1, first, count });
        let content = Content { entries: vec![entry], runs: vec![run(7, 2), run(0, 3), run(3, 1)], end: 152 };
        write(dir.path(), 1, &content).unwrap();
        let read_back = read(dir.path(), 1, 152).unwrap();
        assert_eq!(read_back, Content { runs: vec![run(0, 4), run(7, 2)], ..content });
        assert_eq!(read(dir.path(), 1, 160), None);
        assert_eq!(read(dir.path(), 2, 152), None);

        let path = path(dir.path(), 1);
        let bytes = fs::read(&path).unwrap();
        for cut in 0..bytes.len() {
            fs::write(&path, &bytes[..cut]).unwrap();
            assert_eq!(read(dir.path(), 1, 152), None, "{cut}");
        }
    }
}
