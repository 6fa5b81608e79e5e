//! One write-ahead segment: its file, and information about its frames.
//!
//! The file begins as [`crate::framed`] says; frames follow (see `frame`).
//!
//! A segment is append-only, so a reader needs no lock. It reads up to the length that was committed when it looked.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use parking_lot::{Mutex, RwLock};
use tampu_types::{Domain, Incarnation, Time};

use crate::{
    Fault, StreamOffset,
    framed::FileKind,
    ids::seen::Run,
    wal::{
        content::Content as Kept,
        frame::{self, FrameHeader, Kind, LevelSet},
    },
};

/// Segments of a log.
pub(crate) const SEGMENTS: FileKind = FileKind { magic: *b"TAMPULOG", version: 1, prefix: "segment-" };

/// Position of a frame, and statistics by which a search skips it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) at: u64,
    pub(crate) length: u32,
    pub(crate) records: u32,
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
    pub(crate) offset: StreamOffset,
    pub(crate) levels: LevelSet,
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

/// Facts about a segment's content.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) entries: Vec<Entry>,
    /// Ids in the segment, as runs; kept until the side file is written.
    pub(crate) runs: Vec<(Incarnation, Run)>,
    /// End of the last good frame.
    pub(crate) end: u64,
}

/// One segment of the archive.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Length of the file that is on disk.
    pub(crate) committed: AtomicU64,
    pub(crate) entries: RwLock<Vec<Entry>>,
    /// Damage that searches found: parts that were readable when they were written, or when the archive was opened, and
    /// are not readable now.
    pub(crate) met: Mutex<Vec<Fault>>,
}

impl Segment {
    /// Creates a new segment, and syncs its header and its name.
    pub(crate) fn create(dir: &Path, number: u64, created: Time, domain: &Domain) -> io::Result<Segment> {
        let path = dir.join(SEGMENTS.file_name(number));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        let header = SEGMENTS.encode_header(number, created, domain);
        let written = file.write_all_at(&header, 0).and_then(|()| file.sync_all()).and_then(|()| File::open(dir)?.sync_all());
        if let Err(error) = written {
            // The next start would report a file without a header as torn, although it holds nothing.
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

    /// Makes frames visible that are on disk.
    pub(crate) fn publish(&self, entries: &[Entry], end: u64) {
        self.entries.write().extend_from_slice(entries);
        self.committed.store(end, Ordering::Release);
    }

    /// Returns the frames for which `wanted` holds, at this moment.
    pub(crate) fn select(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        let entries = self.entries.read();
        entries.iter().filter(|entry| wanted(entry)).copied().collect()
    }

    /// Returns the earliest and the latest time of its records.
    pub(crate) fn span(&self) -> Option<(Time, Time)> {
        let entries = self.entries.read();
        let spans = entries.iter().filter(|entry| entry.records > 0).map(|entry| (entry.earliest, entry.latest));
        spans.reduce(|(earliest, latest), (from, to)| (earliest.min(from), latest.max(to)))
    }

    /// Reads one frame into `buffer` and checks it. Damage is noted, and `None` returned.
    pub(crate) fn load<'b>(&self, entry: &Entry, buffer: &'b mut Vec<u8>) -> Option<(FrameHeader, &'b [u8])> {
        buffer.resize(entry.length as usize, 0);
        let read = self.file.read_exact_at(buffer, entry.at).map_err(|error| error.to_string());
        let loaded = read.and_then(|()| frame::read(buffer).map_err(|why| why.to_string()));
        loaded.inspect_err(|why| self.note_damage(entry, why)).ok()
    }

    fn note_damage(&self, entry: &Entry, why: &str) {
        let fault = Fault::damaged(&self.path, entry.at, entry.at + u64::from(entry.length), why.to_owned());
        let mut met = self.met.lock();
        if !met.contains(&fault) {
            met.push(fault);
        }
    }
}

/// Finds all frames of a segment's bytes. With `last`, bytes after the last commit are a torn tail: it begins at
/// `Content::end`, and the caller cuts it off. Damage before that is reported and skipped.
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

/// Returns the first valid frame after the damage at `from`. In the last segment, a frame proves a commit at the
/// damaged position only if it was written after that position was on disk. Frames without that proof belong to the
/// torn last group.
fn next_frame(bytes: &[u8], from: usize, last: bool) -> Option<usize> {
    let mut first = None;
    for at in frame::FRAMES.candidates(bytes, from + 8) {
        if let Ok((frame, _)) = frame::read(&bytes[at..]) {
            first = first.or(Some(at));
            if !last || frame.durable > from as u64 {
                return first;
            }
        }
    }
    None
}

/// Adds the furthest offset of every stream in these frames to `offsets`.
pub(crate) fn gather_offsets(entries: &[Entry], offsets: &mut HashMap<(Incarnation, u32), u64>) {
    for entry in entries {
        let next = offsets.entry((entry.offset.incarnation, entry.offset.stream)).or_default();
        *next = entry.offset.next.max(*next);
    }
}
