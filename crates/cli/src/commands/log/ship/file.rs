//! One file that is followed: through growth, renaming, truncation, and restarts of this program.

use std::{
    fs::{self, File, Metadata},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tampu_types::RecordId;

use super::{
    reading::{End, Reading},
    sending::Sending,
    state::{Place, State},
};
use crate::{failure::Failure, interrupt::Interrupt, time_expression::now};

/// Bytes read before their records are committed.
const CHUNK: u64 = 256 << 10;
/// Silence after which a record of several lines counts as complete.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Tracked {
    path: PathBuf,
    open: Option<Open>,
    begun: bool,
}

struct Open {
    file: File,
    /// Up to where it is committed.
    place: Place,
    /// Read from there on, and not yet a record.
    pending: Vec<u8>,
    /// Time of the last data.
    fresh: Instant,
}

impl Tracked {
    pub fn new(path: PathBuf) -> Tracked {
        // The directory may be given differently the next time; the state needs one name for a file.
        let path = std::path::absolute(&path).unwrap_or(path);
        Tracked { path, open: None, begun: false }
    }

    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns true if the file has not existed so far.
    pub fn is_missing(&self) -> bool {
        !self.begun
    }

    /// Sends the new lines, and waits until they are committed; returns whether there were any.
    pub fn step(
        &mut self,
        state: &mut State,
        reading: &Reading,
        once: bool,
        sending: &mut Sending,
        interrupt: &Interrupt,
    ) -> Result<bool, Failure> {
        let failed = |error: io::Error| Failure::failed(self.path.display(), error);
        if self.open.is_none() {
            self.open = find(&self.path, state)?;
        }
        let Some(open) = &mut self.open else { return Ok(false) };
        self.begun = true;
        let came = open.read().map_err(failed)?;
        let mut end = End::Open;
        let mut over = false;
        if came == 0 {
            // The order matters: bytes written between the two checks are seen the next time.
            let renamed = fs::metadata(&self.path).is_ok_and(|data| !open.place.is(&data));
            let truncated = open.file.metadata().map_err(failed)?.len() < open.position();
            over = truncated || renamed && open.read().map_err(failed)? == 0;
            end = match () {
                () if over || once => End::Final,
                () if open.fresh.elapsed() >= PAUSE => End::Pause,
                () => End::Open,
            };
        }
        let taken = open.send(reading, end, sending)?;
        if taken == 0 {
            if over {
                self.open = None;
                state.keep(&self.path, &Place::default())?;
            }
            return Ok(over || came > 0);
        }
        if sending.confirm(interrupt)? {
            open.pending.drain(..taken);
            open.place.offset += taken as u64;
            state.keep(&self.path, &open.place)?;
        }
        Ok(true)
    }
}

impl Place {
    fn is(&self, data: &Metadata) -> bool {
        self.device == data.dev() && self.inode == data.ino()
    }
}

/// Opens the file at its last position under its present name, or else the file with this name at its beginning.
fn find(path: &Path, state: &mut State) -> Result<Option<Open>, Failure> {
    let failed = |error: io::Error| Failure::failed(path.display(), error);
    let known = state.place(path).filter(|place| *place != Place::default());
    if let Some(place) = known {
        if let Some(open) = find_left(path, &place).map_err(failed)? {
            return Ok(Some(open));
        }
        eprintln!(
            "tampu: {}: the text read up to byte {} is gone; starting again from the beginning",
            path.display(),
            place.offset
        );
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let data = file.metadata().map_err(failed)?;
    let life = tampu_bus::host::incarnation();
    let place = Place { life, device: data.dev(), inode: data.ino(), ..Place::default() };
    // The state is stored before sending, so that a repeated record has the same id.
    state.keep(path, &place)?;
    Ok(Some(Open { file, place, pending: Vec::new(), fresh: Instant::now() }))
}

/// Returns the file with this inode number, in the same directory, if it still has the content that was read.
fn find_left(path: &Path, place: &Place) -> io::Result<Option<Open>> {
    let beside = path.parent().map(fs::read_dir).transpose().ok().flatten();
    let others = beside.into_iter().flatten().flatten().map(|entry| entry.path());
    for path in std::iter::once(path.to_owned()).chain(others) {
        let Ok(data) = fs::metadata(&path) else { continue };
        if place.is(&data) && data.is_file() && data.len() >= place.offset {
            let mut file = File::open(&path)?;
            file.seek(SeekFrom::Start(place.offset))?;
            return Ok(Some(Open { file, place: place.clone(), pending: Vec::new(), fresh: Instant::now() }));
        }
    }
    Ok(None)
}

impl Open {
    fn position(&self) -> u64 {
        self.place.offset + self.pending.len() as u64
    }

    fn read(&mut self) -> io::Result<usize> {
        let came = (&mut self.file).take(CHUNK).read_to_end(&mut self.pending)?;
        if came > 0 {
            self.fresh = Instant::now();
        }
        Ok(came)
    }

    /// Sends the complete records; returns the number of their bytes.
    fn send(&mut self, reading: &Reading, end: End, sending: &mut Sending) -> Result<usize, Failure> {
        let mut taken = 0;
        let mut last = now();
        while let Some(length) = reading.first(&self.pending[taken..], end) {
            // Lines of the same time keep their order.
            last = last.max(tampu_types::Time(last.0 + 1));
            if let Some(mut record) = reading.record(&self.pending[taken..taken + length], last) {
                record.id = Some(RecordId { incarnation: self.place.life, ring: 0, number: self.place.number });
                record.host = host();
                record.thread = "-".to_owned();
                self.place.number += 1;
                sending.send(&record)?;
            }
            taken += length;
        }
        Ok(taken)
    }
}

/// Returns this host's name.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
