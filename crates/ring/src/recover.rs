//! What a dead process left: every record whose call had completed, and what it could no longer tell.
//!
//! A life is over when nobody holds its `source` locked and the process of its number, if there is one, does not have its
//! rings mapped. The lock alone would do, were it not for programs that close all descriptors they did not open.
//!
//! Nothing is mapped here, all files are read into memory first: see `image.rs`. A damaged file is told and does not keep the
//! others from being read.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    clock::{Anchor, Conversion, Counter},
    clock_page::{self, BadClock},
    dictionary::{self, BadDictionary, Definitions},
    drain::{Busy, take_lease},
    image::{Header, RingImage},
    lease::Held,
    life::{CLOCK, DICTIONARY, SOURCE, remove_all, ring_name, ring_number},
    lines::{Cursor, LINES_LEN},
    long::Longs,
    place::{Place, PlaceError, Why, read_at},
    record::Entry,
    refuge,
    ring_file::{BadRing, LARGEST, RingFile},
    source::{self, BadSource, Source},
};

/// Why nothing can be recovered there, or not now.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// Its process lives.
    #[error("{0}: its process lives")]
    Alive(PathBuf),
    /// Somebody else is at it.
    #[error("{0}: somebody else drains these rings")]
    Busy(PathBuf),
    /// The process died before it logged anything: there is no `source`, and so no ring.
    #[error("{0}: nothing was logged there")]
    Unfinished(PathBuf),
    /// A file cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// `source` is not one.
    #[error("{path}: {why}")]
    Source {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        why: BadSource,
    },
    /// Not everything has been handed off.
    #[error("{path}: ring {ring} holds records that have not been handed off")]
    Unread {
        /// The directory.
        path: PathBuf,
        /// Which ring.
        ring: u32,
    },
}

/// A file that could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It cannot be used at all.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A ring.
    #[error("{path}: {why}")]
    Ring {
        /// Which file.
        path: PathBuf,
        /// What and where.
        why: BadRing,
    },
    /// The dictionary: the entries before the place are known.
    #[error("{path}: {why}")]
    Dictionary {
        /// Which file.
        path: PathBuf,
        /// What and where.
        why: BadDictionary,
    },
    /// The clock page: times of records are unknown.
    #[error("{path}: {why}")]
    Clock {
        /// Which file.
        path: PathBuf,
        /// What and where.
        why: BadClock,
    },
}

/// The rings of a dead process.
#[derive(Debug)]
pub struct Recovery {
    /// Who it was.
    pub source: Source,
    /// What the numbers in its records stand for.
    pub definitions: Definitions,
    /// Turns its ticks into UTC.
    pub conversion: Conversion,
    /// Its rings.
    pub rings: Vec<RecoveredRing>,
    /// What could not be read.
    pub damage: Vec<Damage>,
    /// Payloads too long for them.
    pub longs: Longs,
    /// Packets that had left the rings and were with nobody yet: log batches, complete, of records with their ids.
    pub packets: Vec<Vec<u8>>,
    place: Arc<Place>,
    _lease: Held,
    _over: Held,
}

/// One ring of a dead process.
#[derive(Debug)]
pub struct RecoveredRing {
    path: PathBuf,
    file: File,
    image: RingImage,
}

/// Takes over what a dead process left in its directory. Until the [`Recovery`] is dropped nobody else can.
pub fn recover(directory: &Path) -> Result<Recovery, RecoverError> {
    let place = Place::open(directory)?;
    let (file, length) = match place.open_file(SOURCE, source::LONGEST) {
        Ok(found) => found,
        Err(PlaceError { why: Why::Io(why), .. }) if why.kind() == io::ErrorKind::NotFound => {
            return Err(RecoverError::Unfinished(directory.to_owned()));
        }
        Err(error) => return Err(error.into()),
    };
    let text = read_at(&file, 0, length as usize).map_err(place.about(SOURCE))?;
    let source = Source::parse(&text).map_err(|why| RecoverError::Source { path: directory.join(SOURCE), why })?;
    let over = Held::take(file).map_err(place.about(SOURCE))?.ok_or_else(|| RecoverError::Alive(directory.to_owned()))?;
    if has_mapped(source.incarnation.pid, directory) {
        return Err(RecoverError::Alive(directory.to_owned()));
    }
    let lease = take_lease(&place).map_err(|busy| match busy {
        Busy::Place(error) => RecoverError::Place(error),
        _ => RecoverError::Busy(directory.to_owned()),
    })?;
    // Somebody may have recovered and removed it while we waited at the door.
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
    let packets = refuge::read(&place).unwrap_or_else(|error| {
        damage.push(error.into());
        Vec::new()
    });
    let place = Arc::new(place);
    let longs = Longs::of(Some(place.clone()));
    Ok(Recovery { source, definitions, conversion, rings, damage, longs, packets, place, _lease: lease, _over: over })
}

