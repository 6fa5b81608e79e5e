//! The spool's directory: files of packets, an index of their contents, and the ledger.
//!
//! Packets go into one file at a time, all sources together, so a group is one write and one sync for any number of
//! sources. A file is removed when a collector has acknowledged everything in it. The room of one source, and of all
//! sources, is bounded. Beyond the bound the newest packets are refused: the stored packets were acknowledged, and an
//! acknowledgement is never withdrawn.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, OpenOptions},
    io,
    ops::Range,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rustix::fs::FlockOperation;
use tampu_archive::framed::BadHeader;
use tampu_types::{Domain, Incarnation, SourceName, Time};

use super::{
    error::SpoolError,
    file::{self, Found},
    frame::{Frame, Packet},
    ledger::{Ledger, Lost},
    options::SpoolOptions,
};
use tampu_archive::Fault;

/// Content of the spool from one source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) bytes: u64,
    pub(crate) records: u64,
    /// Reception time of the oldest packet.
    pub(crate) since: Option<Time>,
}

impl Account {
    fn add(&mut self, other: &Account) {
        self.bytes += other.bytes;
        self.records += other.records;
        self.since = match (self.since, other.since) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }
}

/// One file with an index of its contents.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
    /// Up to where everything is on disk.
    end: u64,
    of: HashMap<SourceName, Account>,
    is_damaged: bool,
}

/// Decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Free,
    /// Its source has no room left.
    SourceFull,
    /// All sources together have.
    Full,
}

/// Frames that are to go to the disk together.
#[derive(Debug, Default)]
struct Group {
    bytes: Vec<u8>,
    of: HashMap<SourceName, Account>,
    taken: Vec<(Incarnation, u32, u64)>,
    /// The ledger has news.
    has_losses: bool,
}

/// The directory of a spool, held by this process alone.
#[derive(Debug)]
pub(crate) struct Store {
    dir: PathBuf,
    domain: Domain,
    options: SpoolOptions,
    files: Vec<Content>,
    /// The last of them, if it is written to.
    active: Option<File>,
    /// The highest number any file has had.
    number: u64,
    accounts: HashMap<SourceName, Account>,
    bytes: u64,
    group: Group,
    ledger: Ledger,
    pub(crate) faults: Vec<Fault>,
    lock: File,
}

