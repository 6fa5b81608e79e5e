//! ZIP archives from anybody: checked as a whole before anything is read.
//!
//! An archive is refused if the path of a member leads out of its folder, if two members have one name, if a member is
//! a link or encrypted, if members overlap, or if the members are together far larger than the archive. Each refusal
//! names the member. Members are read as streams, and checked against their size and CRC.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, FileReader, MAX_CENTRAL_DIRECTORY_RECORD_SIZE, ZipArchive, ZipArchiveEntryWayfinder};

use super::METADATA;
use crate::exchange::foreign::SourceError;

/// Members of an archive.
const MAX_MEMBERS: u64 = 2_000_000;
/// Bytes that every archive may unpack to.
const ALWAYS: u64 = 1 << 30;
/// The number of times by which a larger archive may grow.
const GROWTH: u64 = 100;
/// Bytes of the metadata, which are held in memory.
pub const MAX_METADATA: u64 = 256 << 20;

/// A member of an archive.
#[derive(Debug, Clone, Copy)]
struct Member {
    place: ZipArchiveEntryWayfinder,
    is_deflated: bool,
    size: u64,
}

/// A checked archive.
pub struct ElnArchive {
    path: PathBuf,
    archive: ZipArchive<FileReader>,
    /// All files, by their paths below the folder.
    members: HashMap<String, Member>,
}

/// Returns true if a file begins as a ZIP archive does.
pub fn is_zip(path: &Path) -> bool {
    let mut first = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first.starts_with(b"PK")
}

impl ElnArchive {
    /// Opens an archive and checks all its members.
    pub fn open(path: &Path) -> Result<ElnArchive, SourceError> {
        let bad = |why: String| SourceError::Format { path: path.to_owned(), why };
        let io = |error| SourceError::Io { path: path.to_owned(), error };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut buffer = vec![0; MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(|error| bad(format!("no ZIP archive: {error}")))?;
        let mut members: HashMap<String, Member> = HashMap::new();
        let mut lower: HashSet<String> = HashSet::new();
        let mut ranges: Vec<(u64, u64, String)> = Vec::new();
        let (mut total, mut root, mut seen) = (0_u64, None::<String>, 0_u64);
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(|error| bad(format!("its directory: {error}")))? {
            seen += 1;
            let name = String::from_utf8(entry.file_path().as_bytes().to_vec());
            let name = name.map_err(|_| bad(format!("member {seen}: its name is not UTF-8")))?;
            let refuse = |why: &str| bad(format!("member '{}': {why}", name.escape_debug()));
            if seen > MAX_MEMBERS {
                return Err(bad(format!("it has more than {MAX_MEMBERS} members")));
            }
            check_path(&name).map_err(refuse)?;
            if entry.mode().is_symlink() {
                return Err(refuse("it is a symbolic link"));
            }
            if entry.flags().is_encrypted() {
                return Err(refuse("it is encrypted"));
            }
            let is_deflated = match entry.compression_method() {
                CompressionMethod::STORE => false,
                CompressionMethod::DEFLATE => true,
                other => return Err(refuse(&format!("it is compressed by {other}; only deflate is read"))),
            };
            if !lower.insert(name.trim_end_matches('/').to_lowercase()) {
                return Err(refuse("a second member has this name"));
            }
            let (first, rest) = name.split_once('/').ok_or_else(|| refuse("it is in no folder; an .eln has one folder"))?;
            match &root {
                Some(root) if root != first => return Err(refuse(&format!("it is not in the folder '{}'", root.escape_debug()))),
                Some(_) => {}
                None => root = Some(first.to_owned()),
            }
            total = total.saturating_add(entry.uncompressed_size_hint());
            if total > ALWAYS.max(length.saturating_mul(GROWTH)) {
                return Err(refuse(&format!("the archive of {length} bytes unpacks to more than {GROWTH} times as much")));
            }
            let place = archive.get_entry(entry.wayfinder()).map_err(|error| refuse(&error.to_string()))?;
            let (from, to) = place.compressed_data_range();
            ranges.push((from, to, name.clone()));
            if !entry.is_dir() && !rest.is_empty() {
                let size = entry.uncompressed_size_hint();
                members.insert(rest.to_owned(), Member { place: entry.wayfinder(), is_deflated, size });
            }
        }
        if seen != archive.entries_hint() {
            return Err(bad(format!("its directory has {seen} members, but says {}", archive.entries_hint())));
        }
        ranges.sort_unstable();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[1].0 < pair[0].1) {
            let (a, b) = (pair[0].2.escape_debug(), pair[1].2.escape_debug());
            return Err(bad(format!("member '{b}': its bytes overlap those of '{a}'")));
        }
        Ok(ElnArchive { path: path.to_owned(), archive, members })
    }

    /// The file of the archive.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if the archive has a file of this path below its folder.
    pub fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// Opens a file of the archive.
    pub fn read(&self, name: &str) -> Result<Box<dyn Read + '_>, String> {
        let member = self.members.get(name).ok_or_else(|| format!("the archive has no '{}'", name.escape_debug()))?;
        let entry = self.archive.get_entry(member.place).map_err(|error| error.to_string())?;
        Ok(match member.is_deflated {
            true => Box::new(entry.verifying_reader(DeflateDecoder::new(entry.reader()))),
            false => Box::new(entry.verifying_reader(entry.reader())),
        })
    }

    /// Reads a file of at most `most` bytes.
    pub fn bytes(&self, name: &str, most: u64) -> Result<Vec<u8>, String> {
        if self.members.get(name).is_some_and(|member| member.size > most) {
            return Err(format!("'{}' has more than {most} bytes", name.escape_debug()));
        }
        let mut bytes = Vec::new();
        let read = self.read(name)?.take(most).read_to_end(&mut bytes);
        read.map_err(|error| format!("'{}': {error}", name.escape_debug()))?;
        Ok(bytes)
    }

    /// Reads the metadata.
    pub fn metadata(&self) -> Result<Vec<u8>, SourceError> {
        let bad = |why: String| SourceError::Format { path: self.path.clone(), why };
        if !self.has(METADATA) {
            return Err(bad(format!("its folder has no {METADATA}; an .eln has one")));
        }
        self.bytes(METADATA, MAX_METADATA).map_err(bad)
    }
}

/// Checks that a path leads into a folder and not out of it.
fn check_path(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > 4096 {
        return Err("its name is empty or too long");
    }
    if name.chars().any(char::is_control) {
        return Err("its name has a control character");
    }
    if name.contains('\\') || name.starts_with('/') || name.split('/').next().is_some_and(|first| first.contains(':')) {
        return Err("its name is an absolute path, or has a backslash");
    }
    let mut parts = name.trim_end_matches('/').split('/');
    match parts.any(|part| matches!(part, "" | "." | "..")) {
        true => Err("its path leads out of the archive's folder"),
        false => Ok(()),
    }
}
