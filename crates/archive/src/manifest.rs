//! The manifest: the list of the archive's Parquet files, and the segment positions up to which they hold the records.
//!
//! It is a log of commits, a line each: a checksum, a space, JSON. A compaction first writes and syncs its files, and
//! then appends one line here. With that line on disk, the records belong to the files and no longer to the segments.
//! Files that a killed compaction leaves are in no line. The next start removes them, and also segments whose records a
//! line has moved. Rejected: a manifest that is rewritten whole at each commit, because after a year it lists tens of
//! thousands of files.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use tampu_types::{Domain, Time};

use crate::{Fault, parquet::Written};

const VERSION: u32 = 1;
/// Name of the manifest in the archive's directory.
pub(crate) const NAME: &str = "manifest.jsonl";
/// Suffix of a file that is not complete yet.
const UNFINISHED: &str = ".new";

/// A Parquet file of the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileEntry {
    /// Directory and name, such as `2026-03-01/00000012.parquet` or `far/00000012.parquet`.
    pub(crate) file: String,
    pub(crate) bytes: u64,
    /// CRC-32C of the whole file, hexadecimal.
    pub(crate) crc32c: String,
    pub(crate) records: u64,
    /// Times of the first and the last record, ns UTC.
    pub(crate) earliest: Time,
    pub(crate) latest: Time,
    /// Reception time of the last record.
    pub(crate) received: Time,
    /// Levels in the file: bit n is set if the level with ordinal n occurs.
    pub(crate) levels: u16,
}

impl FileEntry {
    pub(crate) fn new(file: String, written: &Written) -> FileEntry {
        FileEntry {
            file,
            bytes: written.bytes,
            crc32c: format!("{:08x}", written.sum),
            records: written.records,
            earliest: written.earliest,
            latest: written.latest,
            received: written.received,
            levels: written.levels.0,
        }
    }
}

/// Returns the file name for a directory and a commit.
pub(crate) fn file_name(directory: &str, number: u64) -> String {
    format!("{directory}/{number:08}.parquet")
}

/// Returns the name of the id file of one commit.
pub(crate) fn ids_name(number: u64) -> String {
    format!("{number:08}.ids")
}

/// Returns the number of the commit that made a file of this name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    name.rsplit('/').next()?.split('.').next()?.parse().ok()
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Commit {
    pub(crate) number: u64,
    /// All segments up to this one are in Parquet files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) segments: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) add: Vec<FileEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) add_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) remove_ids: Vec<String>,
}

/// First line of the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    format: String,
    version: u32,
    domain: Domain,
    /// The archive's own id. A copy of an archive has the same one. Manifests of earlier releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
}

/// A new id of an archive: 128 random bits, hexadecimal.
fn new_id() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// Owner of a directory, by its manifest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No manifest is there.
    Nobody,
    /// The archive with this id.
    Archive(String),
    /// A manifest of an earlier release, which gave archives no id.
    Unnamed,
    /// A file that is no manifest, or one whose first line is damaged.
    Unreadable,
}

/// Returns the owner of a directory.
pub(crate) fn owner(dir: &Path) -> io::Result<Owner> {
    let bytes = match fs::read(dir.join(NAME)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Owner::Nobody),
        Err(error) => return Err(error),
    };
    let first = bytes.split_inclusive(|&byte| byte == b'\n').next().unwrap_or_default();
    let head = checked(first).and_then(|json| serde_json::from_slice::<Head>(json).ok());
    Ok(match head {
        Some(Head { archive: Some(id), .. }) => Owner::Archive(id),
        Some(_) => Owner::Unnamed,
        None => Owner::Unreadable,
    })
}

/// Name under which the manifest is written before it takes its place.
pub(crate) fn unfinished_name() -> String {
    format!("{NAME}{UNFINISHED}")
}

/// State of an archive after all commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) number: u64,
    pub(crate) segments: u64,
    pub(crate) files: BTreeMap<String, FileEntry>,
    pub(crate) ids: BTreeSet<String>,
}

impl State {
    pub(crate) fn apply(&mut self, commit: &Commit) {
        self.number = self.number.max(commit.number);
        self.segments = self.segments.max(commit.segments.unwrap_or_default());
        for name in &commit.remove {
            self.files.remove(name);
        }
        self.files.extend(commit.add.iter().map(|entry| (entry.file.clone(), entry.clone())));
        for name in &commit.remove_ids {
            self.ids.remove(name);
        }
        self.ids.extend(commit.add_ids.iter().cloned());
    }

    /// Returns whether a file of this name was left by a compaction that never committed.
    pub(crate) fn is_unfinished(&self, name: &str) -> bool {
        number_of(name).is_some_and(|number| number > self.number)
    }

    /// Returns one commit that holds the whole state.
    fn as_commit(&self) -> Commit {
        Commit {
            number: self.number,
            segments: Some(self.segments),
            add: self.files.values().cloned().collect(),
            add_ids: self.ids.iter().cloned().collect(),
            ..Commit::default()
        }
    }
}

fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(value)?;
    let mut line = format!("{:08x} ", crc32c::crc32c(&json)).into_bytes();
    line.extend_from_slice(&json);
    line.push(b'\n');
    Ok(line)
}

/// Returns the JSON of a line if its checksum is right.
fn checked(line: &[u8]) -> Option<&[u8]> {
    let (sum, json) = line.strip_suffix(b"\n")?.split_at_checked(9)?;
    let sum = std::str::from_utf8(sum).ok()?.strip_suffix(' ')?;
    (u32::from_str_radix(sum, 16).ok()? == crc32c::crc32c(json)).then_some(json)
}

/// Decoded content of a manifest.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) state: State,
    /// The archive's id.
    id: Option<String>,
    /// End of the readable part, if a torn line follows.
    pub(crate) torn: Option<u64>,
    /// Damage before that, in bytes: some commits are missing.
    pub(crate) damage: Option<(u64, u64)>,
    commits: usize,
}

/// Reason why a manifest cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadManifest {
    #[error("it is of version {0}; this release reads version {VERSION}")]
    Later(u32),
    #[error("it belongs to domain '{0}'")]
    OtherDomain(Domain),
    #[error("it is one of another kind of archive: '{0}'")]
    OtherTable(String),
}

/// Returns the first line of the manifest of an archive with this table.
fn format_of(table: &str) -> String {
    format!("tampu {table} archive")
}

/// Reads a manifest.
pub(crate) fn read(bytes: &[u8], domain: &Domain, table: &str) -> Result<Read, BadManifest> {
    let mut read = Read::default();
    let mut at = 0;
    let mut headed = false;
    for whole in bytes.split_inclusive(|&byte| byte == b'\n') {
        let end = at + whole.len() as u64;
        let json = checked(whole);
        let head = json.and_then(|json| serde_json::from_slice::<Head>(json).ok());
        let commit = json.and_then(|json| serde_json::from_slice::<Commit>(json).ok());
        match (head, commit) {
            (Some(head), _) if head.version != VERSION => return Err(BadManifest::Later(head.version)),
            (Some(head), _) if head.format != format_of(table) => return Err(BadManifest::OtherTable(head.format)),
            (Some(head), _) if head.domain != *domain => return Err(BadManifest::OtherDomain(head.domain)),
            (Some(head), _) => {
                headed = true;
                read.id = head.archive;
            }
            (None, Some(commit)) => {
                read.state.apply(&commit);
                read.commits += 1;
            }
            (None, None) if end == bytes.len() as u64 && headed => read.torn = Some(at),
            (None, None) => {
                let from = read.damage.map_or(at, |(from, _)| from);
                read.damage = Some((from, end));
            }
        }
        at = end;
    }
    Ok(read)
}

/// The manifest of an open archive.
#[derive(Debug)]
pub(crate) struct Manifest {
    dir: PathBuf,
    file: File,
    domain: Domain,
    /// Name of the table.
    table: &'static str,
    /// The archive's id.
    pub(crate) id: String,
    pub(crate) state: State,
    length: u64,
    /// True if a commit could not be synced. The content of the file is then unknown, and it is rewritten.
    unsure: bool,
}

impl Manifest {
    /// Opens the manifest of an archive and creates it if it is missing. An incomplete line at the end is cut off.
    pub(crate) fn open(dir: &Path, domain: &Domain, table: &'static str, faults: &mut Vec<Fault>) -> io::Result<Manifest> {
        let path = dir.join(NAME);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let Read { state, id, torn, damage, commits } = read(&bytes, domain, table).map_err(io::Error::other)?;
        if let Some((from, to)) = damage {
            let what = format!("damaged: {} bytes of commits cannot be read; unlisted files count as the archive's", to - from);
            faults.push(Fault { file: path.clone(), from, to, what });
        }
        let file = OpenOptions::new().append(true).create(true).open(&path)?;
        let is_named = id.is_some();
        let mut manifest = Manifest {
            dir: dir.to_owned(),
            file,
            domain: domain.clone(),
            table,
            id: id.map_or_else(new_id, Ok)?,
            state,
            length: bytes.len() as u64,
            unsure: false,
        };
        // Rewrites the manifest if that repairs or names it, or makes it much shorter.
        if !is_named || bytes.is_empty() || torn.is_some() || damage.is_some() || commits > 64 + manifest.state.files.len() {
            manifest.rewrite()?;
        }
        Ok(manifest)
    }

    /// Appends a commit and syncs it. A failure changes nothing.
    pub(crate) fn commit(&mut self, commit: &Commit) -> io::Result<()> {
        if self.unsure {
            self.rewrite()?;
        }
        let line = line(commit)?;
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            self.unsure = true;
            // If this fails too, the next commit rewrites the manifest first.
            let _ = self.file.set_len(self.length);
            let _ = self.rewrite();
            return Err(error);
        }
        self.length += line.len() as u64;
        self.state.apply(commit);
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let path = self.dir.join(NAME);
        let bytes = self.whole()?;
        write_whole(&path, &bytes)?;
        self.file = OpenOptions::new().append(true).open(&path)?;
        self.length = bytes.len() as u64;
        self.unsure = false;
        Ok(())
    }

    fn whole(&self) -> io::Result<Vec<u8>> {
        whole(&self.state, &self.domain, self.table, &self.id)
    }
}