impl Store {
    /// Opens the directory, and creates it if missing. Reads the files of the last run, and cuts off an unfinished
    /// write at their end. A file that cannot be read at all is set aside.
    pub(crate) fn open(dir: &Path, domain: &Domain, options: SpoolOptions) -> Result<Store, SpoolError> {
        let failed = |doing| move |source| SpoolError::File { doing, path: dir.to_owned(), source };
        fs::create_dir_all(dir).map_err(failed("making"))?;
        let lock_path = dir.join("spool.lock");
        let lock = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(lock_path);
        let lock = lock.map_err(failed("locking"))?;
        if !tampu_workers::lock_after_predecessor(&lock).map_err(failed("locking"))? {
            return Err(SpoolError::InUse(dir.to_owned()));
        }
        let mut store = Store {
            dir: dir.to_owned(),
            domain: domain.clone(),
            options,
            files: Vec::new(),
            active: None,
            number: 0,
            accounts: HashMap::new(),
            bytes: 0,
            group: Group::default(),
            ledger: Ledger::default(),
            faults: Vec::new(),
            lock,
        };
        match Ledger::read(dir) {
            Ok(ledger) => store.ledger = ledger,
            Err(error) => store.fault(&dir.join("ledger.json"), 0..0, format!("cannot be read, begun anew: {error}")),
        }
        let names = fs::read_dir(dir).map_err(failed("reading"))?.flatten().map(|entry| entry.file_name());
        let names: Vec<String> = names.filter_map(|name| name.into_string().ok()).collect();
        let set_aside = |name: &String| file::FILES.number_of(name.strip_suffix(".damaged").unwrap_or(name));
        store.number = names.iter().filter_map(set_aside).max().unwrap_or(0);
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| file::FILES.number_of(name)).collect();
        numbers.sort_unstable();
        for number in numbers {
            store.take_over(number).map_err(failed("reading the files of"))?;
        }
        Ok(store)
    }

    fn fault(&mut self, file: &Path, place: Range<u64>, what: String) {
        self.faults.push(Fault { file: file.to_owned(), from: place.start, to: place.end, what });
    }

    /// Adds a file of an earlier run.
    fn take_over(&mut self, number: u64) -> io::Result<()> {
        let path = self.dir.join(file::FILES.file_name(number));
        let bytes = fs::read(&path)?;
        let begin = match file::FILES.check_header(&bytes, &self.domain) {
            Ok(begin) => begin,
            // The node died while it made the file, which holds no packets.
            Err(BadHeader::Damaged) if bytes.len() < 40 => return fs::remove_file(&path),
            Err(why) => {
                fs::rename(&path, path.with_extension("wal.damaged"))?;
                self.fault(&path, 0..bytes.len() as u64, format!("set aside, as .damaged, and not read: {why}"));
                return Ok(());
            }
        };
        let mut content = Content { number, path, end: bytes.len() as u64, of: HashMap::new(), is_damaged: false };
        for found in file::walk(&bytes, begin) {
            match found {
                Found::Frame(at, Frame::Packet(packet)) => {
                    let stride = stride(&bytes[at as usize..]);
                    self.note(&mut content, &packet, stride);
                }
                Found::Frame(..) => {}
                Found::Damage(place, why) => {
                    content.is_damaged = true;
                    let what = format!("damaged ({why}): {} bytes are not served, the rest is", place.end - place.start);
                    self.fault(&content.path, place, what);
                }
                Found::Torn(at) => {
                    let lost = content.end - at;
                    OpenOptions::new().write(true).open(&content.path)?.set_len(at)?;
                    let what = format!("the last write was interrupted: {lost} bytes that were never acknowledged were cut off");
                    self.fault(&content.path, at..content.end, what);
                    content.end = at;
                }
            }
        }
        if content.of.is_empty() && !content.is_damaged {
            return fs::remove_file(&content.path);
        }
        self.files.push(content);
        Ok(())
    }

    fn note(&mut self, content: &mut Content, packet: &Packet<'_>, bytes: u64) {
        let account = Account { bytes, records: packet.records.into(), since: Some(packet.received) };
        content.of.entry(packet.header.source.clone()).or_default().add(&account);
        self.accounts.entry(packet.header.source.clone()).or_default().add(&account);
        self.bytes += bytes;
        self.ledger.take(packet.header.incarnation, packet.header.stream, packet.header.first..packet.header.next());
    }

    // --- writing ---

    /// Takes a packet into the group, or counts it lost where there is no room for it. Either way it may be acknowledged once
    /// [`Store::commit`] has succeeded.
    pub(crate) fn take(&mut self, packet: &Packet<'_>) -> Room {
        let begin = self.group.bytes.len();
        packet.encode(&mut self.group.bytes);
        let end = self.group.bytes.len().next_multiple_of(8);
        self.group.bytes.resize(end, 0);
        let bytes = (end - begin) as u64;
        let source = &packet.header.source;
        let of_source = |accounts: &HashMap<SourceName, Account>| accounts.get(source).map_or(0, |account| account.bytes);
        let room = if self.bytes + end as u64 > self.options.total {
            Room::Full
        } else if of_source(&self.accounts) + of_source(&self.group.of) + bytes > self.options.per_source {
            Room::SourceFull
        } else {
            Room::Free
        };
        if room == Room::Free {
            let account = Account { bytes, records: packet.records.into(), since: Some(packet.received) };
            self.group.of.entry(source.clone()).or_default().add(&account);
            self.group.taken.push((packet.header.incarnation, packet.header.stream, packet.header.first));
        } else {
            self.group.bytes.truncate(begin);
            self.ledger.lose(source, Lost { records: packet.records.into(), bytes: packet.bytes.len() as u64, samples: 0 });
            self.ledger.take(packet.header.incarnation, packet.header.stream, packet.header.first..packet.header.next());
            self.group.has_losses = true;
        }
        room
    }

    /// Counts samples that were lost before they arrived here.
    pub(crate) fn miss(&mut self, source: &SourceName, incarnation: Incarnation, stream: u32, range: Range<u64>) {
        self.ledger.lose(source, Lost { samples: range.end - range.start, ..Lost::default() });
        self.ledger.take(incarnation, stream, range);
        self.group.has_losses = true;
    }

    /// Bytes that wait to be committed.
    pub(crate) fn gathered(&self) -> usize {
        self.group.bytes.len()
    }

    /// Returns whether packets wait for a commit.
    pub(crate) fn has_news(&self) -> bool {
        !self.group.bytes.is_empty() || self.group.has_losses
    }

    /// Puts the group on the disk. Where that fails nothing of it is there, and it can be tried again.
    pub(crate) fn commit(&mut self, now: Time) -> io::Result<()> {
        if !self.group.bytes.is_empty() {
            self.write_group(now)?;
            let group = std::mem::take(&mut self.group);
            if let Some(content) = self.files.last_mut() {
                content.end += group.bytes.len() as u64;
                for (source, account) in &group.of {
                    content.of.entry(source.clone()).or_default().add(account);
                    self.accounts.entry(source.clone()).or_default().add(account);
                    self.bytes += account.bytes;
                }
            }
            for (incarnation, stream, first) in group.taken {
                self.ledger.take(incarnation, stream, first..first + 1);
            }
            self.group = Group { bytes: group.bytes, has_losses: group.has_losses, ..Group::default() };
            self.group.bytes.clear();
        }
        if self.group.has_losses {
            self.ledger.write(&self.dir)?;
            self.group.has_losses = false;
        }
        Ok(())
    }

    fn write_group(&mut self, now: Time) -> io::Result<()> {
        let full = self.files.last().is_none_or(|content| content.end >= self.options.file);
        if full || self.active.is_none() {
            self.active = None;
            self.begin_file(now)?;
        }
        let (Some(file), Some(content)) = (&self.active, self.files.last()) else { return Ok(()) };
        let written = file.write_all_at(&self.group.bytes, content.end).and_then(|()| file.sync_data());
        if written.is_err() {
            let _ = file.set_len(content.end);
            // After a failed sync the kernel may have discarded the data it could not write. A new file has no such data.
            self.active = None;
        }
        written
    }

    fn begin_file(&mut self, now: Time) -> io::Result<()> {
        let number = self.number + 1;
        let path = self.dir.join(file::FILES.file_name(number));
        let header = file::FILES.encode_header(number, now, &self.domain);
        let made = || -> io::Result<File> {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
            file.write_all_at(&header, 0)?;
            file.sync_data()?;
            File::open(&self.dir)?.sync_all()?;
            Ok(file)
        };
        match made() {
            Ok(file) => {
                self.active = Some(file);
                self.number = number;
                self.files.push(Content { number, path, end: header.len() as u64, of: HashMap::new(), is_damaged: false });
                Ok(())
            }
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(error)
            }
        }
    }

    // --- replay ---

    /// The first file behind this number, for replaying it: nothing more is written to it.
    pub(crate) fn after(&mut self, number: u64) -> Option<(u64, PathBuf, u64)> {
        self.active = None;
        let content = self.files.iter().find(|content| content.number > number)?;
        Some((content.number, content.path.clone(), content.end))
    }

    /// Removes a file that a collector has completely received, or sets it aside if it was damaged.
    pub(crate) fn remove(&mut self, number: u64) -> io::Result<()> {
        let Some(place) = self.files.iter().position(|content| content.number == number) else { return Ok(()) };
        // Before the packets are removed: the ledger's entries about their streams must outlive them.
        self.ledger.write(&self.dir)?;
        let content = &self.files[place];
        let gone = if content.is_damaged {
            fs::rename(&content.path, content.path.with_extension("wal.damaged"))
        } else {
            fs::remove_file(&content.path)
        };
        match gone {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let content = self.files.remove(place);
        for (source, account) in content.of {
            self.bytes -= account.bytes;
            if let Some(sum) = self.accounts.get_mut(&source) {
                sum.bytes -= account.bytes;
                sum.records -= account.records;
                sum.since = self.files.iter().filter_map(|file| file.of.get(&source)?.since).min();
                if sum.bytes == 0 {
                    self.accounts.remove(&source);
                }
            }
        }
        if self.files.is_empty() {
            self.active = None;
        }
        Ok(())
    }

    /// Sets this file aside instead of removing it, once a collector has all its readable content.
    pub(crate) fn set_aside(&mut self, path: &Path) {
        self.files.iter_mut().filter(|content| content.path == path).for_each(|content| content.is_damaged = true);
    }

    /// Returns whether the spool holds no packets.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.group.bytes.is_empty()
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the content by source.
    pub(crate) fn accounts(&self) -> BTreeMap<String, Account> {
        self.accounts.iter().map(|(source, account)| (source.to_string(), *account)).collect()
    }

    pub(crate) fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Explicit, because a child process that is being started holds a copy of the file until it runs.
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Returns the number of bytes of a packet's frame in its file.
fn stride(from: &[u8]) -> u64 {
    super::frame::FRAMES.check(from).map_or(0, |frame| frame.bytes.len().next_multiple_of(8) as u64)
}

#[cfg(test)]
mod tests;
