//! Recovery of the rings of a dead process: every record whose call had completed, and the unreported losses.
//!
//! A process counts as dead under two conditions. No process holds its `source` locked, by `flock` or a record lock,
//! and the process of its number, if there is one, does not have its rings mapped. The lock alone is not enough,
//! because some programs close all descriptors that they did not open. The mapping alone is not enough, because the
//! process may have its number in another pid namespace.
//!
//! Recovery maps nothing; it reads all files into memory first (see `snapshot.rs`). A damaged file is reported and does
//! not keep the others from being read.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    clock::{
        Anchor, Conversion, Counter,
        page::{self, BadClock},
    },
    files::{
        dictionary::{self, BadDictionary, Definitions},
        directory::{FileError, FileErrorKind, RingDirectory, read_at},
        lock::{Busy, LockedFile, has_mapped, has_record_lock, take_lease},
        long::LongPayloads,
        names::{CLOCK, DICTIONARY, ENDED, SOURCE, remove_all, ring_name, ring_number},
        overflow,
        ring_file::{BadRing, LARGEST, RingFile},
        source::{self, BadSource, Source},
    },
    header::{Cursor, HEADER_LEN},
    reader::snapshot::{Header, RingSnapshot},
    record::Entry,
};

/// Reason for which nothing can be recovered, or not at this moment.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// A directory of a living process.
    #[error("{0}: its process lives")]
    Alive(PathBuf),
    /// Somebody else is at it.
    #[error("{0}: another process drains these rings")]
    Busy(PathBuf),
    /// The process died before it logged anything: there is no `source`, and so no ring.
    #[error("{0}: nothing was logged there")]
    Unfinished(PathBuf),
    /// A file cannot be used.
    #[error(transparent)]
    Place(#[from] FileError),
    /// `source` is not one.
    #[error("{path}: {why}")]
    Source {
        /// Path of the file.
        path: PathBuf,
        /// Defect of the file.
        why: BadSource,
    },
    /// Not everything has been handed off.
    #[error("{path}: ring {ring} holds records that have not been handed off")]
    Unread {
        /// Directory of the rings.
        path: PathBuf,
        /// Number of the ring.
        ring: u32,
    },
}

/// A file that could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// A directory that cannot be used at all.
    #[error(transparent)]
    Place(#[from] FileError),
    /// A ring cannot be read to its end.
    #[error("{path}: {why}")]
    Ring {
        /// Path of the ring.
        path: PathBuf,
        /// Defect, and its place.
        why: BadRing,
    },
    /// The dictionary: the entries before the place are known.
    #[error("{path}: {why}")]
    Dictionary {
        /// Path of the dictionary.
        path: PathBuf,
        /// Defect, and its place.
        why: BadDictionary,
    },
    /// The clock page: times of records are unknown.
    #[error("{path}: {why}")]
    Clock {
        /// Path of the clock page.
        path: PathBuf,
        /// Defect, and its place.
        why: BadClock,
    },
}

/// The rings of a dead process.
#[derive(Debug)]
pub struct Recovery {
    /// Identity of the process.
    pub source: Source,
    /// Entries of its dictionary.
    pub definitions: Definitions,
    /// Turns its ticks into UTC.
    pub conversion: Conversion,
    /// Its rings, by number.
    pub rings: Vec<RecoveredRing>,
    /// Files that could not be read.
    pub damage: Vec<Damage>,
    /// Payloads too long for them.
    pub longs: LongPayloads,
    /// Packets that had left the rings without a receiver: log batches, complete, of records with their ids.
    pub packets: Vec<Vec<u8>>,
    /// True if the process said at its end that the end is orderly.
    pub ended: bool,
    place: Arc<RingDirectory>,
    _lease: LockedFile,
    _over: LockedFile,
}

/// One ring of a dead process.
#[derive(Debug)]
pub struct RecoveredRing {
    path: PathBuf,
    file: File,
    snapshot: RingSnapshot,
}

