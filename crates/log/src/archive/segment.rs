//! One write-ahead segment: its file, and what is known about the frames in it.
//!
//! ```text
//!  0  u8[8] "TAMPULOG"      u16 version = 1   u16 header length (a multiple of 8)
//! 12  u32 CRC-32C of the header with these four bytes zero
//! 16  u64 segment number    i64 created, ns UTC
//! 32  u8 domain length      u8[7] reserved (0)
//! 40  domain (UTF-8), zeros up to the header length; frames (see `frame`)
//! ```
//!
//! A segment is only ever appended to, so a reader needs no lock: it reads up to the length that was committed when it looked.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use tampu_types::{Domain, Incarnation, Time};

use super::{
    Fault, StreamOffset,
    content::Content as Kept,
    frame::{self, FrameHeader, Kind, Levels},
    seen::Run,
};

const MAGIC: [u8; 8] = *b"TAMPULOG";
const VERSION: u16 = 1;
const FIXED: usize = 40;

/// Where a frame stands and what a search must know to leave it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) length: u32,
    pub(crate) records: u32,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
    pub(crate) offset: StreamOffset,
    pub(crate) levels: Levels,
    pub(crate) kind: Kind,
}

impl Entry {
    pub(crate) fn new(at: u64, header: &FrameHeader) -> Entry {
        Entry {
            at,
            length: header.length,
            records: header.records,
            earliest: header.earliest,
            latest: header.latest,
            offset: StreamOffset { incarnation: header.incarnation, stream: header.stream, next: header.next },
            levels: header.levels,
            kind: header.kind,
        }
    }
}

/// What is known about a segment's content.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) entries: Vec<Entry>,
    /// The ids in it, as runs; kept until the side file is written.
    pub(crate) runs: Vec<(Incarnation, Run)>,
    /// Where the last good frame ends.
    pub(crate) end: u64,
}

/// One segment of the archive.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Length of the file up to which everything is on disk.
    pub(crate) committed: AtomicU64,
    pub(crate) entries: RwLock<Vec<Entry>>,
    /// Damage that searches have met: what could be read when it was written, or when the archive was opened, and now cannot.
    pub(crate) met: Mutex<Vec<Fault>>,
}

/// Why a file cannot be used as a segment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadSegment {
    #[error("it does not begin as a segment does")]
    Foreign,
    #[error("its header is cut off or damaged")]
    Header,
    #[error("it is of version {0}; this release reads version {VERSION}")]
    Later(u16),
    #[error("it belongs to domain '{0}'")]
    OtherDomain(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// `segment-00000012.wal`.
pub(crate) fn file_name(number: u64) -> String {
    format!("segment-{number:08}.wal")
}

/// The number in a segment's file name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("segment-")?.strip_suffix(".wal")?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn encode_header(number: u64, created: Time, domain: &Domain) -> Vec<u8> {
    let name = domain.as_str().as_bytes();
    let length = (FIXED + name.len()).next_multiple_of(8);
    let mut header = Vec::with_capacity(length);
    header.extend_from_slice(&MAGIC);
    header.extend_from_slice(&VERSION.to_le_bytes());
    header.extend_from_slice(&(length as u16).to_le_bytes());
    header.extend_from_slice(&[0; 4]);
    header.extend_from_slice(&number.to_le_bytes());
    header.extend_from_slice(&created.0.to_le_bytes());
    // A domain has at most 200 bytes.
    header.extend_from_slice(&[name.len() as u8, 0, 0, 0, 0, 0, 0, 0]);
    header.extend_from_slice(name);
    header.resize(length, 0);
    let sum = crc32c::crc32c(&header);
    header[12..16].copy_from_slice(&sum.to_le_bytes());
    header
}

/// Checks a segment's header; returns its length.
pub(crate) fn check_header(bytes: &[u8], domain: &Domain) -> Result<usize, BadSegment> {
    if bytes.len() < MAGIC.len() || bytes[..8] != MAGIC {
        let begun = !bytes.is_empty() && !MAGIC.starts_with(&bytes[..bytes.len().min(8)]);
        return Err(if begun { BadSegment::Foreign } else { BadSegment::Header });
    }
    let version = bytes.get(8..10).map(|two| u16::from_le_bytes([two[0], two[1]])).ok_or(BadSegment::Header)?;
    if version != VERSION {
        return Err(BadSegment::Later(version));
    }
    let length = bytes.get(10..12).map(|two| usize::from(u16::from_le_bytes([two[0], two[1]]))).ok_or(BadSegment::Header)?;
    let mut header = bytes.get(..length).filter(|header| header.len() >= FIXED).ok_or(BadSegment::Header)?.to_vec();
    let sum = [header[12], header[13], header[14], header[15]];
    header[12..16].fill(0);
    if crc32c::crc32c(&header).to_le_bytes() != sum {
        return Err(BadSegment::Header);
    }
    let name = header.get(FIXED..FIXED + usize::from(header[32])).ok_or(BadSegment::Header)?;
    if name != domain.as_str().as_bytes() {
        return Err(BadSegment::OtherDomain(String::from_utf8_lossy(name).into_owned()));
    }
    Ok(length)
}