/// Removes the directory of a process that died before its `source` was complete, so before it logged anything. The caller knows
/// that it is dead, as far as one can from outside; so that one in another container, whose number means nothing here, is not
/// disturbed while it begins, nothing is removed that changed lately. Says whether it is gone.
pub fn remove_unfinished(directory: &Path) -> Result<bool, PlaceError> {
    /// How long a beginning may take.
    const BEGINNING: Duration = Duration::from_secs(10);
    let place = Place::open(directory)?;
    if place.length(SOURCE).is_some() || place.age()? < BEGINNING {
        return Ok(false);
    }
    Ok(remove_all(&place).is_empty())
}

/// Whether a living process has files of this directory mapped.
pub(crate) fn has_mapped(pid: u32, directory: &Path) -> bool {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let needle = format!("/{name}/ring-");
    fs::read(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.windows(needle.len()).any(|found| found == needle.as_bytes()))
}

fn read_dictionary(place: &Place, damage: &mut Vec<Damage>) -> Definitions {
    let bytes = match place.read_file(DICTIONARY, dictionary::LONGEST) {
        Ok(bytes) => bytes,
        Err(error) => {
            damage.push(error.into());
            return Definitions::default();
        }
    };
    let path = place.path().join(DICTIONARY);
    match Definitions::parse(&bytes) {
        // An entry that was being written when the process died is no damage: nothing names it, and room is reserved ahead.
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

fn read_clock(place: &Place, boot: u32, damage: &mut Vec<Damage>) -> Conversion {
    let read = || -> Result<(Counter, Vec<Anchor>), Damage> {
        let bytes = place.read_file(CLOCK, clock_page::LENGTH as u64)?;
        clock_page::decode(&bytes).map_err(|why| Damage::Clock { path: place.path().join(CLOCK), why })
    };
    let (counter, mut anchors) = read().unwrap_or_else(|bad| {
        damage.push(bad);
        (Counter::Processor, Vec::new())
    });
    // A process that died young has one anchor. The counter still runs if this is the same boot, so now is another.
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
    fn read(place: &Place, number: u32) -> Result<RecoveredRing, Damage> {
        let name = ring_name(number);
        let path = place.path().join(&name);
        let (file, length) = place.open_file(&name, LARGEST + (1 << 20))?;
        let read = |offset, length| read_at(&file, offset, length).map_err(|why| Damage::Place(place.about(&name)(why)));
        let bad = |why| Damage::Ring { path: path.clone(), why };
        let header = Header::decode(&read(0, LINES_LEN)?, length).map_err(bad)?;
        if header.file.number != number {
            let RingFile { header, size, .. } = header.file;
            return Err(bad(BadRing::Size { header, size, length }));
        }
        let mut unread = Vec::new();
        for (offset, length) in header.pieces() {
            unread.extend(read(offset, length)?);
        }
        let image = RingImage::new(header, unread);
        Ok(RecoveredRing { path, file, image })
    }

    /// Its number.
    pub fn number(&self) -> u32 {
        self.image.file.number
    }

    /// The next entry. After an error there is nothing more in this ring.
    pub fn next_entry(&mut self) -> Option<Result<Entry<'_>, Damage>> {
        let path = &self.path;
        self.image.next_entry().map(|entry| entry.map_err(|why| Damage::Ring { path: path.clone(), why }))
    }

    /// When the next entry was made, in ticks.
    pub fn peek(&self) -> Option<u64> {
        self.image.peek()
    }

    /// Where the walk stands: what to commit once everything up to here has been handed off.
    pub fn mark(&self) -> Cursor {
        self.image.mark()
    }

    /// Everything before the mark has been handed off: whoever recovers next does not get it again.
    pub fn commit(&mut self, mark: &Cursor) -> Result<(), PlaceError> {
        for (offset, bytes) in self.image.commit(mark) {
            let written = self.file.write_all_at(&bytes, offset);
            written.map_err(|why| PlaceError { path: self.path.clone(), why: why.into() })?;
        }
        Ok(())
    }
}

impl Recovery {
    /// Removes the directory, once everything has been handed off and committed. Says what could not be removed.
    pub fn remove(self) -> Result<Vec<PlaceError>, RecoverError> {
        match self.rings.iter().find(|ring| !ring.image.is_done()) {
            Some(ring) => Err(RecoverError::Unread { path: self.place.path().to_owned(), ring: ring.number() }),
            None => Ok(remove_all(&self.place)),
        }
    }
}