/// Takes over the records that a dead process left in its directory. The [`Recovery`] excludes others until it is
/// dropped.
pub fn recover(directory: &Path) -> Result<Recovery, RecoverError> {
    let place = RingDirectory::open(directory)?;
    let (file, length) = match place.open_file(SOURCE, source::LONGEST) {
        Ok(found) => found,
        Err(FileError { why: FileErrorKind::Io(why), .. }) if why.kind() == io::ErrorKind::NotFound => {
            return Err(RecoverError::Unfinished(directory.to_owned()));
        }
        Err(error) => return Err(error.into()),
    };
    let text = read_at(&file, 0, length as usize).map_err(place.about(SOURCE))?;
    let source = Source::parse(&text).map_err(|why| RecoverError::Source { path: directory.join(SOURCE), why })?;
    let over = LockedFile::take(file).map_err(place.about(SOURCE))?.ok_or_else(|| RecoverError::Alive(directory.to_owned()))?;
    if has_record_lock(over.file()) || has_mapped(source.incarnation.pid, directory) {
        return Err(RecoverError::Alive(directory.to_owned()));
    }
    let lease = take_lease(&place).map_err(|busy| match busy {
        Busy::Place(error) => RecoverError::Place(error),
        _ => RecoverError::Busy(directory.to_owned()),
    })?;
    // Another process may have recovered and removed it during the wait for the lock.
    if !place.is_current(SOURCE, over.file()) {
        return Err(RecoverError::Unfinished(directory.to_owned()));
    }
    let mut damage = Vec::new();
    let definitions = read_dictionary(&place, &mut damage);
    let conversion = read_clock(&place, source.incarnation.boot, &mut damage);
    let mut numbers: Vec<u32> = place.names()?.iter().filter_map(|name| ring_number(name)).collect();
    numbers.sort_unstable();
    let mut rings = Vec::new();
    for number in numbers {
        match RecoveredRing::read(&place, number) {
            Ok(ring) => rings.push(ring),
            Err(bad) => damage.push(bad),
        }
    }
    let packets = overflow::read(&place).unwrap_or_else(|error| {
        damage.push(error.into());
        Vec::new()
    });
    let ended = place.length(ENDED).is_some();
    let place = Arc::new(place);
    let longs = LongPayloads::of(Some(place.clone()));
    Ok(Recovery { source, definitions, conversion, rings, damage, longs, packets, ended, place, _lease: lease, _over: over })
}

/// Returns true if the process of this directory says that it will not drain its rings itself.
pub fn has_no_drainer(directory: &Path) -> bool {
    let text = RingDirectory::open(directory).and_then(|place| place.read_file(SOURCE, source::LONGEST));
    text.is_ok_and(|text| source::has_no_drainer(&text))
}

/// Removes the directory of a process that died before its `source` was complete, so before it logged anything. The
/// caller has checked the death as far as possible from outside. The number of a process in another container means
/// nothing here, so a directory that changed recently is kept. Returns whether the directory is gone.
pub fn remove_unfinished(directory: &Path) -> Result<bool, FileError> {
    /// Longest time that the start of a process may take.
    const BEGINNING: Duration = Duration::from_secs(10);
    let place = RingDirectory::open(directory)?;
    if place.length(SOURCE).is_some() || place.age()? < BEGINNING {
        return Ok(false);
    }
    Ok(remove_all(&place).is_empty())
}

fn read_dictionary(place: &RingDirectory, damage: &mut Vec<Damage>) -> Definitions {
    let bytes = match place.read_file(DICTIONARY, dictionary::LONGEST) {
        Ok(bytes) => bytes,
        Err(error) => {
            damage.push(error.into());
            return Definitions::default();
        }
    };
    let path = place.path().join(DICTIONARY);
    match Definitions::parse(&bytes) {
        // An entry that was incomplete when the process died is no damage: no record refers to it, and room is reserved ahead.
        Ok((definitions, cut)) => {
            damage.extend(cut.map(|why| Damage::Dictionary { path, why }));
            definitions
        }
        Err(why) => {
            damage.push(Damage::Dictionary { path, why });
            Definitions::default()
        }
    }
}