/// Encodes a manifest with this state.
pub(crate) fn whole(state: &State, domain: &Domain, table: &str, id: &str) -> io::Result<Vec<u8>> {
    let head = Head { format: format_of(table), version: VERSION, domain: domain.clone(), archive: Some(id.to_owned()) };
    let mut bytes = line(&head)?;
    bytes.extend(line(&state.as_commit())?);
    Ok(bytes)
}

/// Writes a file completely or not at all, and syncs the file and its name.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)?;
        sync_dir(path.parent().unwrap_or(Path::new(".")))
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Syncs the names in a directory.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn domain() -> Domain {
        Domain::new("test").unwrap()
    }

    fn commit(number: u64, removes: u64) -> Commit {
        let written = Written {
            bytes: number,
            sum: 7,
            records: 3,
            earliest: Time(-1),
            latest: Time(5),
            received: Time(6),
            levels: crate::wal::frame::LevelSet(3),
        };
        Commit {
            number,
            segments: Some(2 * number),
            add: vec![FileEntry::new(file_name("2024-10-04", number), &written)],
            remove: vec![file_name("2024-10-04", removes)],
            add_ids: vec![ids_name(number)],
            ..Commit::default()
        }
    }

    #[test]
    fn commits_add_up_also_after_opening_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut faults = Vec::new();
        let mut manifest = Manifest::open(dir.path(), &domain(), "log", &mut faults).unwrap();
        for number in 1..=200 {
            manifest.commit(&commit(number, number / 2)).unwrap();
        }
        let state = manifest.state.clone();
        assert_eq!((state.number, state.segments, state.files.len(), state.ids.len()), (200, 400, 100, 200));
        assert_eq!(state.files.keys().next().unwrap(), "2024-10-04/00000101.parquet");
        assert!(state.is_unfinished("2024-10-04/00000201.parquet") && !state.is_unfinished("2024-10-04/00000200.parquet"));
        drop(manifest);
        let again = Manifest::open(dir.path(), &domain(), "log", &mut faults).unwrap();
        assert_eq!(again.state, state);
        assert!(again.length < 100 * 400, "it is rewritten shorter");
        let third = Manifest::open(dir.path(), &domain(), "log", &mut faults).unwrap();
        assert_eq!((&third.state, &third.id), (&state, &again.id));
        assert_eq!(owner(dir.path()).unwrap(), Owner::Archive(third.id));
        assert_eq!(faults, []);
        let other = Manifest::open(dir.path(), &Domain::new("other").unwrap(), "log", &mut faults).unwrap_err();
        assert!(other.to_string().contains("'test'"), "{other}");
        let other = Manifest::open(dir.path(), &domain(), "event", &mut faults).unwrap_err();
        assert!(other.to_string().contains("'tampu log archive'"), "{other}");
    }

    #[test]
    fn a_manifest_of_an_earlier_release_gets_an_id_once() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(owner(dir.path()).unwrap(), Owner::Nobody);
        let head = Head { format: format_of("log"), version: VERSION, domain: domain(), archive: None };
        fs::write(dir.path().join(NAME), [line(&head).unwrap(), line(&commit(3, 0)).unwrap()].concat()).unwrap();
        assert_eq!(owner(dir.path()).unwrap(), Owner::Unnamed);
        let mut faults = Vec::new();
        let mut open = || Manifest::open(dir.path(), &domain(), "log", &mut faults).unwrap();
        let (first, second) = (open(), open());
        assert_eq!((first.state.number, &first.id), (3, &second.id));
        assert_eq!(first.id.len(), 32);
    }

    #[test]
    fn a_commit_cut_off_anywhere_never_was_and_damage_before_is_told() {
        let (one, two) = (commit(1, 0), commit(2, 1));
        let mut bytes = whole(&State::default(), &domain(), "log", "7").unwrap();
        let head = bytes.len();
        bytes.extend(line(&one).unwrap());
        let before = bytes.len();
        bytes.extend(line(&two).unwrap());
        for cut in before..bytes.len() {
            let read = read(&bytes[..cut], &domain(), "log").unwrap();
            assert_eq!((read.state.number, read.damage), (1, None));
            assert_eq!(read.torn, (cut > before).then_some(before as u64));
        }
        let mut damaged = bytes.clone();
        damaged[head + 30] ^= 1;
        let read = read(&damaged, &domain(), "log").unwrap();
        assert_eq!((read.state.number, read.torn, read.damage), (2, None, Some((head as u64, before as u64))));
    }

    proptest! {
        #[test]
        fn hostile_manifests_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, &domain(), "log");
        }
    }
}