impl Segment {
    /// Makes a new segment and puts its header and its name on disk.
    pub(crate) fn create(dir: &Path, number: u64, created: Time, domain: &Domain) -> io::Result<Segment> {
        let path = dir.join(file_name(number));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        let header = encode_header(number, created, domain);
        let written = file.write_all_at(&header, 0).and_then(|()| file.sync_all()).and_then(|()| File::open(dir)?.sync_all());
        if let Err(error) = written {
            // A headless file would be taken for a torn one at the next start; it holds nothing.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Segment {
            number,
            path,
            file,
            committed: AtomicU64::new(header.len() as u64),
            entries: RwLock::default(),
            met: Mutex::default(),
        })
    }

    /// Opens a segment whose content is known.
    pub(crate) fn open(path: PathBuf, number: u64, file: File, content: &Content) -> Segment {
        Segment {
            number,
            path,
            file,
            committed: AtomicU64::new(content.end),
            entries: RwLock::new(content.entries.clone()),
            met: Mutex::default(),
        }
    }

    /// Makes frames visible that are on disk now.
    pub(crate) fn publish(&self, entries: &[Entry], end: u64) {
        self.entries.write().unwrap_or_else(PoisonError::into_inner).extend_from_slice(entries);
        self.committed.store(end, Ordering::Release);
    }

    /// The frames for which `wanted` holds, as they stand now.
    pub(crate) fn select(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().filter(|entry| wanted(entry)).copied().collect()
    }

    /// The earliest and the latest time of its records.
    pub(crate) fn span(&self) -> Option<(Time, Time)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let spans = entries.iter().filter(|entry| entry.records > 0).map(|entry| (entry.earliest, entry.latest));
        spans.reduce(|(earliest, latest), (from, to)| (earliest.min(from), latest.max(to)))
    }

    /// Reads one frame into `buffer` and checks it. Where it is damaged, that is noted and there is nothing.
    pub(crate) fn load<'b>(&self, entry: &Entry, buffer: &'b mut Vec<u8>) -> Option<(FrameHeader, &'b [u8])> {
        buffer.resize(entry.length as usize, 0);
        let read = self.file.read_exact_at(buffer, entry.at).map_err(|error| error.to_string());
        let loaded = read.and_then(|()| frame::read(buffer).map_err(|why| why.to_string()));
        loaded.inspect_err(|why| self.note_damage(entry, why)).ok()
    }

    fn note_damage(&self, entry: &Entry, why: &str) {
        let fault = Fault::damaged(&self.path, entry.at, entry.at + u64::from(entry.length), why.to_owned());
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        if !met.contains(&fault) {
            met.push(fault);
        }
    }
}

/// Finds all frames of a segment's bytes. With `last`, what follows the last commit is a torn tail: `Content::end` is where it
/// begins, and the caller cuts it off; damage before that is named and stepped over.
pub(crate) fn scan(kept: Kept, path: &Path, bytes: &[u8], header: usize, last: bool, faults: &mut Vec<Fault>) -> Content {
    let mut content = Content { end: header as u64, ..Content::default() };
    let mut at = header;
    while at < bytes.len() {
        match frame::read(&bytes[at..]) {
            Ok((frame, body)) => {
                if frame.kind == Kind::Batch {
                    match kept.digest_body(body) {
                        Ok(digest) => content.runs.extend(digest.runs),
                        Err(why) => faults.push(Fault::unreadable(path, at as u64, why)),
                    }
                }
                content.entries.push(Entry::new(at as u64, &frame));
                at += frame.stride();
                content.end = at as u64;
            }
            Err(why) => match next_frame(bytes, at, last) {
                Some(next) => {
                    faults.push(Fault::damaged(path, at as u64, next as u64, why.to_string()));
                    at = next;
                }
                None => {
                    faults.push(if last {
                        Fault::torn(path, at as u64, bytes.len() as u64)
                    } else {
                        Fault::damaged(path, at as u64, bytes.len() as u64, why.to_string())
                    });
                    break;
                }
            },
        }
    }
    content
}

/// The first good frame behind the damage at `from`. In the last segment only a frame that was written after the damaged
/// place was on disk proves that anything was committed there; frames without that proof belong to the torn last group.
fn next_frame(bytes: &[u8], from: usize, last: bool) -> Option<usize> {
    let mut first = None;
    for at in (from + 8..bytes.len()).step_by(8) {
        if bytes[at..].starts_with(&frame::MARKER)
            && let Ok((frame, _)) = frame::read(&bytes[at..])
        {
            first = first.or(Some(at));
            if !last || frame.durable > from as u64 {
                return first;
            }
        }
    }
    None
}

/// The furthest offset of every stream in these frames, added to what is known.
pub(crate) fn gather_offsets(entries: &[Entry], offsets: &mut HashMap<(Incarnation, u32), u64>) {
    for entry in entries {
        let next = offsets.entry((entry.offset.incarnation, entry.offset.stream)).or_default();
        *next = entry.offset.next.max(*next);
    }
}