fn read_clock(place: &RingDirectory, boot: u32, damage: &mut Vec<Damage>) -> Conversion {
    let read = || -> Result<(Counter, Vec<Anchor>), Damage> {
        let bytes = place.read_file(CLOCK, page::LENGTH as u64)?;
        page::decode(&bytes).map_err(|why| Damage::Clock { path: place.path().join(CLOCK), why })
    };
    let (counter, mut anchors) = read().unwrap_or_else(|bad| {
        damage.push(bad);
        (Counter::Processor, Vec::new())
    });
    // A process that died early has one anchor. If this is the same boot, the counter still runs, and the current time is a second
    // anchor.
    let same_boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .is_ok_and(|id| id.get(..8).is_some_and(|digits| u32::from_str_radix(digits, 16) == Ok(boot)));
    if same_boot
        && counter == Counter::of_this_host()
        && let Some(last) = anchors.last().copied()
    {
        anchors.push(Anchor::take(counter).after(&last));
    }
    Conversion::new(counter, anchors)
}

impl RecoveredRing {
    fn read(place: &RingDirectory, number: u32) -> Result<RecoveredRing, Damage> {
        let name = ring_name(number);
        let path = place.path().join(&name);
        let (file, length) = place.open_file(&name, LARGEST + (1 << 20))?;
        let read = |offset, length| read_at(&file, offset, length).map_err(|why| Damage::Place(place.about(&name)(why)));
        let bad = |why| Damage::Ring { path: path.clone(), why };
        let header = Header::decode(&read(0, HEADER_LEN)?, length).map_err(bad)?;
        if header.file.number != number {
            let RingFile { header, size, .. } = header.file;
            return Err(bad(BadRing::Size { header, size, length }));
        }
        let mut unread = Vec::new();
        for (offset, length) in header.pieces() {
            unread.extend(read(offset, length)?);
        }
        let snapshot = RingSnapshot::new(header, unread);
        Ok(RecoveredRing { path, file, snapshot })
    }

    /// Number of the ring.
    pub fn number(&self) -> u32 {
        self.snapshot.file.number
    }

    /// The next entry. After an error there is nothing more in this ring.
    pub fn next_entry(&mut self) -> Option<Result<Entry<'_>, Damage>> {
        let path = &self.path;
        self.snapshot.next_entry().map(|entry| entry.map_err(|why| Damage::Ring { path: path.clone(), why }))
    }

    /// Time of the next entry, in ticks.
    pub fn peek(&self) -> Option<u64> {
        self.snapshot.peek()
    }

    /// Position of the walk: the cursor to commit once everything before it has been handed off.
    pub fn mark(&self) -> Cursor {
        self.snapshot.mark()
    }

    /// Marks everything before `mark` as handed off: the next recovery does not get it again.
    pub fn commit(&mut self, mark: &Cursor) -> Result<(), FileError> {
        for (offset, bytes) in self.snapshot.commit(mark) {
            let written = self.file.write_all_at(&bytes, offset);
            written.map_err(|why| FileError { path: self.path.clone(), why: why.into() })?;
        }
        Ok(())
    }
}

impl Recovery {
    /// Removes the directory, once everything has been handed off and committed. Returns the files that could not be
    /// removed.
    pub fn remove(self) -> Result<Vec<FileError>, RecoverError> {
        match self.rings.iter().find(|ring| !ring.snapshot.is_done()) {
            Some(ring) => Err(RecoverError::Unread { path: self.place.path().to_owned(), ring: ring.number() }),
            None => Ok(remove_all(&self.place)),
        }
    }
}
